"""What happens to the trees between measurements, the same for a seed wherever it is run.

    change.py destroy TREE SEED      also a command, so that it can be run under snapback

What is done is planned from the names alone, so that the measurements know which paths
were touched without looking.
"""

import os
import pathlib
import random
import sqlite3
import sys

EDITED = 100  # one file of so many: 1 %
STRETCHES = 100  # updated rows lie in so many stretches of adjacent ones
PIECE = 4096  # bytes changed in the large file


def files(tree):
    """All regular files below `tree`, sorted."""
    top = os.fspath(tree)
    found = []
    for path, _, names in os.walk(top):
        found += [os.path.join(path, name)[len(top) + 1 :] for name in names]
    return sorted(path for path in found if not os.path.islink(os.path.join(top, path)))


def edit(tree, seed):
    """Puts a line into the middle of 1 % of the files, in place, as an editor does."""
    chance = random.Random(str(seed))
    paths = files(tree)
    for path in chance.sample(paths, max(1, len(paths) // EDITED)):
        with open(os.path.join(tree, path), "r+b") as file:
            content = file.read()
            at = chance.randint(0, len(content))
            file.seek(at)
            file.write(f"/* edit {seed} */\n".encode() + content[at:])


class Destruction:
    """A third of the files deleted, a tenth of the rest rewritten, some modes changed, some
    directories renamed, some files new."""

    def __init__(self, paths, seed):
        chance = random.Random(str(seed))
        mixed = chance.sample(paths, len(paths))
        third = len(mixed) // 3
        self.deleted, rest = mixed[:third], mixed[third:]
        tenth = len(rest) // 10
        self.rewritten, self.modes = rest[:tenth], rest[tenth : tenth + tenth // 5]
        # Directories that hold files and no directories, so that no renamed one is in another.
        holders = {os.path.dirname(path) for path in paths}
        above = {parent for holder in holders for parent in parents(holder)}
        leaves = sorted(holders - above - {""})
        self.renamed = chance.sample(leaves, len(leaves) // 50)
        self.new = [f"{path}.new" for path in rest[-tenth // 5 :]]
        self.touched = self.all_touched(paths)

    def all_touched(self, paths):
        """All paths whose times may change: with the directories that hold what was hit."""
        renamed = set(self.renamed)
        moved = [path for path in paths if os.path.dirname(path) in renamed]
        hit = self.deleted + self.rewritten + self.modes + self.renamed + self.new + moved
        return set(hit) | {parent for path in hit for parent in parents(path)}

    def carry_out(self, tree):
        tree = pathlib.Path(tree)
        for path in self.deleted:
            (tree / path).unlink()
        for path in self.rewritten:
            (tree / path).write_bytes(b"rewritten\n" + (tree / path).read_bytes()[::-1])
        for path in self.modes:
            (tree / path).chmod(0o600)
        for path in self.new:
            (tree / path).write_bytes(path.encode() * 100)
        for path in self.renamed:
            (tree / path).rename(tree / f"{path}.renamed")


def parents(path):
    while path := os.path.dirname(path):
        yield path


def update(place, seed):
    """Changes 4 KB of the large file and updates 1 % of the database's rows."""
    chance = random.Random(str(seed))
    large = place / "large"
    with open(large, "r+b") as file:
        file.seek(chance.randrange(large.stat().st_size // PIECE) * PIECE)
        file.write(chance.randbytes(PIECE))
    database = sqlite3.connect(place / "rows.sqlite")
    (rows,) = database.execute("SELECT count(*) FROM rows").fetchone()
    each = rows // 100 // STRETCHES
    for first in chance.sample(range(0, rows - each, each), STRETCHES):
        changed = [(chance.randbytes(400).hex(), number) for number in range(first, first + each)]
        database.executemany("UPDATE rows SET content = ? WHERE id = ?", changed)
    database.commit()
    database.close()


if __name__ == "__main__":
    _, _, directory, number = sys.argv
    Destruction(files(directory), number).carry_out(directory)

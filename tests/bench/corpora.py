"""The trees that are measured, made from published packages.

    S  three packages of M: about 450 files
    M  the packages that corpus/package-lock.json names: about 24,500 files, 250 MB
    L  M seven times over, no block of one copy in another: about 172,000 files, 1.7 GB
    B  a SQLite file of 1 GB and one of 2 GB that cannot be compressed

Invariant: the same bytes, names, modes and times wherever they are made. S, M and L are
made once, aside, and kept under a name with what they were made from; B is made where it
is measured. Needs the npm client and its registry, once; no package's code is run.
"""

import hashlib
import os
import pathlib
import random
import shutil
import sqlite3
import stat
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
RECIPE = 1  # to be raised when what is below makes other trees
S_PACKAGES = ("eslint", "esquery", "pretty-format")
L_COPIES = 7
MARK_EVERY = 16384  # bytes; smaller than any block that a peer cuts content into
TIME = 1_700_000_000  # seconds; when everything was last changed
DATABASE_ROWS, ROW_BYTES = 960_000, 1000
LARGE_BYTES = 2 << 30
# Directories of these names could be left out by snapback's rules for what can be made again.
REGENERABLE = ("node_modules", "dist", "build", "out", "target", ".cache", "obj", "_build")


def corpus(name, cache):
    """The directory of corpus S, M or L, made in `cache` if it is not there."""
    lock = (HERE / "corpus" / "package-lock.json").read_bytes()
    key = hashlib.sha256(lock + bytes([RECIPE])).hexdigest()[:8]
    place = cache / f"{name}-{key}"
    if not place.exists():
        print(f"making corpus {name} in {place}", file=sys.stderr)
        aside = cache / f"{name}-{key}.new"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        if name == "M":
            packages(aside)
        elif name == "S":
            several(corpus("M", cache), aside)
        else:
            copies(corpus("M", cache), aside)
        same_times(aside)
        aside.rename(place)
    return place


def packages(place):
    """Unpacks the packages of the lock file."""
    if not shutil.which("npm"):
        sys.exit("the corpora come from published packages, and npm is not installed\nhint: apt-get install npm")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "corpus" / name, place)
    command = "npm ci --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error".split()
    subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
    (place / "node_modules" / ".package-lock.json").unlink()
    for path, names, _ in os.walk(place, topdown=False):
        for name in names:
            if name in REGENERABLE:
                (pathlib.Path(path) / name).rename(pathlib.Path(path) / f"{name}-")


def several(packages_, place):
    """Copies a few packages."""
    for name in S_PACKAGES:
        shutil.copytree(packages_ / "node_modules-" / name, place / name, symlinks=True)


def copies(packages_, place):
    """Copies all packages several times, with a mark in all blocks of all files."""
    for number in range(L_COPIES):
        def marked(source, to, mark=f"/*{number:012}*/".encode()):
            content = pathlib.Path(source).read_bytes()
            cuts = range(0, len(content), MARK_EVERY)
            pathlib.Path(to).write_bytes(b"".join(mark + content[at : at + MARK_EVERY] for at in cuts))
            os.chmod(to, stat.S_IMODE(os.stat(source).st_mode))

        shutil.copytree(packages_, place / f"copy-{number}", symlinks=True, copy_function=marked)


def same_times(place):
    """Makes times and modes the same wherever this is run, a file's by its place in order."""
    paths = sorted(pathlib.Path(path) / name for path, dirs, names in os.walk(place) for name in dirs + names)
    for number, path in reversed(list(enumerate(paths))):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (TIME + number, TIME + number), follow_symlinks=False)


def large(place, size=LARGE_BYTES):
    """Makes corpus B in `place`; or one whose large file has `size` bytes, and the database the
    same share of its rows."""
    place.mkdir(parents=True)
    source = random.Random(2)
    with open(place / "large", "wb") as file:
        for _ in range(size >> 20):
            file.write(source.randbytes(1 << 20))
    database = sqlite3.connect(place / "rows.sqlite")
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, content TEXT NOT NULL)")
    rows = ((number, row(source)) for number in range(DATABASE_ROWS * size // LARGE_BYTES))
    database.executemany("INSERT INTO rows VALUES (?, ?)", rows)
    database.commit()
    database.close()


def row(source):
    """The text of a row: half of what it holds can be compressed away."""
    return source.randbytes(ROW_BYTES // 2).hex()

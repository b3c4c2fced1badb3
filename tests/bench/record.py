"""What a tree holds, told without any of the measured programs.

A record has for each path its kind, mode, content (SHA-256, or where a link points to),
and which inode of which time it is. Comparing says what is missing, extra or different,
and which of the files that nobody touched were touched all the same.
"""

import concurrent.futures
import hashlib
import os
import stat
import typing

BLOCK = 65536  # of the store's format: content is cut into blocks of this size


class Entry(typing.NamedTuple):
    kind: int
    mode: int
    content: str
    inode: int
    mtime: int

    def says(self):
        """What must come back; the rest only tells whether it was touched."""
        return self.kind, self.mode, self.content


def record(tree):
    """The record of everything below `tree`: path, as it stands there, to Entry."""
    entries, files = {}, []
    top, todo = os.fspath(tree), [os.fspath(tree)]
    while todo:
        for found in os.scandir(todo.pop()):
            status = found.stat(follow_symlinks=False)
            kind, path = stat.S_IFMT(status.st_mode), found.path[len(top) + 1 :]
            content = os.readlink(found.path) if kind == stat.S_IFLNK else ""
            entries[path] = Entry(kind, stat.S_IMODE(status.st_mode), content, status.st_ino, status.st_mtime_ns)
            if kind == stat.S_IFDIR:
                todo.append(found.path)
            elif kind == stat.S_IFREG:
                files.append(path)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        names = (os.path.join(top, path) for path in files)
        for path, content in zip(files, pool.map(digest, names, chunksize=256)):
            entries[path] = entries[path]._replace(content=content)
    return entries


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else slow(file)


def slow(file):
    """For Python before 3.11."""
    sha = hashlib.sha256()
    while chunk := file.read(1 << 20):
        sha.update(chunk)
    return sha.hexdigest()


def fingerprint(entries):
    """One short word for names, kinds, modes and content of a whole tree."""
    sha = hashlib.sha256()
    for path in sorted(entries):
        sha.update(repr((path, entries[path].says())).encode("utf-8", "surrogateescape"))
    return sha.hexdigest()[:8]


def compare(before, after, touched):
    """How `after` differs from `before`; `touched` are the paths that a change had hit.
    An empty list means exact."""
    missing = [path for path in before if path not in after]
    extra = [path for path in after if path not in before]
    both = [path for path in before if path in after]
    other = [path for path in both if before[path].says() != after[path].says()]
    moved = [path for path in both if path not in touched and before[path][3:] != after[path][3:]]
    kinds = [("missing", missing), ("extra", extra), ("different", other), ("untouched but written", moved)]
    return [f"{len(paths):,} {word}, such as {min(paths)}" for word, paths in kinds if paths]


def blocks(path):
    """The hash of each block of a file."""
    with open(path, "rb") as file:
        return [hashlib.sha256(chunk).digest() for chunk in iter(lambda: file.read(BLOCK), b"")]


def changed_blocks(before, after):
    """Bytes of the blocks that are in `after` and were not in `before`."""
    return BLOCK * len(set(after) - set(before))

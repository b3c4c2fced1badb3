"""The floors: small native programs that do the least that a measured command could do.

`hello` is a process that prints a line, compiled from source here. `floor` (an example of
core) walks a tree, hashes it, appends it to one file, with two threads. `database` (an example
of the runtime) captures and puts back a SQLite database, with one; `receive` (likewise) takes in
what a server sends.
"""

import os
import pathlib
import subprocess
import sys

from measure import Job

ROOT = pathlib.Path(__file__).resolve().parents[2]
HELLO = 'fn main() { println!("hello, world"); }\n'


SCAN, HASH, APPEND = "scan + lstat", "read + SHA-256", "read + SHA-256 + append"
RECEIVE = "receive + SHA-256 + append"
PAGES, BACKUP = "read pages + SHA-256 + append", ".backup + SHA-256 + quick_check"
WORDS = {SCAN: "scan", HASH: "hash", APPEND: "append"}


class Floor:
    """The floors of one tree; what they append goes to `out` and is removed."""

    def __init__(self, bench, tree):
        self.program, self.runner, self.tree = bench.floor, bench.runner, tree
        self.out = bench.work / "appended"

    def run(self, which):
        """Runs one; what it took."""
        out = [self.out] if which == APPEND else []
        sample = self.runner.run(Job([self.program, WORDS[which], self.tree, *out]))
        self.out.unlink(missing_ok=True)
        return sample


def target():
    """Where cargo puts what it builds."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"


def build(*what):
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", *what], cwd=ROOT, check=True)


def program():
    """Builds `snapback`."""
    build()
    return target() / "snapback"


def floor():
    """Builds `floor`."""
    build("--package", "snapback-core", "--example", "floor")
    return target() / "examples" / "floor"


def database():
    """Builds `database`."""
    build("--package", "snapback-runtime", "--example", "database")
    return target() / "examples" / "database"


def receive():
    """Builds `receive`."""
    build("--package", "snapback-runtime", "--example", "receive")
    return target() / "examples" / "receive"


def hello(work):
    """Builds `hello` in `work`."""
    (work / "hello.rs").write_text(HELLO)
    subprocess.run(["rustc", "-O", "-o", work / "hello", work / "hello.rs"], check=True, stdout=sys.stderr)
    return work / "hello"

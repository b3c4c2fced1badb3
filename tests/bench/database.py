"""A SQLite database that an application holds open, captured and put back.

Beside each measurement the least that it could be: a program that reads all pages in one
transaction, hashes and appends them; and one that puts a copy over the database with
SQLite's backup, hashes what came of it and checks it. Both journal modes; a restore after
which all pages differ, and one after which 1 % of the rows do.
"""

import random
import sqlite3

import record
from floors import BACKUP, PAGES
from measure import Job, disk_usage, settle
from peers import Snapback

NAME = "D"
FIRST, CHANGED, ALL, FEW = "first", "1 % of rows", "restore, all rows", "restore, 1 % of rows"
GROWTH, BLOCKS = "growth", "changed blocks"
MODES = ("WAL", "DELETE")
ROWS, ROW_BYTES = 200_000, 1000


def make(path, mode):
    """Makes the database and returns the connection that stays open."""
    source = random.Random(3)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"PRAGMA journal_mode = {mode}")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, content TEXT NOT NULL)")
    write(database, source, range(ROWS))
    if mode == "WAL":
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database


def write(database, source, numbers):
    rows = ((number, source.randbytes(ROW_BYTES // 2).hex()) for number in numbers)
    database.execute("BEGIN")
    database.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", rows)
    database.execute("COMMIT")


def measure(bench, rounds):
    for mode in MODES:
        for number in range(rounds):
            measure_once(bench, mode, number)


def measure_once(bench, mode, number):
    def operation(name):
        return f"{name}, {mode}"

    def mine(name, job):
        bench.results.keep(NAME, operation(name), "snapback", peer.run(bench.runner, job))

    def least(name, who, *words):
        bench.results.keep(NAME, operation(name), who, bench.runner.run(Job([bench.database, *words])))

    peer = Snapback(bench, bench.work)
    peer.project.mkdir(parents=True)
    path = peer.project / "rows.sqlite"
    copy, changed, out = bench.work / "copy", bench.work / "changed", bench.work / "appended"
    database = make(path, mode)
    bench.results.facts[NAME] = {"files": 1, "bytes": path.stat().st_size, "entries": 1}
    peer.clear(bench.runner)
    chance = random.Random(str(number))

    def capture(name):
        least(name, PAGES, "capture", path, out)
        out.unlink()
        mine(name, peer.take())

    capture(FIRST)
    before = disk_usage(*peer.stores())
    copied(database, copy)
    write(database, chance, chance.sample(range(ROWS), ROWS // 100))
    capture(CHANGED)
    bench.results.size(NAME, operation(GROWTH), "snapback", disk_usage(*peer.stores()) - before)
    copied(database, changed)
    blocks = record.changed_blocks(record.blocks(copy), record.blocks(changed))
    bench.results.size(NAME, operation(BLOCKS), "snapback", blocks)
    changed.unlink()
    for name, numbers in ((FEW, chance.sample(range(ROWS), ROWS // 100)), (ALL, range(ROWS))):
        copied(database, copy)
        write(database, chance, numbers)
        copied(database, changed)
        settle()
        peer.run(bench.runner, peer.take())
        mine(name, peer.job("restore", "-q", "--yes", "@1"))
        assert content(path) == content(copy), "what came back is what was stored"
        least(name, BACKUP, "restore", copy, changed)
        changed.unlink()
        peer.run(bench.runner, peer.take())
    database.close()
    copy.unlink()
    bench.remove(peer.project, *peer.stores())


def copied(database, to):
    """Copies all of an open database into a file."""
    to.unlink(missing_ok=True)
    other = sqlite3.connect(to)
    database.backup(other)
    other.close()


def content(path):
    """What is in all rows, as a number."""
    database = sqlite3.connect(path)
    (found,) = database.execute("SELECT sum(id * length(content) + unicode(content)) FROM rows").fetchone()
    database.close()
    return found

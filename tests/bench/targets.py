"""What is asked of snapback: each target a ratio or a size, with its limit.

A line whose figures were not measured says so and is neither met nor missed.
"""

import typing

import database
import many
import plugin
import servers
import small
from database import NAME as D
from floors import APPEND, BACKUP, HASH, PAGES, SCAN
from large import CHANGED, FIRST, NAME as B, SMALLER, TENTH

GIT, TAR, BUPSTASH = "shadow git", "tar | zstd -1", "bupstash"
MB = 1e6


class Target(typing.NamedTuple):
    corpus: str
    text: str
    value: float | None
    limit: float
    unit: str = "x"

    def verdict(self):
        if self.value is None:
            return "not measured"
        return "met" if self.value <= self.limit else "MISSED"


def ratio(one, other):
    return one / other if one is not None and other else None


def targets(results):
    """All targets, in the order of the operations."""
    mine = "snapback"

    def cpu(corpus, operation, other):
        return ratio(results.cpu(corpus, operation, mine), results.cpu(corpus, operation, other))

    def wall(corpus, operation, other):
        return ratio(results.wall(corpus, operation, mine), results.wall(corpus, operation, other))

    def store(corpus, other):
        return ratio(results.middle_size(corpus, "store", mine), results.middle_size(corpus, "store", other))

    yield Target("M", "first snapshot: wall, of tar | zstd -1", wall("M", "first", TAR), 1.0)
    yield Target("M", "first snapshot: CPU, of tar | zstd -1", cpu("M", "first", TAR), 1.2)
    yield Target("M", "first snapshot: store, of tar | zstd -1", store("M", TAR), 1.35)
    yield Target("M", "first snapshot: CPU, of shadow git", cpu("M", "first", GIT), 1 / 3)
    for corpus in "M", "L":
        yield Target(corpus, f"unchanged: CPU, of {SCAN}", cpu(corpus, "unchanged", SCAN), 1.3)
        yield Target(corpus, "unchanged: wall, of shadow git", wall(corpus, "unchanged", GIT), 0.6)
    for corpus in "M", "L":
        yield Target(corpus, "1 % changed: CPU, of shadow git", cpu(corpus, "1 % changed", GIT), 0.6)
    for corpus in "M", "L":
        yield Target(corpus, "undo: paths that are not exact", inexact(results, corpus), 0, "")
        yield Target(corpus, "undo: CPU, of bupstash", cpu(corpus, "undo", BUPSTASH), 0.6)
        yield Target(corpus, "undo: wall, of bupstash", wall(corpus, "undo", BUPSTASH), 0.5)
    for corpus in "M", "L":
        yield Target(corpus, "diff, names alone: CPU, of shadow git", cpu(corpus, "diff", GIT), 0.6)
        yield Target(corpus, "diff, lines counted: CPU, of shadow git", cpu(corpus, "diff, lines", GIT), 0.6)
        yield Target(corpus, "diff -p: CPU, of shadow git", cpu(corpus, "diff -p", GIT), 0.6)
    first_line = results.wall(many.NAME, many.FIRST_LINE, mine)
    yield Target(many.NAME, "diff of 100,000 changes: until its first line", first_line, 1.0, "s")
    yield Target(B, f"first snapshot: CPU, of {APPEND}", cpu(B, FIRST, APPEND), 1.4)
    yield Target(B, "first snapshot: allocated where blocks can be shared, of the corpus", allocated(results), 0.05)
    yield Target(B, f"{CHANGED}: CPU, of {HASH}", cpu(B, CHANGED, HASH), 1.3)
    for mode in database.MODES:
        for name in database.FIRST, database.CHANGED:
            figure = cpu(D, f"{name}, {mode}", PAGES)
            yield Target(D, f"capture, {name}, {mode}: CPU, of {PAGES}", figure, 1.3)
        sizes = [results.middle_size(D, f"{name}, {mode}", mine) for name in (database.GROWTH, database.BLOCKS)]
        yield Target(D, f"{database.CHANGED}, {mode}: growth, of the changed blocks", ratio(*sizes), 1.1)
        whole, few = (cpu(D, f"{name}, {mode}", BACKUP) for name in (database.ALL, database.FEW))
        yield Target(D, f"{database.ALL}, {mode}: CPU, of {BACKUP}", whole, 1.3)
        # Where few pages differ it is to be better than where all do, by the same measure.
        yield Target(D, f"{database.FEW}, {mode}: CPU, of {BACKUP}", few, 1.3 if whole is None else min(whole, 1.3))
    growth = results.middle_size(B, "growth", mine), results.middle_size(B, "changed blocks", mine)
    yield Target(B, f"{CHANGED}: growth, of the changed blocks", ratio(*growth), 1.1)
    yield Target("M", "10 snapshots, 1 % changed each: the largest growth", largest_growth(results), 3.0, "MB")
    for operation in "first", "unchanged", "1 % changed", "undo", "diff":
        yield Target("L", f"from M to L, {operation}: CPU for each file", for_each_file(results, operation), 1.2)
    for corpus in "L", B:
        yield Target(corpus, "peak memory", peak(results, corpus), 100.0, "MB")
    peaks = [results.peak(B, operation, mine) for operation in (FIRST, TENTH)]
    yield Target(B, f"{FIRST}: peak memory, of {SMALLER}", ratio(*peaks), 1.1)
    walls = [results.wall(plugin.NAME, plugin.RUN, who) for who in (plugin.WITH, plugin.WITHOUT)]
    over = None if None in walls else (walls[0] - walls[1]) * 1e3
    yield Target(plugin.NAME, "run -- true, one component compiled before: wall over none", over, 10.0, "ms")
    R = servers.NAME
    for operation, other, limit in (servers.POSTGRES, servers.BARE, 1.2), (servers.REDIS, servers.RDB, 2.0):
        figure = ratio(results.wall(R, operation, mine), results.wall(R, operation, other))
        yield Target(R, f"{operation}: wall, of {other}", figure, limit)
    pause = results.wall(R, servers.PAUSE, mine)
    yield Target(R, servers.PAUSE, None if pause is None else pause * 1e3, 50.0, "ms")
    over = more(results, "run -- true", "in memory", "true")
    yield Target(small.NAME, "run -- true, unchanged: wall over `true`", over, 15.0, "ms")
    over = more(results, f"list of {small.KEPT}", "list", "hello world")
    yield Target(small.NAME, "list: wall over hello world", over, 5.0, "ms")


def inexact(results, corpus):
    faults = results.facts.get(f"{corpus} undo", {}).get("snapback")
    return None if faults is None else len(faults)


def allocated(results):
    whole = results.facts.get(B, {}).get("bytes")
    for kind in "xfs", "btrfs":
        size = results.middle_size(B, "allocated", kind)
        if size is not None:
            return ratio(size, whole)
    return None


def largest_growth(results):
    growth = results.sizes.get(("M", "growth", "snapback"))
    return max(growth) / MB if growth else None


def for_each_file(results, operation):
    """How much more one file of L costs than one of M."""
    costs = [results.cpu(corpus, operation, "snapback") for corpus in ("M", "L")]
    if None in costs:
        return None
    files = [results.facts[corpus]["files"] for corpus in ("M", "L")]
    return ratio(costs[1] / files[1], costs[0] / files[0])


def peak(results, corpus):
    """The largest of all operations on a corpus."""
    keys = [key for key in results.samples if key[0] == corpus and key[2].startswith("snapback")]
    peaks = [sample["peak"] for key in keys for sample in results.samples[key]]
    return max(peaks) / MB if peaks else None


def more(results, operation, one, other):
    walls = results.wall(small.NAME, operation, one), results.wall(small.NAME, operation, other)
    return None if None in walls else (walls[0] - walls[1]) * 1e3

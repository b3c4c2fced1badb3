"""Corpus B: a large database and a file larger than that, both changed a little.

All peers in turns on one tree, each with the floors just before it; each store is as large as
the corpus, so only one stands at a time. What a store may grow by is told by our own count of
the blocks that changed. On a file system that can share blocks between files, what snapback
allocates is asked of the file system. What memory a file takes that is a tenth of the size tells
whether memory grows with the size of a file.
"""

import record
from change import update
from corpora import LARGE_BYTES, large
from floors import APPEND, HASH, Floor
from measure import disk_usage, in_turns
from mount import allocated, cannot, mounted
from peers import Snapback, Synced

NAME = "B"
FIRST, CHANGED = "first", "1 % of rows, 4 KB"
TENTH, SMALLER = "first, a tenth of the size", "files of a tenth of the size"
SHARING = ("xfs", "btrfs")
IMAGE_BYTES = 8 << 30


def measure(bench, rounds):
    snapback = Snapback(bench, bench.work)
    peers = {kind.name: kind(bench.work) for kind in bench.peers} | {Snapback.name: snapback}
    large(snapback.tree)
    bytes_ = sum(path.stat().st_size for path in snapback.tree.iterdir())
    bench.results.facts[NAME] = {"files": 2, "bytes": bytes_, "entries": 2}
    blocks = all_blocks(snapback.tree)
    for seed, (_, who, peer) in enumerate(in_turns(peers, rounds)):
        peer.clear(bench.runner)
        floors(bench, FIRST, (HASH, APPEND), snapback)
        bench.results.keep(NAME, FIRST, who, peer.run(bench.runner, peer.take()))
        size = disk_usage(*peer.stores())
        bench.results.size(NAME, "store", who, size)
        update(snapback.tree, seed)
        former, blocks = blocks, all_blocks(snapback.tree)
        floors(bench, CHANGED, (HASH,), snapback)
        bench.results.keep(NAME, CHANGED, who, peer.run(bench.runner, peer.take()))
        bench.results.size(NAME, "growth", who, disk_usage(*peer.stores()) - size)
        bench.results.size(NAME, "changed blocks", who, record.changed_blocks(former, blocks))
        bench.remove(*peer.stores())
    bench.remove(snapback.project)
    tenth(bench)
    durable(bench)
    shared(bench)


def all_blocks(tree):
    return [block for path in sorted(tree.iterdir()) for block in record.blocks(path)]


def floors(bench, operation, names, peer):
    """Some floors, beside each measurement."""
    floor = Floor(bench, peer.tree)
    for which in names:
        bench.results.keep(NAME, operation, which, floor.run(which))


def tenth(bench):
    """The first snapshot of a tenth of the corpus."""
    peer = Snapback(bench, bench.work)
    large(peer.tree, LARGE_BYTES // 10)
    peer.clear(bench.runner)
    bench.results.keep(NAME, TENTH, Snapback.name, peer.run(bench.runner, peer.take()))
    bench.remove(peer.project, *peer.stores())


def durable(bench):
    """What both snapshots take on a disk, with every sync."""
    peer = Synced(bench, bench.slow)
    large(peer.tree)
    peer.clear(bench.runner)
    for seed, operation in enumerate((FIRST, CHANGED)):
        bench.results.keep(NAME, operation, "on disk, synced", peer.run(bench.runner, peer.take()))
        update(peer.tree, seed)
    bench.remove(peer.project, *peer.stores())


def shared(bench):
    """What a first snapshot allocates where blocks can be shared."""
    why = {kind: cannot(kind) for kind in SHARING}
    kinds = [kind for kind in SHARING if not why[kind]]
    if not kinds:
        bench.skip("B on a file system that shares blocks", "; ".join(why.values()))
        return
    with mounted(kinds[0], bench.work / "image", IMAGE_BYTES) as place:
        peer = Snapback(bench, place)
        large(peer.tree)
        peer.clear(bench.runner)
        before = allocated(place)
        bench.results.keep(NAME, FIRST, f"snapback, {kinds[0]}", peer.run(bench.runner, peer.take()))
        bench.results.size(NAME, "allocated", kinds[0], allocated(place) - before)

"""Corpus B: a large database and a file larger than that, both changed a little.

One peer after the other, since each store is as large as the corpus. What a store may
grow by is told by our own count of the blocks that changed. On a file system that can
share blocks between files, what snapback allocates is asked of the file system.
"""

import record
from change import update
from corpora import large
from floors import APPEND, HASH, Floor
from measure import disk_usage
from mount import allocated, cannot, mounted
from peers import Snapback

NAME = "B"
FIRST, CHANGED = "first", "1 % of rows, 4 KB"
SHARING = ("xfs", "btrfs")
IMAGE_BYTES = 8 << 30


def measure(bench):
    snapback = Snapback(bench, bench.work)
    peers = [snapback, *(kind(bench.work) for kind in bench.peers)]
    large(snapback.tree)
    bytes_ = sum(path.stat().st_size for path in snapback.tree.iterdir())
    bench.results.facts[NAME] = {"files": 2, "bytes": bytes_, "entries": 2}
    blocks = all_blocks(snapback.tree)
    for number, peer in enumerate(peers):
        peer.clear(bench.runner)
        floors(bench, FIRST, (HASH, APPEND), snapback)
        bench.results.keep(NAME, FIRST, peer.name, peer.run(bench.runner, peer.take()))
        size = disk_usage(*peer.stores())
        bench.results.size(NAME, "store", peer.name, size)
        update(snapback.tree, number)
        former, blocks = blocks, all_blocks(snapback.tree)
        floors(bench, CHANGED, (HASH,), snapback)
        bench.results.keep(NAME, CHANGED, peer.name, peer.run(bench.runner, peer.take()))
        bench.results.size(NAME, "growth", peer.name, disk_usage(*peer.stores()) - size)
        bench.results.size(NAME, "changed blocks", peer.name, record.changed_blocks(former, blocks))
        bench.remove(*peer.stores())
    bench.remove(snapback.project)
    shared(bench)


def all_blocks(tree):
    return [block for path in sorted(tree.iterdir()) for block in record.blocks(path)]


def floors(bench, operation, names, peer):
    """Some floors, beside each measurement."""
    floor = Floor(bench, peer.tree)
    for which in names:
        bench.results.keep(NAME, operation, which, floor.run(which))


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

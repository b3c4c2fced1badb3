"""The corpora S, M and L: each operation, by all peers in turns on one tree.

The tree is `project/tree`. snapback's project is the directory above, so that its store
is not in what the others see. A destroyed tree is put back by one peer only: each gets a
fresh copy, which it has seen, before it is destroyed. Whether an undo was exact is told
by records that none of the peers took part in.
"""

import json
import subprocess

import change
import record
from corpora import corpus
from floors import APPEND, HASH, SCAN, Floor
from measure import disk_usage, in_turns, settle
from peers import Snapback, Synced

COMMAND = "snapback, run -- true"


class Trees:
    """The measurement of one corpus."""

    def __init__(self, bench, name):
        self.bench, self.name, self.results = bench, name, bench.results
        self.source = corpus(name, bench.cache)
        self.peers = {kind.name: kind(bench.work) for kind in bench.peers}
        self.snapback = Snapback(bench, bench.work)
        self.peers[Snapback.name] = self.snapback
        self.floor = Floor(bench, self.snapback.tree)
        paths = record.record(self.source)
        sizes = [(self.source / path).stat().st_size for path in change.files(self.source)]
        facts = {"files": len(sizes), "bytes": sum(sizes), "entries": len(paths)}
        self.results.facts[name] = facts | {"fingerprint": record.fingerprint(paths)}

    def measure(self, rounds, steps):
        """Whole passes over the tree are measured `rounds` times, small steps `steps` times."""
        self.fresh(self.snapback)
        self.first(rounds)
        self.unchanged(steps)
        self.changed(steps)
        self.undo(rounds)
        self.bench.remove(self.snapback.project, *(peer.store for peer in self.peers.values()))

    def fresh(self, peer):
        """A new copy of the corpus as the tree."""
        self.bench.remove(peer.tree)
        peer.project.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", self.source, peer.tree], check=True)

    def keep(self, operation, who, job):
        sample = self.peers[who].run(self.bench.runner, job)
        self.results.keep(self.name, operation, who, sample)

    def first(self, rounds):
        settle()
        for _, who, peer in in_turns(self.peers | {HASH: None, APPEND: None}, rounds):
            if peer:
                peer.clear(self.bench.runner)
                self.keep("first", who, peer.take())
                self.results.size(self.name, "store", who, disk_usage(*peer.stores()))
            else:
                self.results.keep(self.name, "first", who, self.floor.run(who))
        self.covered()

    def covered(self):
        """Ends the program when snapback left anything of the corpus out."""
        output = self.bench.work / "shown"
        self.snapback.run(self.bench.runner, self.snapback.show(output))
        shown = json.loads(output.read_text())
        if shown["excluded"]:
            raise SystemExit(f"corpus {self.name} is not covered as a whole: {shown['excluded'][:3]}")

    def unchanged(self, steps):
        peers = {who: peer for who, peer in self.peers.items() if not peer.whole}
        for peer in peers.values():
            peer.run(self.bench.runner, peer.take())
        for _, who, peer in in_turns(peers | {COMMAND: None, SCAN: None}, steps):
            if peer:
                self.keep("unchanged", who, peer.take())
            elif who == COMMAND:
                sample = self.snapback.run(self.bench.runner, self.snapback.before("true"))
                self.results.keep(self.name, "unchanged", who, sample)
            else:
                self.results.keep(self.name, "unchanged", who, self.floor.run(who))

    def changed(self, steps):
        """The differences that 1 % of edited files make; and snapshots of them."""
        for step in range(steps):
            change.edit(self.snapback.tree, step)
            settle()
            for who, peer in self.turned(step):
                for operation, job in ("diff", peer.diff()), ("diff, lines", peer.lines()), ("diff -p", peer.patch()):
                    if job and (step == 0 or not peer.whole):
                        self.keep(operation, who, job)
            for who, peer in self.turned(step):
                if not peer.whole:
                    before = disk_usage(*peer.stores())
                    self.keep("1 % changed", who, peer.take())
                    growth = disk_usage(*peer.stores()) - before
                    self.results.size(self.name, "growth", who, growth)

    def turned(self, number):
        peers = list(self.peers.items())
        turn = number % len(peers)
        return peers[turn:] + peers[:turn]

    def undo(self, rounds):
        for number, who, peer in in_turns(self.peers, rounds):
            self.fresh(peer)
            settle()
            peer.run(self.bench.runner, peer.take())
            before = record.record(peer.tree)
            touched = self.destroy(peer, number)
            self.keep("undo", who, peer.undo())
            faults = record.compare(before, record.record(peer.tree), touched)
            outcome = self.results.facts.setdefault(f"{self.name} undo", {})
            outcome[who] = outcome.get(who) or faults

    def destroy(self, peer, seed):
        """Destroys the tree; the paths that were touched."""
        touched = change.Destruction(change.files(peer.tree), seed).touched
        peer.run(self.bench.runner, peer.destroy(seed))
        settle()
        return touched

    def durable(self, rounds):
        """What snapback's operations take on a disk, with every sync."""
        peer = Synced(self.bench, self.bench.slow)

        def keep(operation, job):
            sample = peer.run(self.bench.runner, job)
            self.results.keep(self.name, operation, "on disk, synced", sample)

        for number in range(rounds):
            self.fresh(peer)
            settle()
            peer.clear(self.bench.runner)
            keep("first", peer.take())
            settle()
            keep("unchanged", peer.take())
            change.edit(peer.tree, number)
            settle()
            keep("1 % changed", peer.take())
            self.destroy(peer, number)
            keep("undo", peer.undo())
        self.bench.remove(peer.project, peer.store)

"""What snapback costs where nothing has changed: in front of `true`, and as `list`.

A project of 500 files, its store in memory and on a disk (there all syncs are paid). In
turns with the floors: `true` itself, and a hello-world process.
"""

import os

from measure import Job, in_turns, settle
from peers import Synced

NAME = "500"
FILES, FILE_BYTES = 500, 10_000
KEPT = 50  # snapshots, unless the user's settings say otherwise


def make(project):
    for number in range(FILES):
        path = project / f"d{number // 25}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(FILE_BYTES))


def measure(bench, rounds):
    peers = {"in memory": Synced(bench, bench.work), "on disk": Synced(bench, bench.slow)}
    jobs = {"true": lambda: bench.runner.run(Job(["true"]))}
    for where, peer in peers.items():
        make(peer.project)
        peer.clear(bench.runner)
        settle()
        job = peer.before("true")
        jobs[where] = lambda peer=peer, job=job: peer.run(bench.runner, job)
        for _ in range(2):
            jobs[where]()
    for _, who, run in in_turns(jobs, rounds):
        bench.results.keep(NAME, "run -- true", who, run())
    bench.remove(peers["on disk"].project)

    memory = peers["in memory"]
    for _ in range(KEPT - rounds):
        jobs["in memory"]()
    hello = Job([bench.hello])
    jobs = {
        "hello world": lambda: bench.runner.run(hello),
        "list": lambda: memory.run(bench.runner, memory.job("list")),
    }
    for _, who, run in in_turns(jobs, rounds):
        bench.results.keep(NAME, f"list of {KEPT}", who, run())
    bench.remove(memory.project)

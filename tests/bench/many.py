"""When `diff` begins to answer where very much has changed: 100,000 files, each written to since
the snapshot. What reads the answer takes its first line and goes.
"""

from measure import Job, in_turns
from peers import Snapback

NAME = "C"
DIRS, FILES = 100, 1000
FIRST_LINE, WHOLE = "diff, its first line", "diff, names alone"


def write(tree, mode, text):
    for number in range(DIRS * FILES):
        with open(tree / f"d{number // FILES}" / f"f{number % FILES}", mode) as file:
            file.write(f"{text} {number}\n")


def measure(bench, rounds):
    peer = Snapback(bench, bench.work)
    for number in range(DIRS):
        (peer.tree / f"d{number}").mkdir(parents=True)
    write(peer.tree, "w", "old")
    peer.clear(bench.runner)
    peer.run(bench.runner, peer.take())
    write(peer.tree, "a", "new")
    diff = peer.diff()
    # Whom nobody reads any more ends with what it would have ended with, or by the pipe.
    first = Job(peer.job("diff", "@0").pipe[0], ["head", "-n", "1"], directory=peer.project, fine=(0, 1, 141, -13))
    jobs = {FIRST_LINE: lambda: peer.run(bench.runner, first), WHOLE: lambda: peer.run(bench.runner, diff)}
    for _, operation, run in in_turns(jobs, rounds):
        bench.results.keep(NAME, operation, "snapback", run())
    bench.remove(peer.project, *peer.stores())

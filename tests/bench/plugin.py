"""What a third-party component costs: beside a command without one, for each call across the
border, and for bytes that go from a socket into the store.

The component is the one that tests look at the border with, compiled before. Beside the
spliced bytes the least that it could be: a program that receives, hashes and appends them.
"""

import random
import re
import shutil
import socket
import subprocess
import sys
import threading

from floors import RECEIVE, ROOT
from measure import Job, in_turns
from peers import Snapback

NAME = "P"
RUN, CALLS, SPLICE = "run -- true", "calls across the border", "from a socket"
WITHOUT, WITH = "without a component", "with a component"
FILES, FILE_BYTES = 500, 10_000
COUNT = 2_000_000
BYTES, PIECE = 256 << 20, 1 << 20
PROBE = ROOT / "tests" / "components" / "probe" / "probe.wasm"


class Peer(Snapback):
    """A project with a target of the component, or without."""

    def __init__(self, bench, name, settings):
        super().__init__(bench, bench.work)
        self.project, self.store = bench.work / f"project-{name}", bench.work / "stores" / name
        self.project.mkdir()
        self.clear(bench.runner)
        for number in range(FILES):
            path = self.project / f"d{number // 25}" / f"f{number}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(random.Random(number).randbytes(FILE_BYTES))
        if settings is None:
            return
        room, plugins = bench.work / f"room-{name}", self.store / "data" / "snapback" / "plugins"
        room.mkdir()
        (room / "state").write_text("one\n")
        plugins.mkdir(parents=True)
        shutil.copy(PROBE, plugins / "probe.wasm")
        target = f'[[target]]\nbackend = "probe"\nroom = "../{room.name}"\n{settings}\n'
        (self.project / "snapback.toml").write_text(target)
        self.agree(bench)

    def agree(self, bench):
        """Says yes to what the target reaches."""
        words = [bench.snapback, "snap"]
        environment = bench.runner.environment | self.environment()
        said = subprocess.run(words, cwd=self.project, env=environment, capture_output=True, text=True)
        digest = re.search(r"trust --digest (\w+)", said.stderr)
        if not digest:
            sys.exit(f"nothing was asked for: {said.stderr}")
        self.run(bench.runner, self.job("-q", "trust", "--digest", digest[1]))


class Server:
    """Sends the same bytes to whoever connects, until it is closed."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.piece = random.Random(9).randbytes(PIECE)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            with stream:
                for _ in range(BYTES // PIECE):
                    stream.sendall(self.piece)

    def close(self):
        self.listener.close()


def measure(bench, rounds):
    beside(bench, rounds)
    calls(bench, max(1, rounds // 20))
    spliced(bench, max(1, rounds // 20))


def beside(bench, rounds):
    peers = {WITHOUT: Peer(bench, "without", None), WITH: Peer(bench, "with", "")}
    jobs = {who: lambda peer=peer: peer.run(bench.runner, peer.before("true")) for who, peer in peers.items()}
    for _ in range(3):
        for run in jobs.values():
            run()
    for _, who, run in in_turns(jobs, rounds):
        bench.results.keep(NAME, RUN, who, run())
    clear(bench, peers.values())


def calls(bench, rounds):
    counts = {"none": 0, f"{COUNT:,} calls": COUNT}
    peers = {who: Peer(bench, f"calls-{who}", f'do = ["calls {count}"]') for who, count in counts.items()}
    jobs = {who: lambda peer=peer: peer.run(bench.runner, peer.job("-q", "snap")) for who, peer in peers.items()}
    for _, who, run in in_turns(jobs, rounds):
        bench.results.keep(NAME, CALLS, who, run())
    none, many = (bench.results.cpu(NAME, CALLS, who) for who in counts)
    bench.notes.append(f"a call across the border, with a name that it returns: {(many - none) / COUNT * 1e9:.0f} ns")
    clear(bench, peers.values())


def spliced(bench, rounds):
    server, out = Server(), bench.work / "received"
    peer = Peer(bench, "splice", f'address = "127.0.0.1:{server.port}"\ndo = ["splice address"]')
    bench.results.facts[NAME] = {"files": FILES, "bytes": BYTES, "entries": FILES}
    for _ in range(rounds):
        # Each time into a store that has nothing of it.
        shutil.rmtree(peer.project / ".snapback", ignore_errors=True)
        shutil.rmtree(peer.store / "state", ignore_errors=True)
        peer.agree(bench)
        bench.results.keep(NAME, SPLICE, "snapback", peer.run(bench.runner, peer.job("-q", "snap")))
        bench.results.keep(NAME, SPLICE, RECEIVE, bench.runner.run(Job([bench.receive, server.port, out])))
        out.unlink()
    server.close()
    clear(bench, [peer])


def clear(bench, peers):
    for peer in peers:
        bench.remove(peer.project, peer.store, *bench.work.glob("room-*"))

"""The measurements as one program: what is asked for, where, with whom, and the report.

    tests/bench/run [NAME...] [--all] [--quick] [--rounds N] [--snapback FILE] [--floor FILE]
                    [--dir DIR] [--disk DIR] [--json FILE]

Names: 500 (a small unchanged project), S, M, L, B (see corpora.py), C (100,000 changes), D (a
SQLite database that is open), V (10,000 files and 500 MB in a Docker volume), P (a third-party
component), R (Postgres and Redis). Without any: all but B; with --all also B, and more peers.
--quick is S alone, with two rounds: it shows that the measurements work. Peers that are missing
are installed by root on Debian, else named.
Corpora are kept below --dir: in memory, or where that has no room in the user's cache.
"""

import argparse
import functools
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile

import database
import floors
import large
import many
import peers
import plugin
import servers
import small
import volumes
from install import peers_here, programs_in
from measure import Results, Runner
from mount import disk
from peers_more import MORE
from table import results_table, targets_table
from targets import targets
from trees import Trees

NAMES = ("500", "S", "M", "L", "B", "C", "D", "V", "P", "R")
ROUNDS, STEPS, SMALL_ROUNDS = 3, 10, 200
# Bytes that must be free for corpora, trees and stores; about twice what is used at most.
ROOM = 12 << 30


class Bench:
    """Where and with what it is measured; what the measurements of all corpora share."""

    def __init__(self, options, work, slow):
        self.work, self.slow, self.all = work, slow, options.all
        self.cache, self.components = options.cache, work / "components"
        self.programs, self.results = programs_in(options.cache), Results()
        self.skipped, self.notes = [], []
        self.snapback = (options.snapback or floors.program()).resolve()
        self.floor = (options.floor or floors.floor()).resolve()
        self.hello = floors.hello(work)
        environment = {"PATH": os.environ["PATH"], "HOME": str(work), "LC_ALL": "C", "TMPDIR": str(work)}
        self.runner = Runner(work, environment)
        self.compile_components()

    @functools.cached_property
    def peers(self):
        """Installed for the measurements that compare with them, and not for others."""
        return peers_here(peers.DEFAULT + (MORE if self.all else []), self.programs, self.skip)

    # Built by the measurements that have them.
    database = functools.cached_property(lambda self: floors.database())
    receive = functools.cached_property(lambda self: floors.receive())

    def compile_components(self):
        """Takes a snapshot of nothing: what is compiled for the first one is kept."""
        peer = peers.Snapback(self, self.work)
        peer.project.mkdir()
        peer.clear(self.runner)
        peer.run(self.runner, peer.take())
        self.remove(peer.project, *peer.stores())

    def skip(self, what, why):
        self.skipped.append(f"skipped: {what}: {why}")
        print(self.skipped[-1], file=sys.stderr)

    def remove(self, *places):
        for place in places:
            shutil.rmtree(place, ignore_errors=True)

    def measure(self, name, rounds, quick):
        print(f"measuring {name}, load {os.getloadavg()[0]:.2f}", file=sys.stderr)
        # Of the project of the measurement before nothing may be left for this one.
        peer = peers.Snapback(self, self.work)
        self.remove(peer.project, *peer.stores())
        if name == "500":
            small.measure(self, 20 if quick else SMALL_ROUNDS)
        elif name == "B":
            large.measure(self, max(1, rounds // 2))
        elif name == "C":
            many.measure(self, rounds)
        elif name == "D":
            database.measure(self, rounds)
        elif name == "V":
            volumes.measure(self, rounds)
        elif name == "P":
            plugin.measure(self, 20 if quick else SMALL_ROUNDS)
        elif name == "R":
            servers.measure(self, rounds)
        else:
            # One round of L is as long as seven of M, and one of B as long as two of L.
            trees = Trees(self, name)
            trees.measure(max(1, rounds // 2) if name == "L" else rounds, rounds if quick else STEPS)
            trees.durable(1 if name == "L" else rounds)

    def versions(self):
        yield first_line([self.snapback, "--version"])
        for kind in self.__dict__.get("peers", ()):
            yield first_line(kind.version)


def first_line(words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip("* ")


def file_system(path):
    """The kind of file system that `path` lies on."""
    return subprocess.check_output(["df", "--output=fstype", path], text=True).split()[-1]


def room():
    """Where there is room for corpora and stores: memory, else the user's cache."""
    memory = pathlib.Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM:
        return memory / "snapback-bench"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "snapback-bench"


def machine(bench, load):
    yield f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}"
    yield f"load {load:.2f} before, {os.getloadavg()[0]:.2f} after"
    yield f"compared on {file_system(bench.work)}, without syncs; synced on {file_system(bench.slow)}"
    yield "; ".join(bench.versions())
    yield from bench.notes
    yield from bench.skipped


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--all", action="store_true", help="also corpus B, and more peers")
    parser.add_argument("--quick", action="store_true", help="S alone, two rounds")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--snapback", type=pathlib.Path, metavar="FILE", help="instead of building it")
    parser.add_argument("--floor", type=pathlib.Path, metavar="FILE", help="core's example, instead of building it")
    parser.add_argument("--dir", type=pathlib.Path, metavar="DIR", help="for corpora, trees and stores")
    parser.add_argument("--disk", type=pathlib.Path, default="/var/tmp", metavar="DIR", help="where syncs are paid")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="all samples")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no corpus {unknown[0]}; there are {', '.join(NAMES)}")
    if options.rounds < 1:
        parser.error("--rounds takes a number above 0")
    if options.quick:
        options.names, options.rounds = options.names or ["S"], 2
    options.names = options.names or [name for name in NAMES if name != "B" or options.all]
    return options


def document(bench, lines):
    def listed(table, what, figures):
        return [dict(zip(("corpus", what, "who"), key)) | {figures: kept} for key, kept in table.items()]

    samples = listed(bench.results.samples, "operation", "samples")
    sizes = listed(bench.results.sizes, "what", "bytes")
    asked = [target._asdict() | {"verdict": target.verdict()} for target in targets(bench.results)]
    return {"machine": lines, "facts": bench.results.facts, "samples": samples, "sizes": sizes, "targets": asked}


def report(bench, name, options):
    """Measures one corpus, and prints what was measured even if that is not all."""
    try:
        bench.measure(name, options.rounds, options.quick)
    finally:
        print("\n".join(results_table(bench.results, name)), end="\n\n", flush=True)


def main():
    # What is ended by another program says what it has and unmounts, as on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = parse()
    place = options.dir or room()
    options.cache = place / "corpora"
    options.cache.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=place) as work, disk(options.disk) as slow:
        bench = Bench(options, pathlib.Path(work), slow)
        try:
            for name in options.names:
                report(bench, name, options)
        except KeyboardInterrupt:
            for number in signal.SIGINT, signal.SIGTERM:
                signal.signal(number, signal.SIG_IGN)  # what follows takes a moment
            bench.skip("the rest", "interrupted")
        bench.runner.close()
        lines = list(machine(bench, load))
        print("\n".join([*lines, "", *targets_table(bench.results)]))
        if options.json:
            text = json.dumps(document(bench, lines), indent=1)
            options.json.write_text(text + "\n")

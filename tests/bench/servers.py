"""What a snapshot of a server costs: Postgres with 200 MB, Redis with 200,000 keys.

Beside it, in turns, what people would do by hand: `CREATE DATABASE ... TEMPLATE`, and
`redis-cli --rdb`. The servers are started here, on loopback, under an ordinary user where
this is root, with their data beside everything else that is measured.
"""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

from measure import Job, in_turns, shell
from peers import Snapback

NAME = "R"
BARE, RDB = "CREATE DATABASE", "redis-cli --rdb"
POSTGRES, REDIS = "snapshot of Postgres", "snapshot of Redis"
PAUSE = "Redis: the longest pause of a client that writes"
MEGABYTES, KEYS = 200, 200_000
PROGRAMS = pathlib.Path("/usr/lib/postgresql/15/bin")
PLUGINS = pathlib.Path(__file__).parents[2] / "plugins"
NOBODY = 65534


def measure(bench, rounds):
    with contextlib.ExitStack() as servers:
        if (PROGRAMS / "initdb").exists() and shutil.which("psql"):
            postgres(bench, rounds, servers)
        else:
            bench.skip(POSTGRES, "Debian's postgresql-15 is not installed")
        if shutil.which("redis-server"):
            redis(bench, rounds, servers)
        else:
            bench.skip(REDIS, "redis-server is not installed")


def postgres(bench, rounds, servers):
    place, port = home(bench, "postgres"), free_port()
    data = place / "data"
    as_user([PROGRAMS / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"], place)
    settings = "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "autovacuum=off"
    words = [PROGRAMS / "postgres", "-D", data, "-p", str(port)]
    start(servers, [*words, *(word for setting in settings for word in ("-c", setting))], place)
    psql = f"psql -h 127.0.0.1 -p {port} -U postgres -Xqc"
    wait(lambda: subprocess.run([*psql.split(), "SELECT 1"], capture_output=True).returncode == 0)
    rows = f"SELECT i, repeat(md5(i::text), 30) AS text FROM generate_series(1, {MEGABYTES * 1000}) i"
    run = bench.runner.run
    run(shell(f"{psql} 'CREATE DATABASE app'\n{psql} 'CREATE TABLE big AS {rows}' app\n{psql} CHECKPOINT"))
    peer = project(bench, "postgres", f'address = "127.0.0.1:{port}"\ndatabase = "app"')
    jobs = {
        "snapback": lambda: peer.run(bench.runner, peer.snapshot()),
        BARE: lambda: run(Job([*psql.split(), "CREATE DATABASE bare TEMPLATE app"])),
    }
    for _, who, job in in_turns(jobs, rounds):
        # Something changed, so that there is something to copy; both begin with nothing to write
        # out, and when the session that changed it is gone.
        run(shell(f"{psql} 'UPDATE big SET text = text WHERE i = 1' app\n{psql} CHECKPOINT\nsleep 1"))
        bench.results.keep(NAME, POSTGRES, who, job())
        if who == BARE:
            run(Job([*psql.split(), "DROP DATABASE bare"]))


def redis(bench, rounds, servers):
    place, port = home(bench, "redis"), free_port()
    # Without the delay a server waits seconds for more replicas, beside which all are alike.
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"]
    start(servers, words, place)
    cli = f"redis-cli -p {port}"
    wait(lambda: "PONG" in subprocess.run([*cli.split(), "PING"], capture_output=True, text=True).stdout)
    lines = "".join(f"SET key:{n} value-{n}-{'x' * (n % 200)}\n" for n in range(KEYS))
    subprocess.run(cli.split(), input=lines, text=True, stdout=subprocess.DEVNULL, check=True)
    peer = project(bench, "redis", f'address = "127.0.0.1:{port}"')
    jobs = {
        "snapback": lambda: peer.run(bench.runner, peer.snapshot()),
        RDB: lambda: bench.runner.run(Job([*cli.split(), "--rdb", bench.work / "dump.rdb"])),
    }
    for _, who, job in in_turns(jobs, rounds):
        bench.runner.run(Job([*cli.split(), "INCR", "rounds"]))
        bench.results.keep(NAME, REDIS, who, job())
        bench.results.keep(NAME, PAUSE, who, longest_pause(port, job))


def longest_pause(port, job):
    """The longest time that a client, which writes one value after another meanwhile, waits for a reply."""
    done, longest = threading.Event(), [0.0]

    def write():
        with socket.create_connection(("127.0.0.1", port)) as client:
            while not done.is_set():
                start = time.monotonic()
                client.sendall(b"*2\r\n$4\r\nINCR\r\n$6\r\nwriter\r\n")
                if not client.recv(64).startswith(b":"):
                    raise SystemExit("the client could not write")
                longest[0] = max(longest[0], time.monotonic() - start)
                # Like a client that has something else to do, too.
                time.sleep(0.0005)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        job()
    finally:
        done.set()
        writer.join()
    return {"user": 0.0, "system": 0.0, "wall": longest[0], "peak": 0}


class Server(Snapback):
    """One whose project has no file of its own."""

    def snapshot(self):
        return self.job("snap", "-q")


def project(bench, backend, settings):
    """A project with a target of this backend, agreed to, its component compiled."""
    peer = Server(bench, bench.work)
    peer.project.mkdir(exist_ok=True)
    peer.clear(bench.runner)
    peer.run(bench.runner, peer.job("backends", "add", PLUGINS / backend / f"{backend}.wasm"))
    (peer.project / "snapback.toml").write_text(f'[[target]]\nbackend = "{backend}"\n{settings}\n')
    environment = bench.runner.environment | peer.environment()
    words = [bench.snapback, "trust"]
    said = subprocess.run(words, cwd=peer.project, env=environment, capture_output=True, text=True).stderr
    digest = re.search(r"digest ([0-9a-f]+)", said).group(1)
    peer.run(bench.runner, peer.job("trust", "--digest", digest))
    peer.run(bench.runner, peer.snapshot())
    return peer


def home(bench, name):
    """A directory that the server's user owns, which can get there."""
    place = bench.work / name
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
        for above in place.parents:
            if above.owner() == "root" and not above.stat().st_mode & 1:
                above.chmod(above.stat().st_mode | 0o111)
    return place


def user():
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def as_user(words, place):
    subprocess.run(words, cwd=place, stdout=subprocess.DEVNULL, check=True, **user())


def start(servers, words, place):
    """Starts a server, which ends with `servers`."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(words, cwd=place, **quiet, **user())
    servers.callback(lambda: (process.terminate(), process.wait()))


def wait(ready):
    for _ in range(600):
        if ready():
            return
        time.sleep(0.05)
    raise SystemExit("a server did not start")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]

"""A volume of a Docker engine, captured and put back: by root, in the engine's own directory,
and by somebody else, through a container of snapback's own. A container uses it, and is
held each time; what tar makes is as much as nobody writes meanwhile.

Beside it what people do without: a container that runs tar on the volume, whose output is
kept, and one that puts that back over an emptied volume. The engine is the measurement's own.
"""

import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import time

from measure import Job, disk_usage, settle, shell
from peers import Snapback

NAME = "V"
FIRST, UNCHANGED, CHANGED, RESTORE = "first", "unchanged", "1 % of files", "restore, 1 % of files"
FILES, BYTES = 10_000, 500 << 20
NOBODY = 65534
VOLUME, IMAGE, TAR = "volume", "box", "tar in a container"


def cannot():
    """Why this cannot be measured here; none when it can."""
    if os.geteuid() != 0:
        return "only root can start a Docker engine"
    missing = [name for name in ("dockerd", "docker", "busybox", "setpriv") if not shutil.which(name)]
    return f"{missing[0]} is not installed" if missing else None


class Engine:
    """An engine that listens at `socket`."""

    def __init__(self, place):
        self.place, self.socket = place, place / "sock"
        self.environment = {"DOCKER_HOST": f"unix://{self.socket}"}

    def docker(self, *words, **more):
        environment = os.environ | self.environment
        return subprocess.run(["docker", *words], env=environment, check=True, capture_output=True, **more).stdout

    def files(self):
        return self.place / "data" / "volumes" / VOLUME / "_data"


@contextlib.contextmanager
def engine():
    """A fresh one, whose data are gone afterwards."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="snapback-engine-", dir="/dev/shm"))
    place.chmod(0o755)
    words = ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "-G", str(NOBODY)]
    words += ["--data-root", place / "data", "--exec-root", place / "exec", "--pidfile", place / "pid"]
    with open(place / "log", "wb") as log:
        process = subprocess.Popen([*words, "-H", f"unix://{place}/sock"], stdout=log, stderr=log)
    started = Engine(place)
    try:
        for _ in range(300):
            with contextlib.suppress(subprocess.CalledProcessError):
                started.docker("version")
                break
            time.sleep(0.1)
        image = place / "image" / "bin"
        image.mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), image / "busybox")
        archive = subprocess.run(["tar", "-C", image.parent, "-c", "."], check=True, capture_output=True).stdout
        started.docker("import", "-", IMAGE, input=archive)
        started.docker("volume", "create", VOLUME)
        # Somebody who is held meanwhile, and ends at once when told to.
        wait = "trap 'exit 0' TERM; while true; do /bin/busybox sleep 0.1; done"
        use = ["run", "-d", "--network", "none", "--name", "user", "-v", f"{VOLUME}:/v", IMAGE]
        started.docker(*use, "/bin/busybox", "sh", "-c", wait)
        yield started
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            started.docker("rm", "-f", "user")
        process.terminate()
        process.wait()
        shutil.rmtree(place, ignore_errors=True)


class Volume(Snapback):
    """snapback, as root or as somebody else."""

    def __init__(self, bench, work, engine, user):
        super().__init__(bench, work)
        self.name = "snapback, root" if user == 0 else "snapback, in a container"
        self.store = work / "stores" / str(user)
        self.project = work / f"project-{user}"
        self.engine, self.user, self.trusted = engine, user, ""

    def environment(self):
        # What it compiled is another user's.
        own = {"XDG_CACHE_HOME": str(self.store / "cache"), "SNAPBACK_TRUST": self.trusted}
        return super().environment() | self.engine.environment | own

    def job(self, *words, **more):
        become = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        return Job([*become, self.program, *words], directory=self.project, **more)

    def begin(self):
        super().begin()
        self.project.mkdir(exist_ok=True)
        target = f'[[target]]\nbackend = "docker-volume"\nvolume = "{VOLUME}"\n'
        (self.project / "snapback.toml").write_text("[snapshot]\nenabled = false\n" + target)
        subprocess.run(["chown", "-R", f"{self.user}:{self.user}", self.project, self.store], check=True)
        words = self.job("trust").pipe[0]
        asked = subprocess.run(words, cwd=self.project, env=os.environ | self.environment(), capture_output=True, text=True)
        self.trusted = asked.stderr.split("digest ", 1)[1].split()[0]
        return []


def fill(place):
    """Writes the files, half of whose bytes can be compressed."""
    chance = random.Random(5)
    size = BYTES // FILES // 2
    for number in range(FILES):
        directory = place / f"d{number % 100}"
        directory.mkdir(exist_ok=True)
        (directory / f"f{number}").write_bytes(chance.randbytes(size) + b"text " * (size // 5))


def change(place, seed):
    chance = random.Random(seed)
    for number in chance.sample(range(FILES), FILES // 100):
        (place / f"d{number % 100}" / f"f{number}").write_bytes(chance.randbytes(50_000))


def measure(bench, rounds):
    why = cannot()
    if why:
        bench.skip("volumes", why)
        return
    bench.work.chmod(0o755)
    with engine() as started:
        fill(started.files())
        bench.results.facts[NAME] = {"files": FILES, "bytes": BYTES, "entries": FILES + 100}
        for number in range(rounds):
            measure_once(bench, started, number)


def measure_once(bench, started, number):
    def tar(*words):
        run = ["docker", "run", "--rm", "-i", "--log-driver", "none", "--network", "none", "-v", f"{VOLUME}:/v", IMAGE, "/bin/busybox"]
        return [*run, *words]

    archive = bench.work / "volume.tar"
    keep = bench.results.keep
    for user in (0, NOBODY):
        peer = Volume(bench, bench.work, started, user)
        peer.clear(bench.runner)
        # What is made once for a build of the program is not part of it.
        peer.run(bench.runner, peer.job("diff", "-q", "@0", fine=(0, 1, 2)))
        peer.run(bench.runner, peer.take())
        bench.remove(peer.project / ".snapback")
        for operation in (FIRST, UNCHANGED):
            settle()
            keep(NAME, operation, peer.name, peer.run(bench.runner, peer.take()))
        bench.results.size(NAME, "store", peer.name, disk_usage(*peer.stores()))
        change(started.files(), f"{number} {user}")
        settle()
        keep(NAME, CHANGED, peer.name, peer.run(bench.runner, peer.take()))
        settle()
        keep(NAME, RESTORE, peer.name, peer.run(bench.runner, peer.job("restore", "-q", "--yes", "@1")))
        bench.remove(peer.project, *peer.stores())
    job = Job(tar("tar", "-C", "/v", "-c", "-f", "-", "."), output=archive)
    for operation in (FIRST, UNCHANGED, CHANGED):
        keep(NAME, operation, TAR, bench.runner.run(job, **started.environment))
    empty = " ".join(tar("sh", "-c", "'/bin/busybox rm -rf /v/*; /bin/busybox tar -C /v -x -f -'"))
    keep(NAME, RESTORE, TAR, bench.runner.run(shell(f"{empty} < {archive}"), **started.environment))
    archive.unlink()


"""What is measured, each as its users use it: snapback and what they would take instead.

A peer gives jobs: `take` makes a snapshot, `undo` puts the tree back as the last one has
it, `diff` names what changed since, `lines` counts the lines of it, `patch` shows it as a patch. Its stores are its own;
nothing of a peer is measured but its jobs. No peer syncs, and snapback does not either
where it is compared.
"""

import pathlib
import shutil
import sys

from measure import Job, shell

CHANGE = pathlib.Path(__file__).resolve().with_name("change.py")
# The stores of the large corpora are over the usual share of a disk.
CONFIG = '[retention]\nmax-size = "1TiB"\nmin-free = "0"\n[store]\nsync = {sync}\n'


class Peer:
    """One way to keep snapshots of `project/tree`, with stores below `work`."""

    name = ""
    needs = ()  # programs
    packages = ()  # Debian's: those, or what building the crate needs
    crate = ()  # its name with its version, and words for cargo, where Debian has none
    version = ()  # words that print it
    whole = False  # each snapshot is written whole: one is kept, and growth is not measured

    def __init__(self, work):
        self.project, self.tree = work / "project", work / "project" / "tree"
        self.store = work / "stores" / self.name.split()[0]
        self.number = 0

    def clear(self, runner):
        """Forgets all snapshots."""
        for place in self.stores():
            shutil.rmtree(place, ignore_errors=True)
        self.store.mkdir(parents=True)
        self.number = 0
        for job in self.begin():
            self.run(runner, job)

    def run(self, runner, job):
        """Runs a job of this peer; what it took."""
        return runner.run(job, **self.environment())

    def environment(self):
        """What it sees besides what all see."""
        return {}

    def stores(self):
        return [self.store]

    def begin(self):
        return []

    def take(self):
        """The job for one more snapshot."""
        self.number += 1
        return self.snapshot()

    def destroy(self, seed):
        """The job that destroys much of the tree, after the last snapshot."""
        return Job([sys.executable, CHANGE, "destroy", self.tree, seed])

    def diff(self):
        return None

    def lines(self):
        return None

    def patch(self):
        return None


class Snapback(Peer):
    """What this project is."""

    name = "snapback"
    sync = False

    def __init__(self, bench, work):
        super().__init__(work)
        self.program, self.components = bench.snapback, bench.components

    def stores(self):
        return [self.project / ".snapback", self.store]

    def environment(self):
        """Directories of its own, so that no user's settings are read and no history mixed.
        What is compiled once for a user is kept."""
        kinds = {f"XDG_{kind.upper()}_HOME": str(self.store / kind) for kind in ("config", "data", "state")}
        return kinds | {"XDG_CACHE_HOME": str(self.components)}

    def job(self, *words, **more):
        return Job([self.program, *words], directory=self.project, **more)

    def begin(self):
        config = self.store / "config" / "snapback" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(CONFIG.format(sync=str(self.sync).lower()))
        return []

    def snapshot(self):
        return self.job("snap", "-q", "--allow-huge")

    def before(self, *words):
        """The job of a command with a snapshot before it: what people start."""
        return self.job("run", "-q", "--allow-huge", "--", *words)

    def destroy(self, seed):
        return self.before(sys.executable, CHANGE, "destroy", self.tree, seed)

    def undo(self):
        return self.job("undo", "-q", "--yes")

    def diff(self):
        return self.job("diff", "--names", "@0")

    def lines(self):
        return self.job("diff", "@0")

    def patch(self):
        return self.job("diff", "-p", "@0")

    def show(self, output):
        return self.job("show", "--json", "@0", output=output)


class Synced(Snapback):
    """As users have it: every snapshot is on the disk before its command starts."""

    sync = True


class ShadowGit(Peer):
    """git with its directory elsewhere, as agent tools use it."""

    name = "shadow git"
    needs = packages = ("git",)
    version = ("git", "--version")

    def git(self):
        return f"git --git-dir={self.store}/git --work-tree={self.tree}"

    def begin(self):
        settings = "gc.auto 0", "core.autocrlf false", "core.fsync none"
        configure = "".join(f"{self.git()} config {setting}\n" for setting in settings)
        return [shell(f"{self.git()} init -q\n{configure}")]

    def script(self, text):
        return shell(text.replace("GIT", self.git()), directory=self.tree)

    def snapshot(self):
        return self.script(f"GIT add -A -f .\nGIT write-tree >{self.store}/tree")

    def undo(self):
        return self.script(f"GIT read-tree $(cat {self.store}/tree)\nGIT checkout-index -f -a\nGIT clean -ffdxq")

    def diff(self):
        return self.script("GIT diff --no-ext-diff --name-status\nGIT ls-files --others")

    def lines(self):
        return self.script("GIT diff --no-ext-diff --numstat\nGIT ls-files --others")

    def patch(self):
        return self.script("GIT diff --no-ext-diff\nGIT ls-files --others")


class Tar(Peer):
    """The whole tree in a compressed archive."""

    name = "tar | zstd -1"
    needs = packages = ("tar", "zstd")
    version = ("zstd", "--version")
    whole = True

    def snapshot(self):
        self.store.joinpath("archive").unlink(missing_ok=True)
        zstd = ["zstd", "-1", "-q", "-o", self.store / "archive"]
        return Job(["tar", "-C", self.project, "-cf", "-", "tree"], zstd)

    def undo(self):
        read = f"zstd -dcq {self.store}/archive | tar -C {self.project} -xpf -"
        return shell(f"find {self.tree} -mindepth 1 -delete\n{read}")

    def diff(self):
        read = ["zstd", "-dcq", self.store / "archive"]
        return Job(read, ["tar", "-C", self.project, "-df", "-"], fine=(0, 1))


class Copy(Peer):
    """The whole tree once more."""

    name = "cp -a"
    needs, packages = ("cp", "diff"), ("coreutils", "diffutils")
    version = ("cp", "--version")
    whole = True

    def snapshot(self):
        shutil.rmtree(self.store / "tree", ignore_errors=True)
        return Job(["cp", "-a", self.tree, self.store / "tree"])

    def undo(self):
        return shell(f"find {self.tree} -mindepth 1 -delete\ncp -a {self.store}/tree/. {self.tree}")

    def diff(self):
        return Job(["diff", "-rq", "--no-dereference", self.store / "tree", self.tree], fine=(0, 1))


class Bupstash(Peer):
    """A content-addressed backup tool, and the quickest of them."""

    name = "bupstash"
    needs = ("bupstash",)
    packages, crate = ("libsodium-dev", "pkg-config"), ("bupstash@0.12.0",)
    version = ("bupstash", "--version")

    def words(self, command, *words):
        place = ["-r", self.store / "repository", "-k", self.store / "key", "-q"]
        return Job(["bupstash", command, *place, *words], directory=self.project)

    def begin(self):
        return [
            Job(["bupstash", "init", "-r", self.store / "repository"]),
            Job(["bupstash", "new-key", "-o", self.store / "key"]),
        ]

    def caches(self):
        return "--query-cache", self.store / "query"

    def snapshot(self):
        return self.words("put", "--send-log", self.store / "sent", f"name=n{self.number}", "./tree")

    def undo(self):
        return self.words("restore", *self.caches(), "--into", self.tree, f"name=n{self.number}")

    def diff(self):
        return self.words("diff", *self.caches(), "--relaxed", f"name=n{self.number}", "::", "./tree")


DEFAULT = [ShadowGit, Tar, Copy, Bupstash]

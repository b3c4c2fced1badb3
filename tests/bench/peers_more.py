"""Peers that are measured with `--all` only: slower, or used for other things.

Each as its manual shows it. None of these compares a stored snapshot with a tree, so
most have no `diff`.
"""

from measure import Job
from peers import Peer


class Restic(Peer):
    """A backup tool; its snapshots are compressed with format 2."""

    name = "restic"
    needs = packages = ("restic",)
    version = ("restic", "version")

    def job(self, *words):
        place = ["-r", self.store / "repository", "--password-file", self.store / "password"]
        return Job(["restic", "-q", *place, "--cache-dir", self.store / "cache", *words], directory=self.tree)

    def begin(self):
        (self.store / "password").write_text("measured\n")
        return [self.job("init", "--repository-version", "2")]

    def snapshot(self):
        return self.job("backup", ".")

    def undo(self):
        return self.job("restore", "latest", "--target", self.tree)


class Borg(Peer):
    """A backup tool that keeps a cache of all files it has seen."""

    name = "borg"
    needs, packages = ("borg",), ("borgbackup",)
    version = ("borg", "--version")

    def environment(self):
        """Its caches and its list of known repositories go with the store."""
        return {"BORG_BASE_DIR": str(self.store), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}

    def begin(self):
        return [Job(["borg", "init", "-e", "none", self.store / "repository"])]

    def archive(self):
        return f"{self.store}/repository::n{self.number}"

    def snapshot(self):
        return Job(["borg", "create", self.archive(), "tree"], directory=self.project)

    def undo(self):
        return Job(["borg", "extract", self.archive()], directory=self.project)


class Rustic(Peer):
    """A backup tool in restic's format, with a cache of its own. Without what it can do besides:
    mount, serve, send its figures somewhere."""

    name = "rustic"
    needs, crate = ("rustic",), ("rustic-rs@0.11.4", "--no-default-features")
    version = ("rustic", "--version")

    def job(self, *words):
        place = ["-r", self.store / "repository", "--password", "measured", "--cache-dir", self.store / "cache"]
        return Job(["rustic", "--log-level", "error", "--no-progress", *place, *words], directory=self.tree)

    def begin(self):
        return [self.job("init")]

    def snapshot(self):
        return self.job("backup", ".")

    def undo(self):
        return self.job("restore", "--delete", "latest", self.tree)


class Rsync(Peer):
    """Directories that share unchanged files as hard links."""

    name = "rsync --link-dest"
    needs = packages = ("rsync",)
    version = ("rsync", "--version")

    def place(self, number):
        return self.store / f"n{number}"

    def snapshot(self):
        link = [f"--link-dest={self.place(self.number - 1)}"] if self.number > 1 else []
        return Job(["rsync", "-a", *link, f"{self.tree}/", self.place(self.number)])

    def undo(self):
        return Job(["rsync", "-a", "--delete", f"{self.place(self.number)}/", self.tree])

    def diff(self):
        return Job(["rsync", "-ani", "--delete", f"{self.place(self.number)}/", self.tree])


MORE = [Restic, Rustic, Borg, Rsync]

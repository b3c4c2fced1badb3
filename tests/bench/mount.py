"""File systems of their own in image files, mounted while something is measured on them.

Refuses politely: without the rights or the tools there is none, and the reason is said.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

MAKE = {
    "xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"],
    "btrfs": ["mkfs.btrfs", "-q"],
    "ext4": ["mkfs.ext4", "-q", "-O", "has_journal"],
}
DISK_BYTES = 16 << 30  # the image takes only what is written


def cannot(kind):
    """Why there can be none of this kind here; none when there can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if not shutil.which(MAKE[kind][0]):
        return f"{MAKE[kind][0]} is not installed"
    if kind not in pathlib.Path("/proc/filesystems").read_text().split():
        return f"the kernel does not know {kind}"
    return None


@contextlib.contextmanager
def mounted(kind, image, size):
    """A directory that is a fresh file system of `size` bytes; gone afterwards."""
    place = image.with_suffix(".mounted")
    place.mkdir()
    try:
        with open(image, "wb") as file:
            file.truncate(size)
        subprocess.run([*MAKE[kind], image], check=True)
        subprocess.run(["mount", "-o", "loop", image, place], check=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", place], check=True)
    finally:
        image.unlink(missing_ok=True)
        place.rmdir()


@contextlib.contextmanager
def disk(directory):
    """A directory in `directory` where syncs are paid: on an ext4 with a journal if there
    can be one, since on others what removed files cost the disk can hide all else."""
    with tempfile.TemporaryDirectory(dir=directory) as plain:
        place = pathlib.Path(plain)
        if cannot("ext4"):
            yield place
        else:
            with mounted("ext4", place / "image", DISK_BYTES) as place:
                yield place


def allocated(place):
    """Bytes that the file system has given away."""
    os.sync()
    status = os.statvfs(place)
    return (status.f_blocks - status.f_bfree) * status.f_frsize

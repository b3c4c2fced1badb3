"""Which peers can be run here, once what is missing is installed.

Root on Debian gets packages; what is published as a crate only is built, in a pinned
version, into the cache. Whatever stays missing is named: its targets are not measured.
"""

import os
import shutil
import subprocess
import sys


def programs_in(cache):
    """Where programs that are built here lie; from now on they are found by their names."""
    programs = cache / "programs"
    os.environ["PATH"] += f"{os.pathsep}{programs / 'bin'}"
    return programs


def peers_here(kinds, programs, skip):
    """Those of `kinds` that can be run; `skip` is told of the others and why."""
    packages = [name for kind in kinds if lacks(kind) for name in kind.packages]
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        debian(packages)
    for kind in kinds:
        if lacks(kind) and kind.crate and shutil.which("cargo"):
            crate(programs, *kind.crate)
        if lacks(kind):
            skip(kind.name, f"{', '.join(lacks(kind))} is not installed")
    return [kind for kind in kinds if not lacks(kind)]


def lacks(kind):
    """The programs that it needs and that are not here."""
    return [program for program in kind.needs if not shutil.which(program)]


def debian(packages):
    print(f"installing {', '.join(packages)}", file=sys.stderr)
    install = "apt-get -o DPkg::Lock::Timeout=180 install -y -qq --no-install-recommends".split()
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in ["apt-get", "update", "-qq"], [*install, *packages]:
        subprocess.run(words, env=environment, stdout=subprocess.DEVNULL)


def crate(place, name, *more):
    print(f"building {name}", file=sys.stderr)
    words = ["cargo", "install", "--locked", "--quiet", "--root", place, name, *more]
    # Not in the repository, whose settings for cargo are not meant for it.
    subprocess.run(words, cwd=place.parent, stdout=subprocess.DEVNULL)

//! File systems on which files can share blocks: what is large is never written twice
//! there, and stays what it was whatever becomes of the file.

use crate::{PROGRAM, sandbox};
use snapback_tests::{Sandbox, User, have, is_root, skip};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A file system in a file, under a sandbox; it goes when this is dropped.
pub(crate) struct Mounted {
    at: PathBuf,
    image: PathBuf,
}

impl Mounted {
    /// A new one under `sandbox`, whose directories lie on it from then on.
    pub(crate) fn under(sandbox: &Sandbox, kind: &str) -> Option<Self> {
        let mkfs = format!("mkfs.{kind}");
        if !have(&mkfs) || !have("mount") {
            return None;
        }
        if !is_root() {
            skip("only root can mount a file system");
            return None;
        }
        let at = sandbox.dir().to_owned();
        let image = at.with_extension(kind);
        fs::File::create(&image).unwrap().set_len(1 << 30).unwrap();
        assert!(Command::new(mkfs).arg("-q").arg(&image).status().unwrap().success());
        let mounted = Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&at).status();
        let mounted = mounted.is_ok_and(|status| status.success());
        let this = Self { at, image };
        if !mounted {
            skip("no file system can be mounted here");
            return None;
        }
        for dir in ["home", "home/project", "tmp", "config", "data", "state", "run"] {
            fs::create_dir(this.at.join(dir)).unwrap();
        }
        Some(this)
    }

    /// Bytes that are in use, all of them on the disk.
    fn used(&self) -> u64 {
        assert!(Command::new("sync").arg("-f").arg(&self.at).status().unwrap().success());
        let fs = rustix::fs::statvfs(&self.at).unwrap();
        (fs.f_blocks - fs.f_bfree) * fs.f_frsize
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
        let _ = fs::remove_file(&self.image);
    }
}

/// Room for directories, lists and the like.
const LITTLE: u64 = 6 << 20;

fn round(kind: &str) {
    let s = Sandbox::new(PROGRAM, User::Me);
    let Some(mounted) = Mounted::under(&s, kind) else { return };
    s.sh("head -c 80000123 /dev/urandom > large; sha256sum large > ../sum");
    let before = mounted.used();
    s.ok(["snap"]);
    assert!(mounted.used() < before + LITTLE, "{kind}: a first snapshot writes nothing twice");
    // A change stores what is new, and the snapshot keeps what was.
    s.run("head -c 4096 /dev/urandom | dd of=large bs=4096 seek=5000 conv=notrunc 2>&1");
    s.ok(["undo"]);
    s.sh("sha256sum -c --quiet ../sum");
    assert!(mounted.used() < before + LITTLE, "{kind}: a small change");
    s.run("rm large");
    s.ok(["undo"]);
    s.sh("sha256sum -c --quiet ../sum");
    assert!(mounted.used() < before + LITTLE, "{kind}: what comes back is shared");
    s.run("head -c 80000123 /dev/zero > large");
    s.sh("truncate -s 9000000 large");
    s.ok(["undo"]);
    s.sh("sha256sum -c --quiet ../sum");
    s.ok(["verify"]);
    s.write("snapback.toml", "[snapshot]\nstrategy = \"copy\"\n");
    s.sh("head -c 80000123 /dev/urandom > other");
    let before = mounted.used();
    s.ok(["snap"]);
    assert!(mounted.used() > before + 70_000_000, "{kind}: a copy is asked for");
}

#[test]
fn on_xfs_no_large_content_is_written_twice() {
    round("xfs");
}

#[test]
fn on_btrfs_no_large_content_is_written_twice() {
    round("btrfs");
}

#[test]
fn sharing_that_is_asked_for_and_cannot_be_is_said_before_the_command() {
    let s = sandbox();
    let Some(_mounted) = Mounted::under(&s, "ext4") else { return };
    s.write("snapback.toml", "[snapshot]\nstrategy = \"reflink\"\n");
    s.sh("echo small > small");
    s.run("echo changed > small");
    s.sh("head -c 9000000 /dev/urandom > large");
    let said = s.snapback(["run", "--", "touch", "ran"]);
    said.fails(125, &["large cannot share its blocks with the store"]);
    assert!(said.err().contains("hint: that takes one xfs or btrfs file system for both"));
    assert!(!s.has("ran"));
    s.write("snapback.toml", "[snapshot]\nstrategy = \"auto\"\n");
    s.run("rm large");
    s.ok(["undo"]);
    assert_eq!(s.sh("stat -c %s large"), "9000000\n");
    s.write("snapback.toml", "[snapshot]\nstrategy = \"subvolume\"\n");
    s.snapback(["run", "--", "true"])
        .fails(125, &["line 2", "`strategy` must be one of auto, copy, reflink"]);
}

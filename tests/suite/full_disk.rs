//! A disk that is really full: a small file system of its own, which only root can mount.

use crate::sandbox;
use snapback_tests::{Record, Sandbox, assert_same, skip};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A project on a file system of so many MiB, whose free space is all that limits it.
struct Small {
    s: Sandbox,
    at: PathBuf,
}

impl Small {
    /// None where it cannot be made.
    fn new(mib: u32, config: &str) -> Option<Self> {
        let s = sandbox();
        let at = s.project();
        if !snapback_tests::is_root() {
            skip("only root can mount a small file system");
            return None;
        }
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=755,nr_inodes=600"), "tmpfs"]).arg(&at);
        if !mount.status().is_ok_and(|status| status.success()) {
            skip("a tmpfs cannot be mounted here");
            return None;
        }
        fs::create_dir_all(s.config().parent().unwrap()).unwrap();
        fs::write(s.config(), config).unwrap();
        // What fills the disk is no part of a snapshot.
        s.sh("mkdir cache; printf 'Signature: 8a477f597d28d172789f06886806bc55' > cache/CACHEDIR.TAG");
        Some(Self { s, at })
    }

    fn free(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.at).unwrap();
        stat.f_bavail * stat.f_frsize
    }

    fn random(&self, name: &str, kib: u32) {
        self.s.sh(&format!("head -c {kib}k /dev/urandom > {name}"));
    }

    /// Leaves no more than `left` bytes free.
    fn fill(&self, left: u64) {
        let bytes = self.free().saturating_sub(left);
        let filler = fs::File::create(self.filler()).unwrap();
        let _ = rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, bytes);
        assert!(self.free() <= left + 4096, "{} are free", self.free());
    }

    fn filler(&self) -> PathBuf {
        self.at.join("cache/filler")
    }

    fn ids(&self) -> usize {
        self.s.ok(["list", "--json"]).json().as_array().unwrap().len()
    }

    /// Bytes and files of the store.
    fn store(&self) -> String {
        self.s.sh("find .snapback -type f ! -path '*/cache/*' -printf '%P %s\\n' | sort")
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

const NO_FLOOR: &str = "[retention]\nmin-free = \"0\"\nmax-size = \"1GiB\"\n";

#[test]
fn a_snapshot_that_does_not_fit_fails_clean_and_gc_makes_room() {
    let Some(d) = Small::new(24, NO_FLOOR) else { return };
    let s = &d.s;
    for _ in 0..3 {
        d.random("big", 3000);
        s.ok(["snap"]);
    }
    d.random("large", 9000);
    let (before, store, ids) = (Record::take(&d.at), d.store(), d.ids());
    let snap = s.snapback(["snap"]);
    snap.fails(1, &["no space left"]).says("are needed").says("are free").says("snapback gc");
    s.snapback(["run", "--", "touch", "ran"]).fails(125, &["no space left"]);
    assert_same(&before, &Record::take(&d.at));
    assert_eq!((d.store(), d.ids()), (store, ids), "nothing half is left");
    s.ok(["verify"]);
    // Not one byte is free: that is when it is called.
    d.fill(0);
    let full = d.free();
    s.ok(["gc", "--keep", "1"]);
    assert!(d.free() > full + 2_000_000, "{} are free", d.free());
    s.ok(["verify"]);
    fs::remove_file(d.filler()).unwrap();
    s.sh("rm large");
    s.ok(["snap"]);
    s.ok(["verify"]);
}

#[test]
fn a_forgotten_snapshot_gives_its_space_back_without_any() {
    let Some(d) = Small::new(16, NO_FLOOR) else { return };
    d.random("big", 3000);
    let id = d.s.ok(["snap"]).out();
    d.random("big", 3000);
    d.s.ok(["snap"]);
    d.fill(0);
    d.s.ok(["forget", "--yes", id.trim_end()]);
    assert!(d.free() > 2_000_000, "{} are free", d.free());
    d.s.ok(["verify"]);
}

#[test]
fn files_that_cannot_be_had_are_not_called_space() {
    let Some(d) = Small::new(24, NO_FLOOR) else { return };
    d.random("big", 100);
    d.s.ok(["snap"]);
    d.random("big", 101);
    // Until no name can be made.
    d.s.sh("cd cache; seq 1000 | xargs touch 2>/dev/null || :");
    let snap = d.s.snapback(["snap"]);
    snap.fails(1, &["no space left"]).says("df -i").never_says("are free there");
    d.s.ok(["gc", "--keep", "1"]);
    d.s.sh("rm -r cache");
    d.s.ok(["snap"]);
    d.s.ok(["verify"]);
}

#[test]
fn a_floor_of_free_space_holds() {
    let Some(d) = Small::new(24, "[retention]\nmin-free = \"8MiB\"\nmax-size = \"1GiB\"\n") else { return };
    let s = &d.s;
    d.random("fits", 3000);
    s.ok(["snap"]);
    d.random("more", 6000);
    let free = d.free();
    assert!(free > 8 << 20, "more is free than is to stay free: {free}");
    let before = Record::take(&d.at);
    let snap = s.snapback(["snap"]);
    snap.fails(1, &["to stay free"]).says("8.0 MiB").says("are needed").says("min-free");
    s.snapback(["run", "--", "touch", "ran"]).fails(125, &["to stay free"]);
    assert_same(&before, &Record::take(&d.at));
    assert!(d.free() + 100_000 > free, "what was begun is gone again");
    s.sh("rm more");
    s.ok(["snap"]);
}

#[test]
fn an_undo_on_a_full_disk_loses_nothing() {
    let Some(d) = Small::new(24, NO_FLOOR) else { return };
    let s = &d.s;
    s.sh("for f in $(seq 40); do head -c 50000 /dev/urandom > f$f; done; mkdir d; echo 0 > d/f");
    let start = Record::take(&d.at);
    s.run("for f in $(seq 40); do head -c 50000 /dev/urandom > f$f; done; rm -r d; echo 1 > d");
    let (mut done, mut refused) = (0, 0);
    // From nothing at all to enough: what there is runs out at ever later moments.
    for left in (0..22).map(|step| step * 350_000) {
        let after = Record::take(&d.at);
        d.fill(left);
        let undo = s.snapback(["undo"]);
        let pending = s.ok(["status", "--json"]).json()["pending"].is_object();
        fs::remove_file(d.filler()).unwrap();
        if pending {
            // What could not even be taken back is finished as soon as there is room.
            s.ok(["undo"]);
        }
        let now = Record::take(&d.at);
        match undo.code() {
            0 => assert!(start.is_like(&now), "{left} bytes left\n{undo}"),
            _ if pending => assert!(start.is_like(&now), "{left} bytes left\n{undo}"),
            _ => {
                undo.fails(1, &[]).says("free");
                assert!(after.is_like(&now), "{left} bytes left\n{undo}");
            }
        }
        if start.is_like(&now) {
            done += 1;
            s.ok(["redo"]);
        } else {
            refused += 1;
        }
        assert!(after.is_like(&Record::take(&d.at)), "{left} bytes left: what was there came back");
        s.ok(["verify"]);
    }
    assert!(done > 1 && refused > 1, "{done} were done, {refused} refused");
}

#[test]
fn a_disk_that_fills_up_during_a_run_stops_its_snapshots_and_not_the_command() {
    let Some(d) = Small::new(24, NO_FLOOR) else { return };
    let s = &d.s;
    s.write("f", "0");
    let before = Record::take(&d.at);
    let script = "head -c 13000k /dev/urandom > big; sleep 3; printf 1 1<>f; rm big
        had=$(ls .snapback/snapshots | wc -l); n=0
        while [ $n -lt 200 ] && [ \"$(ls .snapback/snapshots | wc -l)\" -le $had ]; do n=$((n+1)); sleep 0.05; done
        head -c 13000k /dev/urandom > big; sleep 3; rm big; exit 7";
    let run = s.snapback(["run", "--every", "20ms", "--", "sh", "-c", script]);
    run.exits(7).says("a snapshot during the run failed: ").says("no space left").says("on the way");
    s.ok(["verify"]);
    let list = s.ok(["list", "--json"]).json();
    let taken = list.as_array().unwrap().iter().find(|snap| snap["kind"] == "interval").unwrap();
    assert_eq!(s.ok(["cat", taken["id"].as_str().unwrap(), "f"]).out(), "1");
    s.ok(["undo"]);
    assert!(before.is_like(&Record::take(&d.at)));
}

//! A project on a file system that lies on another machine: without an exchange of names,
//! without renaming to free names only, with inodes that are made up.

use crate::sandbox;
use rustix::process::Signal;
use snapback_tests::{Record, Restores, Running, Sandbox, have, is_root, skip, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What serves a directory, without a network in between.
const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A project that sshfs has mounted; it goes when this is dropped.
struct Mounted {
    at: PathBuf,
    program: Running,
}

impl Mounted {
    /// Mounts a directory beside the project of `s` at the project.
    fn new(s: &Sandbox) -> Option<Self> {
        if !have("sshfs") {
            return None;
        }
        if !is_root() || !Path::new(SERVER).exists() || !Path::new("/dev/fuse").exists() {
            skip("sshfs cannot be mounted here");
            return None;
        }
        let (ssh, far) = (s.dir().join("ssh"), s.dir().join("far"));
        fs::write(&ssh, format!("#!/bin/sh\nexec {SERVER}\n")).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&far).unwrap();
        let mut command = Command::new("sshfs");
        command.arg("-f").arg("-o").arg(format!("ssh_command={}", ssh.display()));
        command.arg(format!("host:{}", far.display())).arg(s.project());
        let this = Self { at: s.project(), program: Running::of(&mut command) };
        until("sshfs", || {
            fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&*this.at.to_string_lossy())
        });
        Some(this)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
        if !self.program.has_ended() {
            self.program.signal(Signal::KILL);
        }
    }
}

#[test]
fn it_is_recognised_and_everything_works() {
    let s = sandbox();
    let Some(_mounted) = Mounted::new(&s) else { return };
    s.ok(["status"]).prints("network   the project lies on fuse.sshfs").prints("one at a time");
    assert_eq!(s.ok(["status", "--json"]).json()["over_network"], "fuse.sshfs");
    s.sh("echo old > f; echo x > g; mkdir d d/empty; echo old > d/h; chmod 755 g; touch -d @1000 g");
    let before = Record::take(&s.project());
    s.run("echo new > f; rm -r d; echo d > d; mkdir new; echo n > new/n; chmod 600 g; mv g moved");
    let after = Record::take(&s.project());
    let back = |want: &Record| {
        Restores::default().assert_back(want, &Record::default(), &Record::take(&s.project()));
    };
    for _ in 0..2 {
        s.ok(["undo"]);
        back(&before);
        s.ok(["redo"]);
        back(&after);
    }
    // A second snapshot finds all as it was, and reads nothing again.
    s.ok(["snap"]);
    s.ok(["verify"]);
    s.ok(["gc"]);
    assert_eq!(s.sh("ls -A").replace('\n', " "), ".snapback d f moved new ");
}

#[test]
fn what_a_link_leads_to_keeps_its_time() {
    let s = sandbox();
    let Some(_mounted) = Mounted::new(&s) else { return };
    s.sh("echo f > f; touch -d @1000 f; ln -s f link");
    for run in ["rm link; echo file > link", "rm link; mkdir link", "rm link"] {
        s.run(run);
        // Where the time of the link itself would have to be set, that is said.
        let undo = s.snapback(["undo"]);
        assert!(undo.code() == 0 || undo.says("its time could not be given back").code() == 3, "{undo}");
        assert_eq!(s.sh("readlink link; stat -c %Y f"), "f\n1000\n", "{run}");
    }
}

#[test]
fn a_database_on_it_is_undone_as_well() {
    let s = sandbox();
    let Some(_mounted) = Mounted::new(&s) else { return };
    if !have("python3") {
        return;
    }
    sql(&s, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    s.run(&migrate("DELETE FROM t"));
    s.ok(["undo"]);
    assert_eq!(sql(&s, ""), "1");
    // Its place is taken by something else, and it comes back.
    s.run("rm app.db; echo text > app.db");
    s.ok(["undo"]);
    assert_eq!(sql(&s, ""), "1");
}

/// A command that executes `statements` and prints how many rows there are.
fn migrate(statements: &str) -> String {
    let then = "print(c.execute('SELECT count(*) FROM t').fetchone()[0])";
    format!(
        "python3 -c \"import sqlite3; c = sqlite3.connect('app.db'); c.executescript('{statements}'); {then}\""
    )
}

fn sql(s: &Sandbox, statements: &str) -> String {
    s.sh(&migrate(statements)).trim().to_owned()
}

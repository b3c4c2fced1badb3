//! Attributes and kinds that only some may set: of links, of the root itself, of devices;
//! times that are far away.

use crate::{each_user, sandbox, there_and_back};
use snapback_tests::{Record, Restores, Sandbox, User, assert_back, have, is_root, skip};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::Duration;

/// All extended attributes beneath the project, of links themselves, too.
fn attributes(s: &Sandbox) -> String {
    s.sh("find . -path ./.snapback -prune -o -print0 | sort -z | xargs -0 getfattr -h -d -m - -e hex -- 2>/dev/null")
}

#[test]
fn attributes_of_links_and_those_that_only_root_may_set() {
    if !is_root() || !have("setfattr") {
        return;
    }
    let s = sandbox();
    s.sh("echo 0 > f; mkdir d; ln -s nowhere l; mkfifo p; echo 0 > gone; ln -s f gone-too");
    let set = "for x in f d l p gone gone-too; do setfattr -h -n trusted.mark -v \"for $x\" $x; done
               setfattr -n security.mark -v 1 f; setfattr -h -n security.mark -v 2 l; setfattr -n trusted.overlay.opaque -v y d";
    if !s.finish(s.command("sh").args(["-ec", set])).status.success() {
        return skip("such attributes cannot be set here");
    }
    let before = attributes(&s);
    assert_eq!(before.matches("trusted.mark").count(), 6, "{before}");
    let links = before.split("# file: ").filter(|part| part.starts_with("l\n")).count();
    assert_eq!(links, 1, "{before}");
    for change in [
        "setfattr -h -x trusted.mark l; setfattr -h -n trusted.mark -v other f; setfattr -n security.mark -v 3 f",
        "setfattr -h -n trusted.new -v new l; setfattr -h -n security.mark -v 4 l; setfattr -x trusted.overlay.opaque d",
        "rm -r l d p gone gone-too; ln -s elsewhere l; echo A > f",
    ] {
        let record = Record::take(&s.project());
        s.run(change);
        let changed = (attributes(&s), Record::take(&s.project()));
        assert_ne!(changed.0, before, "{change}");
        s.ok(["undo"]);
        assert_eq!(attributes(&s), before, "{change}");
        assert_back(&record, &changed.1, &Record::take(&s.project()));
        s.ok(["redo"]);
        assert_eq!(attributes(&s), changed.0, "{change}");
        s.ok(["undo"]);
    }
    // One that is gone comes back; one that came stays: the system gives labels by itself.
    s.run("setfattr -x security.mark f; setfattr -n security.new -v 1 d");
    s.ok(["undo"]);
    let now = attributes(&s);
    assert_eq!(now.replace("security.new=0x31\n", ""), before);
}

#[test]
fn the_root_itself_has_its_mode_attributes_and_lists_again() {
    if !have("setfattr") || !have("setfacl") {
        return;
    }
    each_user(|s| {
        s.sh("echo 0 > f; chmod 751 .; setfattr -n user.mark -v 1 .; setfacl -m u:1234:rx -d -m g:77:r .; echo 0 > g");
        let before = Record::take(&s.project());
        assert!(before.entry("").attributes.len() > 3, "{:?}", before.entry(""));
        there_and_back(s, "chmod 700 .; setfattr -x user.mark .; setfacl -b .");
        there_and_back(
            s,
            "setfattr -n user.mark -v 2 .; setfattr -n user.more -v 3 .; setfacl -k .; chmod 1755 .; rm g",
        );
        if is_root() && s.user() == User::Me {
            there_and_back(s, "chown 12:34 .; setfattr -n trusted.mark -v 1 .");
        }
    });
}

#[test]
fn times_of_any_age_to_the_nanosecond() {
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\ntimes = \"stored\"\n");
        let times = [
            "@-1.000000001",
            "@-2000000000.5",
            "@0",
            "@0.999999999",
            "@4102444800.123456789",
            "@9999999999.1",
        ];
        for (at, time) in times.iter().enumerate() {
            s.sh(&format!(
                "mkdir d{at}; echo 0 > f{at}; echo 0 > d{at}/g; ln -s f{at} l{at}; mkfifo p{at}
                 touch -h -d {time} f{at} d{at}/g l{at} p{at} d{at}"
            ));
        }
        let before = Record::take(&s.project());
        if !before.entry("f1").mtime.starts_with("-2000000000.5")
            && !before.entry("f1").mtime.starts_with("-2000000001")
        {
            return skip(&format!("this file system has no such times: {:?}", before.entry("f1").mtime));
        }
        let is_back = |what: &str| {
            let now = Record::take(&s.project());
            for (path, want) in before.0.iter().filter(|(path, _)| !path.is_empty()) {
                let found = now.0.get(path).map(|entry| entry.mtime.clone());
                assert_eq!(found.as_ref(), Some(&want.mtime), "{what}: {}", path.escape_ascii());
            }
        };
        for script in [
            "for f in f? d?/g; do echo A > $f; done; touch -h l? p? d?",
            "rm -rf f? l? p? d?",
            // The state is the same, and the times are not.
            "for f in f? d?/g; do echo 1 > $f; echo 0 > $f; done; for f in l?; do t=$(readlink $f); ln -sfn $t $f; done; touch d?; touch extra",
        ] {
            s.run(script);
            s.ok(["undo"]);
            is_back(script);
        }
        // Without that setting links, fifos and directories have theirs all the same.
        s.sh("rm snapback.toml");
        s.run("rm -rf l? p? d?");
        s.ok(["undo"]);
        let now = Record::take(&s.project());
        for (path, want) in before.0.iter().filter(|(path, entry)| !path.is_empty() && entry.kind != b'f') {
            assert_eq!(
                now.0.get(path).map(|entry| &entry.mtime),
                Some(&want.mtime),
                "{}",
                path.escape_ascii()
            );
        }
    });
}

#[test]
fn sockets_and_devices_that_a_run_removed_are_made_again() {
    if !have("python3") {
        return;
    }
    each_user(|s| {
        s.sh("python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"; chmod 640 socket; mkfifo -m 600 fifo; echo 0 > f");
        let devices = s.finish(s.command("sh").args(["-c", "mknod null c 1 3 && mknod -m 620 block b 7 99"]));
        if is_root() && s.user() == User::Me && !devices.status.success() {
            return skip("device nodes cannot be made here");
        }
        let before = Record::take(&s.project());
        s.run("rm -f socket fifo null block; echo A > f");
        let changed = Record::take(&s.project());
        s.ok(["undo"]);
        let now = Record::take(&s.project());
        assert_back(&before, &changed, &now);
        let meta = fs::symlink_metadata(s.project().join("socket")).unwrap();
        assert!(meta.file_type().is_socket() && meta.mode() & 0o7777 == 0o640);
        if devices.status.success() {
            let of = |name: &str| {
                let meta = fs::symlink_metadata(s.project().join(name)).unwrap();
                let kind = meta.file_type();
                (kind.is_char_device(), kind.is_block_device(), meta.rdev(), meta.mode() & 0o7777)
            };
            assert_eq!(of("null"), (true, false, rustix::fs::makedev(1, 3), before_mode(&before, "null")));
            assert_eq!(of("block"), (false, true, rustix::fs::makedev(7, 99), 0o620));
        }
    });
}

fn before_mode(record: &Record, path: &str) -> u32 {
    u32::from_str_radix(&record.entry(path).mode, 8).unwrap()
}

#[test]
fn a_device_that_this_user_may_not_make_is_named() {
    if !is_root() {
        return;
    }
    let s = Sandbox::new(crate::PROGRAM, User::Nobody);
    let made =
        std::process::Command::new("mknod").arg(s.project().join("null")).args(["c", "1", "3"]).status();
    if !made.unwrap().success() {
        return skip("device nodes cannot be made here");
    }
    s.sh("echo 0 > f");
    s.run("rm -f null; echo A > f");
    let said = "null (a character device cannot be made by this user";
    s.snapback(["undo", "-n"]).exits(3).says(said);
    assert_eq!(s.read("f"), "A\n");
    let undo = s.snapback(["undo", "--json"]);
    undo.exits(3).says(said).says("sudo");
    assert_eq!(undo.json()["not_restored"][0]["path"], "null", "{undo}");
    assert_eq!((s.read("f"), s.has("null")), ("0\n".into(), false), "{undo}");
}

#[test]
fn no_device_fifo_or_socket_is_ever_opened() {
    if !is_root() || !have("strace") {
        return;
    }
    let s = sandbox();
    if !s.finish(s.command("mknod").args(["null", "c", "1", "3"])).status.success() {
        return skip("device nodes cannot be made here");
    }
    s.sh("mkfifo fifo; mknod full c 1 7; chmod 600 full; echo 0 > f; mkdir d; mkfifo d/fifo");
    let traced = |words: &[&str]| {
        let log = s.dir().join("tmp/trace");
        let mut strace = s.command("strace");
        strace.args(["-f", "-y", "-e", "trace=open,openat,openat2", "-o"]).arg(&log);
        let done = s.finish(strace.arg(s.program().get_program()).args(words));
        done.exits(0);
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.lines().count() > 20, "{text}");
        // By a handle that leads to the name and to nothing behind it: that opens nothing.
        let opens = |line: &&str| {
            ["null", "full", "fifo"].iter().any(|name| line.contains(&format!("\"{name}\"")))
                && !line.contains("O_PATH")
        };
        let opened: Vec<&str> = text.lines().filter(opens).collect();
        assert!(opened.is_empty(), "{words:?}: {opened:?}");
    };
    traced(&["snap"]);
    s.run("rm null fifo d/fifo; chmod 644 full; touch -d 2001-01-01 full; mknod null b 7 98; mkfifo -m 644 d/fifo; echo A > f");
    traced(&["diff"]);
    traced(&["undo"]);
    assert!(fs::symlink_metadata(s.project().join("null")).unwrap().file_type().is_char_device());
    traced(&["redo"]);
    traced(&["restore", "@0"]);
}

#[test]
fn capabilities_come_back_with_content_and_owner() {
    let s = sandbox();
    if !is_root() || !have("setcap") {
        return;
    }
    s.sh("cp /bin/true tool; cp /bin/true mine; cp /bin/true plain; chown 12:34 mine; chmod 4755 mine; chmod 2711 plain");
    if !s
        .finish(s.command("setcap").args(["cap_net_raw+ep", "tool", "cap_chown=ep", "mine"]))
        .status
        .success()
    {
        return skip("file capabilities cannot be set here");
    }
    let caps = |path: &str| {
        let record = Record::take(&s.project());
        record.entry(path).attributes.iter().any(|a| a.starts_with("security.capability"))
    };
    assert!(caps("tool") && caps("mine"));
    for change in [
        // Each of these takes the capability away by itself.
        "echo A >> tool; chown 0:0 mine",
        "chown 1:2 tool; cp mine t; cat t > mine; rm t",
        "setcap -r tool; setcap cap_sys_admin+ep plain; chmod 700 mine",
        "rm tool mine; cp /bin/false tool",
    ] {
        there_and_back(&s, change);
        assert!(caps("tool") && caps("mine") && !caps("plain"), "{change}");
    }
}

#[test]
fn a_sparse_file_that_is_changed_in_place_stays_sparse() {
    each_user(|s| {
        s.sh("truncate -s 200M sparse; for at in 0 100000 199999; do printf here | dd of=sparse bs=1 seek=${at}000 conv=notrunc 2>/dev/null; done");
        let sum = s.sh("sha256sum < sparse");
        let small = |what: &str| {
            let meta = fs::metadata(s.project().join("sparse")).unwrap();
            assert!(meta.blocks() * 512 < 4 << 20, "{what}: {} bytes on the disk", meta.blocks() * 512);
        };
        small("made");
        for change in [
            "printf there | dd of=sparse bs=1 seek=150000000 conv=notrunc 2>/dev/null",
            "head -c 300000 /dev/urandom | dd of=sparse bs=64k seek=1000 conv=notrunc 2>/dev/null",
            "truncate -s 300M sparse; printf end | dd of=sparse bs=1 seek=250000000 conv=notrunc 2>/dev/null",
            "truncate -s 100 sparse",
        ] {
            s.run(change);
            s.ok(["undo"]);
            assert_eq!(s.sh("sha256sum < sparse"), sum, "{change}");
            small(change);
        }
        // And what is stored of it is small.
        let bytes: u64 = s.sh("du -sb .snapback | cut -f1").trim().parse().unwrap();
        assert!(bytes < 8 << 20, "{bytes}");
    });
}

#[test]
fn directories_that_may_not_be_written_are_whole_after_an_undo_that_was_killed() {
    each_user(|s| {
        let files = 120;
        s.sh(&format!(
            "for d in 1 2 3; do mkdir d$d; for f in $(seq {files}); do echo 0 > d$d/f$f; done; chmod 444 d$d/f1; chmod 555 d$d; done"
        ));
        let before = Record::take(&s.project());
        let mut cut_short = 0;
        for at in 0..12 {
            s.run(&format!(
                "chmod 755 d?; for d in 1 2 3; do for f in $(seq {files}); do rm -f d$d/f$f; echo A{at} > d$d/f$f; done; done; touch d1/new; chmod 500 d1; chmod 555 d2; chmod 711 d3"
            ));
            let changed = Record::take(&s.project());
            let pending = s.cut_short(&["undo"], Duration::from_micros(at * 500));
            cut_short += usize::from(pending);
            if pending {
                s.ok(["undo", if at % 2 == 0 { "--resume" } else { "--take-back" }]);
                let want = if at % 2 == 0 { &before } else { &changed };
                Restores::default().assert_back(want, &Record::default(), &Record::take(&s.project()));
            }
            if !pending || at % 2 != 0 {
                let list = s.ok(["list", "--json"]).json();
                let run =
                    list.as_array().unwrap().iter().rev().find(|snap| snap["kind"] == "run").unwrap()["id"]
                        .clone();
                s.ok(["restore", run.as_str().unwrap()]);
            }
            Restores::default().assert_back(&before, &Record::default(), &Record::take(&s.project()));
            assert_eq!(s.sh("stat -c %a d1 d2 d3 d1/f1").replace('\n', " "), "555 555 555 444 ", "{at}");
        }
        assert!(cut_short > 2, "{cut_short}");
        s.sh("chmod -R u+w .");
    });
}

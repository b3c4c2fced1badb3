//! Every kind of entry, every kind of name, every attribute, in every direction.

use crate::{each_user, newest, sandbox, there_and_back};
use snapback_tests::{Record, Sandbox, User, assert_back, assert_same, have, is_root};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Makes a tree with `make`, changes it with `change` inside a run; undo must bring back
/// the first, redo the second.
#[track_caller]
fn make_and_back(s: &Sandbox, make: &str, change: &str) -> Record {
    s.sh(make);
    there_and_back(s, change)
}

#[test]
fn a_link_in_place_of_a_file_is_replaced_and_its_victim_untouched() {
    each_user(|s| {
        let victim = s.home().join("victim");
        s.sh("echo precious > ../victim; echo 0 > x");
        let before = fs::metadata(&victim).unwrap();
        make_and_back(s, "true", "rm x; ln -s ../victim x");
        let after = fs::metadata(&victim).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious\n");
        assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
        assert_eq!(s.read("x"), "0\n");
    });
}

#[test]
fn nothing_is_written_through_a_link_in_place_of_a_directory() {
    each_user(|s| {
        s.sh("mkdir ../outside d; echo outside > ../outside/f; echo 0 > d/f; echo 0 > d/g");
        let outside = Record::take(&s.home().join("outside"));
        s.run("rm -r d; ln -s ../outside d");
        let undo = s.snapback(["undo", "--path", "d/f"]);
        assert!([0, 1, 3].contains(&undo.code()), "{undo}");
        assert_same(&outside, &Record::take(&s.home().join("outside")));
        if undo.code() == 0 {
            s.ok(["undo"]);
        }
        s.ok(["undo"]);
        assert_eq!((s.read("d/f"), s.read("d/g")), ("0\n".into(), "0\n".into()));
        assert!(!s.project().join("d").is_symlink());
        assert_same(&outside, &Record::take(&s.home().join("outside")));
    });
}

#[test]
fn loops_are_never_followed() {
    each_user(|s| {
        make_and_back(s, "ln -s . loop; mkdir d; ln -s .. d/up; ln -s d/up/d ring", "rm loop ring; rm -r d");
    });
}

#[test]
fn hard_links_are_one_file_again() {
    each_user(|s| {
        let make = "mkdir d; echo 0 > a; ln a b; ln a d/c; echo 1 > x; ln x y";
        make_and_back(s, make, "echo A > a; rm y; rm x; rm d/c; cp a d/c; echo new > b.tmp; mv b.tmp b");
        let inode = |path: &str| fs::metadata(s.project().join(path)).unwrap().ino();
        assert_eq!((inode("a"), inode("a")), (inode("b"), inode("d/c")));
        assert_eq!(inode("x"), inode("y"));
        // Written in place: the names stay together.
        s.run("echo B > a");
        s.ok(["undo"]);
        assert_eq!(inode("a"), inode("b"));
        assert_eq!((s.read("a"), s.read("d/c")), ("0\n".into(), "0\n".into()));
    });
}

#[test]
fn a_sparse_file_stays_sparse() {
    each_user(|s| {
        s.sh("truncate -s 20G sparse; printf middle | dd of=sparse bs=1 seek=10000000000 conv=notrunc 2>/dev/null");
        s.run("rm sparse");
        s.ok(["undo"]);
        let meta = fs::metadata(s.project().join("sparse")).unwrap();
        assert_eq!(meta.len(), 20 << 30);
        assert!(meta.blocks() * 512 < 1 << 20, "{} bytes on the disk", meta.blocks() * 512);
        assert_eq!(s.sh("dd if=sparse bs=1 skip=10000000000 count=6 2>/dev/null"), "middle");
    });
}

#[test]
fn fifos_and_sockets_are_never_opened() {
    each_user(|s| {
        let socket = s.project().join("socket");
        s.sh("mkfifo fifo; echo 0 > f");
        let listener = std::os::unix::net::UnixListener::bind(&socket);
        s.user().own(&socket);
        let before = Record::take(&s.project());
        s.run("rm fifo; echo A > f");
        let damaged = Record::take(&s.project());
        s.ok(["undo"]);
        let now = Record::take(&s.project());
        assert_back(&before, &damaged, &now);
        assert_eq!(now.entry("fifo").kind, b'p');
        assert!(listener.is_ok());
    });
}

#[test]
fn device_nodes_are_recorded_and_never_opened() {
    each_user(|s| {
        if !s.finish(s.command("mknod").args(["null", "c", "1", "3"])).status.success() {
            if !s.user().is_ordinary() {
                snapback_tests::skip("device nodes cannot be made here");
            }
            return;
        }
        make_and_back(s, "echo 0 > f", "rm null; echo A > f");
    });
}

#[test]
fn names_are_bytes() {
    each_user(|s| {
        let make = "printf a > \"$(printf '\\376')\"; printf b > \"$(printf '\\377')\"; printf c > 'new
line'; printf d > ' leading'; printf e > '\"quoted\"'; printf f > 日本; printf g > 'back\\slash'
            printf h > -dash; printf i > $(printf 'n%.0s' $(seq 255)); mkdir '*' && printf j > '*/?'; printf k > 'trailing '";
        let before =
            make_and_back(s, make, "for f in ./*; do [ -f \"$f\" ] && echo A > \"$f\"; done; rm -- ./-dash");
        assert_eq!(before.files(), 11);

        s.run("for f in ./*; do [ -f \"$f\" ] && rm \"$f\"; done");
        let run = newest(s);
        let diff = s.ok(["diff", "--json"]).json();
        let changes = diff["changes"].as_array().unwrap();
        let has = |key: &str, value: &str| changes.iter().any(|c| c[key] == value && c["kind"] == "deleted");
        for name in ["new\nline", " leading", "\"quoted\"", "日本", "back\\slash", "-dash", "trailing "] {
            assert!(has("path", name), "{name:?}: {diff}");
        }
        assert!(has("path_b64", "/g==") && has("path_b64", "/w=="), "{diff}");
        for name in [&b"\xfe"[..], b"new\nline", b" leading", b"\"quoted\"", "日本".as_bytes(), b"\xff"] {
            let name = std::ffi::OsStr::from_bytes(name);
            let words = [std::ffi::OsStr::new("restore"), run.as_ref(), "--path".as_ref(), name];
            s.ok(words);
            assert!(s.project().join(name).exists(), "{name:?}");
        }
        assert!(!s.has("back\\slash"), "only what was named came back");
    });
}

#[test]
fn a_path_longer_than_the_system_takes() {
    each_user(|s| {
        // 40 directories with names of 200 bytes, each made in the one before.
        let walk = "n=$(printf 'd%.0s' $(seq 200)); i=0; while [ $i -lt 40 ]; do [ -d $n ] || mkdir $n; cd -P $n; i=$((i+1)); done";
        let bash = |script: &str| s.finish(s.command("bash").args(["-c", &format!("{walk}; {script}")]));
        bash("echo 0 > f");
        s.run("rm -r d*");
        assert!(s.sh("ls").is_empty());
        s.ok(["undo"]);
        assert_eq!(bash("cat f").out(), "0\n");
        s.sh("rm -rf d*");
    });
}

#[test]
fn every_kind_becomes_every_other() {
    each_user(|s| {
        let kinds = [("file", "echo 0 >"), ("dir", "mkdir"), ("link", "ln -s nowhere"), ("fifo", "mkfifo")];
        let (mut make, mut change) = (String::new(), String::new());
        for (from, a) in kinds {
            for (to, b) in kinds {
                make += &format!("{a} {from}-{to}\n");
                change += &format!("rm -r {from}-{to}; {b} {from}-{to}\n");
            }
            make += &format!("[ ! -d {from}-file ] || echo inside > {from}-file/x\n");
        }
        make_and_back(s, &make, &change);
    });
}

#[test]
fn read_only_directories_and_files() {
    each_user(|s| {
        let make = "mkdir -p d/e; echo 0 > d/f; echo 0 > d/e/g; echo 0 > only; chmod 444 d/f d/e/g only; chmod 555 d/e d";
        make_and_back(
            s,
            make,
            "chmod 755 d d/e; rm -r d/e; chmod 644 d/f; echo A > d/f; chmod 555 d; rm -f only",
        );
        let before = Record::take(&s.project());
        s.run("chmod 755 d; rm -rf d/f; chmod 755 d/e; echo A > d/e/new; chmod 500 d/e; chmod 500 d");
        let changed = Record::take(&s.project());
        s.ok(["undo"]);
        assert_back(&before, &changed, &Record::take(&s.project()));
        s.sh("chmod -R u+w d");
    });
}

#[test]
fn modes_down_to_the_last_bit() {
    each_user(|s| {
        let make = "for m in 0 1 7 70 644 755 777 1777 2755 4711 6755; do
            echo $m > f$m; mkdir d$m; chmod $m f$m d$m; done; chmod 700 d0 d1 d7 d70; chmod 600 f0 f1 f7 f70";
        make_and_back(s, make, "chmod 711 d*; chmod 604 f*; rm f4711 f6755; rmdir d2755 d1777");
    });
}

#[test]
fn extended_attributes_and_acls() {
    if !have("setfattr") || !have("setfacl") {
        return;
    }
    each_user(|s| {
        let make = "echo 0 > f; echo 0 > g; mkdir d; setfattr -n user.a -v 1 f; setfattr -n user.empty f; setfattr -n user.d -v x d
            setfacl -m u:1234:rw g; setfacl -d -m u:1234:rx d; setfacl -m g:77:r d";
        make_and_back(
            s,
            make,
            "setfattr -n user.a -v 2 f; setfattr -x user.empty f; setfattr -n user.new -v 3 f; setfacl -b g; rm -r d",
        );
        // A change of attributes alone is a change, and writes no content.
        let inode = fs::metadata(s.project().join("f")).unwrap().ino();
        s.run("setfattr -x user.a f");
        s.ok(["undo"]);
        assert_eq!(fs::metadata(s.project().join("f")).unwrap().ino(), inode);
    });
}

#[test]
fn file_capabilities_are_kept() {
    each_user(|s| {
        if s.user().is_ordinary() || !have("setcap") {
            return;
        }
        s.sh("cp /bin/true tool");
        if !s.finish(s.command("setcap").args(["cap_net_raw+ep", "tool"])).status.success() {
            snapback_tests::skip("file capabilities cannot be set here");
            return;
        }
        make_and_back(
            s,
            "chown 12:34 other 2>/dev/null || true",
            "cp tool t; rm tool; mv t tool; chmod 700 tool",
        );
        assert!(
            Record::take(&s.project())
                .entry("tool")
                .attributes
                .iter()
                .any(|a| a.starts_with("security.capability"))
        );
    });
}

#[test]
fn owners_come_back_and_what_may_not_be_set_is_noted() {
    if !is_root() {
        return;
    }
    let s = sandbox();
    make_and_back(&s, "echo 0 > f; mkdir d; chown 12:34 f d", "chown 0:0 f; rmdir d; rm f; echo 0 > f");

    let s = Sandbox::new(crate::PROGRAM, User::Nobody);
    s.sh("echo 0 > f; chmod 666 f");
    std::os::unix::fs::chown(s.project().join("f"), Some(12), Some(34)).unwrap();
    s.run("echo A > new; mv new f");
    let undo = s.snapback(["undo", "--json"]);
    undo.exits(3);
    assert_eq!(s.read("f"), "0\n", "the content comes back");
    assert!(undo.err().contains("owner"), "the ownership is noted\n{undo}");
    let noted = undo.json()["not_restored"].as_array().unwrap().clone();
    assert_eq!(noted.iter().map(|n| n["path"].as_str().unwrap()).collect::<Vec<_>>(), ["f"], "{undo}");
}

#[test]
fn what_could_not_be_given_back_is_given_by_the_command_that_is_named() {
    if !is_root() {
        return;
    }
    for name in ["f", "a b", "c*", "it's", "q'x\ny"] {
        let s = Sandbox::new(crate::PROGRAM, User::Nobody);
        let file = s.project().join("sub").join(name);
        s.sh("mkdir sub");
        std::fs::write(&file, "0\n").unwrap();
        std::os::unix::fs::chown(&file, Some(65534), Some(12)).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o2755)).unwrap();
        s.ok(["run", "--", "sh", "-c", "rm -f sub/*; echo A > new"]);
        let undo = s.snapback(["undo"]);
        undo.exits(3).says("its setgid bit");
        // From wherever it is given, and without the program that root has no need of.
        let said = undo.err();
        let command =
            said.lines().find_map(|line| Some(line.split_once("sudo ")?.1)).expect("a command is named");
        let command = command.trim_end_matches([')', '`']).replace("sudo ", "");
        let done = std::process::Command::new("bash").args(["-c", &command]).current_dir("/").status();
        assert!(done.unwrap().success(), "{command}\n{undo}");
        let meta = std::fs::metadata(&file).unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.gid()), (0o2755, 12), "{command}");
    }
}

#[test]
fn one_path_of_many_comes_back_alone() {
    each_user(|s| {
        s.sh("mkdir -p a/b; echo 0 > a/b/c; echo 0 > a/d");
        s.run("rm -r a; echo file > a");
        let id = newest(s);
        // What stands in its way is neither removed nor gone through unasked.
        s.snapback(["restore", &id, "--path", "a/b/c"])
            .fails(1, &[])
            .says("a: it is a file now")
            .says("--path a");
        assert_eq!(s.read("a"), "file\n");
        s.sh("rm a");
        s.ok(["restore", &id, "--path", "a/b/c"]);
        assert_eq!(s.read("a/b/c"), "0\n");
        assert!(!s.has("a/d"));
    });
}

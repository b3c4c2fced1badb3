//! What a volume holds comes back exactly, and is looked into like a directory.

use super::{agree, cover, each_user};
use snapback_tests::{Record, Sandbox};

/// Everything that a volume can hold, made by root at the place of the volume.
const EVERYTHING: &str = r#"
    chown 999:999 .; chmod 700 .; umask 022
    echo one > plain; chmod 640 plain; chown 999:27 plain
    mkdir -p deep/er; echo two > deep/er/file; chmod 555 deep/er; chown 70:70 deep
    ln -s ../../outside deep/link; ln -s / root
    echo names > first; ln first deep/second; ln first third
    mkfifo pipe; chown 999 pipe
    echo bits > bits; chmod 4755 bits; mkdir sticky; chmod 1777 sticky
    setfattr -n user.note -v value plain; setfattr -n user.dir -v x deep
    truncate -s 3M sparse; printf end >> sparse
    printf x > "$(printf 'a\376')"; printf y > 'new
line'
    mkdir empty; mkdir shut; echo kept > shut/file; chmod 000 shut
    mkdir .git .snapback-not; echo ref > .git/HEAD; mkdir node_modules; echo js > node_modules/m
    for i in $(seq 60); do echo $i > deep/f$i; done
    touch -h -d '2001-02-03 04:05:06.789' plain deep/link deep/er
"#;

/// What a run does to all that.
const MANGLED: &str = r"
    chmod 755 . shut; chown 0:0 .
    echo changed >> plain; rm -r deep/er; rm deep/link; ln -s elsewhere deep/link
    rm third; echo other > third; rm pipe; echo file > pipe
    chmod 644 bits; rmdir sticky; echo was a directory > sticky
    setfattr -x user.note plain; rm sparse; rm -r .git; rmdir empty
    mkdir added; echo more > added/more; mkfifo added/fifo; ln plain added/name
    rm deep/f1 deep/f2; echo grown >> deep/f3; touch deep/f4
";

#[test]
fn a_volume_comes_back_exactly_and_so_does_what_was_undone() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let files = engine.files(volume);
        let mount = files.display();
        engine.sh(&format!("cd {mount}\n{EVERYTHING}"));
        cover(s, volume, "");
        let before = Record::take(&files);
        s.run("echo run > file");
        engine.sh(&format!("cd {mount}\n{MANGLED}"));
        let after = Record::take(&files);
        s.ok(["undo", "--yes"]);
        assert_exact(&before, &Record::take(&files));
        assert!(!s.project().join("file").exists());
        s.ok(["redo", "--yes"]);
        assert_exact(&after, &Record::take(&files));
        s.ok(["undo", "--yes"]).exits(0);
        assert_exact(&before, &Record::take(&files));
        s.ok(["verify"]);
        assert_eq!(engine.leftovers(volume), "");
    });
}

/// Every part of every entry, but the number of an inode that was made again.
#[track_caller]
fn assert_exact(expected: &Record, found: &Record) {
    let plain = |record: &Record| {
        let mut entries = record.0.clone();
        // Which names are one is told by what they share.
        let mut inodes = Vec::new();
        for entry in entries.values_mut() {
            let inode = std::mem::take(&mut entry.inode);
            let number = inodes.iter().position(|known| *known == inode).unwrap_or(inodes.len());
            if number == inodes.len() {
                inodes.push(inode);
            }
            entry.inode = number.to_string();
        }
        entries
    };
    let (expected, found) = (plain(expected), plain(found));
    for (path, entry) in &expected {
        assert_eq!(Some(entry), found.get(path), "{}", String::from_utf8_lossy(path));
    }
    assert_eq!(
        expected.len(),
        found.len(),
        "{:?}",
        found.keys().filter(|path| !expected.contains_key(*path))
    );
}

#[test]
fn what_did_not_change_is_not_touched() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let files = engine.files(volume);
        engine.sh(&format!("cd {}; for i in $(seq 500); do echo $i > f$i; done", files.display()));
        cover(s, volume, "");
        let before = Record::take(&files);
        s.run("true");
        engine.sh(&format!("cd {}; echo changed > f7; echo new > g", files.display()));
        s.ok(["undo", "--yes"]);
        let after = Record::take(&files);
        for (path, entry) in &before.0 {
            if path != b"f7" {
                assert_eq!(after.0.get(path), Some(entry), "{}", String::from_utf8_lossy(path));
            }
        }
        assert_eq!(after.0.len(), before.0.len());
    });
}

#[test]
fn a_volume_is_looked_into_like_a_directory() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let mount = engine.files(volume).display().to_string();
        engine.sh(&format!("cd {mount}; echo old > conf; mkdir d; echo kept > d/kept"));
        cover(s, volume, "");
        s.run("true");
        engine.sh(&format!("cd {mount}; echo new > conf; echo more > d/more; rm d/kept"));
        // All of it was changed by somebody else than the run.
        let plain = |text: String| text.replace(" (changed after the run)", "");
        let diff = plain(s.ok(["diff"]).out());
        assert_eq!(diff, format!("M {volume}: conf\nD {volume}: d/kept  -1\nA {volume}: d/more\n"));
        let patch = s.ok(["diff", "-p"]).out();
        assert!(patch.contains("-old\n+new\n"), "{patch}");
        let json = s.ok(["diff", "--json"]).json();
        assert_eq!(json["changes"][0]["target"], volume);
        assert_eq!(json["changes"][0]["path"], "conf");
        assert_eq!(s.ok(["cat", "@0", &format!("{volume}:/conf")]).out(), "old\n");
        assert_eq!(s.ok(["cat", "@0", &format!("{volume}:d/kept")]).out(), "kept\n");
        s.snapback(["cat", "@0", &format!("{volume}:/d/more")]).fails(1, &["is not in snapshot"]);
        let wanted = format!("{volume}:/d");
        assert_eq!(
            plain(s.ok(["diff", "--path", &wanted]).out()),
            format!("D {volume}: d/kept  -1\nA {volume}: d/more\n")
        );
        s.ok(["undo", "--yes", "--path", &wanted]);
        assert_eq!(engine.sh(&format!("cd {mount}; cat conf; ls d")), "new\nkept");
        s.ok(["undo", "--yes", "--path", &format!("{volume}:/conf")]);
        assert_eq!(engine.sh(&format!("cd {mount}; cat conf; ls d")), "old\nkept");
    });
}

#[test]
fn equal_files_are_stored_once_and_what_is_known_is_not_stored_again() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let mount = engine.files(volume).display().to_string();
        engine.sh(&format!("cd {mount}; head -c 300000 /dev/urandom > a; cp a b; cp a c"));
        cover(s, volume, "");
        s.ok(["snap"]);
        let added = |list: &serde_json::Value| list[0]["bytes_added"].as_u64().expect("a number");
        let first = added(&s.ok(["list", "--json"]).json());
        assert!((300_000..400_000).contains(&first), "{first}");
        engine.sh(&format!("cd {mount}; cp a d"));
        s.ok(["snap"]);
        let second = added(&s.ok(["list", "--json"]).json());
        assert!(second < 20_000, "{second}");
    });
}

/// The most that the program needed at once, in KiB.
pub(super) fn memory(s: &Sandbox, words: &[&str]) -> u64 {
    let script = "import os, resource, subprocess, sys
subprocess.run([os.environ['SNAPBACK'], *sys.argv[1:]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let output = s.finish(s.command("python3").args(["-c", script]).args(words));
    output.exits(0);
    output.out().lines().last().and_then(|line| line.parse::<u64>().ok()).expect("a number")
}

#[test]
fn memory_does_not_grow_with_the_volume() {
    /// The most that the program may need, in KiB: far less than what it captures.
    const MOST: u64 = 150 * 1024;
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let mount = engine.files(volume).display().to_string();
        engine.sh(&format!(
            "cd {mount}; head -c 400000000 /dev/urandom > a; head -c 90000000 /dev/urandom > b"
        ));
        cover(s, volume, "");
        let taken = memory(s, &["run", "--", "true"]);
        engine.sh(&format!("cd {mount}; rm a; echo changed > b"));
        let undone = memory(s, &["undo", "--yes"]);
        assert!(taken < MOST && undone < MOST, "{taken} and {undone} KiB");
        assert_eq!(engine.sh(&format!("cd {mount}; stat -c %s a b")), "400000000\n90000000");
    });
}

#[test]
fn nothing_of_a_volume_is_read_before_it_was_agreed_to() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        super::declare(s, volume, "");
        let asked = s.snapback(["run", "--", "touch", "started"]);
        asked.fails(125, &["you have not agreed", &format!("uses the volume {volume}")]);
        assert!(!s.project().join("started").exists());
        agree(s);
        s.run("true");
    });
}

//! An engine of another kind of machine, where nothing of ours runs: the real one, behind
//! somebody who says that it is such.

use super::between::Between;
use super::{Engine, Name, USERS, agree, cover, declare, sandbox_at};
use snapback_tests::Sandbox;

/// Who says of the engine that it is of another kind, and on another machine.
fn apart(engine: &Engine, volume: &str) -> Between {
    let name = engine.sh("cat /proc/sys/kernel/hostname");
    let words = [("Name", &*name), ("Architecture", "x86_64"), ("Architecture", "aarch64")];
    let more = ["amd64", "arm64"].into_iter().flat_map(|word| [("Arch", word), ("Architecture", word)]);
    let swaps: Vec<(String, String)> = words
        .into_iter()
        .chain(more)
        .map(|(key, word)| {
            (format!("\"{key}\":\"{word}\""), format!("\"{key}\":\"{}\"", "z".repeat(word.len())))
        })
        .collect();
    Between::start(engine, volume, u32::MAX, &swaps)
}

/// Runs `test` for each user with a volume on such an engine.
fn each_user(test: impl Fn(&Sandbox, &Engine, &str)) {
    let Some(engine) = Engine::shared() else { return };
    for user in USERS {
        let volume = Name::fresh(engine);
        let between = apart(engine, &volume);
        let label = format!("label=dev.snapback.volume={volume}");
        let [made, started] = ["destroy", "start"].map(|event| engine.listen(&label, event));
        let s = sandbox_at(&between.socket, *user);
        engine.docker(&["volume", "create", "--label", "team=a", &volume]);
        test(&s, engine, &volume);
        assert_eq!(engine.leftovers(&volume), "");
        // What of ours was there was made and removed, and never started.
        assert!(made.came() && !started.came());
    }
}

/// Everything that comes back.
const EVERYTHING: &str = r#"
    chown 999:999 .; chmod 700 .; umask 022
    echo one > plain; chmod 640 plain; chown 999:27 plain
    mkdir -p deep/er; echo two > deep/er/file; chmod 555 deep/er; chown 70:70 deep
    ln -s ../../outside deep/link; ln -s / root; chown -h 999 deep/link
    echo names > first; ln first deep/second; ln first third
    mkfifo pipe; chown 999 pipe; mknod null c 1 3
    echo bits > bits; chmod 4755 bits; mkdir sticky; chmod 1777 sticky
    setcap cap_net_raw+ep bits 2>/dev/null || true
    printf x > "$(printf 'a\376')"; printf y > 'new
line'
    mkdir empty shut; echo kept > shut/file; chmod 000 shut
    mkdir .git; echo ref > .git/HEAD; head -c 3000000 /dev/urandom > large
    long=$(printf 'n%.0s' $(seq 200)); mkdir $long; echo l > $long/$long
    touch -h -d '2001-02-03 04:05:06' plain deep/link deep/er
"#;
/// What a run does to all that: nothing of it is new.
const MANGLED: &str = r#"
    chmod 755 . shut; chown 0:0 .
    echo changed >> plain; rm -r deep/er; rm deep/link; ln -s elsewhere deep/link
    rm third; echo other > third; rm pipe; mkdir pipe; echo in > pipe/in; rm null
    chmod 644 bits; rmdir sticky; echo was a directory > sticky; rm "$(printf 'a\376')"
    rm -r .git; rmdir empty; echo more >> large; rm root; echo file > root; rm -r n*
"#;
/// What is there, told by others; times in whole seconds.
const LOOK: &str = r"
    find . -printf '%p %y %m %U:%G %n %l %Ts\n' | sort
    find . -type f -print0 | sort -z | xargs -0 sha256sum
    getfattr -m security.capability -d bits 2>/dev/null || true";

fn at(engine: &Engine, volume: &str, script: &str) -> String {
    engine.sh(&format!("cd {}\n{script}", engine.files(volume).display()))
}

#[test]
fn what_a_run_changed_comes_back_by_archives_alone() {
    each_user(|s, engine, volume| {
        at(engine, volume, EVERYTHING);
        cover(s, volume, "");
        let before = at(engine, volume, LOOK);
        s.run("echo run > file").says("is reached by archives alone");
        at(engine, volume, MANGLED);
        let after = at(engine, volume, LOOK);
        // All that goes lies where something else comes, or is told.
        let undo = s.ok(["undo", "--yes"]);
        undo.never_says("not restored");
        assert_eq!(at(engine, volume, LOOK), before);
        assert!(!s.has("file"));
        let redo = s.snapback(["redo", "--yes"]);
        redo.exits(3).says("not restored").says("never deleted");
        at(engine, volume, "rm null \"$(printf 'a\\376')\"; rm -r .git empty deep/er n*");
        assert_eq!(lines(&at(engine, volume, LOOK)), lines(&after));
        s.ok(["undo", "--yes"]);
        assert_eq!(at(engine, volume, LOOK), before);
        s.ok(["verify"]);
    });
}

/// Without the directories, whose times go with what was removed from them just now.
fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains(" d ")).collect()
}

#[test]
fn what_was_added_stays_and_is_told() {
    each_user(|s, engine, volume| {
        at(engine, volume, "echo old > conf; mkdir d; echo kept > d/kept");
        cover(s, volume, "");
        s.run("true");
        let first = crate::newest(s);
        at(
            engine,
            volume,
            "echo new > conf; echo more > d/more; mkdir -p new/er; echo x > new/er/x; rm d/kept",
        );
        let plain = |text: String| text.replace(" (changed after the run)", "");
        assert_eq!(
            plain(s.ok(["diff"]).out()),
            format!(
                "M {volume}: conf\nD {volume}: d/kept  -1\nA {volume}: d/more\nA {volume}: new/\nA {volume}: new/er/\nA {volume}: new/er/x\n"
            )
        );
        assert!(s.ok(["diff", "-p"]).out().contains("-old\n+new\n"));
        assert_eq!(s.ok(["cat", "@0", &format!("{volume}:/conf")]).out(), "old\n");
        // One path, and nothing beside it.
        s.ok(["undo", "--yes", "--path", &format!("{volume}:/conf")]);
        assert_eq!(
            at(engine, volume, "cat conf; find . -type f | sort"),
            "old\n./conf\n./d/more\n./new/er/x"
        );
        let restore = s.snapback(["restore", "--yes", "--json", &first]);
        restore.exits(3);
        let left: Vec<String> = restore.json()["not_restored"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| {
                assert!(item["reason"].as_str().unwrap().contains("never deleted"), "{item}");
                item["path"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(left, ["d/more", "new"]);
        assert_eq!(at(engine, volume, "cat conf d/kept d/more new/er/x"), "old\nkept\nmore\nx");
    });
}

#[test]
fn a_volume_that_was_removed_is_made_again_and_goes_again() {
    each_user(|s, engine, volume| {
        at(engine, volume, EVERYTHING);
        cover(s, volume, "");
        let before = at(engine, volume, LOOK);
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        s.ok(["undo", "--yes"]);
        assert_eq!(at(engine, volume, LOOK), before);
        assert_eq!(
            engine.docker(&["volume", "inspect", "-f", "{{json .Labels}}", volume]),
            r#"{"team":"a"}"#
        );
        // With it go its files, which are as they were captured.
        s.ok(["redo", "--yes"]);
        assert_eq!(engine.docker(&["volume", "ls", "-q", "-f", &format!("name={volume}")]), "");
        s.ok(["undo", "--yes"]);
        assert_eq!(at(engine, volume, LOOK), before);
    });
}

#[test]
fn what_was_cut_short_is_completed() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "rm", volume]);
        let name = super::held::slow(s, engine, volume, "");
        let sums = || at(engine, volume, "cat f* | sha256sum");
        let before = sums();
        s.run("true");
        at(engine, volume, "for f in f*; do echo changed > $f; done");
        super::again::cut_short(s, engine, volume);
        assert_eq!(engine.state(&name), "exited");
        s.ok(["undo", "--resume"]);
        assert_eq!((sums(), engine.state(&name)), (before, "running".into()));
        engine.docker(&["rm", "-f", &name]);
    });
}

#[test]
fn those_who_use_it_are_held_and_let_go() {
    each_user(|s, engine, volume| {
        let name = format!("user-{volume}");
        at(engine, volume, "echo old > f");
        engine.run(&name, volume, "while true; do /bin/busybox sleep 1; done");
        cover(s, volume, "");
        s.run("true").says(&format!("{name} paused while the volume is captured"));
        at(engine, volume, "echo new > f");
        s.ok(["undo", "--yes"]).says(&format!("{name} stopped while the volume is put back"));
        assert_eq!(at(engine, volume, "cat f"), "old");
        assert_eq!(engine.state(&name), "running");
        engine.docker(&["rm", "-f", &name]);
    });
}

#[test]
fn what_lies_in_memory_is_not_lost_where_nothing_of_ours_could_keep_it() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "rm", volume]);
        let options = ["--opt", "type=tmpfs", "--opt", "device=tmpfs", "--opt", "o=size=20m"];
        engine.docker(&[&["volume", "create"], &options[..], &[volume]].concat());
        let name = format!("memory-{volume}");
        engine.run(&name, volume, "while true; do /bin/busybox sleep 1; done");
        let inside = |script: &str| engine.docker(&["exec", &name, "/bin/busybox", "sh", "-c", script]);
        inside("echo old > /v/a");
        cover(s, volume, "");
        s.run("true");
        inside("echo new > /v/a");
        s.snapback(["undo", "--yes"]).fails(1, &["lie in memory"]).says("hold = \"pause\"");
        assert_eq!((inside("read x < /v/a; echo $x"), engine.state(&name)), ("new".into(), "running".into()));
        declare(s, volume, "hold = \"pause\"");
        agree(s);
        s.ok(["undo", "--yes"]);
        assert_eq!((inside("read x < /v/a; echo $x"), engine.state(&name)), ("old".into(), "running".into()));
        engine.docker(&["rm", "-f", &name]);
    });
}

#[test]
fn memory_does_not_grow_with_what_is_in_the_archive() {
    /// The most that the program may need, in KiB: far less than what it captures.
    const MOST: u64 = 150 * 1024;
    each_user(|s, engine, volume| {
        at(engine, volume, "head -c 400000000 /dev/urandom > a");
        cover(s, volume, "");
        let taken = super::exact::memory(s, &["run", "--", "true"]);
        at(engine, volume, "rm a");
        let undone = super::exact::memory(s, &["undo", "--yes"]);
        assert!(taken < MOST && undone < MOST, "{taken} and {undone} KiB");
        assert_eq!(at(engine, volume, "stat -c %s a"), "400000000");
    });
}

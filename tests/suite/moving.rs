//! Things that change under our feet: while they are read, while they are put back, after
//! the command has ended.

use crate::{each_user, newest};
use snapback_tests::{Output, Running, Sandbox, User, is_root, skip, users};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// Starts a shell loop that goes on until the file `stop` is there; `$i` counts, and the
/// last round that is over is in the file `last`.
fn writer(s: &Sandbox, round: &str) -> Running {
    let script = format!("i=0; while [ ! -e ../stop ]; do i=$((i+1)); {round}\necho $i > ../last; done");
    let child = Running::of(s.command("sh").args(["-c", &script]));
    wait_for(s, 1);
    child
}

fn last(s: &Sandbox) -> u64 {
    let text = fs::read_to_string(s.home().join("last")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Waits until the writer has come as far as `round`.
fn wait_for(s: &Sandbox, round: u64) {
    while last(s) < round {
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn stop(s: &Sandbox, mut child: Running) -> u64 {
    fs::write(s.home().join("stop"), "").unwrap();
    child.wait();
    last(s)
}

/// What is kept of `path`: in the project, in the newest snapshot, among what was saved.
fn kept(s: &Sandbox, path: &str) -> String {
    let mut all = fs::read_to_string(s.project().join(path)).unwrap_or_default();
    // What was about to become the file is there by its other name, and becomes it no more
    // when the undo takes that away.
    for path in [path, "w/.tmp"] {
        all.push('\n');
        all.push_str(&s.snapback(["cat", &newest(s), path]).out());
    }
    for saved in fs::read_dir(s.project().join(".snapback/saved")).into_iter().flatten() {
        all.push('\n');
        all.push_str(&fs::read_to_string(saved.unwrap().path()).unwrap_or_default());
    }
    all
}

/// Undoes while `round` goes on in files of `w`, and stops it.
fn undo_under(user: User, round: &str) -> (Sandbox, Output, u64) {
    let s = Sandbox::new(crate::PROGRAM, user);
    s.sh("mkdir w; for f in $(seq 100); do echo 0 > w/f$f; done; echo 0 > w/log");
    s.run("for f in $(seq 100); do echo A > w/f$f; done");
    let child = writer(&s, round);
    let undo = s.snapback(["undo", "--yes"]);
    wait_for(&s, last(&s) + 3);
    let last = stop(&s, child);
    assert!([0, 1, 3].contains(&undo.code()), "{undo}");
    s.ok(["verify"]);
    (s, undo, last)
}

#[test]
fn lines_that_are_appended_during_an_undo_are_kept() {
    for user in users() {
        let (s, undo, last) = undo_under(user, "echo line $i >> w/log");
        let kept = kept(&s, "w/log");
        let lost = (1..=last).filter(|n| !kept.lines().any(|line| line == format!("line {n}"))).count();
        assert_eq!(lost, 0, "of {last} lines\n{undo}");
    }
}

#[test]
fn files_that_are_made_and_renamed_during_an_undo_are_kept() {
    for user in users() {
        let (s, undo, last) = undo_under(user, "f=w/f$((i % 50)); echo written $i > w/.tmp; mv w/.tmp $f");
        assert_last_is_kept(&s, &undo, last, 50);
    }
}

#[test]
fn files_that_are_written_in_place_during_an_undo_are_kept() {
    for user in users() {
        let (s, undo, last) = undo_under(user, "f=w/f$((i % 50)); printf 'written %d\\n' $i 1<>$f");
        assert_last_is_kept(&s, &undo, last, 50);
    }
}

/// Of what was written to each of `files` in turn, the last is somewhere; what came before
/// it, the writer itself has overwritten.
fn assert_last_is_kept(s: &Sandbox, undo: &Output, last: u64, files: u64) {
    let newest: BTreeMap<u64, u64> = (1..=last).map(|n| (n % files, n)).collect();
    for (file, n) in newest {
        let kept = kept(s, &format!("w/f{file}"));
        assert!(kept.contains(&format!("written {n}\n")), "{n} of {last} is lost: {kept}\n{undo}");
    }
}

#[test]
fn what_changes_while_it_is_read_is_whole_or_said_not_to_be() {
    each_user(|s| {
        fs::write(s.home().join("victim"), "a victim outside").unwrap();
        s.sh("mkdir d; for f in $(seq 60); do echo 0 > d/f$f; done; : > log");
        // Grows, vanishes, comes back, becomes a link to a file and to a directory outside.
        let child = writer(
            s,
            "echo line $i >> log; rm -f d/f$((i % 60)); echo $i > d/f$(((i + 30) % 60))
             rm -rf swap; ln -s ../victim swap; rm -f swap; mkdir swap; echo in > swap/f; rm -rf swap; ln -s .. swap",
        );
        let mut ids = Vec::new();
        for _ in 0..8 {
            let snap = s.snapback(["snap"]);
            snap.exits(0);
            ids.push(snap.out().trim_end().to_owned());
            wait_for(s, last(s) + 5);
        }
        stop(s, child);
        s.ok(["verify"]);
        for id in &ids {
            let show = s.ok(["show", id]).out();
            let log = s.snapback(["cat", id, "log"]);
            if log.code() == 0 {
                let lines = log.out().lines().count() as u64;
                let whole: String = (1..=lines).map(|n| format!("line {n}\n")).collect();
                assert_eq!(log.out(), whole, "{id}: a mixture");
            } else {
                assert!(show.contains("log"), "{id}: it is not said that it is missing\n{show}");
            }
            for path in ["swap", "swap/f", "swap/victim"] {
                let cat = s.snapback(["cat", id, path]);
                assert!(!cat.out().contains("a victim outside"), "{id}: read through a link\n{cat}");
            }
        }
        // And back to each of them.
        for id in &ids {
            let restore = s.snapback(["restore", id]);
            assert!([0, 3].contains(&restore.code()), "{restore}");
            s.snapback(["diff", "--exit-code", id]).exits(0);
        }
        assert_eq!(fs::read_to_string(s.home().join("victim")).unwrap(), "a victim outside");
    });
}

#[test]
fn directories_become_links_while_they_are_put_back() {
    each_user(|s| {
        s.sh("for d in $(seq 20); do mkdir d$d; for f in 1 2 3 4 5; do echo 0 > d$d/f$f; done; done");
        s.run("for d in $(seq 20); do for f in 1 2 3 4 5; do echo A > d$d/f$f; done; done");
        let outside = s.home().join("outside");
        fs::create_dir(&outside).unwrap();
        for f in 1..=5 {
            fs::write(outside.join(format!("f{f}")), "A\n").unwrap();
        }
        let child =
            writer(s, "d=d$((i % 20 + 1)); mv $d ../moved; ln -s ../outside $d; rm $d; mv ../moved $d");
        let undo = s.snapback(["undo", "--yes"]);
        stop(s, child);
        assert!([0, 1, 3].contains(&undo.code()), "{undo}");
        for f in 1..=5 {
            let now = fs::read_to_string(outside.join(format!("f{f}"))).unwrap();
            assert_eq!(now, "A\n", "something was written through a link\n{undo}");
        }
        s.ok(["verify"]);
        // Once it is quiet, all comes back.
        if s.ok(["status", "--json"]).json()["pending"].is_object() {
            s.snapback(["undo"]);
        }
        let id = s.ok(["list", "--json"]).json();
        let run = id.as_array().unwrap().iter().find(|snap| snap["kind"] == "run").unwrap()["id"].clone();
        s.ok(["restore", run.as_str().unwrap()]);
        assert_eq!(s.sh("cat d*/f* | sort -u"), "0\n");
    });
}

#[test]
fn files_become_names_of_others_while_they_are_put_back() {
    each_user(|s| {
        s.sh("for f in $(seq 100); do echo 0 > f$f; done");
        s.run("for f in $(seq 100); do echo A > f$f; chmod 600 f$f; done");
        let (victim, twin) = (s.home().join("victim"), s.home().join("twin"));
        s.sh("printf 'A\\n' | tee ../victim > ../twin; chmod 640 ../victim ../twin; touch -d @1000 ../victim ../twin");
        // A link to something outside, and one more name of something outside.
        let child = writer(
            s,
            "f=f$((i % 100 + 1)); ln -s ../victim .new; mv .new $f; g=f$(((i + 50) % 100 + 1)); ln ../twin .new; mv .new $g",
        );
        let undo = s.snapback(["undo", "--yes"]);
        stop(s, child);
        assert!([0, 1, 3].contains(&undo.code()), "{undo}");
        s.sh("rm -f .new");
        if s.ok(["status", "--json"]).json()["pending"].is_object() {
            s.snapback(["undo"]);
        }
        let list = s.ok(["list", "--json"]).json();
        let run = list.as_array().unwrap().iter().find(|snap| snap["kind"] == "run").unwrap()["id"].clone();
        // What still is a name of something outside is told.
        let restore = s.snapback(["restore", run.as_str().unwrap()]);
        restore.exits(if restore.err().contains("it has other names outside") { 3 } else { 0 });
        assert_eq!(s.sh("cat f* | sort -u; find . -maxdepth 1 -name 'f*' -type l"), "0\n");
        for file in [&victim, &twin] {
            let stat = fs::metadata(file).unwrap();
            let is = (fs::read_to_string(file).unwrap(), stat.mode() & 0o7777, stat.mtime());
            assert_eq!(is, ("A\n".to_owned(), 0o640, 1000), "something outside was touched\n{undo}");
        }
        s.ok(["verify"]);
    });
}

#[test]
fn what_outlives_the_run_loses_nothing() {
    each_user(|s| {
        s.sh("mkdir w; echo 0 > w/f");
        s.run(
            "echo A > w/f
             setsid sh -c 'i=0; while [ ! -e ../stop ]; do i=$((i+1)); echo line $i >> w/late; echo $i > ../last; done' \
                 >/dev/null 2>&1 &",
        );
        wait_for(s, 5);
        let undo = s.snapback(["undo", "--yes"]);
        wait_for(s, last(s) + 5);
        fs::write(s.home().join("stop"), "").unwrap();
        assert!([0, 3].contains(&undo.code()), "{undo}");
        assert_eq!(s.read("w/f"), "0\n");
        std::thread::sleep(Duration::from_millis(50));
        let (kept, last) = (kept(s, "w/late"), last(s));
        let lost = (1..=last).filter(|n| !kept.lines().any(|line| line == format!("line {n}"))).count();
        assert_eq!(lost, 0, "of {last} lines\n{undo}");
        undo.says("w/late");
        s.ok(["verify"]);
    });
}

#[test]
fn what_a_process_of_another_user_still_writes_is_kept() {
    if !is_root() {
        return skip("only root can write as somebody else");
    }
    // The project of an ordinary user, and a writer that this user cannot look into.
    let s = Sandbox::new(crate::PROGRAM, User::Nobody);
    s.sh("mkdir w; for f in $(seq 40); do echo 0 > w/f$f; done");
    s.run("for f in $(seq 40); do echo A > w/f$f; done");
    let mut open: Vec<fs::File> = (1..=40)
        .map(|f| fs::File::options().append(true).open(s.project().join(format!("w/f{f}"))).unwrap())
        .collect();
    let undo = s.snapback(["undo", "--yes"]);
    for (i, file) in open.iter_mut().enumerate() {
        file.write_all(format!("late {i}\n").as_bytes()).unwrap();
    }
    drop(open);
    assert!([0, 1, 3].contains(&undo.code()), "{undo}");
    let lost: Vec<usize> = (0..40)
        .filter(|i| !kept(&s, &format!("w/f{}", i + 1)).lines().any(|line| line == format!("late {i}")))
        .collect();
    assert!(lost.is_empty(), "{lost:?}\n{undo}");
    s.ok(["verify"]);
}

//! Something else stands where a part of the store belongs, or a part of it is gone: what is said
//! names it, and who follows the hint to the letter goes on with nothing lost.

use crate::each_user;
use snapback_tests::{Output, Sandbox};

/// What the store is made into by a run that is then to be undone.
const ODD: [&str; 6] = [
    "rm -rf tmp; echo x > tmp",
    "rm -rf packs; ln -s /tmp packs",
    "rm lock; mkdir lock",
    "rm -f timeline; mkdir timeline",
    "rm -f timeline; ln -s x timeline",
    "rm -rf snapshots; echo x > snapshots",
];

/// The command that a hint gives, between backquotes.
fn command(said: &Output) -> Option<String> {
    let hint = said.err().lines().find(|line| line.starts_with("hint:"))?.to_owned();
    hint.split('`').nth(1).filter(|command| command.starts_with("mv ")).map(str::to_owned)
}

/// Undoes, doing what hints say until it works; how many had to be followed.
fn undo_with_hints(s: &Sandbox, case: &str) -> usize {
    for followed in 0..3 {
        let undo = s.snapback(["undo"]);
        if undo.code() == 0 {
            return followed;
        }
        assert_eq!(undo.code(), 1, "{case}: it is no fault in what was typed\n{undo}");
        match command(&undo) {
            Some(command) => drop(s.sh(&command)),
            // The history is kept outside, too.
            None => {
                undo.says("comes back once").says(".snapback is moved away");
                s.sh("mv .snapback ../odd-store");
            }
        }
    }
    panic!("{case}: the hints lead nowhere\n{}", s.snapback(["undo"]));
}

#[test]
fn what_stands_in_the_way_in_a_store_is_named_and_moved_away_as_the_hint_says() {
    for odd in ODD {
        each_user(|s| {
            s.sh("echo one > a");
            s.run(&format!("echo two > a; cd .snapback; {odd}"));
            s.snapback(["verify"]).never_says("--help");
            undo_with_hints(s, odd);
            assert_eq!(s.read("a"), "one\n", "{odd}");
            s.ok(["redo"]);
            assert_eq!(s.read("a"), "two\n", "{odd}");
            s.ok(["verify"]);
            s.sh("rm -rf ../odd-store");
        });
    }
}

#[test]
fn an_undo_that_has_to_go_further_back_says_so() {
    each_user(|s| {
        s.sh("echo one > a");
        s.run("echo two > a");
        s.run("echo three > a");
        let list = s.ok(["list", "--json"]).json();
        let [newest, older] = [0, 1].map(|at| list[at]["id"].as_str().unwrap().to_owned());
        s.sh(&format!(
            "find ../.. -depth -type d -name {newest} -exec chmod -R u+w {{}} + -exec rm -r {{}} +"
        ));
        for look in [&["undo", "-n"][..], &["undo"]] {
            s.ok(look.iter().copied())
                .says(&format!("snapshot {newest}, "))
                .says(&format!("is lost; {older}"));
        }
        assert_eq!(s.read("a"), "one\n");
        s.ok(["redo"]).never_says("is lost");
        assert_eq!(s.read("a"), "three\n");
        // What was dropped on purpose is not missed.
        s.run("echo four > a");
        let newest = s.ok(["list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
        s.ok(["forget", "--yes", &newest]);
        s.snapback(["undo"]).never_says("is lost");
    });
}

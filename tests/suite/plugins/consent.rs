//! Nothing is reached before the user agreed to it, and a consent is for exactly that.

use super::{agree, digest, folder, install, probe, target};
use crate::{each_user, sandbox};
use snapback_tests::{Sandbox, have};
use std::fs;

const ROOM: &str = "room = \"../room\"";

fn with_probe() -> Sandbox {
    let s = sandbox();
    install(&s);
    s.write("f", "0\n");
    s.write("snapback.toml", target(ROOM));
    s
}

#[test]
fn a_third_party_backend_is_asked_for_and_then_undone_like_the_rest() {
    each_user(|s| {
        install(s);
        s.write("f", "0\n");
        s.write("snapback.toml", target(ROOM));
        let refused = s.snapback(["run", "--", "sh", "-c", "touch started"]);
        refused.fails(125, &["you have not agreed", "`probe`", "reads and writes ../room"]);
        assert!(!s.has("started"));
        s.ok(["trust", "--digest", &digest(&refused.err())]).says("may do that from now on");
        s.run("echo 1 > f; echo two > ../room/state");
        s.ok(["undo"]);
        assert_eq!((s.read("f"), s.read("../room/state")), ("0\n".into(), "one\n".into()));
        s.ok(["redo"]);
        assert_eq!((s.read("f"), s.read("../room/state")), ("1\n".into(), "two\n".into()));
    });
}

#[test]
fn skipped_it_is_not_asked_for() {
    let s = with_probe();
    s.ok(["run", "--skip", "probe", "--", "true"]);
    s.ok(["run", "--only", "tree", "--", "true"]);
}

#[test]
fn what_is_left_out_is_not_even_compiled() {
    if !have("python3") {
        return;
    }
    let s = with_probe().cold();
    let digest = s.sh("sha256sum < \"$XDG_DATA_HOME/snapback/plugins/probe.wasm\"")[..64].to_owned();
    let compiled = || !s.sh(&format!("find \"$XDG_CACHE_HOME\" -name '{digest}*'")).is_empty();
    s.ok(["run", "--only", "tree", "--", "sh", "-c", "echo 1 > f"]);
    // Nor for a database that comes to light meanwhile, which it might have claimed.
    let script = "import sqlite3; sqlite3.connect('a.db').executescript('CREATE TABLE t(a)')";
    s.ok(["run", "--skip", "probe", "--", "python3", "-c", script]);
    s.ok(["undo"]);
    assert!(!s.has("a.db") && !compiled());
    s.snapback(["snap"]).fails(1, &["you have not agreed"]);
    assert!(compiled(), "asked for, it is");
}

#[test]
fn yes_is_no_consent() {
    let s = with_probe();
    s.snapback(["--yes", "run", "--", "true"]).fails(125, &["you have not agreed"]);
    s.snapback(["--yes", "trust"]).fails(1, &["nobody can be asked"]).says("reads and writes ../room");
}

#[test]
fn what_is_another_thing_is_asked_for_again() {
    let s = with_probe();
    agree(&s);
    s.ok(["snap"]);
    let changed = |toml: &str, asks: bool| {
        s.write("snapback.toml", toml);
        let code = s.snapback(["snap"]).code();
        assert_eq!(code, i32::from(asks), "{toml}");
    };
    // A comment, another name, another order.
    changed(&format!("# why\n{}name = \"mine\"\n", target(ROOM)), false);
    changed(&target(&format!("{ROOM}\nsecret = \"TOKEN\"")), true);
    changed(&target(&format!("{ROOM}\nplace = \"src\"")), true);
    changed(&target("room = \"../room2\""), true);
    changed(&target(ROOM), false);

    // Another component: one byte more is enough.
    let file = folder(&s).join("probe.wasm");
    let mut bytes = probe();
    bytes.extend_from_slice(b"\0\x02\x01x");
    fs::write(&file, bytes).unwrap();
    changed(&target(ROOM), true);
    fs::write(&file, probe()).unwrap();
    changed(&target(ROOM), false);

    // Another directory behind the same words.
    s.sh("mv ../room ../old; mkdir ../secret; ln -s secret ../room");
    changed(&target(ROOM), true);
    s.sh("rm ../room; mv ../old ../room");
    changed(&target(ROOM), false);
}

#[test]
fn a_consent_is_the_projects_own_and_moves_with_it() {
    let s = with_probe();
    agree(&s);
    s.ok(["snap"]);
    let at = |dir: &str, words: &[&str]| {
        let dir = s.home().join(dir);
        s.finish(s.program().current_dir(s.home()).arg("-C").arg(dir).args(words))
    };
    s.sh("cp -a . ../copy; mkdir ../another; cp snapback.toml ../another/");
    at("copy", &["snap"]).fails(1, &["you have not agreed"]);
    at("another", &["snap"]).fails(1, &["you have not agreed"]);
    s.sh("mv ../project ../moved");
    at("moved", &["snap"]).exits(0);
}

#[test]
fn a_script_agrees_by_digest_for_good_or_for_once() {
    let s = with_probe();
    let digest = digest(&s.snapback(["snap"]).err());
    let once = |digest: &str| s.finish(s.program().env("SNAPBACK_TRUST", digest).arg("snap")).code();
    assert_eq!(once(&format!("{}0", &digest[..31])), if digest.ends_with('0') { 0 } else { 1 });
    assert_eq!(once(&format!("0123,{digest}")), 0);
    s.snapback(["snap"]).fails(1, &["you have not agreed"]);
    s.snapback(["trust", "--digest", "0123"]).fails(1, &["nothing with the digest"]).says(&digest);
    s.ok(["trust", "--digest", &digest]);
    s.ok(["snap"]);
    s.ok(["trust"]).says("no target reaches more");

    let list = s.ok(["trust", "--list", "--json"]).json();
    assert_eq!(list["consents"][0]["target"], "probe");
    assert_eq!(list["consents"][0]["root"], s.project().to_str().unwrap());
    s.ok(["trust", "--list"]).prints("reads and writes ../room");
    s.ok(["trust", "--revoke"]).says("1 consent taken back");
    s.snapback(["snap"]).fails(1, &["you have not agreed"]);
}

#[test]
fn what_one_target_was_allowed_is_taken_back_alone() {
    let s = sandbox();
    let target =
        |name: &str| format!("[[target]]\nname = \"{name}\"\nbackend = \"tree\"\npath = \"../{name}\"\n");
    s.sh("mkdir ../first ../second");
    s.write("snapback.toml", target("first") + &target("second"));
    agree(&s);
    agree(&s);
    s.ok(["snap"]);
    s.snapback(["trust", "--revoke", "--target", "frist"])
        .fails(1, &["nothing was agreed to here for the target `frist`"])
        .says("did you mean `first`?");
    s.snapback(["trust", "--target", "first"]).exits(2);
    s.ok(["snap"]);
    s.ok(["trust", "--revoke", "--target", "first"]).says("1 consent taken back");
    s.snapback(["snap"]).fails(1, &["you have not agreed", "`first`"]);
    s.ok(["run", "--skip", "first", "--", "true"]);
    let left = s.ok(["trust", "--list", "--json"]).json();
    assert_eq!(left["consents"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(left["consents"][0]["target"], "second");
}

#[test]
fn a_run_cannot_agree_to_anything() {
    let s = with_probe();
    agree(&s);
    let inside = s.snapback(["run", "--", "sh", "-c", "\"$SNAPBACK\" trust --revoke; \"$SNAPBACK\" trust"]);
    inside.exits(1).says("refused inside a run");
    s.ok(["snap"]);
}

#[test]
fn nor_does_it_when_it_clears_its_environment() {
    let s = with_probe();
    agree(&s);
    s.ok(["snap"]);
    let id = crate::newest(&s);
    s.write("x.wasm", probe());
    for words in
        ["trust --revoke", "trust", "trust --digest 0123", "forget --yes ID", "gc", "backends add x.wasm"]
    {
        let words = words.replace("ID", &id);
        let clears = format!("env -u SNAPBACK_RUN_ID sh -c '\"$SNAPBACK\" {words}'; exit $?");
        s.snapback(["run", "--", "sh", "-c", &clears]).exits(1).says("refused inside a run");
    }
    s.ok(["snap"]);
}

#[test]
fn what_was_agreed_to_is_in_no_capture_and_no_undo_brings_it_back() {
    each_user(|s| {
        s.sh("mkdir ../room; echo one > ../room/state");
        s.write("snapback.toml", "[[target]]\nname = \"room\"\nbackend = \"tree\"\npath = \"../room\"\n");
        agree(s);
        // A project around everything, the state directory as well.
        let above = |words: &[&str]| {
            let mut program = s.program();
            s.finish(program.current_dir(s.dir()).arg("--root").arg(s.dir()).args(words))
        };
        s.sh("printf 1 > ../../f");
        above(&["run", "--", "sh", "-c", "echo 2 > f"]).exits(0);
        s.ok(["trust", "--revoke"]).says("1 consent taken back");
        let registry = s.sh("ls ../../state/snapback/roots");
        above(&["undo", "--yes"]).exits(0);
        assert_eq!(std::fs::read_to_string(s.dir().join("f")).unwrap(), "1");
        s.snapback(["snap"]).fails(1, &["you have not agreed"]);
        assert_eq!(s.sh("ls ../../state/snapback/roots"), registry);
        above(&["show", "@0"]).prints("state/snapback");
        assert!(above(&["cat", "@0", "state/snapback"]).code() != 0);
        // Nor is it a target's to name.
        for path in ["state/snapback", "state/snapback/consents", "./state/../state/snapback"] {
            s.write(
                "../../snapback.toml",
                format!("[[target]]\nname = \"t\"\nbackend = \"tree\"\npath = \"{path}\"\n"),
            );
            above(&["run", "--only", "t", "--", "true"]).fails(125, &["reaches snapback's own files"]);
        }
    });
}

#[test]
fn a_link_is_agreed_to_with_where_it_leads() {
    each_user(|s| {
        s.sh("mkdir ../good ../secret; ln -s ../good data");
        s.write("snapback.toml", "[[target]]\nname = \"d\"\nbackend = \"tree\"\npath = \"data\"\n");
        let refused = s.snapback(["snap"]);
        refused.fails(1, &["reads and writes data, which is ../good, outside the project through a link"]);
        let digest = digest(&refused.err());
        let once = || s.finish(s.program().env("SNAPBACK_TRUST", &digest).arg("snap"));
        once().exits(0);
        s.sh("ln -sfn ../secret data");
        once().fails(1, &["which is ../secret"]);
        // Whoever was shown one is not taken to have seen the other.
        s.snapback(["trust", "--digest", &digest]).fails(1, &["nothing with the digest"]);
    });
}

#[test]
fn without_a_terminal_all_that_is_asked_for_is_shown() {
    let s = sandbox();
    let target =
        |name: &str| format!("[[target]]\nname = \"{name}\"\nbackend = \"tree\"\npath = \"../{name}\"\n");
    s.sh("mkdir ../one ../two");
    s.write("snapback.toml", target("one") + &target("two"));
    let asked = s.snapback(["trust"]);
    asked.fails(1, &["nobody can be asked about the targets `one`, `two`"]);
    let said = asked.err();
    let digests: Vec<&str> = said.lines().filter_map(|line| line.trim().strip_prefix("digest ")).collect();
    assert_eq!(digests.len(), 2, "{said}");
    digests.iter().for_each(|digest| drop(s.ok(["trust", "--digest", digest])));
    s.ok(["trust"]).says("no target reaches more");
    // What cannot be looked at is not taken for nothing.
    install(&s);
    s.write("snapback.toml", super::target("address = \"no-such-host.invalid:1\""));
    let unknown = s.snapback(["trust"]);
    unknown.fails(2, &["what is reached is not known of `probe`"]).says("no-such-host.invalid");
    assert!(!unknown.err().contains("no target reaches more"), "{unknown}");
}

#[test]
fn what_was_stored_is_asked_for_again_when_it_is_no_longer_agreed_to() {
    let s = with_probe();
    agree(&s);
    s.run("echo two > ../room/state");
    s.ok(["trust", "--revoke"]);
    // Whatever snapback.toml says by now: the settings are those of the snapshot.
    s.sh("rm snapback.toml");
    let refused = s.snapback(["undo"]);
    refused.fails(1, &["you have not agreed"]);
    assert_eq!(s.read("../room/state"), "two\n");
    s.ok(["trust", "--digest", &digest(&refused.err())]);
    s.ok(["undo"]);
    assert_eq!(s.read("../room/state"), "one\n");
}

#[test]
fn on_a_terminal_it_asks() {
    if !have("python3") {
        return;
    }
    let s = with_probe();
    let script = r#"
def run(answer, *words):
    t, answered = Terminal(os.environ["SNAPBACK"], *words), False
    while t.more():
        if b"[y/N]" in t.seen and not answered:
            answered = True
            t.type(answer)
    return os.waitstatus_to_exitcode(t.end()), t.seen.decode()
code, said = run(b"n\n", "run", "--", "touch", "no")
assert code == 125 and "was not agreed to" in said, (code, said)
assert "reads and writes ../room" in said and "digest" in said, said
code, said = run(b"y\n", "run", "--", "touch", "yes")
assert code == 0, (code, said)
code, said = run(b"y\n", "run", "--", "touch", "yes")
assert code == 0 and "[y/N]" not in said, (code, said)
"#;
    crate::pty::python(&s, script, &[]);
    assert!(s.has("yes") && !s.has("no"));
}

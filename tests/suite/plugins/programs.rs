//! Programs: run by the granted path and content only, and shown as leaving the sandbox.

use super::border::tries;
use super::{agree, digest, folder, install, probe, target};
use crate::{each_user, sandbox};
use snapback_tests::Sandbox;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A script outside the project, which components cannot write; its path as a setting.
fn script(s: &Sandbox, text: &str) -> String {
    let path = s.home().join("tool");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("program = \"{}\"", path.display())
}

#[test]
fn a_program_is_shown_as_leaving_the_sandbox_and_runs_with_nothing() {
    each_user(|s| {
        install(s);
        let setting = script(
            s,
            "read line; echo \"$line $# $1 [$GIVEN] [$TOKEN] [$HOME] $(ls -A)\"; echo oops >&2; exit 7",
        );
        s.write("snapback.toml", target(&setting));
        let path = s.home().join("tool");
        let sum = s.sh("sha256sum < ../tool");
        s.snapback(["snap"]).fails(
            1,
            &[
                "you have not agreed",
                "process",
                &format!(
                    "program: runs {} (sha256 {}), which leaves the sandbox",
                    path.display(),
                    &sum[..12]
                ),
            ],
        );
        let said = tries(s, &setting, &["program a;b", "preload /tmp/x.so", "program *"]);
        for expected in [
            "program a;b: 7 [hello 1 a;b [1] [] []] [oops]",
            "preload /tmp/x.so: ErrorKind::Denied: `LD_PRELOAD`",
            "program *: 7 [hello 1 * [1] [] []] [oops]",
        ] {
            assert!(said.contains(expected), "{expected}\n{said}");
        }
        s.ok(["backends", "show", "probe"]).prints("process (leaves the sandbox)");
    });
}

#[test]
fn another_content_at_the_same_path_is_asked_for_again_and_not_run() {
    let s = sandbox();
    install(&s);
    let setting = script(&s, "echo one");
    s.write("snapback.toml", target(&format!("{setting}\ndo = [\"program\"]")));
    agree(&s);
    s.ok(["snap"]);
    script(&s, &format!("touch {}/evil", s.home().display()));
    let refused = s.snapback(["run", "--", "touch", "started"]);
    refused.fails(125, &["you have not agreed", "which leaves the sandbox"]);
    // By another name the old consent does not reach it, either.
    s.sh("mv ../tool ../other; ln -s other ../tool");
    s.snapback(["run", "--", "touch", "started"]).fails(125, &["you have not agreed", "which is "]);
    assert!(!s.has("../evil") && !s.has("started"));
    s.ok(["trust", "--digest", &digest(&s.snapback(["snap"]).err())]);
    s.ok(["snap"]);
    assert!(s.has("../evil"), "the program that was agreed to did not run");
}

#[test]
fn what_a_program_writes_goes_to_the_store_and_a_failing_one_is_told() {
    let s = sandbox();
    install(&s);
    let setting = script(&s, "test \"$1\" = bad && { echo why >&2; exit 4; }; head -c 3000000 /dev/zero");
    let said = tries(&s, &setting, &["swallow good", "swallow bad"]);
    assert!(said.contains("swallow good: 3000000 bytes, 3000000 kept"), "{said}");
    assert!(said.contains("swallow bad: ErrorKind::Other: a program failed (4): why"), "{said}");
}

#[test]
fn a_program_ends_with_the_call_and_many_at_once_are_refused() {
    let s = sandbox();
    install(&s);
    let setting = script(&s, "echo x; exec sleep 600");
    let said = tries(&s, &setting, &["abandon", "crowd 16", "crowd 17"]);
    for expected in
        ["abandon: abandoned", "crowd 16: 16 at once", "crowd 17: ErrorKind::Denied: more than 16"]
    {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    // Nothing that it started is left: the last one to hold the file would keep it from being locked.
    let mark = s.home().join("mark");
    let setting = script(&s, &format!("exec 9>{}; flock 9; echo x; sleep 600", mark.display()));
    let said = tries(&s, &setting, &["abandon"]);
    assert!(said.contains("abandon: abandoned"), "{said}");
    s.sh("flock -n ../mark true");
}

#[test]
fn a_component_without_the_setting_runs_nothing_however_it_is_named() {
    let s = sandbox();
    s.sh("mkdir -p \"$XDG_DATA_HOME/snapback/plugins\"");
    fs::write(folder(&s).join("probe.wasm"), probe()).unwrap();
    // A relative path would be the project's own file.
    s.sh("printf '#!/bin/sh\\ntouch ran\\n' > tool; chmod +x tool");
    for name in ["./tool", "sub/tool", "../tool"] {
        s.write("snapback.toml", target(&format!("program = \"{name}\"\ndo = [\"program\"]")));
        s.snapback(["snap"]).fails(2, &["names a program, by its full path or a name"]);
    }
    s.write("snapback.toml", target("program = \"tool\"\ndo = [\"program\"]"));
    s.snapback(["snap"]).fails(1, &["there is no program `tool`"]);
    assert!(!s.has("ran"));
}

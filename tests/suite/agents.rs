//! The recipes of the README, as they stand there: a snapshot before each tool call of an
//! agent, and after each commit.

use crate::sandbox;
use serde_json::Value;
use snapback_tests::{Output, Sandbox, have};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// The block of the README that holds `mark`.
fn block(mark: &str) -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    let mut blocks = text.split("```").skip(1).step_by(2);
    let block = blocks.find(|block| block.contains(mark)).expect("the README has it");
    block.split_once('\n').expect("a block begins with its language").1.to_owned()
}

/// A shell that finds the program by its name.
fn shell(s: &Sandbox) -> Command {
    let bin = s.dir().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let _ = symlink(s.program().get_program(), bin.join("snapback"));
    let mut shell = s.command("sh");
    let path = std::env::var("PATH").unwrap();
    shell.env("PATH", format!("{}:{path}", bin.display())).env("CLAUDE_PROJECT_DIR", s.project());
    shell
}

/// Calls the hook as the agent does: its JSON on standard input.
fn call(s: &Sandbox, hook: &str, tool: &str, input: Value) -> Output {
    let call = serde_json::json!({
        "session_id": "abc123",
        "transcript_path": "/home/user/.claude/projects/x/abc123.jsonl",
        "cwd": s.project(),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": input,
    });
    let mut child = shell(s)
        .args(["-c", hook])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It reads all: an agent that writes a large file must not meet a closed pipe.
    child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Output { line: hook.into(), status: output.status, stdout: output.stdout, stderr: output.stderr }
}

fn snapshots(s: &Sandbox) -> Vec<Value> {
    s.ok(["list", "--json"]).json().as_array().unwrap().clone()
}

#[test]
fn the_hook_before_a_tool_call_takes_a_snapshot_when_something_changed() {
    let s = sandbox();
    let settings: Value = serde_json::from_str(&block("PreToolUse")).unwrap();
    let hook = &settings["hooks"]["PreToolUse"][0];
    let tools: Vec<&str> = hook["matcher"].as_str().unwrap().split('|').collect();
    assert!(["Bash", "Edit", "Write"].iter().all(|tool| tools.contains(tool)), "{tools:?}");
    assert!(!tools.contains(&"Read"), "looking needs no snapshot: {tools:?}");
    assert_eq!(hook["hooks"][0]["type"], "command");
    let hook = hook["hooks"][0]["command"].as_str().unwrap();
    s.write("f", "0");
    let quiet = |output: Output| {
        output.exits(0);
        assert_eq!((output.out(), output.err()), (String::new(), String::new()), "{output}");
    };
    quiet(call(&s, hook, "Bash", serde_json::json!({"command": "echo 1 > f"})));
    assert_eq!(snapshots(&s).len(), 1);
    s.write("f", "1");
    let large = serde_json::json!({"file_path": "/x", "content": "x".repeat(2_000_000)});
    quiet(call(&s, hook, "Write", large.clone()));
    assert_eq!(snapshots(&s).len(), 2);
    let store = s.sh("find .snapback -type f -printf '%P %s\n' | sort");
    for _ in 0..3 {
        quiet(call(&s, hook, "Write", large.clone()));
    }
    assert_eq!(
        s.sh("find .snapback -type f -printf '%P %s\n' | sort"),
        store,
        "nothing changed, nothing is stored"
    );
    s.write("f", "2");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "1");
    // A wrong configuration does not stop the agent, and is said.
    s.write("snapback.toml", "nonsense");
    let output = call(&s, hook, "Bash", serde_json::json!({}));
    output.exits(1).says("snapback.toml");
}

#[test]
fn inside_a_run_the_snapshots_of_the_hook_belong_to_it() {
    let s = sandbox();
    let settings: Value = serde_json::from_str(&block("PreToolUse")).unwrap();
    let hook = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    s.write("f", "0");
    s.write(
        "agent",
        format!("hook() {{ echo '{{}}' | {{ {hook}; }}; }}\nfor n in 1 2 3; do hook; echo $n > f; done\n"),
    );
    let mut run = shell(&s);
    s.finish(run.args(["-c", "snapback run -- sh agent"])).exits(0);
    let all = snapshots(&s);
    let run = all.iter().find(|snap| snap["kind"] == "run").unwrap();
    let inside = all.iter().filter(|snap| snap["run"] == run["id"] && snap["kind"] == "manual").count();
    assert!(inside >= 2, "{all:?}");
    s.ok(["undo", "--step"]);
    assert_eq!(s.read("f"), "2\n");
    s.ok(["undo", "--step"]);
    assert_eq!(s.read("f"), "1\n");
    s.ok(["undo"]);
    s.ok(["undo"]);
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "0");
}

#[test]
fn the_hook_after_a_commit_takes_a_snapshot_with_its_subject() {
    let s = sandbox();
    if !have("git") {
        return;
    }
    s.write("f", "0");
    s.write("post-commit", block("post-commit"));
    let commit = "git add f; git -c user.name=x -c user.email=x@y commit -qm 'a \"subject\"'";
    let script =
        format!("git init -q; mv post-commit .git/hooks/; chmod +x .git/hooks/post-commit; {commit}");
    let output = s.finish(shell(&s).args(["-ec", &script]));
    output.exits(0);
    assert_eq!(output.out(), "");
    let all = snapshots(&s);
    assert_eq!(all.len(), 1);
    let message = all[0]["message"].as_str().unwrap();
    assert!(message.ends_with(" a \"subject\""), "{message}");
}

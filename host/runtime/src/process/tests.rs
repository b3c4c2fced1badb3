//! What a program gets, and how it ends.

use super::*;
use crate::reach::program;
use crate::testing::Scratch;
use bytes::Bytes;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError};

fn find(path: &str) -> Program {
    program::find("program", path, OsStr::new("")).unwrap()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn shell(scratch: &Scratch, script: &str) -> Child {
    Child::spawn(&find("/bin/sh"), &["-c".into(), script.into()], &[], scratch.path()).unwrap()
}

/// All that comes until the end.
async fn all(mut stdout: Stdout) -> String {
    let mut said = Vec::new();
    loop {
        stdout.ready().await;
        match stdout.read(usize::MAX) {
            Ok(bytes) => said.extend_from_slice(&bytes),
            Err(StreamError::Closed) => return String::from_utf8(said).unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn it_has_what_it_is_given_and_nothing_else() {
    let scratch = Scratch::new();
    let args = ["-c", "env; echo \"$1\"; pwd; ls -A | wc -l; touch left", "name", "$(id) *"];
    let env = [("GIVEN".to_owned(), "a b".to_owned())];
    block_on(async {
        let args = args.map(str::to_owned);
        let mut child = Child::spawn(&find("/bin/sh"), &args, &env, scratch.path()).unwrap();
        let stdout = child.stdout().unwrap();
        assert_eq!(child.stdout().err().unwrap().kind(), Kind::Invalid);
        let said = all(stdout).await;
        let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("_=")).collect();
        let own = lines.iter().find_map(|line| line.strip_prefix("PWD=")).unwrap();
        assert!(own.starts_with(scratch.path().to_str().unwrap()), "{said}");
        assert!(lines.contains(&"GIVEN=a b") && lines.contains(&"$(id) *"), "{said}");
        // The shell sets these itself.
        let foreign = |line: &&&str| {
            line.contains('=') && !["GIVEN", "PWD", "OLDPWD", "SHLVL"].iter().any(|own| line.starts_with(own))
        };
        assert_eq!(lines.iter().find(foreign), None, "{said}");
        assert_eq!(lines.last().map(|last| last.trim()), Some("0"), "its directory was not empty");
        assert_eq!(child.wait().await.unwrap(), (0, String::new()));
    });
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "its directory is still there");
}

#[test]
fn what_goes_in_comes_out_and_its_end_is_an_end() {
    let scratch = Scratch::new();
    let block = Bytes::from(vec![b'x'; 64 * 1024]);
    block_on(async {
        let mut child = shell(&scratch, "cat >&2; cat; exit 3");
        let mut stdin = child.stdin().unwrap();
        for _ in 0..8 {
            stdin.ready().await;
            assert!(stdin.check_write().unwrap() >= block.len());
            stdin.write(block.clone()).unwrap();
        }
        stdin.ready().await;
        drop(stdin);
        let (status, said) = child.wait().await.unwrap();
        assert_eq!((status, said.len()), (3, TAIL));
    });
}

#[test]
fn a_program_that_reads_no_more_closes_what_is_written_to() {
    let scratch = Scratch::new();
    block_on(async {
        let mut child = shell(&scratch, "exec <&-; echo ready; sleep 300");
        let (mut stdin, mut stdout) = (child.stdin().unwrap(), child.stdout().unwrap());
        stdout.ready().await;
        assert!(matches!(stdin.write(Bytes::from_static(b"x")), Err(StreamError::Closed)));
    });
}

#[test]
fn dropped_it_ends_with_all_that_it_started() {
    let scratch = Scratch::new();
    block_on(async {
        let mut child = shell(&scratch, "sleep 300 & echo started; sleep 300");
        let mut stdout = child.stdout().unwrap();
        stdout.ready().await;
        drop(child);
        // Both held it open.
        assert_eq!(all(stdout).await, "started\n");
    });
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_signal_is_told_and_the_last_words_are_kept() {
    let scratch = Scratch::new();
    block_on(async {
        let child = shell(
            &scratch,
            "i=0; while [ $i -lt 20000 ]; do echo line $i; echo out; i=$((i+1)); done >&2; kill -9 $$",
        );
        let (status, said) = child.wait().await.unwrap();
        assert_eq!(status, 137);
        assert!(said.len() == TAIL && said.ends_with("line 19999\nout\n"), "{}", said.len());
    });
}

#[test]
fn what_is_not_what_was_agreed_to_is_not_run() {
    let scratch = Scratch::new();
    for content in ["#!/bin/sh\n", "\x7fELF"] {
        let tool = scratch.path().join("tool");
        fs::write(&tool, content).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let agreed = find(tool.to_str().unwrap());
        let mark = scratch.path().join("mark");
        fs::write(&tool, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        let error = Child::spawn(&agreed, &[], &[], scratch.path()).unwrap_err();
        assert_eq!(error.kind(), Kind::Changed, "{error}");
        assert!(!mark.exists());
    }
}

#[test]
fn a_script_goes_by_the_name_that_it_was_found_by() {
    let scratch = Scratch::new();
    let (tool, name) = (scratch.path().join("tool"), scratch.path().join("name"));
    fs::write(&tool, "#!/bin/sh\necho ${0##*/}\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("tool", &name).unwrap();
    block_on(async {
        let mut child = Child::spawn(&find(name.to_str().unwrap()), &[], &[], scratch.path()).unwrap();
        let stdout = child.stdout().unwrap();
        assert_eq!(all(stdout).await, "name\n");
    });
}

#[test]
fn what_would_make_another_program_of_it_is_refused() {
    let scratch = Scratch::new();
    for (args, env, kind) in [
        (vec!["a\0b".to_owned()], ("A", "b"), Kind::Invalid),
        (vec![], ("A=", "b"), Kind::Invalid),
        (vec![], ("", "b"), Kind::Invalid),
        (vec![], ("A", "b\0"), Kind::Invalid),
        (vec![], ("LD_PRELOAD", "/x.so"), Kind::Denied),
        (vec![], ("LD_LIBRARY_PATH", "/x"), Kind::Denied),
    ] {
        let env = [(env.0.to_owned(), env.1.to_owned())];
        let error = Child::spawn(&find("/bin/sh"), &args, &env, scratch.path()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

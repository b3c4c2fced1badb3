//! What components that misbehave can do: nothing but fail.

mod held;
mod names;

use super::*;
use crate::testing::{Guest, MANIFEST, Scratch};
use snapback_core::backend::{Cancel, Target};
use snapback_core::disk::Disk;
use snapback_core::object::{Key, ObjectKind};
use snapback_core::report::Report;
use snapback_core::store::Store as Objects;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Report for Notes {
    fn log(&self, target: &str, level: &str, message: &str) {
        self.0.lock().unwrap().push(format!("{target} {level} {message}"));
    }
    fn begin(&self, title: &str, _: Option<u64>, unit: &str) {
        self.0.lock().unwrap().push(format!("begin {title} {unit}"));
    }
    fn end(&self) {
        self.0.lock().unwrap().push("end".into());
    }
}

struct Bench {
    _scratch: Scratch,
    call: Call,
    notes: Arc<Notes>,
}

impl Bench {
    fn new() -> Self {
        let scratch = Scratch::new();
        let store = Objects::create(&scratch.path().join("store"), Disk::default().with_sync(false)).unwrap();
        let notes = Arc::new(Notes::default());
        let target = Target { name: "t".into(), backend: "guest".into(), settings: BTreeMap::new() };
        let root = scratch.path().to_owned();
        let call = Call {
            writer: Some(Arc::new(store.writer().unwrap())),
            ..Call::about(root, target, Some(store), notes.clone())
        };
        Self { _scratch: scratch, call, notes }
    }

    fn snapshot(&self, guest: &Guest) -> Result<Vec<Part>> {
        link(guest, &["tree"]).unwrap().snapshot(&self.call, &[])
    }

    fn failure(&self, guest: &Guest) -> Error {
        self.snapshot(guest).unwrap_err()
    }
}

/// Of one that came inside the program.
fn own() -> Standing {
    Standing { stranger: None, trust: Trust::default(), around: Surroundings::default() }
}

fn compile(engine: &Engine, guest: &Guest) -> Component {
    crate::artifact::Cache::new(None).load(engine, "guest", &guest.build()).unwrap().0
}

fn link(guest: &Guest, interfaces: &[&str]) -> Result<ComponentBackend> {
    let engine = Engine::new().unwrap();
    let (silence, waiting) = (Duration::from_millis(300), Duration::from_millis(600));
    let limits = Limits { memory: 4 << 20, silence, waiting, messages: 100 };
    let manifest = Manifest::parse(MANIFEST).unwrap();
    ComponentBackend::link(&engine, &compile(&engine, guest), manifest, interfaces, limits, own())
}

#[test]
fn one_that_behaves_works() {
    let bench = Bench::new();
    assert_eq!(bench.snapshot(&Guest::default()).unwrap(), []);
    link(&Guest::default(), &[]).unwrap().restore(&bench.call, &[], &[]).unwrap();
}

#[test]
fn it_works_where_addresses_are_scarce() {
    let bench = Bench::new();
    let engine = Engine::with_room(false).unwrap();
    let manifest = || Manifest::parse(MANIFEST).unwrap();
    let grows = Guest {
        snapshot: "(if (i32.eq (memory.grow (i32.const 32)) (i32.const -1)) (then unreachable))
            (i32.store8 (i32.const 2000000) (i32.const 1))
            (i32.const 64)",
        ..Guest::default()
    };
    let outside = Guest { snapshot: "(i32.load (i32.const 70000))", ..Guest::default() };
    let run = |guest| {
        let component = compile(&engine, guest);
        ComponentBackend::link(&engine, &component, manifest(), &[], Limits::default(), own())
            .unwrap()
            .snapshot(&bench.call, &[])
    };
    assert_eq!(run(&grows).unwrap(), []);
    assert!(run(&outside).unwrap_err().message().contains("out of bounds memory access"));
    assert_ne!(engine.compatibility(), Engine::with_room(true).unwrap().compatibility());
}

#[test]
fn nobody_waits_long_for_what_it_says_about_itself() {
    let engine = Engine::new().unwrap();
    let endless = Guest { manifest: "(loop (br 0)) (i32.const 48)", ..Guest::default() };
    let error = describe(&engine, "guest", &compile(&engine, &endless)).unwrap_err();
    assert!(error.message().contains("ran for 2 s without calling anything"), "{error}");
}

#[test]
fn files_that_it_has_open_and_objects_that_it_writes_are_counted() {
    let bench = Bench::new();
    let state = State::new(Some(bench.call.clone()), Grants::default(), Reach::default(), None);
    let counted = |one_more: fn(&State) -> Result<Arc<()>>, what: &str| {
        let mut held: Vec<Arc<()>> = Vec::new();
        let error = loop {
            match one_more(&state) {
                Ok(one) => held.push(one),
                Err(error) => break error,
            }
        };
        assert_eq!(error.message(), format!("the backend `guest` has 100 {what}, and wants another"));
        assert_eq!(held.len(), 100);
        held.pop();
        one_more(&state).unwrap();
    };
    counted(State::one_more_file, "files open");
    counted(State::one_more_draft, "objects begun");
}

#[test]
fn whatever_it_does_is_an_error_that_names_it() {
    let bench = Bench::new();
    for (snapshot, says) in [
        ("unreachable", "the backend `guest` gave up"),
        ("(loop (br 0)) (i32.const 64)", "the backend `guest` ran for 0.3 s without calling anything"),
        (
            "(loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable",
            "the backend `guest` needs more than the 4 MiB of memory that it may have",
        ),
        (
            "(call $snapshot (i32.const 0) (i32.const 0) (i32.const 0))",
            "the backend `guest` ran out of stack",
        ),
        ("(i32.load (i32.const -1))", "the backend `guest` failed: out of bounds memory access"),
        ("(i32.div_u (i32.const 1) (i32.const 0))", "the backend `guest` failed: integer divide by zero"),
        // What it returns lies outside its memory.
        ("(i32.const -4)", "the backend `guest` failed: "),
    ] {
        let error = bench.failure(&Guest { snapshot, ..Guest::default() });
        assert!(error.message().starts_with(says), "{snapshot}: {error}");
        assert!(!error.message().contains('\n') && error.hint_text().is_some(), "{error}");
        // Another call of another component goes on as if nothing had been.
        assert_eq!(bench.snapshot(&Guest::default()).unwrap(), []);
    }
}

#[test]
fn one_that_loops_stops_when_the_user_asks() {
    let bench = Bench::new();
    let cancel = bench.call.cancel.clone();
    let loops = Guest { snapshot: "(loop (br 0)) (i32.const 64)", ..Guest::default() };
    let loops = link(&loops, &[]).unwrap();
    let asker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        cancel.cancel();
    });
    let error = loops.snapshot(&bench.call, &[]).unwrap_err();
    asker.join().unwrap();
    assert_eq!((error.kind(), error.message()), (Kind::Cancelled, "stopped as asked"));
    assert_eq!(bench.failure(&Guest::default()).kind(), Kind::Cancelled, "and no call begins after that");
}

#[test]
fn its_errors_arrive_as_they_are() {
    let bench = Bench::new();
    // result: error; kind: busy; message and hint in the data.
    let guest = Guest {
        data: r"\01\00\00\00\02\00\00\00\20\10\00\00\04\00\00\00\01\00\00\00\24\10\00\00\04\00\00\00\00\00\00\00busywait",
        snapshot: "(i32.const 4096)",
        ..Guest::default()
    };
    let error = bench.failure(&guest);
    assert_eq!((error.kind(), error.message(), error.hint_text()), (Kind::Busy, "busy", Some("wait")));
}

#[test]
fn a_handle_cannot_be_forged() {
    let bench = Bench::new();
    let imports =
        r#"(import "snapback:plugin/types@0.1.0" "[method]target.name" (func $name (param i32 i32)))"#;
    for handle in ["0", "1", "2", "77", "-1"] {
        let snapshot = format!("(call $name (i32.const {handle}) (i32.const 5000)) (i32.const 64)");
        let guest = Guest { imports, snapshot: snapshot.leak(), ..Guest::default() };
        // The first handle that a component gets is 1: that one is the target's.
        match handle {
            "1" => assert_eq!(bench.snapshot(&guest).unwrap(), []),
            _ => assert!(bench.failure(&guest).message().contains("unknown handle index"), "{handle}"),
        }
    }
}

const LOG: &str = r#"(import "snapback:plugin/report@0.1.0" "log" (func $log (param i32 i32 i32 i32)))"#;

#[test]
fn a_flood_of_messages_is_counted() {
    let bench = Bench::new();
    let guest = Guest {
        imports: LOG,
        data: r"warn a\1b[2Jb",
        snapshot: "(local.set $a (i32.const 250))
            (loop
                (call $log (i32.const 4096) (i32.const 4) (i32.const 4101) (i32.const 6))
                (br_if 0 (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))
            (i32.const 64)",
        ..Guest::default()
    };
    assert_eq!(bench.snapshot(&guest).unwrap(), []);
    let notes = bench.notes.0.lock().unwrap();
    assert_eq!(notes.len(), 101);
    assert_eq!(notes[0], "t warn a [2Jb");
    assert_eq!(notes[100], "t warn 150 more messages were not shown");
}

#[test]
fn its_last_words_are_what_it_failed_of() {
    let bench = Bench::new();
    let guest = Guest {
        imports: LOG,
        data: r"panicno such luck",
        snapshot: "(call $log (i32.const 4096) (i32.const 5) (i32.const 4101) (i32.const 12)) unreachable",
        ..Guest::default()
    };
    assert_eq!(bench.failure(&guest).message(), "the backend `guest` gave up: no such luck");
}

#[test]
fn work_that_it_does_not_end_ends_with_the_call() {
    let bench = Bench::new();
    let guest = Guest {
        imports: r#"(import "snapback:plugin/report@0.1.0" "[constructor]task"
            (func $task (param i32 i32 i32 i64 i32 i32) (result i32)))"#,
        data: "copybytes",
        snapshot: "(drop (call $task (i32.const 4096) (i32.const 4) (i32.const 0) (i64.const 0) (i32.const 4100) (i32.const 5)))
            unreachable",
        ..Guest::default()
    };
    bench.failure(&guest);
    assert_eq!(*bench.notes.0.lock().unwrap(), ["begin copy bytes", "end"]);
}

#[test]
fn what_was_not_granted_is_not_linked() {
    let guest = Guest {
        world: "tree-plugin",
        imports: r#"(import "snapback:plugin/tree@0.1.0" "[static]directory.open"
            (func $open (param i32 i32 i32 i32 i32 i32)))"#,
        // Opens the directory that the setting in the data names; returns the error it gets.
        data: "path",
        snapshot: "(call $open (local.get $target) (i32.const 4096) (i32.const 4) (i32.const 0) (i32.const 0) (i32.const 5000))
            (i32.const 5000)",
        ..Guest::default()
    };
    let error = link(&guest, &[]).err().unwrap();
    assert_eq!(error.kind(), Kind::Denied);
    assert_eq!(error.message(), "`guest` asks for `tree`, which was not granted to it");
    // Linked, it still opens only what the target was given.
    let bench = Bench::new();
    let error = bench.failure(&guest);
    assert_eq!((error.kind(), error.message()), (Kind::Denied, "no setting `path` of kind dir was given"));
    let label = Guest {
        data: "label",
        snapshot: guest.snapshot.replace("(i32.const 4)", "(i32.const 5)").leak(),
        ..guest
    };
    assert!(bench.failure(&label).message().contains("is of kind text, which opens no dir"));
}

#[test]
fn a_manifest_is_said_without_any_capability() {
    let engine = Engine::new().unwrap();
    let text = describe(&engine, "guest", &compile(&engine, &Guest::default())).unwrap();
    assert_eq!(text, MANIFEST);
    let talks = Guest {
        imports: LOG,
        manifest: "(call $log (i32.const 4096) (i32.const 0) (i32.const 4096) (i32.const 0)) (i32.const 48)",
        ..Guest::default()
    };
    let error = describe(&engine, "guest", &compile(&engine, &talks)).unwrap_err();
    assert!(error.message().starts_with("it could not describe itself"), "{error}");
    assert!(error.message().contains("snapback:plugin/report@0.1.0#log"), "{error}");
}

#[test]
fn what_exports_something_else_is_no_backend() {
    let engine = Engine::new().unwrap();
    let empty = crate::artifact::Cache::new(None).load(&engine, "empty", b"\0asm\x0d\0\x01\0").unwrap().0;
    assert!(describe(&engine, "empty", &empty).unwrap_err().message().contains("it has no manifest"));
    let manifest = Manifest::parse(MANIFEST).unwrap();
    let error =
        ComponentBackend::link(&engine, &empty, manifest, &[], Limits::default(), own()).err().unwrap();
    assert_eq!(error.kind(), Kind::Incompatible);
    assert!(error.message().contains("is not a backend for this program"), "{error}");
}

/// Stores the twelve bytes at 4096 as a part called "c", and reads it back in a restore.
fn keeps() -> Guest {
    Guest {
        imports: r#"
            (import "snapback:plugin/store@0.1.0" "[constructor]draft" (func $draft (result i32)))
            (import "snapback:plugin/store@0.1.0" "[method]draft.body" (func $body (param i32 i32)))
            (import "snapback:plugin/store@0.1.0" "[static]draft.finish" (func $finish (param i32 i32)))
            (import "snapback:plugin/store@0.1.0" "[method]object.read" (func $read (param i32 i32)))
            (import "snapback:plugin/report@0.1.0" "log" (func $log (param i32 i32 i32 i32)))
            (import "wasi:io/streams@0.2.12" "[method]output-stream.blocking-write-and-flush"
                (func $write (param i32 i32 i32 i32)))
            (import "wasi:io/streams@0.2.12" "[method]input-stream.blocking-read"
                (func $take (param i32 i64 i32)))"#,
        data: "hello, storec",
        // Where a result arrives: 5000 is whether it failed, 5004 what it is.
        snapshot: "(local.set $a (call $draft))
            (call $body (local.get $a) (i32.const 5000))
            (if (i32.load8_u (i32.const 5000)) (then unreachable))
            (local.set $b (i32.load (i32.const 5004)))
            (call $write (local.get $b) (i32.const 4096) (i32.const 12) (i32.const 5000))
            (if (i32.load8_u (i32.const 5000)) (then unreachable))
            (call $finish (local.get $a) (i32.const 5000))
            (if (i32.load8_u (i32.const 5000)) (then unreachable))
            ;; The body is closed now.
            (local.set $a (i32.load (i32.const 5004)))
            (call $write (local.get $b) (i32.const 4096) (i32.const 12) (i32.const 5000))
            (if (i32.eqz (i32.load8_u (i32.const 5000))) (then unreachable))
            ;; One part: name, then content.
            (i32.store (i32.const 5100) (i32.const 4108))
            (i32.store (i32.const 5104) (i32.const 1))
            (i32.store (i32.const 5108) (local.get $a))
            (i32.store8 (i32.const 5200) (i32.const 0))
            (i32.store (i32.const 5204) (i32.const 5100))
            (i32.store (i32.const 5208) (i32.const 1))
            (i32.const 5200)",
        restore: "(call $read (i32.load offset=8 (local.get 1)) (i32.const 5000))
            (if (i32.load8_u (i32.const 5000)) (then (call $done (local.get $target)) (return (i32.const 5000))))
            (call $take (i32.load (i32.const 5004)) (i64.const 100) (i32.const 5300))
            (if (i32.load8_u (i32.const 5300)) (then unreachable))
            (call $log (i32.const 0) (i32.const 0) (i32.load (i32.const 5304)) (i32.load (i32.const 5308)))
            (i32.const 64)",
        ..Guest::default()
    }
}

#[test]
fn what_it_stores_it_reads_again() {
    let mut bench = Bench::new();
    let guest = link(&keeps(), &[]).unwrap();
    let parts = guest.snapshot(&bench.call, &[]).unwrap();
    assert_eq!((parts.len(), parts[0].name.as_str()), (1, "c"));
    assert_eq!(parts[0].content.kind(), ObjectKind::Opaque);
    bench.call.writer.take().unwrap().seal().unwrap();
    guest.restore(&bench.call, &parts, &[]).unwrap();
    assert_eq!(*bench.notes.0.lock().unwrap(), ["t info hello, store"]);
    // A restore stores nothing.
    assert!(guest.snapshot(&bench.call, &[]).unwrap_err().message().contains("gave up"));
}

#[test]
fn what_the_host_captured_it_cannot_read_and_what_is_not_there_is_said() {
    let mut bench = Bench::new();
    bench.call.writer = None;
    let guest = link(&keeps(), &[]).unwrap();
    let part = |kind| [Part { name: "c".into(), content: Key::of(kind, b"not stored") }];
    let error = guest.restore(&bench.call, &part(ObjectKind::Root), &[]).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (Kind::Incompatible, "it was captured by the host, which alone reads it")
    );
    let error = guest.restore(&bench.call, &part(ObjectKind::Opaque), &[]).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound, "{error}");
}

#[test]
fn wasi_is_there_and_empty() {
    let bench = Bench::new();
    // Each list that it gets has no element: no variable, no argument, no directory.
    let guest = Guest {
        world: "wasi-plugin",
        imports: r#"
            (import "wasi:cli/environment@0.2.12" "get-environment" (func $environment (param i32)))
            (import "wasi:cli/environment@0.2.12" "get-arguments" (func $arguments (param i32)))
            (import "wasi:filesystem/preopens@0.2.12" "get-directories" (func $directories (param i32)))
            (import "wasi:clocks/monotonic-clock@0.2.12" "now" (func $now (result i64)))"#,
        snapshot: "(call $environment (i32.const 5000))
            (if (i32.load (i32.const 5004)) (then unreachable))
            (call $arguments (i32.const 5000))
            (if (i32.load (i32.const 5004)) (then unreachable))
            (call $directories (i32.const 5000))
            (if (i32.load (i32.const 5004)) (then unreachable))
            (drop (call $now))
            (i32.const 64)",
        ..Guest::default()
    };
    assert_eq!(bench.snapshot(&guest).unwrap(), []);
}

/// One that waits for an hour.
fn waits() -> Guest {
    Guest {
        world: "wasi-plugin",
        imports: r#"
            (import "wasi:clocks/monotonic-clock@0.2.12" "subscribe-duration" (func $timer (param i64) (result i32)))
            (import "wasi:io/poll@0.2.12" "[method]pollable.block" (func $block (param i32)))"#,
        snapshot: "(call $block (call $timer (i64.const 3600000000000))) (i32.const 64)",
        ..Guest::default()
    }
}

#[test]
fn one_that_waits_for_nothing_is_ended() {
    let bench = Bench::new();
    let error = bench.failure(&waits());
    assert!(error.message().contains("`guest` waited for 0.6 s for something that did not come"), "{error}");
}

#[test]
fn the_hosts_own_work_is_no_waiting() {
    let progress = progress::Progress::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let work = async |busy: Option<progress::Busy>| {
        tokio::time::sleep(Duration::from_millis(400)).await;
        drop(busy);
        wasmtime::Result::Ok(())
    };
    let until = |busy| {
        let limit = Duration::from_millis(100);
        runtime.block_on(watch::unless_stuck(work(busy), &Cancel::default(), &progress, limit))
    };
    assert!(until(Some(progress.busy())).is_ok());
    assert!(until(None).is_err());
}

#[test]
fn one_of_another_version_of_the_contract_is_told_so() {
    let engine = Engine::new().unwrap();
    let text = Guest::default().build();
    // The same component, and every name in it that of the next version.
    let next: Vec<u8> = {
        let (from, to) = (b"@0.1.0", b"@0.2.0");
        let mut bytes = text;
        for at in 0..bytes.len() - from.len() {
            if &bytes[at..at + from.len()] == from {
                bytes[at..at + from.len()].copy_from_slice(to);
            }
        }
        bytes
    };
    let component = crate::artifact::Cache::new(None).load(&engine, "next", &next).unwrap().0;
    let error = describe(&engine, "guest", &component).unwrap_err();
    assert!(error.message().contains("version 0.2 of the contract, and this program knows 0.1"), "{error}");
    assert_eq!(error.kind(), Kind::Incompatible);
    assert!(error.hint_text().unwrap().contains("newer snapback"));
}

#[test]
fn one_that_waits_stops_when_the_user_asks() {
    let bench = Bench::new();
    let cancel = bench.call.cancel.clone();
    let waits = link(&waits(), &[]).unwrap();
    let asker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        cancel.cancel();
    });
    assert_eq!(waits.snapshot(&bench.call, &[]).unwrap_err().kind(), Kind::Cancelled);
    asker.join().unwrap();
}

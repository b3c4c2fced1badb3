//! What components that misbehave can do: nothing but fail.

use super::*;
use crate::testing::{Guest, MANIFEST, Scratch};
use snapback_core::backend::{Cancel, Target};
use snapback_core::disk::Disk;
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
        let call = Call {
            root: scratch.path().to_owned(),
            target: Arc::new(target),
            writer: Some(Arc::new(store.writer().unwrap())),
            store,
            cover: Arc::default(),
            only: Arc::default(),
            huge: None,
            report: notes.clone(),
            cancel: Cancel::default(),
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

fn compile(engine: &Engine, guest: &Guest) -> Component {
    crate::artifact::Cache::new(None).load(engine, "guest", &guest.build()).unwrap().0
}

fn link(guest: &Guest, interfaces: &[&str]) -> Result<ComponentBackend> {
    let engine = Engine::new().unwrap();
    let limits = Limits { memory: 4 << 20, silence: Duration::from_millis(300), messages: 100 };
    let manifest = Manifest::parse(MANIFEST).unwrap();
    ComponentBackend::link(&engine, &compile(&engine, guest), manifest, interfaces, limits)
}

#[test]
fn one_that_behaves_works() {
    let bench = Bench::new();
    assert_eq!(bench.snapshot(&Guest::default()).unwrap(), []);
    link(&Guest::default(), &[]).unwrap().restore(&bench.call, &[], &[]).unwrap();
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
    for error in
        [ComponentBackend::link(&engine, &empty, Manifest::parse(MANIFEST).unwrap(), &[], Limits::default())
            .err()
            .unwrap()]
    {
        assert_eq!(error.kind(), Kind::Incompatible);
        assert!(error.message().contains("is not a backend for this program"), "{error}");
    }
}

//! What a component holds: how much, and what it cannot pass off as something else.

use super::*;
use crate::abi::v0_1::OFFERED;

#[test]
fn one_that_begins_objects_without_end_is_ended() {
    let bench = Bench::new();
    let guest = Guest {
        imports: r#"(import "snapback:plugin/store@0.1.0" "[constructor]draft" (func $draft (result i32)))"#,
        snapshot: "(loop (drop (call $draft)) (br 0)) (i32.const 64)",
        ..Guest::default()
    };
    let error = bench.failure(&guest);
    assert!(error.message().starts_with("the backend `guest` has 100 objects begun"), "{error}");
    assert_eq!(bench.snapshot(&Guest::default()).unwrap(), []);
}

/// Of WASI's, everything that a component can hold is counted, whatever it is: else it would take
/// the descriptors of the process from the other targets.
#[test]
fn one_that_opens_without_end_is_ended_whatever_it_opens() {
    let mut bench = Bench::new();
    let mut target = (*bench.call.target).clone();
    target.settings.extend([("path".into(), ".".into()), ("server".into(), "127.0.0.1:9".into())]);
    bench.call.target = target.into();
    let manifest = format!("{MANIFEST}[[setting]]\nkey = \"server\"\nkind = \"address\"\n");
    let stranger = Stranger { origin: "a file".into(), digest: "guest".repeat(3), interfaces: Vec::new() };
    let standing =
        Standing { stranger: Some(stranger), trust: Trust::default().all_of("guest".repeat(3)), ..own() };
    let engine = Engine::new().unwrap();
    let fails = |imports: &'static str, once: &str| {
        let snapshot = format!("(loop {once} (br 0)) (i32.const 64)").leak();
        let guest = Guest { world: "wasi-plugin", imports, data: ".", snapshot, ..Guest::default() };
        let manifest = Manifest::parse(&manifest).unwrap();
        let (component, limits) = (compile(&engine, &guest), Limits::default());
        ComponentBackend::link(&engine, &component, manifest, OFFERED, limits, standing.clone())
            .unwrap()
            .snapshot(&bench.call, &[])
            .unwrap_err()
    };
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    for (imports, once) in [
        (
            r#"(import "wasi:filesystem/preopens@0.2.12" "get-directories" (func $dirs (param i32)))
            (import "wasi:filesystem/types@0.2.12" "[method]descriptor.open-at"
                (func $open (param i32 i32 i32 i32 i32 i32 i32)))"#,
            "(if (i32.eqz (local.get $b)) (then
                (call $dirs (i32.const 5000)) (local.set $b (i32.load (i32.load (i32.const 5000))))))
            (call $open (local.get $b) (i32.const 0) (i32.const 4096) (i32.const 1)
                (i32.const 2) (i32.const 1) (i32.const 5000))
            (if (i32.load8_u (i32.const 5000)) (then unreachable))",
        ),
        (
            r#"(import "wasi:filesystem/preopens@0.2.12" "get-directories" (func $dirs (param i32)))"#,
            "(call $dirs (i32.const 5000))",
        ),
        (
            r#"(import "wasi:sockets/tcp-create-socket@0.2.12" "create-tcp-socket" (func $tcp (param i32 i32)))"#,
            "(call $tcp (i32.const 0) (i32.const 5000)) (if (i32.load8_u (i32.const 5000)) (then unreachable))",
        ),
        (
            r#"(import "wasi:sockets/instance-network@0.2.12" "instance-network" (func $network (result i32)))"#,
            "(drop (call $network))",
        ),
        (
            r#"(import "wasi:clocks/monotonic-clock@0.2.12" "subscribe-duration" (func $timer (param i64) (result i32)))"#,
            "(drop (call $timer (i64.const 1)))",
        ),
    ] {
        let error = fails(imports, once);
        assert!(error.message().starts_with("the backend `guest` has 200 things open"), "{imports}: {error}");
        assert_eq!(error.hint_text(), Some(FAULT));
    }
    // Others of these tests open something at the same time.
    assert!(open() < before + 100, "what it held is let go of");
}

#[test]
fn directories_that_it_opens_are_counted_like_files() {
    let mut bench = Bench::new();
    let mut target = (*bench.call.target).clone();
    target.settings.insert("path".into(), ".".into());
    bench.call.target = target.into();
    let guest = Guest {
        world: "tree-plugin",
        imports: r#"(import "snapback:plugin/tree@0.1.0" "[static]directory.open"
            (func $open (param i32 i32 i32 i32 i32 i32)))"#,
        data: "path",
        snapshot: "(loop (call $open (local.get $target) (i32.const 4096) (i32.const 4)
                (i32.const 0) (i32.const 0) (i32.const 5000))
                (br_if 0 (i32.eqz (i32.load8_u (i32.const 5000)))))
            (i32.const 5000)",
        ..Guest::default()
    };
    assert_eq!(bench.failure(&guest).message(), "the backend `guest` has 100 files open, and wants another");
}

#[test]
fn handles_are_bounded() {
    let mut state = State::new(None, Grants::default(), Reach::default(), None);
    let held = std::iter::repeat_with(|| state.table.push(0u8)).take_while(Result::is_ok).take(1_000_000);
    assert_eq!(held.count(), 100_000);
    let held = std::iter::repeat_with(|| state.open.push(0u8)).take_while(Result::is_ok).take(1_000_000);
    assert_eq!(held.count(), 200);
}

#[test]
fn one_that_grows_its_tables_is_refused() {
    let bench = Bench::new();
    let grows = |by: &str| {
        Guest {
        imports: "",
        data: "",
        snapshot: format!(
            "(if (i32.eq (table.grow $more (ref.null func) (i32.const {by})) (i32.const -1)) (then unreachable))
             (i32.const 64)"
        )
        .leak(),
        extra: "(table $more 1 funcref)",
        ..Guest::default()
    }
    };
    assert_eq!(bench.snapshot(&grows("1000")).unwrap(), []);
    assert!(bench.failure(&grows("1000000000")).message().contains("gave up"));
}

/// Stores twelve bytes of its own and passes them to `directory.restore` as a tree.
#[test]
fn what_it_stored_itself_is_no_tree() {
    let bench = Bench::new();
    let guest = Guest {
        world: "tree-plugin",
        imports: r#"
            (import "snapback:plugin/store@0.1.0" "[constructor]draft" (func $draft (result i32)))
            (import "snapback:plugin/store@0.1.0" "[static]draft.finish" (func $finish (param i32 i32)))
            (import "snapback:plugin/tree@0.1.0" "[static]directory.open"
                (func $open (param i32 i32 i32 i32 i32 i32)))
            (import "snapback:plugin/tree@0.1.0" "[method]directory.restore"
                (func $restore (param i32 i32 i32 i32)))"#,
        data: "path",
        snapshot: "(call $open (local.get $target) (i32.const 4096) (i32.const 4) (i32.const 0) (i32.const 0) (i32.const 5000))
            (if (i32.load8_u (i32.const 5000)) (then unreachable))
            (local.set $a (i32.load (i32.const 5004)))
            (call $finish (call $draft) (i32.const 5100))
            (if (i32.load8_u (i32.const 5100)) (then unreachable))
            (local.set $b (i32.load (i32.const 5104)))
            (call $restore (local.get $a) (local.get $b) (local.get $b) (i32.const 5200))
            (i32.const 5200)",
        ..Guest::default()
    };
    let mut bench = bench;
    let mut target = (*bench.call.target).clone();
    target.settings.insert("path".into(), ".".into());
    bench.call.target = target.into();
    let manifest = MANIFEST.replace("kind = \"dir\"", "kind = \"dir\"\naccess = \"write\"");
    let engine = Engine::new().unwrap();
    let backend = ComponentBackend::link(
        &engine,
        &compile(&engine, &guest),
        Manifest::parse(&manifest).unwrap(),
        &["tree"],
        Limits::default(),
        own(),
    )
    .unwrap();
    let error = backend.snapshot(&bench.call, &[]).unwrap_err();
    assert_eq!((error.kind(), error.message()), (Kind::Incompatible, "it is not a captured directory"));
}

#[test]
fn a_manifest_has_of_wasi_what_is_empty() {
    let engine = Engine::new().unwrap();
    let asks = |manifest: &'static str| {
        let guest = Guest {
            world: "wasi-plugin",
            imports: r#"
                (import "wasi:cli/environment@0.2.12" "get-environment" (func $environment (param i32)))
                (import "wasi:filesystem/preopens@0.2.12" "get-directories" (func $directories (param i32)))"#,
            manifest,
            ..Guest::default()
        };
        describe(&engine, "guest", &compile(&engine, &guest))
    };
    let said = asks(
        "(call $environment (i32.const 5000))
            (if (i32.load (i32.const 5004)) (then unreachable))
            (call $directories (i32.const 5000))
            (if (i32.load (i32.const 5004)) (then unreachable))
            (i32.const 48)",
    );
    assert_eq!(said.unwrap(), MANIFEST);
}

#[test]
fn what_is_snapbacks_own_traps_while_a_component_describes_itself() {
    let engine = Engine::new().unwrap();
    let guest = Guest {
        world: "wasi-plugin",
        imports: r#"
            (import "wasi:cli/environment@0.2.12" "get-environment" (func $environment (param i32)))
            (import "snapback:plugin/store@0.1.0" "[constructor]draft" (func $draft (result i32)))"#,
        manifest: "(call $environment (i32.const 5000)) (drop (call $draft)) (i32.const 48)",
        ..Guest::default()
    };
    let error = describe(&engine, "guest", &compile(&engine, &guest)).unwrap_err();
    assert!(error.message().contains("it could not describe itself"), "{error}");
}

/// Built once for version 0.1 of the contract and never again: what they import must be
/// offered for as long as that version is. Another digest is another component, which proves nothing.
#[test]
fn components_of_the_first_version_still_fit() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/components/frozen");
    let registry = crate::Registry::new(crate::Setup::default());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let bytes = std::fs::read(&path).unwrap();
            let one = registry.examine(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            found.push((one.manifest.name, crate::digest_of(&bytes)));
        }
    }
    found.sort();
    let frozen = [
        ("keeper", "170d7732fbc79352c4c91303ce4a5d93ded64836c2349c7deb0bda1869007939"),
        ("probe", "6aecbb153abacb02272626b29bc9b3213b934653656ba8135f8aeede69f8a383"),
    ];
    assert_eq!(found, frozen.map(|(name, digest)| (name.to_owned(), digest.to_owned())));
}

//! Names of hosts: what one answers tomorrow opens nothing that was not agreed to.

use super::*;
use crate::reach::address::Resolver;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

const NAME: &str = "db.example";

/// Looks the name up twice, and gives up unless both times it is an address in 8.0.0.0/8.
fn looks_up() -> Guest {
    const ONCE: &str = "(call $resolve (local.get $b) (i32.const 4096) (i32.const 10) (i32.const 5000))
        (if (i32.load8_u (i32.const 5000)) (then unreachable))
        (call $next (i32.load (i32.const 5004)) (i32.const 5100))
        (if (i32.load8_u (i32.const 5100)) (then unreachable))
        (if (i32.ne (i32.load8_u (i32.const 5106)) (i32.const 8)) (then unreachable))";
    Guest {
        world: "wasi-plugin",
        imports: r#"
            (import "wasi:sockets/instance-network@0.2.12" "instance-network" (func $network (result i32)))
            (import "wasi:sockets/ip-name-lookup@0.2.12" "resolve-addresses"
                (func $resolve (param i32 i32 i32 i32)))
            (import "wasi:sockets/ip-name-lookup@0.2.12" "[method]resolve-address-stream.resolve-next-address"
                (func $next (param i32 i32)))"#,
        data: NAME,
        snapshot: format!("(local.set $b (call $network)) {ONCE} {ONCE} (i32.const 64)").leak(),
        ..Guest::default()
    }
}

#[test]
fn a_name_is_resolved_once_for_a_call_and_another_class_of_address_was_not_agreed_to() {
    let mut bench = Bench::new();
    let state = Scratch::new();
    let answer: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
    let asked = Arc::new(AtomicU32::new(0));
    let (says, count) = (answer.clone(), asked.clone());
    let names: Resolver = Arc::new(move |host, port| {
        assert_eq!((host, port), (NAME, 5432));
        count.fetch_add(1, Ordering::Relaxed);
        says.lock().unwrap().clone()
    });
    let set = |addresses: &[&str]| {
        *answer.lock().unwrap() =
            addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 5432)).collect();
    };
    let mut target = (*bench.call.target).clone();
    target.settings.insert("server".into(), format!("{NAME}:5432"));
    bench.call.target = target.into();
    let manifest = format!("{MANIFEST}[[setting]]\nkey = \"server\"\nkind = \"address\"\n");
    let engine = Engine::new().unwrap();
    let trust = Trust::new(Some(state.path().to_owned()), Vec::new());
    let around = Surroundings { names, ..Surroundings::default() };
    let backend = ComponentBackend::link(
        &engine,
        &compile(&engine, &looks_up()),
        Manifest::parse(&manifest).unwrap(),
        &[],
        Limits::default(),
        Standing { stranger: None, trust: trust.clone(), around },
    )
    .unwrap();

    // The user agrees to what it is today.
    set(&["8.8.8.8"]);
    let store = bench.call.store.as_ref().unwrap().id().unwrap();
    let question = backend.question(&bench.call.root, Some(store), &bench.call.target).unwrap();
    let consents = state.path().join("consents");
    std::fs::create_dir_all(&consents).unwrap();
    std::fs::write(consents.join(trust.key(&question).unwrap()), "").unwrap();

    asked.store(0, Ordering::Relaxed);
    assert_eq!(backend.snapshot(&bench.call, &[]).unwrap(), []);
    assert_eq!(asked.load(Ordering::Relaxed), 1, "what it asks itself does not leave the host");
    // Another one of the same class is what was agreed to.
    set(&["8.8.4.4", "8.26.56.26"]);
    assert_eq!(backend.snapshot(&bench.call, &[]).unwrap(), []);
    for (addresses, class) in [
        (&["127.0.0.1"][..], "this machine"),
        (&["::1"], "this machine"),
        (&["::ffff:127.0.0.1"], "this machine"),
        (&["0.0.0.0"], "this machine"),
        (&["10.0.0.1"], "private"),
        (&["fd00::1"], "private"),
        (&["169.254.169.254"], "link-local"),
        (&["fe80::1"], "link-local"),
        (&["8.8.8.8", "127.0.0.1"], "public, this machine"),
    ] {
        set(addresses);
        let error = backend.snapshot(&bench.call, &[]).unwrap_err();
        assert_eq!(error.kind(), Kind::Denied, "{addresses:?}: {error}");
        assert!(error.message().contains(&format!("connects to {NAME}:5432 ({class})")), "{error}");
    }
    set(&[]);
    assert_eq!(backend.snapshot(&bench.call, &[]).unwrap_err().kind(), Kind::NotFound);
}

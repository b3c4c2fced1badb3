//! Backends by name: listed without being started, read again when they changed.

use super::*;
use crate::testing::{Guest, MANIFEST, Scratch};
use std::fs;

fn registry(scratch: &Scratch) -> Registry {
    let folder = scratch.path().join("plugins");
    fs::create_dir_all(&folder).unwrap();
    Registry::new(Setup {
        cache: vec![scratch.path().join("cache")],
        folders: vec![folder],
        ..Setup::default()
    })
}

#[test]
fn the_ones_inside_are_what_is_said_of_them() {
    let engine = Engine::new().unwrap();
    for builtin in builtin::ALL {
        let (component, _) = Cache::new(None).load(&engine, "x", builtin.component).unwrap();
        assert_eq!(component::describe(&engine, builtin.name, &component).unwrap(), builtin.manifest);
        let asked = crate::abi::v0_1::asked(&component::imports(&engine, &component));
        assert_eq!(asked, builtin.interfaces, "{}", builtin.name);
    }
}

#[test]
fn listing_starts_nothing_and_names_what_is_broken() {
    let scratch = Scratch::new();
    let registry = registry(&scratch);
    let folder = scratch.path().join("plugins");
    fs::write(folder.join("guest.wasm"), Guest::default().build()).unwrap();
    fs::write(folder.join("broken.wasm"), "no component").unwrap();
    fs::write(folder.join("Bad.wasm"), "").unwrap();
    let list = registry.list();
    let statuses: Vec<_> = list.iter().map(|i| (i.name.as_str(), &i.status)).collect();
    assert!(
        matches!(
            statuses[..],
            [
                ("tree", Status::Ready),
                ("sqlite", Status::Ready),
                ("docker-volume", Status::Ready),
                ("Bad", Status::Broken(_)),
                ("broken", Status::Broken(_)),
                ("guest", Status::New)
            ]
        ),
        "{statuses:?}"
    );
    assert_eq!((list[0].origin.as_str(), list[0].version.as_deref()), ("built-in", Some("0.1.0")));
    assert_eq!(list[0].wants, ["tree", "path (dir)"]);
    assert!(registry.engine.get().is_none() && !scratch.path().join("cache").exists());

    // Nor is what was never used a riddle: what it asks for can be seen.
    let Status::Broken(why) = &list[4].status else { panic!("{list:?}") };
    assert_eq!((why.as_str(), list[4].digest.is_some()), ("it is no WebAssembly component", true));
    assert_eq!(list[5].wants, [""; 0]);

    let Err(error) = registry.get("broken") else { panic!("a broken one was made ready") };
    assert!(error.message().starts_with("backend `broken`: it is no WebAssembly component"), "{error}");
    registry.get("guest").unwrap();
    registry.get("tree").unwrap();

    // What it said is kept.
    let again = self::registry(&scratch);
    let guest = again.list().into_iter().find(|info| info.name == "guest").unwrap();
    assert_eq!((guest.version.as_deref(), guest.status), (Some("1.2.3"), Status::Ready));
    assert_eq!(guest.wants, ["path (dir)"]);
    assert_eq!(again.settings("guest").unwrap(), ["path", "label"]);
    assert!(again.engine.get().is_none());
}

#[test]
fn a_file_is_called_as_its_backend() {
    let scratch = Scratch::new();
    let registry = registry(&scratch);
    fs::write(scratch.path().join("plugins/other.wasm"), Guest::default().build()).unwrap();
    let Err(error) = registry.get("other") else { panic!("it was made ready") };
    assert!(
        error.message().contains("it calls itself `guest`, and its file is called `other.wasm`"),
        "{error}"
    );
    assert_eq!(error.hint_text(), Some("rename the file to `guest.wasm`"));
    let info = registry.list().pop().unwrap();
    assert!(matches!(info.status, Status::Broken(_)), "{info:?}");
}

#[test]
fn an_unknown_name_names_the_nearest() {
    let scratch = Scratch::new();
    let Err(error) = registry(&scratch).get("tre") else { panic!("it was found") };
    assert_eq!((error.kind(), error.message()), (Kind::NotFound, "there is no backend `tre`"));
    assert_eq!(error.hint_text(), Some("did you mean `tree`?"));
}

#[test]
fn a_changed_component_is_read_again() {
    let scratch = Scratch::new();
    let file = scratch.path().join("plugins/guest.wasm");
    let first = registry(&scratch);
    fs::write(&file, Guest::default().build()).unwrap();
    first.get("guest").unwrap();
    fs::write(&file, Guest::default().build_saying(&MANIFEST.replace("1.2.3", "2.0.0"))).unwrap();
    let second = registry(&scratch);
    assert_eq!(second.list().pop().unwrap().status, Status::New);
    assert_eq!(second.manifest("guest").unwrap().version, "2.0.0");
}

#[test]
fn what_a_backend_says_of_itself_is_read_once() {
    let scratch = Scratch::new();
    let registry = registry(&scratch);
    let file = scratch.path().join("plugins/guest.wasm");
    fs::write(&file, Guest::default().build()).unwrap();
    let said = registry.manifest("guest").unwrap();
    // However large it is, and however many targets are asked about.
    fs::remove_file(&file).unwrap();
    assert_eq!(registry.manifest("guest").unwrap(), said);
    assert_eq!(registry.settings("guest").unwrap(), ["path", "label"]);
}

#[test]
fn one_that_failed_when_it_was_used_is_listed_as_broken_with_the_reason() {
    let scratch = Scratch::new();
    let first = registry(&scratch);
    let file = scratch.path().join("plugins/guest.wasm");
    fs::write(&file, Guest::default().build_saying("name = \"guest\"\nversion = \"new\"")).unwrap();
    assert_eq!(first.list().pop().unwrap().status, Status::New);
    assert!(first.get("guest").is_err());
    let Status::Broken(why) = registry(&scratch).list().pop().unwrap().status else { panic!("it is ready") };
    assert!(why.contains("`version` is not a version"), "{why}");
    // Another one in its place is another one.
    fs::write(&file, Guest::default().build()).unwrap();
    assert_eq!(registry(&scratch).list().pop().unwrap().status, Status::New);
}

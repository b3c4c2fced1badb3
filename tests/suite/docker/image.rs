//! The image that snapback makes for its own containers: one small program that needs nothing
//! beside it; where there is none of this build, snapback itself.

use super::{Engine, Name, agree, declare, sandbox};
use crate::PROGRAM;
use snapback_tests::{Sandbox, User, have, skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Larger than the program that does one thing, smaller than the one that does all, in bytes.
const SMALL: u64 = 6_000_000;
/// What an engine puts into every container.
const OF_THE_ENGINE: [&str; 5] = [".dockerenv", "dev", "etc", "proc", "sys"];

/// `snapback` as it is installed in a directory of its own; how it is started there.
fn installed(s: &Sandbox, name: &str, beside: Option<&Path>) -> PathBuf {
    let dir = s.dir().join(name);
    fs::create_dir(&dir).unwrap();
    fs::copy(PROGRAM, dir.join("snapback")).unwrap();
    if let Some(program) = beside {
        fs::copy(program, dir.join("snapback-volumes")).unwrap();
    }
    dir.join("snapback")
}

/// What `program` stored of the volume comes back by way of a container.
fn comes_back(s: &Sandbox, engine: &Engine, program: &Path, volume: &str) {
    let file = engine.files(volume).join("f");
    fs::write(&file, "old").unwrap();
    s.finish(s.command(program).args(["run", "--", "true"])).exits(0);
    fs::write(&file, "new").unwrap();
    s.finish(s.command(program).args(["undo", "--yes"])).exits(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(engine.leftovers(volume), "");
}

/// The one image with a program of ours, its size, and what is in it.
fn image(engine: &Engine) -> (String, u64, Vec<String>) {
    let name = engine.docker(&["images", "-q", "--no-trunc", "snapback/helper"]);
    assert_eq!(name.lines().count(), 1, "those of other builds are gone: {name}");
    let size = engine.docker(&["image", "inspect", "-f", "{{.Size}}", &name]).parse().unwrap();
    engine.docker(&["create", "--name", "look", &name, "/snapback"]);
    let listed = engine.sh("docker export look | tar -t");
    let first = |path: &str| path.trim_start_matches("./").split('/').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> =
        listed.lines().map(first).filter(|name| !OF_THE_ENGINE.contains(&&**name)).collect();
    names.sort();
    names.dedup();
    (name, size, names)
}

/// Whether a program names another one that loads it, as readelf sees it.
fn is_loaded(program: &Path) -> bool {
    let output = Command::new("readelf").arg("-lW").arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("LOAD"), "{text}");
    text.contains("INTERP")
}

#[test]
fn it_holds_one_small_program_that_needs_nothing_beside_it() {
    if !have("readelf") || !have("cc") {
        return;
    }
    let found = Command::new("cc").arg("-print-file-name=libc.a").output().unwrap();
    if !String::from_utf8_lossy(&found.stdout).contains('/') {
        return skip("there is no C library that could come whole");
    }
    let Some(engine) = Engine::alone() else { return };
    // Somebody who reaches volumes through the engine alone.
    let s = sandbox(&engine, User::Nobody);
    let volume = Name::fresh(&engine);
    engine.docker(&["volume", "create", &volume]);
    declare(&s, &volume, "");
    agree(&s);
    let small = Path::new(PROGRAM).with_file_name("snapback-volumes");
    assert!(!is_loaded(&small) && is_loaded(Path::new(PROGRAM)), "the C library is in the small one alone");
    comes_back(&s, &engine, &installed(&s, "both", Some(&small)), &volume);
    let (name, size, names) = image(&engine);
    assert!(size < SMALL, "{size} bytes");
    assert_eq!(names, ["snapback"]);
    let inside = s.dir().join("inside");
    engine.docker(&["cp", "look:/snapback", inside.to_str().unwrap()]);
    engine.docker(&["rm", "look"]);
    assert!(!is_loaded(&inside));
    // It is not made anew each time.
    comes_back(&s, &engine, &s.dir().join("both/snapback"), &volume);
    assert_eq!(image(&engine).0, name);
    engine.docker(&["rm", "look"]);
    // Without it, and with one that is of no build at all, there is this one.
    let other = ["alone", "other"].map(|at| {
        let beside = (at == "other").then_some(Path::new("/bin/true"));
        comes_back(&s, &engine, &installed(&s, at, beside), &volume);
        let (name, size, names) = image(&engine);
        engine.docker(&["rm", "look"]);
        assert!(size > SMALL && names == ["lib", "loader", "snapback"], "{size} {names:?}");
        name
    });
    assert!(!other.contains(&name));
    // By hand it does nothing.
    let by_hand = Command::new(&small).output().unwrap();
    assert_eq!(by_hand.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&by_hand.stderr).contains("snapback itself starts this, in a container"));
}

//! Volumes of a real Docker engine, which the tests start, and the containers that use them.

mod again;
mod apart;
mod between;
mod composed;
mod during;
mod ends;
mod engine;
mod exact;
mod found;
mod held;
mod image;
mod made;
mod named;
mod needed;
mod podman;
mod postgres;
mod refused;
mod reviewed;
mod together;
mod unread;

use crate::PROGRAM;
use engine::{Engine, Name};
use snapback_tests::{Sandbox, User};
use std::path::Path;

/// Runs `test` with the engine in a sandbox for each user who may talk to it, with the
/// name of a volume that nobody else has.
fn each_user(test: impl Fn(&Sandbox, &Engine, &str)) {
    let Some(engine) = Engine::shared() else { return };
    for user in USERS {
        let s = sandbox(engine, *user);
        test(&s, engine, &Name::fresh(engine));
    }
}

/// Who may talk to the engine: root, and whoever is in the group of its socket.
const USERS: &[User] = &[User::Me, User::Nobody];

/// A sandbox whose user has `engine` as docker's current context.
fn sandbox(engine: &Engine, user: User) -> Sandbox {
    sandbox_at(&engine.socket(), user)
}

/// The same, with whoever listens at `socket`.
fn sandbox_at(socket: &Path, user: User) -> Sandbox {
    let s = Sandbox::new(PROGRAM, user);
    s.sh(&format!(
        r#"cd; folder=.docker/contexts/meta/$(printf tests | sha256sum | cut -d' ' -f1); mkdir -p $folder
        printf '{{"currentContext": "tests"}}' > .docker/config.json
        printf '{{"Name": "tests", "Endpoints": {{"docker": {{"Host": "unix://{}"}}}}}}' > $folder/meta.json"#,
        socket.display()
    ));
    s
}

/// Has the project cover `volume` by a target of that name, with more settings, agreed to.
fn cover(s: &Sandbox, volume: &str, more: &str) {
    declare(s, volume, more);
    agree(s);
}

fn declare(s: &Sandbox, volume: &str, more: &str) {
    s.write(
        "snapback.toml",
        format!(
            "[[target]]\nname = \"{volume}\"\nbackend = \"docker-volume\"\nvolume = \"{volume}\"\n{more}\n"
        ),
    );
}

/// Agrees to what is asked.
fn agree(s: &Sandbox) {
    let asked = s.snapback(["trust"]);
    let text = asked.err();
    for digest in text.lines().filter_map(|line| line.trim().strip_prefix("digest ")) {
        s.ok(["trust", "--digest", digest]);
    }
}

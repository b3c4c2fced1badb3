//! Which engine is meant where DOCKER_HOST says nothing: that of docker's own context, else the
//! socket that is there.

use super::{Engine, Name, USERS, declare};
use crate::PROGRAM;
use snapback_tests::{Output, Sandbox, User};
use std::path::Path;
use std::process::Command;

/// A run over `volume` and an undo, by a user who says it all by `snapback`.
fn there_and_back(s: &Sandbox, engine: &Engine, volume: &str, snapback: impl Fn(&[&str]) -> Output) {
    engine.docker(&["volume", "create", volume]);
    let file = engine.files(volume).join("f");
    std::fs::write(&file, "old").unwrap();
    declare(s, volume, "");
    let asked = snapback(&["trust"]).err();
    let digest = asked.lines().find_map(|line| line.trim().strip_prefix("digest ")).expect("it is asked for");
    snapback(&["trust", "--digest", digest]).exits(0);
    snapback(&["run", "--", "true"]).exits(0);
    std::fs::write(&file, "new").unwrap();
    snapback(&["undo", "--yes"]).exits(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
}

/// The program, where nothing is in /run but what `more` puts there as root.
fn in_an_empty_run(s: &Sandbox, more: &str, words: &[&str]) -> Output {
    let become_user = match s.user() {
        User::Me => "",
        User::Nobody => "setpriv --reuid=65534 --regid=65534 --clear-groups",
    };
    let script = format!("mount -t tmpfs none /run; {more}\nexec {become_user} \"$SNAPBACK\" \"$@\"");
    let program = s.program();
    let variables = program.get_envs().filter_map(|(key, value)| Some((key, value?)));
    let mut unshare = Command::new("unshare");
    unshare.env_clear().envs(variables).current_dir(s.project());
    s.finish(unshare.args(["--mount", "sh", "-ec", &script, "sh"]).args(words))
}

#[test]
fn the_socket_that_is_there_is_the_engines() {
    let Some(engine) = Engine::shared() else { return };
    for place in ["/var/run/docker.sock", "/run/podman/podman.sock"] {
        for user in USERS {
            let s = Sandbox::new(PROGRAM, *user);
            let bind = format!(
                "mkdir -p $(dirname {place}); : > {place}; mount --bind {} {place}",
                engine.socket().display()
            );
            let snapback = |words: &[&str]| in_an_empty_run(&s, &bind, words);
            there_and_back(&s, engine, &Name::fresh(engine), snapback);
        }
    }
}

#[test]
fn the_users_own_socket_is_found_where_a_rootless_engine_has_it() {
    let Some(engine) = Engine::shared() else { return };
    for place in ["docker.sock", "podman/podman.sock"] {
        for user in USERS {
            let s = Sandbox::new(PROGRAM, *user);
            let own = s.dir().join("run").join(place);
            std::fs::create_dir_all(own.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(engine.socket(), &own).unwrap();
            // Where one of the system's is there as well, that one would be taken.
            let snapback = |words: &[&str]| in_an_empty_run(&s, "", words);
            there_and_back(&s, engine, &Name::fresh(engine), snapback);
        }
    }
}

#[test]
fn dockers_own_context_is_followed_as_docker_does() {
    let Some(engine) = Engine::shared() else { return };
    for user in USERS {
        let s = Sandbox::new(PROGRAM, *user);
        let config = s.dir().join("config/docker");
        let docker = |words: &[&str]| {
            let done = s.finish(s.command("docker").env("DOCKER_CONFIG", &config).args(words));
            done.exits(0);
        };
        let host = |socket: &Path| format!("host=unix://{}", socket.display());
        let nowhere = s.dir().join("nowhere.sock");
        docker(&["context", "create", "there", "--docker", &host(&engine.socket())]);
        docker(&["context", "create", "away", "--docker", &host(&nowhere)]);
        docker(&["context", "use", "there"]);
        let snapback = |words: &[&str]| s.finish(s.program().env("DOCKER_CONFIG", &config).args(words));
        let volume = Name::fresh(engine);
        there_and_back(&s, engine, &volume, snapback);
        // Another one is used for all commands, or for one.
        let run = ["run", "--", "true"];
        let of_context = |name: &str| {
            s.finish(s.program().env("DOCKER_CONFIG", &config).env("DOCKER_CONTEXT", name).args(run))
        };
        of_context("away").fails(125, &["there is no engine at", "nowhere.sock"]);
        of_context("missing")
            .fails(125, &["docker's context `missing` names no engine"])
            .says("hint: `docker context ls`");
        docker(&["context", "use", "away"]);
        snapback(&run).fails(125, &["there is no engine at", "nowhere.sock"]);
        of_context("there").exits(0);
        // What DOCKER_HOST says comes first.
        let named = format!("unix://{}", engine.socket().display());
        s.finish(s.program().env("DOCKER_CONFIG", &config).env("DOCKER_HOST", named).args(run)).exits(0);
    }
}

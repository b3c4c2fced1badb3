//! Which volume is meant, and what is said when there is none.

use super::{agree, cover, each_user};

#[test]
fn the_name_that_compose_has_for_a_volume_is_understood_when_it_is_the_only_one() {
    each_user(|s, engine, volume| {
        let (one, two) = (format!("a_{volume}"), format!("b_{volume}"));
        let label = format!("com.docker.compose.volume={volume}");
        let make = |name: &str| {
            engine.docker(&[
                "volume",
                "create",
                "--label",
                &label,
                "--label",
                "com.docker.compose.project=p",
                name,
            ])
        };
        make(&one);
        cover(s, volume, "");
        engine.sh(&format!("echo 1 > {}/f", engine.files(&one).display()));
        s.run("true");
        engine.sh(&format!("echo 2 > {}/f", engine.files(&one).display()));
        s.ok(["undo", "--yes"]);
        assert_eq!(engine.sh(&format!("cat {}/f", engine.files(&one).display())), "1");
        make(&two);
        let run = s.snapback(["run", "--", "touch", "started"]);
        run.fails(125, &["several projects of compose", &one, &two]);
        assert!(!s.project().join("started").exists());
    });
}

#[test]
fn a_name_that_means_another_volume_by_now_is_asked_about_again() {
    each_user(|s, engine, volume| {
        let label = format!("com.docker.compose.volume={volume}");
        let [shop, bank] = ["shop", "bank"].map(|of| format!("{of}_{volume}"));
        let make = |name: &str, text: &str| {
            engine.docker(&["volume", "create", "--label", &label, name]);
            engine.sh(&format!("echo {text} > {}/f", engine.files(name).display()));
        };
        make(&shop, "shop");
        cover(s, volume, "");
        s.ok(["trust", "--list"]).prints(&format!("uses the volume {volume}, which is {shop}"));
        s.run("true");
        // Removed by a run, it is made again without a question.
        s.run(&format!(": > f; touch {}", s.dir().join("mark").display()));
        engine.docker(&["volume", "rm", &shop]);
        s.ok(["undo", "--yes"]);
        assert_eq!(engine.sh(&format!("cat {}/f", engine.files(&shop).display())), "shop");
        // The same word, and another volume.
        engine.docker(&["volume", "rm", &shop]);
        make(&bank, "bank");
        let words = ["you have not agreed", &format!("which is {bank}")];
        s.snapback(["run", "--", "touch", "started"]).fails(125, &words);
        s.snapback(["trust"]).fails(1, &["nobody can be asked"]).says(words[1]);
        assert!(!s.has("started"));
        // What was captured is put back into what it came from, and that alone.
        s.ok(["undo", "--yes"]);
        assert_eq!(engine.sh(&format!("cat {}/f", engine.files(&shop).display())), "shop");
        assert_eq!(engine.sh(&format!("cat {}/f", engine.files(&bank).display())), "bank");
    });
}

#[test]
fn a_volume_that_is_not_there_is_said_with_those_that_are_called_like_it() {
    each_user(|s, engine, volume| {
        let there = format!("project_{volume}-data");
        engine.docker(&["volume", "create", &there]);
        let name = format!("{volume}-data");
        cover(s, &name, "");
        let run = s.snapback(["run", "--", "touch", "started"]);
        run.fails(125, &[&format!("there is no volume `{name}`")]).says("did you mean").says(&there);
        assert!(!s.project().join("started").exists());
        s.write("snapback.toml", "[[target]]\nbackend = \"docker-volume\"\nvolume = \"../etc\"\n");
        agree(s);
        s.snapback(["run", "--", "true"]).fails(125, &["there is no volume `../etc`"]);
    });
}

#[test]
fn an_engine_that_is_away_or_not_for_this_user_keeps_the_run_from_starting() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        cover(s, volume, "");
        let run = |host: &str| {
            let run = s.finish(s.program().env("DOCKER_HOST", host).args(["run", "--", "touch", "started"]));
            assert!(!s.project().join("started").exists());
            run
        };
        let gone = s.dir().join("none.sock");
        run(&format!("unix://{}", gone.display()))
            .fails(125, &["there is no engine at", "none.sock"])
            .says("hint: is it running?");
        let deaf = s.dir().join("deaf.sock");
        std::os::unix::net::UnixListener::bind(&deaf).unwrap();
        run(&format!("unix://{}", deaf.display())).fails(125, &["could not look at volumes", "deaf.sock"]);
        run("tcp://127.0.0.1:1").fails(125, &["no engine listens at 127.0.0.1:1"]);
        run("ssh://somebody@there").fails(125, &["is reached by ssh"]).says("hint: forward its socket");
        run("nonsense").fails(125, &["DOCKER_HOST is no address of an engine"]);
    });
}

#[test]
fn a_user_who_may_not_talk_to_the_engine_is_told_so() {
    let Some(engine) = super::Engine::shared() else { return };
    engine.docker(&["volume", "create", "private"]);
    let s = super::sandbox(engine, snapback_tests::User::Nobody);
    cover(&s, "private", "");
    let locked = s.dir().join("locked");
    std::fs::create_dir(&locked).unwrap();
    let socket = locked.join("sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let host = format!("unix://{}", socket.display());
    let run = s.finish(s.program().env("DOCKER_HOST", &host).args(["run", "--", "true"]));
    run.fails(125, &["this user may not talk to the engine"]).says("hint: whoever is in the group");
}

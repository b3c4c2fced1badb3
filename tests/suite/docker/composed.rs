//! One name for volumes of several projects of compose: the one of this folder's project is meant,
//! and no other is ever written into.

use super::{Engine, agree, cover, each_user};
use snapback_tests::Sandbox;

/// A volume as compose makes the one that it calls `volume`, of `project`; what it is called.
fn make(engine: &Engine, project: &str, volume: &str) -> String {
    let name = format!("{project}_{volume}");
    let labels = [("volume", volume), ("project", project)]
        .map(|(key, value)| format!("com.docker.compose.{key}={value}"));
    engine.docker(&["volume", "create", "--label", &labels[0], "--label", &labels[1], &name]);
    write(engine, &name, project);
    name
}

fn write(engine: &Engine, name: &str, text: &str) {
    engine.sh(&format!("echo {text} > {}/f", engine.files(name).display()));
}

fn read(engine: &Engine, name: &str) -> String {
    engine.sh(&format!("cat {}/f", engine.files(name).display()))
}

/// A step is taken back in the volume called `own`, and in none of the `others`.
#[track_caller]
fn comes_back(s: &Sandbox, engine: &Engine, own: &str, others: &[&str]) {
    let before = read(engine, own);
    s.run("true");
    std::iter::once(&own).chain(others).for_each(|name| write(engine, name, "changed"));
    s.ok(["undo", "--yes"]);
    assert_eq!(read(engine, own), before);
    others.iter().for_each(|other| {
        assert_eq!(read(engine, other), "changed", "{other}");
        write(engine, other, "other");
    });
}

/// The run does not start, since the user was not asked about the volume called `name`.
#[track_caller]
fn is_asked_about(s: &Sandbox, name: &str) {
    let run = s.snapback(["run", "--", "touch", "started"]);
    run.fails(125, &["you have not agreed", &format!("which is {name}")]);
    assert!(!s.has("started"));
}

#[test]
fn the_one_of_this_folders_project_is_meant() {
    each_user(|s, engine, volume| {
        let folder = s.project().file_name().unwrap().to_str().unwrap().to_owned();
        let own = make(engine, &folder, volume);
        let others = ["shop", "bank", "desk"].map(|project| make(engine, project, volume));
        let [shop, bank, desk] = others.each_ref().map(String::as_str);
        // By the name of the folder.
        cover(s, volume, "");
        s.ok(["trust", "--list"]).prints(&format!("uses the volume {volume}, which is {own}"));
        comes_back(s, engine, &own, &[shop, bank, desk]);
        // By the name in its file, which comes first.
        s.write("compose.yaml", "name: Shop\nservices: {}\n");
        is_asked_about(s, shop);
        agree(s);
        comes_back(s, engine, shop, &[&own, bank, desk]);
        // By the file of variables, and by the environment.
        s.write(".env", "COMPOSE_PROJECT_NAME=bank\n");
        is_asked_about(s, bank);
        agree(s);
        comes_back(s, engine, bank, &[&own, shop, desk]);
        let mut run = s.program();
        let run = s.finish(run.env("COMPOSE_PROJECT_NAME", "desk").args(["run", "--", "true"]));
        run.fails(125, &["you have not agreed", &format!("which is {desk}")]);
        // None that is known: nothing is guessed.
        s.write(".env", "COMPOSE_PROJECT_NAME=other\n");
        let run = s.snapback(["run", "--", "touch", "started"]);
        run.fails(125, &["several projects of compose", &own, shop, bank, desk]);
        run.says("hint: name the one that is meant in full");
        assert!(!s.has("started"));
    });
}

#[test]
fn the_project_may_lie_in_a_folder_below() {
    each_user(|s, engine, volume| {
        let [deploy, other] = ["deploy", "other"].map(|project| make(engine, project, volume));
        s.write("deploy/compose.yaml", "services: {}\n");
        cover(s, volume, "");
        comes_back(s, engine, &deploy, &[&other]);
        // Two that would do are as good as none.
        s.write("more/docker-compose.yml", "name: other\n");
        s.snapback(["run", "--", "true"]).fails(125, &["several projects of compose", &deploy, &other]);
    });
}

#[test]
fn an_undo_is_of_the_volume_that_was_captured_whatever_the_name_means_by_now() {
    each_user(|s, engine, volume| {
        let shop = make(engine, "shop", volume);
        cover(s, volume, "");
        s.write("compose.yaml", "services: {}\n");
        // The run makes another, and has the name mean that.
        s.run("echo 'name: bank' > compose.yaml");
        let bank = make(engine, "bank", volume);
        write(engine, &shop, "changed");
        s.ok(["undo", "--yes"]);
        assert_eq!((read(engine, &shop), read(engine, &bank)), ("shop".into(), "bank".into()));
        assert_eq!(s.read("compose.yaml"), "services: {}\n");
        s.ok(["redo", "--yes"]);
        assert_eq!((read(engine, &shop), read(engine, &bank)), ("changed".into(), "bank".into()));
        is_asked_about(s, &bank);
        // It removes its own, and the only one that is called so is another's.
        s.ok(["undo", "--yes"]);
        s.write("compose.yaml", "name: shop\n");
        s.run(": > f");
        engine.docker(&["volume", "rm", &shop]);
        s.ok(["undo", "--yes"]);
        assert_eq!((read(engine, &shop), read(engine, &bank)), ("shop".into(), "bank".into()));
        let label = "{{index .Labels \"com.docker.compose.project\"}}";
        assert_eq!(engine.docker(&["volume", "inspect", "-f", label, &shop]), "shop");
        assert_eq!(engine.leftovers(&shop), "");
    });
}

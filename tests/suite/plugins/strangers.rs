//! What a cloned repository can ask for by its snapback.toml, and does not get.

use super::{agree, digest, install, probe, target};
use crate::{each_user, sandbox};
use snapback_tests::have;
use std::fs;
use std::net::TcpListener;

#[test]
fn what_leads_out_of_the_project_is_asked_for_whichever_backend_it_is() {
    each_user(|s| {
        s.sh("mkdir -p ../other/d && echo secret > ../other/d/f && ln -s ../other link");
        for (setting, way) in [
            ("path = \"../other\"".to_owned(), "outside the project by `..`"),
            (format!("path = \"{}/other\"", s.dir().display()), "outside the project by an absolute path"),
            ("path = \"link/d\"".to_owned(), "outside the project through a link"),
            ("path = \"/\"".to_owned(), "outside the project by an absolute path"),
        ] {
            s.write("snapback.toml", format!("[[target]]\nname = \"x\"\nbackend = \"tree\"\n{setting}\n"));
            s.snapback(["run", "--", "touch", "started"]).fails(125, &["you have not agreed", "`x`", way]);
            let db = setting.replace("other\"", "other/a.db\"").replace("link/d\"", "link/d/a.db\"");
            let db = db.replace("\"/\"", "\"/a.db\"");
            s.write("snapback.toml", format!("[[target]]\nname = \"x\"\nbackend = \"sqlite\"\n{db}\n"));
            s.snapback(["run", "--", "touch", "started"]).fails(125, &["you have not agreed", "`x`", way]);
        }
        assert!(!s.has("started"));
    });
}

#[test]
fn a_directory_outside_is_undone_once_it_is_agreed_to() {
    each_user(|s| {
        s.sh("mkdir -p ../other/d && echo one > ../other/d/f");
        s.write("snapback.toml", "[[target]]\nname = \"x\"\nbackend = \"tree\"\npath = \"../other\"\n");
        agree(s);
        s.run("rm -r ../other/d; echo new > ../other/g");
        s.ok(["undo"]);
        assert_eq!(s.sh("find ../other -type f | sort; cat ../other/d/f"), "../other/d/f\none\n");
    });
}

#[test]
fn a_database_outside_is_undone_under_its_connections_once_it_is_agreed_to() {
    if !have("python3") {
        return;
    }
    each_user(|s| {
        s.sh("mkdir ../other && ln -s ../other way");
        for path in ["../other/a.db", "way/a.db"] {
            let sql = |script: &str| {
                let script =
                    format!("import sqlite3\nc = sqlite3.connect('../other/a.db')\n{script}\nc.commit()");
                let output = s.finish(s.command("python3").args(["-c", &script]));
                output.exits(0);
                output.out()
            };
            sql("c.executescript('DROP TABLE IF EXISTS t; CREATE TABLE t(a); INSERT INTO t VALUES(1)')");
            let inode = s.sh("stat -c %i ../other/a.db");
            s.write(
                "snapback.toml",
                format!("[[target]]\nname = \"x\"\nbackend = \"sqlite\"\npath = \"{path}\"\n"),
            );
            agree(s);
            s.run("python3 -c \"import sqlite3; c = sqlite3.connect('../other/a.db'); c.execute('DROP TABLE t'); c.commit()\"");
            s.ok(["undo"]);
            assert_eq!(sql("print(c.execute('SELECT a FROM t').fetchall())").trim(), "[(1,)]", "{path}");
            assert_eq!(s.sh("stat -c %i ../other/a.db"), inode, "{path}");
        }
    });
}

#[test]
fn a_component_in_the_repository_is_a_stranger_too() {
    let s = sandbox();
    s.sh("mkdir -p tools ../room && echo one > ../room/state");
    fs::write(s.project().join("tools/probe.wasm"), probe()).unwrap();
    let toml = format!("[plugins]\ndir = \"tools\"\n{}", target("room = \"../room\""));
    s.write("snapback.toml", &toml);
    s.snapback(["run", "--", "touch", "started"]).fails(125, &["you have not agreed", "tools/probe.wasm"]);
    // Even when it asks for nothing.
    s.write("snapback.toml", "[plugins]\ndir = \"tools\"\n[[target]]\nbackend = \"probe\"\n");
    s.snapback(["run", "--", "touch", "started"]).fails(125, &["you have not agreed"]);
    assert!(!s.has("started"));
    // Looking at it runs none of it but what it says about itself.
    s.ok(["backends"]).prints("probe");
}

#[test]
fn a_component_in_the_repository_is_not_even_looked_at_unasked() {
    let s = sandbox().cold();
    s.sh("mkdir tools");
    fs::write(s.project().join("tools/probe.wasm"), probe()).unwrap();
    let setting = "address = \"no-such-host.invalid:1\"";
    s.write("snapback.toml", format!("[plugins]\ndir = \"tools\"\n{}", target(setting)));
    let compiled = || {
        let all = s.sh("find \"$XDG_CACHE_HOME\" -name '*.cwasm' -o -name '*.toml' | wc -l");
        // The tree's own is one that came inside the program.
        all.trim().parse::<usize>().unwrap()
    };
    s.ok(["status"]).prints("targets   tree, probe").never_says("no-such-host");
    let own = compiled();
    s.ok(["backends"]).prints("not used yet").prints("nothing before you agree to it").prints("wasi:sockets");
    let look =
        ["you have not agreed to the backend `probe`, which came with the project", "tools/probe.wasm"];
    for words in [&["snap"][..], &["status"], &["trust"], &["init"], &["backends"]] {
        let said = s.snapback(words).err();
        assert!(!said.contains("no-such-host") && compiled() == own, "{words:?}: {said}");
    }
    let refused = s.snapback(["run", "--", "touch", "started"]);
    refused.fails(125, &look);
    assert_eq!(compiled(), own);
    s.ok(["run", "--skip", "probe", "--", "true"]);
    // Looked at, it says what it asks for; only now the name is looked up.
    s.ok(["trust", "--digest", &digest(&refused.err())]).says("came with the project");
    s.snapback(["run", "--", "touch", "started"]).fails(125, &["no-such-host.invalid", "has no address"]);
    s.write("snapback.toml", format!("[plugins]\ndir = \"tools\"\n{}", target("address = \"127.0.0.1:1\"")));
    let refused = s.snapback(["run", "--", "touch", "started"]);
    refused.fails(125, &["you have not agreed", "connects to 127.0.0.1:1 (this machine)"]);
    s.ok(["trust", "--digest", &digest(&refused.err())]);
    assert!(!s.has("started"));
    s.ok(["run", "--", "true"]);
}

#[test]
fn snapbacks_own_files_are_reached_by_no_grant() {
    each_user(|s| {
        install(s);
        s.ok(["snap"]);
        let cache = s.cache().join("snapback").display().to_string();
        for own in [
            ".",
            &cache,
            ".snapback",
            "..",
            "../../state",
            "../../state/snapback",
            "../../state/snapback/consents",
            "../../data/snapback/plugins",
            "../../config",
        ] {
            s.sh("mkdir -p ../../config/snapback");
            s.write("snapback.toml", target(&format!("room = \"{own}\"")));
            let said = s.snapback(["snap"]);
            let said = match said.err().contains("--digest") {
                // It is agreed to, and still not given.
                true => {
                    s.ok(["trust", "--digest", &digest(&said.err())]);
                    s.snapback(["snap"])
                }
                false => said,
            };
            said.fails(1, &["reaches snapback's own files"]);
        }
    });
}

#[test]
fn a_store_that_came_along_grants_nothing() {
    let (from, to) = (sandbox(), sandbox());
    install(&from);
    from.write("snapback.toml", target("room = \"../room\""));
    agree(&from);
    from.run("echo two > ../room/state");
    from.sh("tar cf ../all.tar .");
    install(&to);
    fs::copy(from.home().join("all.tar"), to.home().join("all.tar")).unwrap();
    to.sh("tar xf ../all.tar; echo mine > ../room/state");
    to.snapback(["undo"]).fails(1, &["is foreign"]);
    to.ok(["trust", "--store", "--yes"]);
    to.snapback(["undo"]).fails(1, &["you have not agreed"]);
    assert_eq!(to.read("../room/state"), "mine\n");
}

#[test]
fn whatever_a_setting_opens_is_asked_for_before_anything_is_opened() {
    let s = sandbox();
    install(&s);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mark = s.home().join("mark");
    fs::write(s.home().join("tool"), format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    s.sh("chmod +x ../tool");
    for (setting, told, words) in [
        (format!("address = \"127.0.0.1:{port}\""), "exchange address", "connects to 127.0.0.1"),
        (format!("address = \"localhost:{port}\""), "exchange address", "(this machine)"),
        ("secret = \"HOME\"".into(), "env secret", "reads the variable HOME"),
        ("paper = \"/etc/passwd\"".into(), "see paper", "reads /etc/passwd, outside the project"),
        ("note = \"../note\"".into(), "put note x", "reads and writes ../note, outside the project"),
        (format!("program = \"{}/tool\"", s.home().display()), "program", "which leaves the sandbox"),
        ("place = \"/\"".into(), "read place etc/passwd", "reads /, outside the project"),
    ] {
        s.write("snapback.toml", target(&format!("{setting}\ndo = [\"{told}\"]")));
        s.snapback(["run", "--", "touch", "started"]).fails(125, &["you have not agreed", words]);
        s.snapback(["snap"]).fails(1, &["you have not agreed"]);
    }
    assert!(listener.accept().is_err(), "somebody connected");
    assert!(!mark.exists() && !s.has("../note") && !s.has("started"));
}

#[test]
fn a_path_that_was_swapped_after_the_consent_is_asked_for_again() {
    each_user(|s| {
        install(s);
        s.sh("ln -s room ../way; mkdir ../other; echo theirs > ../other/state");
        s.write("snapback.toml", target("room = \"../way\""));
        agree(s);
        s.run("echo two > ../room/state");
        s.sh("rm ../way; ln -s other ../way");
        s.snapback(["run", "--", "touch", "started"]).fails(125, &["you have not agreed"]);
        s.snapback(["undo"]).fails(1, &["you have not agreed"]);
        // A directory of the same name is another one, too.
        s.sh("rm ../way; mkdir ../way; echo theirs > ../way/state");
        s.snapback(["undo"]).fails(1, &["you have not agreed"]);
        assert_eq!(
            (s.read("../other/state"), s.read("../way/state")),
            ("theirs\n".into(), "theirs\n".into())
        );
        s.sh("rm -r ../way; ln -s room ../way");
        s.ok(["undo"]);
        assert_eq!(s.read("../room/state"), "one\n");
    });
}

#[test]
fn one_that_gives_up_is_named_and_the_others_go_on_without_it() {
    let s = sandbox();
    install(&s);
    s.write("f", "0\n");
    s.write("snapback.toml", target("do = [\"trap\"]"));
    s.ok(["trust", "--digest", &digest(&s.snapback(["snap"]).err())]);
    let failed = s.snapback(["run", "--", "touch", "started"]);
    failed.fails(125, &["could not capture `probe`", "the backend `probe` gave up", "as told"]);
    assert!(!s.has("started"));
    s.ok(["run", "--skip", "probe", "--", "sh", "-c", "echo 1 > f"]);
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "0\n");
}

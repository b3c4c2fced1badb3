//! A volume that was removed, and one that was not there.

use super::{cover, each_user};

#[test]
fn a_volume_that_was_removed_is_made_again_as_it_was() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", "--label", "team=a b", "--label", "x=", volume]);
        let mount = engine.files(volume).display().to_string();
        engine.sh(&format!(
            "cd {mount}; chown 999 .; chmod 700 .; echo kept > f; ln f g; mkdir d; echo deep > d/f"
        ));
        let look = |engine: &super::Engine| {
            let made = engine.docker(&[
                "volume",
                "inspect",
                "-f",
                "{{.Driver}} {{json .Labels}} {{json .Options}}",
                volume,
            ]);
            made + &engine.sh(&format!("cd {mount}; stat -c '%n %a %u %h' . * */*; cat f d/f"))
        };
        let before = look(engine);
        cover(s, volume, "");
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        let diff = s.ok(["diff"]).out();
        assert!(diff.contains(&format!("D {volume}: d/f")), "{diff}");
        s.ok(["undo", "--yes"]);
        assert_eq!(look(engine), before);
        s.ok(["redo", "--yes"]);
        assert_eq!(engine.docker(&["volume", "ls", "-q", "-f", &format!("name={volume}")]), "");
        s.ok(["undo", "--yes"]);
        assert_eq!(look(engine), before);
        assert_eq!(engine.leftovers(volume), "");
    });
}

#[test]
fn one_that_was_made_anew_under_its_name_is_the_same_and_nobody_is_asked() {
    each_user(|s, engine, volume| {
        let make = |text: &str| {
            engine.docker(&["volume", "create", volume]);
            engine
                .sh(&format!("cd {}; echo {text} > f; echo {text} > {text}", engine.files(volume).display()));
        };
        let look = || engine.sh(&format!("cd {}; ls; cat f", engine.files(volume).display()));
        make("old");
        cover(s, volume, "");
        s.run("true");
        // As `docker compose down -v` and `up` do it.
        engine.docker(&["volume", "rm", volume]);
        make("new");
        s.ok(["undo", "--yes"]);
        assert_eq!(look(), "f\nold\nold");
        s.ok(["redo", "--yes"]);
        assert_eq!(look(), "f\nnew\nnew");
        s.run("true");
    });
}

#[test]
fn what_somebody_put_into_it_after_the_undo_was_planned_is_left_alone() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let mount = engine.files(volume).display().to_string();
        engine.sh(&format!("cd {mount}; echo kept > f"));
        cover(s, volume, "");
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        s.ok(["undo", "--yes"]);
        // Now that it is there again, a redo takes away only what it knows.
        engine.sh(&format!("cd {mount}; echo mine > mine"));
        s.ok(["redo", "--yes"]);
        s.ok(["undo", "--yes"]);
        assert_eq!(engine.sh(&format!("cd {mount}; cat f mine")), "kept\nmine");
    });
}

#[test]
fn a_volume_that_is_another_name_for_files_elsewhere_is_not_made_again_unasked() {
    each_user(|s, engine, volume| {
        let elsewhere = s.dir().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let device = format!("device={}", elsewhere.display());
        let make = || {
            let options = ["--opt", "type=none", "--opt", "o=bind", "--opt", &device];
            engine.docker(&[&["volume", "create"], &options[..], &[volume]].concat())
        };
        make();
        std::fs::write(elsewhere.join("f"), "kept").unwrap();
        cover(s, volume, "");
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        std::fs::remove_file(elsewhere.join("f")).unwrap();
        let undo = s.snapback(["undo", "--yes"]);
        undo.fails(1, &["lay elsewhere on the engine's machine"])
            .says("hint: make it yourself")
            .says("docker volume create");
        assert_eq!(engine.docker(&["volume", "ls", "-q", "-f", &format!("name={volume}")]), "");
        make();
        s.ok(["undo", "--yes"]);
        assert_eq!(std::fs::read_to_string(elsewhere.join("f")).unwrap(), "kept");
    });
}

#[test]
fn agreed_to_it_is_made_again_as_another_name_for_that_directory() {
    each_user(|s, engine, volume| {
        let elsewhere = s.dir().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let device = format!("device={}", elsewhere.display());
        let options = ["--opt", "type=none", "--opt", "o=bind", "--opt", &device];
        engine.docker(&[&["volume", "create"], &options[..], &[volume]].concat());
        std::fs::write(elsewhere.join("f"), "kept").unwrap();
        // What is asked for is the directory as well.
        let more = format!("lies-in = \"{}\"", elsewhere.display());
        super::declare(s, volume, &more);
        s.snapback(["run", "--", "true"]).fails(125, &["reads and writes", elsewhere.to_str().unwrap()]);
        super::agree(s);
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        std::fs::remove_file(elsewhere.join("f")).unwrap();
        s.ok(["undo", "--yes"]);
        assert_eq!(std::fs::read_to_string(elsewhere.join("f")).unwrap(), "kept");
        let made = engine.docker(&["volume", "inspect", "-f", "{{index .Options \"device\"}}", volume]);
        assert_eq!(made, elsewhere.to_str().unwrap());
        // Without the consent nothing is made.
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        s.ok(["trust", "--revoke"]);
        s.snapback(["undo", "--yes"]).fails(1, &["you have not agreed"]);
        // And agreeing to one directory is no consent to another.
        engine.docker(&[&["volume", "create"], &options[..], &[volume]].concat());
        let other = s.dir().join("other");
        std::fs::create_dir(&other).unwrap();
        cover(s, volume, &format!("lies-in = \"{}\"", other.display()));
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        s.snapback(["undo", "--yes"])
            .fails(1, &["lay elsewhere on the engine's machine"])
            .says("docker volume create")
            .says("lies-in");
        assert_eq!(engine.docker(&["volume", "ls", "-q", "-f", &format!("name={volume}")]), "");
    });
}

/// A volume that is another name for a directory beside the project, in which a file lies.
fn bound(s: &snapback_tests::Sandbox, engine: &super::Engine, volume: &str) -> std::path::PathBuf {
    let elsewhere = s.dir().join("elsewhere");
    if !elsewhere.exists() {
        std::fs::create_dir(&elsewhere).unwrap();
    }
    let device = format!("device={}", elsewhere.display());
    engine.docker(&["volume", "create", "--opt", "type=none", "--opt", "o=bind", "--opt", &device, volume]);
    elsewhere
}

/// Whether the engine has the volume.
fn is_there(engine: &super::Engine, volume: &str) -> bool {
    !engine.docker(&["volume", "ls", "-q", "-f", &format!("name={volume}")]).is_empty()
}

#[test]
fn files_that_lie_elsewhere_are_not_gone_with_their_volume() {
    each_user(|s, engine, volume| {
        let elsewhere = bound(s, engine, volume);
        let (file, other) = (elsewhere.join("f"), elsewhere.join("g"));
        let look = || (is_there(engine, volume), engine.sh(&format!("cd {}; head *", elsewhere.display())));
        std::fs::write(&file, "kept").unwrap();
        cover(s, volume, &format!("lies-in = \"{}\"", elsewhere.display()));
        // Only the volume goes; then what lies there changes as well.
        for changes in ["", "echo changed > f; echo new > g"] {
            s.run("true");
            let before = look();
            engine.docker(&["volume", "rm", volume]);
            engine.sh(&format!("cd {}; {changes}", elsewhere.display()));
            let after = look();
            s.ok(["undo", "--yes"]);
            assert_eq!(look(), before, "{changes}");
            s.ok(["redo", "--yes"]);
            assert_eq!(look(), after, "{changes}");
            s.ok(["undo", "--yes"]);
            assert_eq!(look(), before, "{changes}");
        }
        assert!(!other.exists());
        assert_eq!(engine.leftovers(volume), "");
    });
}

#[test]
fn without_a_word_about_the_directory_its_files_stay_where_they_are() {
    each_user(|s, engine, volume| {
        let elsewhere = bound(s, engine, volume);
        std::fs::write(elsewhere.join("f"), "kept").unwrap();
        cover(s, volume, "");
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        s.snapback(["undo", "--yes"]).fails(1, &["lay elsewhere on the engine's machine"]);
        // What was saved says that there is no volume: that is no reason to empty the directory.
        let gone = crate::newest(s);
        bound(s, engine, volume);
        s.ok(["restore", "--yes", &gone]);
        assert!(!is_there(engine, volume));
        assert_eq!(std::fs::read_to_string(elsewhere.join("f")).unwrap(), "kept");
    });
}

/// A driver of volumes, as an engine finds it: it does as it is told by a file.
const DRIVER: &str = r#"
import http.server, json, os, shutil, socketserver, sys
path, told, place = sys.argv[1:]
made = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        asked = json.loads(asked) if asked else {}
        name, verb = asked.get('Name'), self.path.strip('/').split('.')[-1]
        said = {'Err': ''}
        known = lambda: {'Name': name, 'Mountpoint': made[name]}
        if verb == 'Activate': said = {'Implements': ['VolumeDriver']}
        elif verb == 'Capabilities': said = {'Capabilities': {'Scope': 'local'}}
        elif verb == 'List': said['Volumes'] = [{'Name': n, 'Mountpoint': m} for n, m in made.items()]
        elif verb == 'Create' and os.path.exists(told): said = {'Err': open(told).read()}
        elif verb == 'Create':
            made[name] = os.path.join(place, name)
            os.makedirs(made[name], exist_ok=True)
        elif verb == 'Remove' and os.path.exists(place + '/keeps'): made.pop(name)
        elif verb == 'Remove': shutil.rmtree(made.pop(name), ignore_errors=True)
        elif name not in made: said = {'Err': 'no such volume'}
        elif verb in ('Mount', 'Path'): said['Mountpoint'] = made[name]
        elif verb == 'Get': said['Volume'] = known()
        if verb == 'Mount' and os.path.exists(told): said = {'Err': open(told).read()}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
    def address_string(self): return ''
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
Server(path, Handler).serve_forever()
"#;

/// A driver that is there while this lives, for an engine that is alone.
struct Driver {
    name: String,
    _server: snapback_tests::Running,
}

impl Driver {
    fn start(s: &snapback_tests::Sandbox, engine: &super::Engine, volume: &str) -> Self {
        let name = format!("driver-{volume}");
        let socket = engine.drivers().join(format!("{name}.sock"));
        let (told, place) = (s.dir().join("told"), s.dir().join("driver"));
        let server = snapback_tests::Running::of(
            std::process::Command::new("python3").args(["-c", DRIVER]).arg(&socket).arg(told).arg(place),
        );
        super::engine::until("the driver", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        Self { name, _server: server }
    }
}

/// Runs `test` for each user with an engine that is alone and a volume, covered, of a driver.
fn each_user_with_driver(test: impl Fn(&snapback_tests::Sandbox, &super::Engine, &str)) {
    for user in super::USERS {
        let Some(engine) = super::Engine::alone() else { return };
        let (s, volume) = (super::sandbox(&engine, *user), super::Name::fresh(&engine));
        let driver = Driver::start(&s, &engine, &volume);
        engine.docker(&["volume", "create", "--driver", &driver.name, &volume]);
        cover(&s, &volume, "");
        test(&s, &engine, &volume);
    }
}

#[test]
fn what_a_driver_says_is_said_and_nothing_is_begun() {
    each_user_with_driver(|s, engine, volume| {
        let place = s.dir().join("driver").join(volume);
        std::fs::write(place.join("f"), "kept").unwrap();
        s.run("true");
        std::fs::write(place.join("f"), "changed").unwrap();
        // It does not hand out what it has: the run does not start.
        let told = s.dir().join("told");
        std::fs::write(&told, "the quota of this tenant is used up").unwrap();
        let run = s.snapback(["run", "--", "touch", "started"]);
        run.fails(125, &["the quota of this tenant is used up"]).says("hint: ");
        assert!(!s.project().join("started").exists());
        // It does not make again what was removed: all stays as it is.
        engine.docker(&["volume", "rm", volume]);
        let undo = s.snapback(["undo", "--yes"]);
        undo.fails(1, &[&format!("make the volume `{volume}` again"), "the quota of this tenant is used up"])
            .says("hint: ");
        std::fs::remove_file(&told).unwrap();
        s.ok(["undo", "--yes"]);
        assert_eq!(std::fs::read_to_string(place.join("f")).unwrap(), "kept");
        assert_eq!(engine.leftovers(volume), "");
        engine.docker(&["volume", "rm", volume]);
    });
}

#[test]
fn what_a_driver_keeps_of_a_removed_volume_is_captured_before_it_is_put_back() {
    each_user_with_driver(|s, engine, volume| {
        let place = s.dir().join("driver");
        std::fs::write(place.join("keeps"), "").unwrap();
        let look = || engine.sh(&format!("cd {}; head *", place.join(volume).display()));
        std::fs::write(place.join(volume).join("f"), "kept").unwrap();
        s.run("true");
        let before = look();
        engine.docker(&["volume", "rm", volume]);
        engine.sh(&format!("cd {}; echo changed > f; echo new > g", place.join(volume).display()));
        let after = look();
        s.ok(["undo", "--yes"]);
        assert_eq!(look(), before);
        s.ok(["redo", "--yes"]);
        assert_eq!(look(), after);
        engine.docker(&["volume", "rm", volume]);
    });
}

//! Names and paths that lead elsewhere after they were agreed to, and in the middle of a call.

use super::{digest, install, target};
use crate::sandbox;
use snapback_tests::{Output, Running, Sandbox, is_root, skip, until};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

/// A name that the system looks up in a file of the test's own.
const NAME: &str = "db.snapback.test";

/// The program where `hosts` beside the project is the file that names are looked up in.
fn program(s: &Sandbox, words: &[&str]) -> Command {
    let mut unshare = s.command("unshare");
    unshare.args([
        "--mount",
        "sh",
        "-ec",
        "mount --bind ../hosts /etc/hosts; exec \"$SNAPBACK\" \"$@\"",
        "sh",
    ]);
    unshare.args(words);
    unshare
}

fn snapback(s: &Sandbox, words: &[&str]) -> Output {
    s.finish(&mut program(s, words))
}

/// Has the name lead to these addresses; the file stays the one that is mounted.
fn leads_to(s: &Sandbox, addresses: &[&str]) {
    let lines: String = addresses.iter().map(|address| format!("{address} {NAME}\n")).collect();
    fs::write(s.home().join("hosts"), lines).unwrap();
}

/// Who listens at two addresses of this machine, at one port.
fn listeners() -> ([TcpListener; 2], u16) {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        if let Ok(second) = TcpListener::bind(("127.0.0.2", port)) {
            return ([first, second], port);
        }
    }
}

fn nobody_came(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_err()
}

#[test]
fn a_name_that_leads_to_another_class_of_address_is_refused_before_anybody_connects() {
    if !is_root() {
        return skip("only root can give a program another file of hosts");
    }
    let s = sandbox();
    install(&s);
    let ([listener, other], port) = listeners();
    s.write("snapback.toml", target(&format!("address = \"{NAME}:{port}\"\ndo = [\"exchange address\"]")));
    let classes = [
        ("8.8.8.8", "public"),
        ("10.0.0.1", "private"),
        ("169.254.169.254", "link-local"),
        ("127.0.0.1", "this machine"),
    ];
    for (agreed, class) in classes {
        leads_to(&s, &[agreed]);
        let asked = snapback(&s, &["snap"]);
        asked.fails(1, &["you have not agreed", &format!("connects to {NAME}:{port} ({class})")]);
        snapback(&s, &["trust", "--digest", &digest(&asked.err())]).exits(0);
        for (later, its) in classes.iter().filter(|(_, its)| *its != class) {
            // Alone, and hidden behind what was agreed to.
            for addresses in [&[*later][..], &[agreed, *later]] {
                leads_to(&s, addresses);
                let run = snapback(&s, &["run", "--", "touch", "started"]);
                run.fails(125, &["you have not agreed", its]);
            }
        }
        snapback(&s, &["trust", "--revoke"]).exits(0).says("1 consent taken back");
    }
    assert!(!s.has("started") && nobody_came(&listener) && nobody_came(&other), "somebody connected");
}

/// Waits until the component opens the fifo, does what comes in between, and has it go on.
fn in_the_middle(s: &Sandbox, command: &mut Command, between: impl FnOnce()) -> String {
    let said = fs::File::create(s.dir().join("said")).unwrap();
    let mut running = Running::heard(command.stdout(Stdio::null()).stderr(said));
    let tasks = format!("/proc/{}/task", running.pid().as_raw_nonzero());
    let waits = |task: fs::DirEntry| {
        fs::read_to_string(task.path().join("wchan")).is_ok_and(|on| on.contains("wait_for_partner"))
    };
    until("it waits", || fs::read_dir(&tasks).is_ok_and(|all| all.flatten().any(waits)));
    between();
    let fifo = fs::File::options().write(true).open(s.home().join("room/fifo")).unwrap();
    assert_eq!(running.wait().code(), Some(0));
    drop(fifo);
    fs::read_to_string(s.dir().join("said")).unwrap()
}

#[test]
fn a_name_means_in_a_call_what_it_meant_at_its_begin() {
    if !is_root() {
        return skip("only root can give a program another file of hosts");
    }
    let s = sandbox();
    install(&s);
    s.sh("mkfifo ../room/fifo");
    let ([agreed, other], port) = listeners();
    leads_to(&s, &["127.0.0.1"]);
    let told = "do = [\"read room fifo\", \"exchange address\"]";
    s.write("snapback.toml", target(&format!("address = \"{NAME}:{port}\"\nroom = \"../room\"\n{told}")));
    let asked = snapback(&s, &["snap"]);
    snapback(&s, &["trust", "--digest", &digest(&asked.err())]).exits(0);
    let server = thread::spawn(move || {
        let (mut stream, _) = agreed.accept().unwrap();
        stream.read_to_string(&mut String::new()).unwrap();
        stream.write_all(b"the one that was agreed to").unwrap();
    });
    let said = in_the_middle(&s, &mut program(&s, &["snap", "-v"]), || leads_to(&s, &["127.0.0.2"]));
    assert!(said.contains("exchange address: the one that was agreed to"), "{said}");
    assert!(nobody_came(&other), "somebody connected to where the name led later");
    server.join().unwrap();
}

#[test]
fn a_path_means_in_a_call_what_it_meant_at_its_begin_or_nothing() {
    crate::each_user(|s| {
        install(s);
        s.sh("mkfifo ../room/fifo; mkdir ../room/d ../other ../other/d; ln -s room ../way");
        s.sh("for d in ../room ../other; do echo $d > $d/paper; echo $d > $d/d/f; done; echo one > ../room/state");
        let tries =
            ["read room fifo", "tree place", "read room state", "write room new", "see paper", "put note x"];
        let told = tries.map(|told| format!("\"{told}\"")).join(", ");
        s.write(
            "snapback.toml",
            target(&format!(
                "room = \"../way\"\nplace = \"../way/d\"\npaper = \"../way/paper\"\nnote = \"../way/note\"\ndo = [{told}]"
            )),
        );
        super::agree(s);
        let said = in_the_middle(s, s.program().args(["snap", "-v"]), || {
            s.sh("ln -sfn other ../way");
        });
        // What was open already is what was agreed to; what is opened now is not what it was.
        for expected in [
            "read room state: one",
            "write room new: done",
            "tree place: ErrorKind::Changed",
            "see paper: ErrorKind::Changed",
            "put note x: ErrorKind::Changed",
        ] {
            assert!(said.contains(expected), "{expected}\n{said}");
        }
        assert_eq!(s.sh("ls ../other ../room/new"), "../room/new\n\n../other:\nd\npaper\n");
    });
}

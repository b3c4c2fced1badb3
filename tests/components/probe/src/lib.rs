//! A backend that tries what its target tells it to, and stores what came of it: how the
//! tests look at the border from inside. Without being told it keeps the file `state` of
//! the directory `room`, like a backend that means well.

use snapback_sdk::bindings::wasi::cli::environment::{get_arguments, get_environment};
use snapback_sdk::bindings::wasi::clocks::monotonic_clock;
use snapback_sdk::bindings::wasi::filesystem::preopens::get_directories;
use snapback_sdk::bindings::wasi::sockets::instance_network::instance_network;
use snapback_sdk::bindings::wasi::sockets::ip_name_lookup::resolve_addresses;
use snapback_sdk::bindings::wasi::sockets::network::{IpAddressFamily, IpSocketAddress, Ipv4SocketAddress};
use snapback_sdk::bindings::wasi::sockets::tcp_create_socket::create_tcp_socket;
use snapback_sdk::bindings::wasi::sockets::udp_create_socket::create_udp_socket;
use snapback_sdk::file::File;
use snapback_sdk::fs::Dir;
use snapback_sdk::net::TcpStream;
use snapback_sdk::process::Command;
use snapback_sdk::tree::Directory;
use snapback_sdk::{
    Backend, Error, ErrorKind, Object, Part, Reader, Result, Target, Writer, env, report, splice, take_part,
};
use std::io::{Read, Write};
use std::time::Duration;

struct Probe;

impl Backend for Probe {
    const MANIFEST: &'static str = include_str!("../manifest.toml");

    fn snapshot(target: &Target, previous: Vec<Part>) -> Result<Vec<Part>> {
        let breaks = target.setting("breaks").unwrap_or_default();
        let mut writer = Writer::new()?;
        for told in target.setting("do").iter().flat_map(|told| told.lines()) {
            let (verb, rest) = told.split_once(' ').unwrap_or((told, ""));
            let came = attempt(target, verb, rest).unwrap_or_else(|e| format!("{:?}: {}", e.kind, e.message));
            writeln!(writer, "{told}: {came}")?;
            report::log("info", &format!("{told}: {came}"));
        }
        if target.setting("do").is_none_or(|told| told.is_empty()) {
            let room = Dir::open("room");
            if breaks == "denied" && room.is_err() {
                panic!("there is no room");
            }
            match room.and_then(|room| look(&room, &breaks, !previous.is_empty())) {
                Ok(state) => writer.write_all(&state)?,
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(vec![Part { name: "state".into(), content: writer.finish()? }])
    }

    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        let (content, current) = (take_part(parts, "state")?, take_part(current, "state")?);
        let room = Dir::open("room")?;
        let now = room.read("state")?;
        // A restore that was cut short may have done its work already.
        let known = [whole(&current)?, whole(&content)?];
        if target.setting("careless").as_deref() != Some("true") && !known.contains(&now) {
            return Err(Error::new(ErrorKind::Changed, "somebody wrote to `state`"));
        }
        match target.setting("breaks").as_deref() {
            Some("restores") => return Ok(()),
            Some("twice") if now == whole(&content)? => {
                return room.write("state", &mut &b"and again"[..]);
            }
            // It goes forward to no more than there is.
            Some("older") => {
                let (content, most) = (whole(&content)?, whole(&current)?.len());
                room.write("state~", &mut &content[..content.len().min(most)])?;
                return room.rename("state~", "state");
            }
            // In the middle there is nothing, of which the next one knows nothing.
            Some("cut") => room.rename("state", "away")?,
            _ => {}
        }
        room.write("state~", &mut Reader::new(&content)?)?;
        room.rename("state~", "state")
    }
}

/// The state of `room`; on the way it may do what it should not.
fn look(room: &Dir, breaks: &str, again: bool) -> Result<Vec<u8>> {
    if breaks == "cut-snapshot" {
        room.rename("state", "away")?;
        let state = room.read("away");
        room.rename("away", "state")?;
        return state;
    }
    let state = room.read("state")?;
    if breaks == "leaves" && again {
        room.write("state", &mut &[&state[..], b"more"].concat()[..])?;
    }
    Ok(state)
}

fn whole(object: &Object) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Reader::new(object)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn attempt(target: &Target, verb: &str, rest: &str) -> Result<String> {
    let local = |port: &str| {
        let port = port.parse().unwrap_or(0);
        IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (127, 0, 0, 1) })
    };
    let socket = || create_tcp_socket(IpAddressFamily::Ipv4).map_err(code);
    match verb {
        "look" => {
            let rooms: Vec<_> = get_directories().into_iter().map(|(_, name)| name).collect();
            let names: Vec<_> = get_environment().into_iter().map(|(name, _)| name).collect();
            Ok(format!("dirs [{}] env [{}] args {}", rooms.join(" "), names.join(" "), get_arguments().len()))
        }
        "env" => Ok(format!("{:?}", env::var(target, rest))),
        "entries" => {
            let (key, path) = rest.split_once(' ').unwrap_or((rest, ""));
            let mut names: Vec<_> =
                Dir::open(key)?.entries(path)?.into_iter().map(|(name, _)| name).collect();
            names.sort();
            Ok(names.join(" "))
        }
        "read" => {
            let (key, path) = rest.split_once(' ').unwrap_or((rest, ""));
            Ok(String::from_utf8_lossy(&Dir::open(key)?.read(path)?).trim().to_owned())
        }
        "write" => {
            let (key, path) = rest.split_once(' ').unwrap_or((rest, ""));
            Dir::open(key)?.write(path, &mut &b"written\n"[..])?;
            Ok("done".into())
        }
        "exchange" => {
            let mut stream = TcpStream::connect(target, rest)?;
            stream.set_timeout(Some(Duration::from_secs(5)));
            stream.write_all(b"hello\n")?;
            stream.shutdown()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer.trim().to_owned())
        }
        "splice" => {
            let stream = TcpStream::connect(target, rest)?;
            stream.shutdown()?;
            let writer = Writer::new()?;
            let total = splice(stream.input(), writer.stream())?;
            writer.finish()?;
            Ok(format!("{total} bytes"))
        }
        "connect" => {
            let socket = socket()?;
            socket.start_connect(&instance_network(), local(rest)).map_err(code)?;
            loop {
                match socket.finish_connect() {
                    Ok(_) => return Ok("connected".into()),
                    Err(error) if error.name() == "would-block" => socket.subscribe().block(),
                    Err(error) => return Err(code(error)),
                }
            }
        }
        "listen" => {
            let socket = socket()?;
            socket.start_bind(&instance_network(), local(rest)).map_err(code)?;
            socket.finish_bind().map_err(code)?;
            socket.start_listen().map_err(code)?;
            Ok("listening".into())
        }
        "udp" => {
            let socket = create_udp_socket(IpAddressFamily::Ipv4).map_err(code)?;
            socket.start_bind(&instance_network(), local("0")).map_err(code)?;
            Ok("bound".into())
        }
        "lookup" => {
            let names = resolve_addresses(&instance_network(), rest).map_err(code)?;
            let mut count = 0;
            while names.resolve_next_address().map_err(code)?.is_some() {
                count += 1;
            }
            Ok(format!("{count} addresses"))
        }
        "tree" => {
            Directory::open(target, rest, &[])?;
            Ok("opened".into())
        }
        "sleep" => {
            monotonic_clock::subscribe_duration(rest.parse::<u64>().unwrap_or(1) * 1_000_000).block();
            Ok("slept".into())
        }
        "calls" => {
            let mut named = 0;
            for _ in 0..rest.parse().unwrap_or(0u64) {
                named += target.name().len();
            }
            Ok(format!("{named} bytes"))
        }
        "see" => match File::open(target, rest)?.read()? {
            Some(mut content) => {
                let mut text = String::new();
                content.read_to_string(&mut text)?;
                Ok(text.trim().to_owned())
            }
            None => Ok("nothing".into()),
        },
        "put" => {
            let (key, text) = rest.split_once(' ').unwrap_or((rest, ""));
            let mut new = File::open(target, key)?.replace()?;
            new.write_all(text.as_bytes())?;
            new.finish()?;
            Ok("done".into())
        }
        "unlink" => {
            File::open(target, rest)?.remove()?;
            Ok("done".into())
        }
        "program" => {
            let mut child =
                Command::new(target, "program").args(rest.split_whitespace()).env("GIVEN", "1").spawn()?;
            let mut input = child.stdin()?;
            input.write_all(b"hello\n")?;
            drop(input);
            let mut answer = String::new();
            child.stdout()?.read_to_string(&mut answer)?;
            let ended = child.wait()?;
            Ok(format!("{} [{}] [{}]", ended.status, answer.trim(), ended.stderr.trim()))
        }
        "swallow" => {
            let mut child = Command::new(target, "program").args(rest.split_whitespace()).spawn()?;
            let writer = Writer::new()?;
            let total = splice(child.stdout()?.stream(), writer.stream())?;
            child.wait()?.success()?;
            Ok(format!("{total} bytes, {} kept", writer.finish()?.size()))
        }
        "abandon" => {
            let mut child = Command::new(target, "program").args(rest.split_whitespace()).spawn()?;
            let mut started = [0; 1];
            child.stdout()?.read_exact(&mut started)?;
            Ok("abandoned".into())
        }
        "preload" => {
            Command::new(target, "program").env("LD_PRELOAD", rest).spawn()?.wait()?;
            Ok("ran".into())
        }
        "crowd" => {
            let mut all = Vec::new();
            for _ in 0..rest.parse().unwrap_or(0) {
                all.push(Command::new(target, "program").arg("sleep 60").spawn()?);
            }
            Ok(format!("{} at once", all.len()))
        }
        "trap" => panic!("as told"),
        "fail" => Err(Error::new(ErrorKind::Busy, rest)),
        _ => Err(Error::invalid(format!("it cannot do `{verb}`"))),
    }
}

fn code(code: snapback_sdk::bindings::wasi::sockets::network::ErrorCode) -> Error {
    Error::new(ErrorKind::Other, code.name())
}

snapback_sdk::export!(Probe);

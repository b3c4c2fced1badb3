//! A Redis server of a test's own, looked at with its own tools.

use super::{free_port, place, start, until};
use crate::sandbox;
use snapback_tests::{Running, Sandbox};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The server; it ends when this is dropped.
pub struct Server {
    pub port: u16,
    dir: PathBuf,
    program: PathBuf,
    arguments: Vec<String>,
    running: Option<Running>,
    // Its directory lies in this.
    _world: Sandbox,
}

impl Server {
    /// Debian's, empty, with more lines of configuration.
    pub fn start(configuration: &[&str]) -> Self {
        Self::of(
            Path::new("/usr/bin/redis-server"),
            &[&["--enable-debug-command yes"], configuration].concat(),
        )
    }

    /// One of this `program`.
    pub fn of(program: &Path, configuration: &[&str]) -> Self {
        let world = sandbox();
        let dir = place(&world, "redis");
        let port = free_port();
        let fixed = format!("--port {port} --bind 127.0.0.1 --save");
        let mut arguments: Vec<String> = fixed.split(' ').map(str::to_owned).collect();
        arguments.push(String::new());
        arguments.extend(configuration.iter().flat_map(|line| line.split(' ')).map(str::to_owned));
        let program = program.to_owned();
        let mut server = Self { port, dir, program, arguments, running: None, _world: world };
        server.up();
        server
    }

    /// Starts it again, with what it has on its disk.
    pub fn restart(&mut self) {
        self.cli("SHUTDOWN");
        self.running = None;
        self.up();
    }

    fn up(&mut self) {
        let words: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        self.running = Some(start(&self.program, &words, &self.dir));
        until("the server", || {
            let said = self.cli("PING");
            said.contains("PONG") || said.contains("NOAUTH")
        });
    }

    /// A file in the directory that it keeps its data in.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Ends it.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// What `redis-cli` prints for commands, one a line.
    pub fn cli(&self, lines: &str) -> String {
        self.feed(&[], lines)
    }

    /// The same, with arguments of `redis-cli`.
    pub fn feed(&self, arguments: &[&str], lines: &str) -> String {
        use std::io::Write;
        let mut cli = Command::new("redis-cli");
        cli.args(["-p", &self.port.to_string()]).args(arguments);
        cli.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut cli = cli.stderr(std::process::Stdio::null()).spawn().expect("redis-cli can be started");
        let mut input = cli.stdin.take().unwrap();
        // One that ended already says so in what it printed.
        let _ = input.write_all(lines.as_bytes());
        drop(input);
        let output = cli.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// All that can be seen of the data: Redis' own digest, each key with its time, the
    /// streams' groups, the functions.
    pub fn record(&self) -> String {
        let mut record = self.cli("DEBUG DIGEST\nINFO keyspace\nFUNCTION LIST WITHCODE");
        for database in ["0", "1", "2"] {
            let keys = self.feed(&["-n", database], "KEYS *");
            let mut keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
            keys.sort_unstable();
            let each = |key: &&str| {
                format!("TYPE {key}\nPEXPIRETIME {key}\nDEBUG DIGEST-VALUE {key}\nXINFO STREAM {key} FULL\n")
            };
            let lines: String = keys.iter().take(100).map(each).collect();
            record.push_str(&format!("\n{database}: {keys:?}\n{}", self.feed(&["-n", database], &lines)));
        }
        // How long ago a consumer was seen, and what the average time to live is, move on.
        let moving = |line: &&str| !line.contains("idle") && !line.contains("seen-time");
        record
            .lines()
            .filter(moving)
            .map(|line| line.split(",avg_ttl").next().unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

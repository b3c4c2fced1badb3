//! A Postgres server of a test's own, looked at with its own tools.

use super::{PROGRAMS, free_port, place, server_user, start, until};
use crate::sandbox;
use rustix::process::Signal;
use snapback_tests::{Output, Running, Sandbox};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// Who may come in, and how.
const RULES: &str = "host all scram 127.0.0.1/32 scram-sha-256\nhost all mdfive 127.0.0.1/32 md5\n\
                     hostssl all tls 127.0.0.1/32 trust\nhostnossl all tls 127.0.0.1/32 reject\n\
                     host all all 127.0.0.1/32 trust\n";

/// The server, with a database `app`; it ends when this is dropped.
pub struct Server {
    pub port: u16,
    /// Where its programs are.
    programs: PathBuf,
    /// Where pg_dump and pg_restore are that can treat it.
    dumps: PathBuf,
    dir: PathBuf,
    running: Option<Running>,
    world: Sandbox,
}

impl Server {
    /// Debian's, with an empty database.
    pub fn start() -> Self {
        Self::of(Path::new(PROGRAMS), Path::new(PROGRAMS))
    }

    /// The one whose `programs` these are; in `dumps` are pg_dump and pg_restore that can treat it.
    pub fn of(programs: &Path, dumps: &Path) -> Self {
        let world = sandbox();
        let dir = place(&world, "postgres");
        let copied = Command::new("cp").args(["-a"]).arg(fresh(programs)).arg(dir.join("data")).status();
        assert!(copied.is_ok_and(|status| status.success()));
        let [programs, dumps] = [programs, dumps].map(Path::to_owned);
        let mut server = Self { port: free_port(), programs, dumps, dir, running: None, world };
        server.up();
        server.psql("postgres", "CREATE DATABASE app");
        server
    }

    /// Starts it, again after a stop.
    pub fn up(&mut self) {
        let port = self.port.to_string();
        let fixed = ["-D", "data", "-p", &port, "-c", "listen_addresses=127.0.0.1"];
        let more = [
            "unix_socket_directories=",
            "fsync=off",
            "autovacuum=off",
            "max_connections=50",
            "wal_level=logical",
            "max_prepared_transactions=5",
        ];
        let mut words: Vec<&str> = fixed.to_vec();
        more.iter().for_each(|word| words.extend(["-c", word]));
        self.running = Some(start(&self.programs.join("postgres"), &words, &self.dir));
        until("the server", || self.try_psql("postgres", "SELECT 1").code() == 0);
    }

    /// Ends it at once, sessions and all, without leaving shared memory behind.
    pub fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.signal(Signal::QUIT);
            running.wait();
        }
    }

    /// The words that reach the database with psql and its like.
    pub fn words(&self) -> String {
        format!("-h 127.0.0.1 -p {} -U postgres", self.port)
    }

    /// What `psql` prints for statements in `database`.
    #[track_caller]
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let output = self.try_psql(database, sql);
        output.exits(0);
        output.out().trim().to_owned()
    }

    /// The same, which may fail.
    pub fn try_psql(&self, database: &str, sql: &str) -> Output {
        let mut psql = self.world.command("psql");
        psql.args(self.words().split(' ')).args([
            "-XAtq",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            database,
            "-c",
            sql,
        ]);
        self.world.finish(&mut psql)
    }

    /// All that `pg_dump` knows of the database, and of it as a whole.
    pub fn record(&self) -> String {
        let mut dump = self.world.command(self.dumps.join("pg_dump"));
        dump.args(self.words().split(' ')).args(["--create", "--blobs", "app"]);
        let dump = self.world.finish(&mut dump);
        dump.exits(0);
        // A key that is made up for each dump.
        let lines: Vec<String> =
            dump.out().lines().filter(|l| !l.contains("restrict ")).map(str::to_owned).collect();
        lines.join("\n")
    }

    /// Makes a tablespace of this name.
    pub fn tablespace(&self, name: &str) {
        let dir = self.dir.join(name);
        std::fs::create_dir(&dir).expect("it can be made");
        server_user().own(&dir);
        self.psql("postgres", &format!("CREATE TABLESPACE {name} LOCATION '{}'", dir.display()));
    }

    /// The databases of ours.
    pub fn ours(&self) -> Vec<String> {
        let sql = "SELECT datname FROM pg_database WHERE datname LIKE 'snapback%' ORDER BY 1";
        self.psql("postgres", sql).lines().map(str::to_owned).collect()
    }

    /// Ends the sessions in the database: a client that is killed leaves one that sleeps on.
    pub fn end_sessions(&self) {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'app'";
        until("the end of the sessions", || self.psql("postgres", end).is_empty());
    }

    /// A session in the database, which sleeps, called `webapp`.
    pub fn session(&self) -> Running {
        let mut psql = self.world.command("psql");
        psql.args(self.words().split(' ')).args(["-Xq", "-d", "app", "-c", "SELECT pg_sleep(600)"]);
        let running = Running::of(psql.env("PGAPPNAME", "webapp"));
        let connected = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'webapp'";
        until("a session", || self.psql("postgres", connected) != "0");
        running
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A directory as these programs' `initdb` makes it, made once.
fn fresh(programs: &Path) -> PathBuf {
    static FRESH: OnceLock<Mutex<BTreeMap<PathBuf, (PathBuf, Sandbox)>>> = OnceLock::new();
    let mut fresh = FRESH.get_or_init(Mutex::default).lock().expect("none failed");
    let (path, _) = fresh.entry(programs.to_owned()).or_insert_with(|| {
        let world = sandbox();
        let dir = place(&world, "fresh");
        let mut initdb = Command::new(programs.join("initdb"));
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D"]);
        initdb.arg(dir.join("data")).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        server_user().become_in(&mut initdb);
        let output = world.finish(&mut initdb);
        output.exits(0);
        fs::write(dir.join("data/pg_hba.conf"), RULES).unwrap();
        (dir.join("data"), world)
    });
    path.clone()
}

//! A real PostgreSQL whose data directory is a volume: mangled, and brought back.

use super::engine::until;
use super::{Engine, cover, each_user};

/// Where Debian has the server.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// The newest server's programs; none where there is none, and that is said.
fn programs() -> Option<String> {
    let found =
        std::fs::read_dir(PROGRAMS).into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let newest = found.filter(|dir| dir.join("postgres").is_file()).max();
    if newest.is_none() {
        snapback_tests::skip("postgresql is not installed");
    }
    newest.map(|dir| dir.display().to_string())
}

struct Server<'a> {
    engine: &'a Engine,
    name: String,
    programs: String,
}

impl Server<'_> {
    fn sql(&self, statement: &str) -> Option<String> {
        let psql = format!("{}/psql", self.programs);
        let words = ["exec", &self.name, &psql, "-h", "/v", "-U", "postgres", "-Atc", statement];
        let output = std::process::Command::new("docker")
            .args(words)
            .env("DOCKER_HOST", format!("unix://{}", self.engine.socket().display()))
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

#[test]
fn a_server_that_runs_comes_back_with_what_it_had_before_a_migration() {
    let Some(programs) = programs() else { return };
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let mount = engine.files(volume).display().to_string();
        // The programs are this machine's: there is no registry to pull an image from.
        let system =
            "-v /usr:/usr:ro -v /usr/lib:/lib:ro -v /usr/lib64:/lib64:ro -v /usr/bin:/bin:ro -v /etc:/etc:ro";
        engine.sh(&format!(
            "chown postgres {mount}; chmod 700 {mount}
             docker run --rm --network none {system} -v {volume}:/v --user $(id -u postgres) box \
                 {programs}/initdb -D /v -A trust --no-sync >/dev/null
             docker run -d --network none {system} -v {volume}:/v --user $(id -u postgres) --name pg-{volume} box \
                 {programs}/postgres -D /v -k /v -c listen_addresses="
        ));
        let server = Server { engine, name: format!("pg-{volume}"), programs: programs.clone() };
        until("the server", || server.sql("SELECT 1").is_some());
        server.sql("CREATE TABLE t AS SELECT generate_series(1, 20000) AS n").unwrap();
        cover(s, volume, "");
        s.run("true");
        // A migration that is regretted, in the server and behind its back.
        server.sql("DELETE FROM t WHERE n > 10").unwrap();
        server.sql("CREATE TABLE more AS SELECT generate_series(1, 20000) AS n").unwrap();
        server.sql("CHECKPOINT").unwrap();
        engine.sh(&format!("cd {mount}; rm -rf pg_xact; echo nonsense > postgresql.conf"));
        s.ok(["undo", "--yes"]);
        until("the server again", || server.sql("SELECT 1").is_some());
        assert_eq!(server.sql("SELECT count(*), sum(n) FROM t").as_deref(), Some("20000|200010000"));
        assert_eq!(
            server.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'more'").as_deref(),
            Some("0")
        );
        assert_eq!(engine.sh(&format!("stat -c %a {mount}")), "700");
        engine.docker(&["kill", &server.name]);
        assert_eq!(engine.leftovers(volume), "");
    });
}

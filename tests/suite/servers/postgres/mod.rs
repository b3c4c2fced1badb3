//! Postgres: copies on the server, put in place by an exchange of names.

mod copies;
mod dumps;
mod faults;
mod rights;
mod server;
mod sessions;
mod shared;
mod steps;
mod ties;

use super::{agree, free_port, killed, place, refused, server_user, start, there_and_back, until, with};
pub use server::Server;
use snapback_tests::{Sandbox, have};
use std::path::Path;
pub use steps::{MIGRATION, SCHEMA, migrate};

/// Where Debian has the programs of the server.
pub const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// Whether the tests can run here.
pub fn ready() -> bool {
    if !Path::new(PROGRAMS).join("initdb").is_file() {
        snapback_tests::skip("the server of Debian's postgresql-15 is not installed");
        return false;
    }
    have("psql")
}

/// A project with the component, one file and a target for `server`, agreed to.
pub fn project(server: &Server, more: &str) -> Sandbox {
    super::project("postgres", target(server.port, more))
}

pub fn declare(s: &Sandbox, server: &Server, more: &str) {
    s.write("snapback.toml", target(server.port, more));
}

pub fn target(port: u16, more: &str) -> String {
    format!(
        "[[target]]\nbackend = \"postgres\"\naddress = \"127.0.0.1:{port}\"\ndatabase = \"app\"\n{more}\n"
    )
}

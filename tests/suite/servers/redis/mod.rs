//! Redis: exact copies while clients write, restored in one step.

mod disk;
mod exact;
mod faults;
mod needed;
mod server;
mod steps;
mod writers;

use super::{agree, component, free_port, killed, place, refused, start, there_and_back, until, with};
pub use exact::{fill, types};
pub use server::Server;
use snapback_tests::{Sandbox, have};

/// Whether the tests can run here.
pub fn ready() -> bool {
    have("redis-server") && have("redis-cli") && have("python3")
}

/// A project with the component, one file and a target for `server`, agreed to.
pub fn project(server: &Server, more: &str) -> Sandbox {
    super::project("redis", target(server.port, more))
}

fn declare(s: &Sandbox, server: &Server, more: &str) {
    s.write("snapback.toml", target(server.port, more));
}

pub fn target(port: u16, more: &str) -> String {
    format!("[[target]]\nbackend = \"redis\"\naddress = \"127.0.0.1:{port}\"\n{more}\n")
}

//! The redis backend: the data of a Redis server (6 to 8), over TCP, without TLS.
//!
//! A snapshot is a copy that the server makes as for a replica, without a file of its own:
//! exact, of one point in time, while clients go on writing. A restore fills empty databases and exchanges them
//! with the present ones in one step, through commands, so that clients, replicas and the
//! append-only file see it like any other command.
//!
//! Covered: keys of every type with their times of expiry, and with `database = "all"` the
//! libraries of functions. Not covered: users and configuration, what modules keep outside
//! of keys, when a key was last used; clusters. A key that was never stored anywhere but
//! expires meanwhile is not a change.

mod compare;
mod copy;
mod explain;
mod follow;
mod memory;
mod rdb;
mod replica;
mod restore;
mod rights;
mod scope;
mod sorted;
mod spare;
mod stage;
mod text;
mod window;
mod wire;

use copy::Copy;
use scope::{Scope, Server, time};
use snapback_sdk::{Backend, Change, Explain, Part, Result, Target, report};
use wire::Wire;

struct Redis;

impl Backend for Redis {
    const MANIFEST: &'static str = include_str!("../manifest.toml");

    fn snapshot(target: &Target, _previous: Vec<Part>) -> Result<Vec<Part>> {
        let scope = Scope::of(target)?;
        let mut wire = Wire::connect(target)?;
        let server = Server::ask(&mut wire)?;
        // What is only looked at, or is about to be replaced, need not be put back.
        let is_kept = target.occasion().is_empty();
        if is_kept {
            rights::look(&mut wire, &server)?;
            spare::prepare(&mut wire, scope, &server.used)?;
        }
        let now = time(&mut wire)?;
        let replica = Wire::connect(target)?;
        let (copy, ..) = Copy::take(&mut wire, replica, (scope, now, server.major))?;
        if let Some(lacking) = server.memory.lacks(copy.room).filter(|_| is_kept) {
            let why = format!("an undo may be refused for want of memory ({})", memory::remedy(lacking));
            report::log("warn", &why);
        }
        copy.store()
    }

    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        restore::restore(target, &parts, &current)
    }
}

impl Explain for Redis {
    fn compare(target: &Target, before: Vec<Part>, after: Vec<Part>) -> Result<Vec<Change>> {
        explain::compare(target, &before, &after)
    }
}

snapback_sdk::export!(Redis, explain);

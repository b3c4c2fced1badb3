//! What of the server a target is about, and whether the server is one we can treat.

use crate::memory::Memory;
use crate::wire::{Reply, Wire, strange};
use snapback_sdk::{Error, ErrorKind, Result, Target};

/// Databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them, and the functions.
    All,
    One(u64),
}

impl Scope {
    /// What the setting says.
    ///
    /// # Errors
    /// `Invalid` when it is neither a number nor `all`.
    pub fn of(target: &Target) -> Result<Self> {
        let value = target.setting("database").unwrap_or_default();
        match value.parse() {
            _ if value == "all" => Ok(Self::All),
            Ok(number) => Ok(Self::One(number)),
            Err(_) => Err(Error::invalid(format!("`database` is a number or `all`, not `{value}`"))
                .with_hint("Redis counts its databases from 0")),
        }
    }

    /// Whether it has this database.
    pub fn has(self, database: u64) -> bool {
        self == Self::All || self == Self::One(database)
    }
}

/// What a server says about itself.
pub struct Server {
    /// The first number of its version.
    pub major: u32,
    /// Whether it only repeats what another one does.
    pub is_replica: bool,
    /// The databases that have keys.
    pub used: Vec<u64>,
    pub memory: Memory,
}

impl Server {
    /// Asks for it.
    ///
    /// # Errors
    /// `Incompatible` when it is too old, or part of a cluster.
    pub fn ask(wire: &mut Wire) -> Result<Self> {
        let said = wire.text(&[b"INFO"])?;
        let version = field(&said, "redis_version").ok_or_else(|| strange("it has no version"))?;
        let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
        if major < 6 {
            let why = format!("the server is Redis {version}, which is too old");
            return Err(Error::new(ErrorKind::Incompatible, why).with_hint("Redis 6 and later are covered"));
        }
        if field(&said, "cluster_enabled") == Some("1") {
            return Err(Error::new(ErrorKind::Incompatible, "the server is part of a cluster")
                .with_hint("a cluster has no one point in time; single servers are covered"));
        }
        let used = said.lines().filter_map(|line| line.strip_prefix("db")?.split(':').next()?.parse().ok());
        let is_replica = field(&said, "role") == Some("slave");
        Ok(Self { major, is_replica, used: used.collect(), memory: Memory::of(&said) })
    }
}

/// The value of a field in what `INFO` says.
pub fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The server's time, in milliseconds since 1970.
///
/// # Errors
/// When it does not say.
pub fn time(wire: &mut Wire) -> Result<u64> {
    let reply = wire.ask(&[b"TIME"])?;
    let Reply::List(list) = &reply else { return Err(strange("no time")) };
    let number = |at: usize| match list.get(at) {
        Some(Reply::Bytes(digits)) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    let (seconds, micros) = number(0).zip(number(1)).ok_or_else(|| strange("no time"))?;
    Ok(seconds.saturating_mul(1000).saturating_add(micros / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let info = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n";
        assert_eq!(field(info, "redis_version"), Some("7.0.15"));
        assert_eq!(field(info, "redis"), None);
    }
}

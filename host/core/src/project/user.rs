//! The user's own settings, `config.toml`: how much history is kept and how it is
//! made durable. Never the project's to say.

use super::nearest::nearest;
use super::units;
use crate::error::{Error, Kind, Result};
use std::time::Duration;

/// What the user wants of every project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// How much history is kept.
    pub retention: Retention,
    /// Wait for the disk at each commit point.
    pub sync: bool,
    /// Keep a second link to the history outside the project.
    pub twin: bool,
}

/// Bounds of the history. What recovery and the next undo and redo need is kept
/// whatever these say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Snapshots.
    pub keep: usize,
    /// Age.
    pub keep_within: Duration,
    /// Bytes of one store; none: 10 GiB or a tenth of the disk, the smaller.
    pub max_size: Option<u64>,
    /// Bytes of the disk that must stay free; none: 1 GiB or a tenth of the disk, the
    /// smaller.
    pub min_free: Option<u64>,
    /// Interval snapshots of one run.
    pub interval_keep: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            keep: 50,
            keep_within: Duration::from_secs(30 * 86_400),
            max_size: None,
            min_free: None,
            interval_keep: 20,
        }
    }
}

impl Default for User {
    fn default() -> Self {
        Self { retention: Retention::default(), sync: true, twin: true }
    }
}

impl User {
    /// Reads the text of the user's config.toml.
    ///
    /// # Errors
    /// `Invalid` naming the key.
    pub fn parse(text: &str) -> Result<Self> {
        let mut user = Self::default();
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            Error::new(Kind::Invalid, format!("config.toml: {}", error.message().trim()))
                .hint("the file is TOML; check quotes, brackets and commas")
        })?;
        for (section, value) in &table {
            let known: &[&str] = match section.as_str() {
                "retention" => &["keep", "keep-within", "max-size", "min-free", "interval-keep"],
                "store" => &["sync", "twin"],
                _ => return Err(unknown(section, &["retention", "store"])),
            };
            let keys = value.as_table().ok_or_else(|| wrong(section, "a table"))?;
            for (key, value) in keys {
                if !known.contains(&key.as_str()) {
                    return Err(unknown(key, known));
                }
                user.set(key, value)?;
            }
        }
        Ok(user)
    }

    fn set(&mut self, key: &str, value: &toml::Value) -> Result<()> {
        let count = || {
            let number = value.as_integer().and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| wrong(key, "a whole number, not negative"))
        };
        let text = || value.as_str().ok_or_else(|| wrong(key, "text in quotes"));
        let yes = || value.as_bool().ok_or_else(|| wrong(key, "true or false"));
        let context = |error: Error| error.context(format_args!("config.toml, `{key}`"));
        let kept = &mut self.retention;
        match key {
            "keep" => kept.keep = count()?,
            "interval-keep" => kept.interval_keep = count()?,
            "keep-within" => kept.keep_within = units::duration(text()?).map_err(context)?,
            "max-size" => kept.max_size = Some(units::size(text()?).map_err(context)?),
            "min-free" => kept.min_free = Some(units::size(text()?).map_err(context)?),
            "sync" => self.sync = yes()?,
            _ => self.twin = yes()?,
        }
        Ok(())
    }
}

fn wrong(key: &str, wanted: &str) -> Error {
    Error::new(Kind::Invalid, format!("config.toml: `{key}` must be {wanted}"))
        .hint("correct that line; text stands in quotes")
}

fn unknown(key: &str, known: &[&str]) -> Error {
    let error = Error::new(Kind::Invalid, format!("config.toml: there is no key `{key}`"));
    match nearest(key, known.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("known here: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_keys_are_taken_and_others_refused() {
        let text = "[retention]\nkeep = 5\nkeep-within = \"7d\"\nmax-size = \"2GiB\"\nmin-free = \"0\"\n\
                    interval-keep = 3\n[store]\nsync = false\ntwin = false\n";
        let user = User::parse(text).unwrap();
        assert_eq!((user.retention.keep, user.retention.max_size), (5, Some(2 << 30)));
        assert!(!user.sync && !user.twin);
        assert_eq!(User::parse("").unwrap(), User::default());
        let error = User::parse("[retention]\nkeeep = 5").unwrap_err();
        assert_eq!(error.hint_text(), Some("did you mean `keep`?"));
        assert!(User::parse("[retention]\nkeep = -5").is_err());
        assert!(User::parse("[store]\nsync = 1").is_err());
    }
}

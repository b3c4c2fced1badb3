//! The options of a database, as the component that opens it gives them.

use snapback_core::error::{Error, Kind, Result};
use snapback_core::project::units;
use std::time::Duration;

/// How a database is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long to wait for a lock that another process holds.
    pub busy_timeout: Duration,
    /// Whether its integrity is checked when it is captured; before a restore it always is.
    pub verify: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), verify: false }
    }
}

impl Options {
    /// Reads pairs of key and value: `busy-timeout` (a time such as "5s"), `verify`
    /// (`true` or `false`).
    ///
    /// # Errors
    /// `Invalid`, with the key and what is wrong with its value.
    pub fn parse(pairs: &[(String, String)]) -> Result<Self> {
        let mut options = Self::default();
        for (key, value) in pairs {
            match (key.as_str(), value.as_str()) {
                ("busy-timeout", _) => options.busy_timeout = units::duration(value)?,
                ("verify", "true") => options.verify = true,
                ("verify", "false") => options.verify = false,
                ("verify", _) => {
                    let text = format!("`verify` is true or false, not `{value}`");
                    return Err(Error::new(Kind::Invalid, text));
                }
                _ => {
                    let text = format!("a database has no option `{key}`");
                    return Err(
                        Error::new(Kind::Invalid, text).hint("the options are busy-timeout and verify")
                    );
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(key: &str, value: &str) -> Result<Options> {
        Options::parse(&[(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn options_are_read_and_what_makes_no_sense_is_named() {
        assert_eq!(Options::parse(&[]).unwrap(), Options::default());
        assert_eq!(parse("busy-timeout", "200ms").unwrap().busy_timeout, Duration::from_millis(200));
        assert!(parse("verify", "true").unwrap().verify);
        for (key, value, says) in [
            ("verify", "maybe", "true or false"),
            ("busy-timeout", "long", "long"),
            ("pages", "1", "no option `pages`"),
        ] {
            let said = parse(key, value).unwrap_err();
            assert!(said.message().contains(says) && said.kind() == Kind::Invalid, "{said}");
        }
    }
}

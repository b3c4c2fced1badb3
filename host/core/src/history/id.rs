//! The name of a snapshot: UTC time and four hex digits, `20260102-030405-7f3a`.
//!
//! Names sort in the order in which they were made: within one second the digits go up,
//! and a clock that was set back does not change that. A person may give any unique prefix or
//! ending, or `@0` for the newest, `@1` for the one before it.

use super::clock::Clock;
use crate::error::{Error, Kind, Result};
use jiff::ToSpan;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::fmt;

/// The name of a snapshot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(String);

const SHAPE: &[u8; 20] = b"dddddddd-dddddd-xxxx";
const SECOND: &str = "%Y%m%d-%H%M%S";

impl Id {
    /// A new name for the present, which sorts after `newest`.
    pub fn new(clock: &dyn Clock, newest: Option<&Self>) -> Self {
        let now = clock.now().to_zoned(TimeZone::UTC).datetime();
        // The lower half: room for more in the same second.
        let first = |second: DateTime| (second, clock.random() & 0x7fff);
        let (second, digits) = match newest.and_then(Self::parts) {
            Some((second, digits)) if second >= now.with().subsec_nanosecond(0).build().unwrap_or(now) => {
                match digits + 1 + clock.random() % 16 {
                    digits @ ..=0xffff => (second, digits),
                    _ => first(second.saturating_add(1.second())),
                }
            }
            _ => first(now),
        };
        Self(format!("{}-{digits:04x}", second.strftime(SECOND)))
    }

    /// The second and the digits. None for a name that has the shape of one and is no time.
    fn parts(&self) -> Option<(DateTime, u64)> {
        let (second, digits) = self.0.rsplit_once('-')?;
        Some((DateTime::strptime(SECOND, second).ok()?, u64::from_str_radix(digits, 16).ok()?))
    }

    /// The name that `text` is, when it has the shape of one.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == SHAPE.len()
            && text.bytes().zip(SHAPE).all(|(byte, shape)| match shape {
                b'd' => byte.is_ascii_digit(),
                b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
                _ => byte == b'-',
            });
        fits.then(|| Self(text.to_owned()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The one of `ids` that a person means by `text`; `ids` is newest first.
///
/// # Errors
/// `NotFound` when there is none, `Invalid` when there are several.
pub fn resolve<'a>(text: &str, ids: &'a [Id]) -> Result<&'a Id> {
    if ids.is_empty() {
        return Err(Error::new(Kind::NotFound, "there are no snapshots here yet")
            .hint("`snapback run -- COMMAND` or `snapback snap` takes one"));
    }
    if let Some(back) = text.strip_prefix('@') {
        let back: usize = back.parse().map_err(|_| {
            Error::new(Kind::Invalid, format!("`{text}` names no snapshot"))
                .hint("@0 is the newest, @1 the one before it")
        })?;
        return ids.get(back).ok_or_else(|| {
            Error::new(Kind::NotFound, format!("there is no snapshot {text}: there are only {}", ids.len()))
                .hint("`snapback list` shows them, newest first; @0 is the newest")
        });
    }
    let matches: Vec<_> = ids
        .iter()
        .filter(|id| !text.is_empty() && (id.0.starts_with(text) || id.0.ends_with(text)))
        .collect();
    match matches[..] {
        [one] => Ok(one),
        [] => Err(Error::new(Kind::NotFound, format!("there is no snapshot `{text}`"))
            .hint("`snapback list` shows them; a unique beginning or ending of an ID is enough")),
        _ => {
            let some: Vec<_> = matches.iter().take(4).map(|id| id.as_str()).collect();
            let more = if matches.len() > some.len() { " ..." } else { "" };
            let why = format!("`{text}` could mean {} snapshots", matches.len());
            Err(Error::new(Kind::Invalid, why).hint(format!("be more exact: {}{more}", some.join(" "))))
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not the ID of a snapshot"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> Vec<Id> {
        ["20260102-030405-7f3a", "20260102-030405-0001", "20250102-030405-7f3b"]
            .iter()
            .map(|text| Id::parse(text).unwrap())
            .collect()
    }

    #[test]
    fn a_new_id_has_the_shape_of_one() {
        let id = Id::new(&super::super::clock::System, None);
        assert_eq!(Id::parse(id.as_str()), Some(id));
        for text in ["", "20260102-030405-7F3A", "20260102-030405-7f3", "../../../../etc/pass"] {
            assert_eq!(Id::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_sort_in_the_order_in_which_they_were_made() {
        struct At(&'static str, u64);
        impl Clock for At {
            fn now(&self) -> jiff::Timestamp {
                self.0.parse().unwrap()
            }
            fn random(&self) -> u64 {
                self.1
            }
        }
        let after = |time, random, newest: &str| Id::new(&At(time, random), Id::parse(newest).as_ref()).0;
        let now = "2026-01-02T03:04:05.9Z";
        assert_eq!(after(now, 0xffff, ""), "20260102-030405-7fff");
        assert_eq!(after(now, 0, "20260102-030404-ffff"), "20260102-030405-0000");
        assert_eq!(after(now, 0, "20260102-030405-7fff"), "20260102-030405-8000");
        assert_eq!(after(now, 15, "20260102-030405-7fff"), "20260102-030405-800f");
        assert_eq!(after(now, 5, "20260102-030405-ffff"), "20260102-030406-0005");
        assert_eq!(after(now, 0, "20270102-030405-0001"), "20270102-030405-0002");
        assert_eq!(after(now, 7, "99999999-999999-0001"), "20260102-030405-0007");
    }

    #[test]
    fn beginnings_endings_and_places_are_understood() {
        let ids = ids();
        for (text, place) in [("7f3a", 0), ("0001", 1), ("2025", 2), ("@0", 0), ("@2", 2)] {
            assert_eq!(resolve(text, &ids).unwrap(), &ids[place], "{text}");
        }
        assert_eq!(resolve("20260102-030405-7f3a", &ids).unwrap(), &ids[0]);
    }

    #[test]
    fn unknown_and_ambiguous_names_say_so() {
        let ids = ids();
        assert_eq!(resolve("ffff", &ids).unwrap_err().kind(), Kind::NotFound);
        let error = resolve("2026", &ids).unwrap_err();
        assert_eq!(error.to_string(), "`2026` could mean 2 snapshots");
        assert!(error.hint_text().unwrap().contains("20260102-030405-0001"));
        assert!(resolve("@3", &ids).is_err());
        assert!(resolve("@x", &ids).is_err());
        assert!(resolve("", &ids).is_err());
        assert!(resolve("@0", &[]).unwrap_err().to_string().contains("no snapshots"));
    }
}

//! Time and chance, lent by the caller so that tests can tick by themselves.

use jiff::Timestamp;
use std::fmt;

/// Where the time and random bits come from.
pub trait Clock: Send + Sync {
    /// The present.
    fn now(&self) -> Timestamp;
    /// Random bits.
    fn random(&self) -> u64;
}

/// The system's.
pub struct System;

impl Clock for System {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        RandomState::new().build_hasher().finish()
    }
}

/// A moment in UTC; as text RFC 3339, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Timestamp);

impl Moment {
    /// `time` as far as it is written down, so that what is read again is the same.
    pub fn of(time: Timestamp) -> Self {
        Self(Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl serde::Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Moment {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map(Self::of).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_same_when_it_is_read_again() {
        for text in ["2026-01-02T03:04:05.123456789Z", "1969-12-31T23:59:59.9999Z", "2026-01-02T03:04:05Z"] {
            let moment = Moment::of(text.parse().unwrap());
            let json = serde_json::to_string(&moment).unwrap();
            assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment, "{json}");
            let finer: Moment = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            assert_eq!(finer, moment);
        }
    }
}

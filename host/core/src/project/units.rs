//! Durations and sizes as people write them: "500ms", "30s", "7d"; "64KiB", "2GiB".
//!
//! One grammar for snapback.toml and the command line. Refuses what has no unit
//! (except 0), fractions and negative numbers, naming what is accepted.

use crate::error::{Error, Kind, Result};
use std::time::Duration;

const DURATIONS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Reads a duration.
///
/// # Errors
/// `Invalid` when it is none.
pub fn duration(text: &str) -> Result<Duration> {
    scaled(text, &DURATIONS).map(Duration::from_millis).ok_or_else(|| {
        Error::new(Kind::Invalid, format!("`{text}` is not a duration"))
            .hint("write a whole number and a unit: 500ms, 30s, 5m, 2h or 7d")
    })
}

/// Reads a size in bytes.
///
/// # Errors
/// `Invalid` when it is none.
pub fn size(text: &str) -> Result<u64> {
    scaled(text, &SIZES).ok_or_else(|| {
        Error::new(Kind::Invalid, format!("`{text}` is not a size"))
            .hint("write a whole number and a unit: 512B, 64KiB, 500MiB or 2GiB")
    })
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().ok()?;
    match text[digits..].trim_start() {
        "" if number == 0 => Some(0),
        unit => units.iter().find(|(name, _)| *name == unit).and_then(|(_, by)| number.checked_mul(*by)),
    }
}

/// A size for people, with one digit after the point: `1.4 MB`.
pub fn human(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "B");
    for next in ["kB", "MB", "GB", "TB"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read() {
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("30s").unwrap(), Duration::from_secs(30));
        assert_eq!(duration("7d").unwrap(), Duration::from_secs(7 * 86_400));
        assert_eq!(duration("0").unwrap(), Duration::ZERO);
        assert_eq!(size("64KiB").unwrap(), 65_536);
        assert_eq!(size("2GiB").unwrap(), 2 << 30);
        assert_eq!(size("10 MB").unwrap(), 10_000_000);
        for text in ["", "5", "s", "1.5s", "-1s", "99999999999999999999d", "3 parsecs"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "5", "KiB", "1.5GiB", "18446744073709551615KiB", "5s"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_for_people() {
        assert_eq!(human(999), "999 B");
        assert_eq!(human(1_400_000), "1.4 MB");
    }
}

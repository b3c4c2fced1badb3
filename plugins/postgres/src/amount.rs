//! How much the copies take on the server: no size limit of the store knows of them, so a snapshot
//! says it, and warns when it is more than the setting allows for.

use crate::server::Server;
use crate::wire::{Fault, literal};
use snapback_sdk::{Target, report};

/// Units of a size, with the bytes of each.
const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// Tells it of the copies of the history `owner`, the newest of which is called `name`.
///
/// # Errors
/// When the server does not say.
pub fn tell(target: &Target, server: &mut Server, owner: &str, name: &str) -> Result<(), Fault> {
    let copies = server.copies()?;
    let ours = copies.iter().filter(|(_, note)| note.as_ref().is_some_and(|note| note.owner == owner));
    let names: Vec<String> = ours.map(|(name, _)| literal(name)).collect();
    let question = format!(
        "SELECT pg_database_size({})::text, coalesce(sum(pg_database_size(datname)), 0)::text FROM pg_database \
         WHERE datname IN ({})",
        literal(name),
        names.join(", ")
    );
    let row = server.wire.ask(&question)?.into_iter().next().unwrap_or_default();
    let bytes = |at: usize| row.get(at)?.as_ref()?.parse::<u64>().ok();
    let (new, all) = bytes(0).zip(bytes(1)).ok_or_else(crate::silent)?;
    let many =
        if names.len() == 1 { "1 copy takes".to_owned() } else { format!("{} copies take", names.len()) };
    let said = format!("{many} {} on the server", words(all));
    let most = target.setting("copies-size").as_deref().and_then(parse);
    match most.filter(|most| all > *most) {
        Some(most) => report::log(
            "warn",
            &format!(
                "{said}, more than {} (`copies-size`): `snapback gc --keep N` lets the older ones go",
                words(most)
            ),
        ),
        None => report::log("info", &format!("{said}, {} of it this one", words(new))),
    }
    Ok(())
}

/// A size in the largest unit of which there is one.
fn words(bytes: u64) -> String {
    let (unit, of) = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)]
        .into_iter()
        .find(|(_, of)| bytes >= *of)
        .unwrap_or(("B", 1));
    format!("{:.1} {unit}", bytes as f64 / of as f64)
}

/// The bytes of a size as it is written in settings.
fn parse(size: &str) -> Option<u64> {
    let (unit, of) = UNITS.iter().find(|(unit, _)| size.ends_with(unit))?;
    let number = size.strip_suffix(unit)?.trim();
    number.parse::<u64>().ok()?.checked_mul(*of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_told() {
        for (text, bytes) in [("10GiB", 10 << 30), ("500MB", 500_000_000), ("7 KiB", 7168), ("1B", 1)] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        assert_eq!(parse("many"), None);
        assert_eq!(
            (words(66_123_456), words(999), words(2_500_000_000)),
            ("66.1 MB".into(), "999.0 B".into(), "2.5 GB".into())
        );
    }
}

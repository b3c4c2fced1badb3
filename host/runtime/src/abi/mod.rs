//! The host's side of `wit/`: for each version of the contract a module, in it for each
//! interface a file. These are thin: they turn handles into what core knows, check that
//! a handle may be had, and call core. The version of a component is the one in the names
//! of what it imports and exports.

pub mod v0_1;
pub mod wasi;

use snapback_core::error::{Error, Kind, Result};

/// The versions that this program knows.
const KNOWN: [&str; 1] = ["0.1"];

/// Refuses a component of a version that this program does not know; `names` are those of
/// what it imports and exports.
///
/// # Errors
/// `Incompatible`, with both versions.
pub fn check_version(names: &[String]) -> Result<()> {
    let versions = names.iter().filter_map(|name| {
        let (_, version) = name.strip_prefix("snapback:plugin/")?.split_once('@')?;
        // The last number stands for what changes nothing.
        Some(version.rsplit_once('.').map_or(version, |(version, _)| version))
    });
    let Some(other) = versions.filter(|version| !KNOWN.contains(version)).max() else { return Ok(()) };
    let (other, known) = (crate::manifest::shorten(other), KNOWN.join(", "));
    let why = format!("it was built for version {other} of the contract, and this program knows {known}");
    Err(Error::new(Kind::Incompatible, why)
        .hint("a newer snapback may run it, or an older release of it this one"))
}

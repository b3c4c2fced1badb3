//! What people write and what the user's state directory holds.

use crate::database::{of_setting, to_setting};
use crate::error::{Error, Result};
use crate::project::config::Config;
use crate::project::consents::Consent;
use crate::project::registry::Known;
use crate::project::units;
use crate::project::user::User;
use crate::tree::Options;
use crate::tree::git::{Ref, Tracked, each, parse, staged_in};
use crate::tree::ignore::Patterns;

/// Fails unless a refusal is one line that says what is wrong, and one that says what to do.
fn told<T>(result: Result<T>, bytes: &[u8]) -> Option<T> {
    let say = |error: &Error| {
        assert!(
            !error.message().is_empty() && error.hint_text().is_some(),
            "{error} of {}",
            bytes.escape_ascii()
        );
    };
    result.inspect_err(say).ok()
}

fn text(bytes: &[u8]) -> &str {
    let end = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..end]).expect("as much as is text")
}

/// `snapback.toml`.
pub fn config(bytes: &[u8]) {
    let Some(config) = told(Config::parse(text(bytes)), bytes) else { return };
    let names: std::collections::BTreeSet<_> = config.targets.iter().map(|c| &c.target.name).collect();
    assert_eq!(names.len(), config.targets.len());
    let lines = text(bytes).lines().count();
    assert!(config.targets.iter().flat_map(|c| c.lines.values()).all(|line| (1..=lines).contains(line)));
}

/// The user's `config.toml`, and the units in both.
pub fn user(bytes: &[u8]) {
    told(User::parse(text(bytes)), bytes);
    told(units::duration(text(bytes)), bytes);
    if let Some(size) = told(units::size(text(bytes)), bytes) {
        assert!(!units::human(size).is_empty());
    }
}

/// A known root.
pub fn known(bytes: &[u8]) {
    let Ok(known) = serde_json::from_slice::<Known>(bytes) else { return };
    let again = serde_json::to_vec(&known).expect("it was read from JSON");
    assert_eq!(serde_json::from_slice::<Known>(&again).unwrap(), known);
}

/// What the user agreed to.
pub fn consent(bytes: &[u8]) {
    let Ok(consent) = serde_json::from_slice::<Consent>(bytes) else { return };
    let again = serde_json::to_vec(&consent).expect("it was read from JSON");
    assert_eq!(serde_json::from_slice::<Consent>(&again).unwrap(), consent);
}

/// The last line is a path, the others patterns: time grows with the product of both, not
/// faster.
pub fn patterns(bytes: &[u8]) {
    let at = bytes.iter().rposition(|&b| b == b'\n').unwrap_or(0);
    let (file, path) = bytes.split_at(at);
    let patterns = Patterns::parse(file);
    for directory in [false, true] {
        if let Some((at, _)) = patterns.decide(path, directory) {
            assert!(at < patterns.iter().count());
        }
    }
}

/// Options of a captured directory: a key and a value in each line, `,` between lines of
/// a value.
pub fn options(bytes: &[u8]) {
    let lines = text(bytes).lines().filter_map(|line| line.split_once('='));
    let pairs: Vec<(String, String)> = lines.map(|(k, v)| (k.to_owned(), v.replace(',', "\n"))).collect();
    let Ok(options) = Options::parse(&pairs) else { return };
    assert_eq!(options.text, pairs);
    assert!(Options::parse(&options.text).is_ok());
}

/// What git has of a work tree: its index, its refs and its settings; and the path of a setting.
pub fn git(bytes: &[u8]) {
    match parse(bytes) {
        Some(Ref::Id(id)) => assert!(matches!(id.len(), 40 | 64)),
        Some(Ref::To(to)) => assert!(!to.is_empty() && to.len() <= bytes.len()),
        None => {}
    }
    let listed = staged_in(bytes).unwrap_or(0);
    assert!(listed <= 80 * bytes.len() + 4096 * bytes.len(), "a list is of what is there");
    let tracked = Tracked::in_file(bytes);
    assert!(!tracked.is_any_in(b"\0"));
    let mut told = 0;
    each(bytes, &mut |section, key, value| {
        told += section.len().min(1) + key.len() + value.map_or(0, <[u8]>::len);
    });
    assert!(told <= 2 * bytes.len(), "each setting is told once");
    assert_eq!(*of_setting(&to_setting(bytes)), *bytes);
}

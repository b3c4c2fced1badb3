//! What a component may reach in one call.
//!
//! One pure function: effective = what the manifest asks for ∩ what was given. A
//! component that asks for nothing gets nothing; a value that nobody asked for opens
//! nothing. Consent to what lies outside the project comes on top, at the moment of use.

mod value;

pub use value::check_value;

use crate::manifest::{Access, Kind, Manifest, Setting};
use snapback_core::error::{Error, Kind as ErrorKind, Result};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a component may reach in one call, and how much it may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// What was given for each setting, else the default.
    values: BTreeMap<String, Value>,
    /// Limits of the call.
    pub limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    kind: Kind,
    access: Access,
    text: String,
    /// Whether it is another one than the manifest has for it.
    is_chosen: bool,
}

/// How much a component may use in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory. A compiled Python needs tens of megabytes; more than this is a leak.
    pub memory: usize,
    /// Time without a call of the host, after which it is taken for a loop.
    pub silence: Duration,
    /// Time that it may wait for something that is not the host's own: a server that does
    /// not answer. Long, since a server may copy a large database meanwhile.
    pub waiting: Duration,
    /// Messages, omissions and refusals that are passed on one by one; the rest is counted.
    pub messages: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 512 * 1024 * 1024,
            silence: Duration::from_secs(30),
            waiting: Duration::from_secs(600),
            messages: 10_000,
        }
    }
}

/// What `manifest` asks for, met by `given`.
///
/// # Errors
/// `Invalid` when a value is not of its kind, or one that is required is not there.
pub fn effective(manifest: &Manifest, given: &BTreeMap<String, String>, limits: Limits) -> Result<Grants> {
    let mut values = BTreeMap::new();
    for setting in &manifest.settings {
        let Some(text) = value::of(setting, given)? else { continue };
        let is_chosen = setting.default.as_deref() != Some(text);
        let value = Value { kind: setting.kind, access: setting.access, text: text.to_owned(), is_chosen };
        values.insert(setting.key.clone(), value);
    }
    Ok(Grants { values, limits })
}

/// What speaks against the values `given` to a component with this `manifest`: the first key,
/// and why. None when nothing does.
pub fn objection(manifest: &Manifest, given: &BTreeMap<String, String>) -> Option<(String, Error)> {
    let wrong = |setting: &Setting| Some((setting.key.clone(), value::of(setting, given).err()?));
    manifest.settings.iter().find_map(wrong)
}

impl Grants {
    /// What opens nothing at all, with limits of its own.
    pub fn of_nothing(limits: Limits) -> Self {
        Self { values: BTreeMap::new(), limits }
    }

    /// The value of a setting.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(|value| value.text.as_str())
    }

    /// The settings of a kind that carries authority: key, kind, what is done there, value.
    pub fn authority(&self) -> impl Iterator<Item = (&str, Kind, Access, &str)> {
        let all = self.values.iter().filter(|(_, value)| value.kind.is_authority());
        all.map(|(key, value)| (key.as_str(), value.kind, value.access, value.text.as_str()))
    }

    /// All values, by key.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.text.as_str()))
    }

    /// The values that open nothing and are not what the manifest has for them, by key.
    pub fn chosen(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.values.iter().filter(|(_, value)| value.is_chosen && !value.kind.is_authority());
        all.map(|(key, value)| (key.as_str(), value.text.as_str()))
    }

    /// The value of a setting that may open something of `kind`, and what may be done there.
    ///
    /// # Errors
    /// `Denied` when the manifest does not ask for that with this setting, or when it
    /// has no value.
    pub fn open(&self, key: &str, kind: Kind) -> Result<(&str, Access)> {
        match self.values.get(key) {
            Some(value) if value.kind == kind && kind.is_authority() => Ok((&value.text, value.access)),
            Some(value) => Err(Error::new(
                ErrorKind::Denied,
                format!("the setting `{key}` is of kind {}, which opens no {kind}", value.kind),
            )),
            None => {
                Err(Error::new(ErrorKind::Denied, format!("no setting `{key}` of kind {kind} was given")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest::parse(
            r#"
            name = "x"
            version = "1"
            [[setting]]
            key = "place"
            kind = "dir"
            [[setting]]
            key = "home"
            kind = "dir"
            access = "write"
            default = "."
            [[setting]]
            key = "label"
            kind = "text"
            [[setting]]
            key = "count"
            kind = "number"
            default = 3
            "#,
        )
        .unwrap()
    }

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn wanted(pairs: &[(&str, &str)]) -> Result<Grants> {
        effective(&manifest(), &given(pairs), Limits::default())
    }

    #[test]
    fn effective_is_what_is_wanted_and_given() {
        // given, key, kind that is opened, what comes of it
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, Kind, Result<(&'a str, Access), &'a str>);
        let table: &[Row<'_>] = &[
            (&[("place", "src")], "place", Kind::Dir, Ok(("src", Access::Read))),
            (&[], "home", Kind::Dir, Ok((".", Access::Write))),
            (&[("home", "src")], "home", Kind::Dir, Ok(("src", Access::Write))),
            (&[], "place", Kind::Dir, Err("no setting `place` of kind dir was given")),
            (&[("place", "src")], "place", Kind::File, Err("is of kind dir, which opens no file")),
            (&[("label", "/etc")], "label", Kind::Dir, Err("is of kind text, which opens no dir")),
            (&[("label", "/etc")], "label", Kind::Text, Err("which opens no text")),
            (&[("unknown", "/etc")], "unknown", Kind::Dir, Err("no setting `unknown` of kind dir was given")),
        ];
        for (values, key, kind, expected) in table {
            let grants = wanted(values).unwrap();
            match (grants.open(key, *kind), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, *expected),
                (Err(error), Err(part)) => {
                    assert!(error.message().contains(part), "{}", error.message());
                    assert_eq!(error.kind(), ErrorKind::Denied);
                }
                (found, _) => panic!("{values:?} {key}: {found:?}"),
            }
        }
    }

    #[test]
    fn nothing_wanted_is_nothing_granted() {
        let nothing = Manifest::parse("name = \"x\"\nversion = \"1\"").unwrap();
        assert_eq!(
            effective(&nothing, &given(&[("place", "/"), ("home", "/")]), Limits::default()).unwrap(),
            Grants::default()
        );
    }

    #[test]
    fn values_are_of_their_kind() {
        let error = wanted(&[("count", "many")]).unwrap_err();
        assert_eq!(error.message(), "`count` is a number, not `many`");
        assert_eq!(wanted(&[]).unwrap().value("count"), Some("3"));
        assert_eq!(wanted(&[]).unwrap().value("label"), None);
    }

    #[test]
    fn what_was_chosen_is_told_from_what_is_so_anyway() {
        let chosen = |values: &[(&str, &str)]| {
            let grants = wanted(values).unwrap();
            grants.chosen().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&[]), [""; 0]);
        assert_eq!(chosen(&[("count", "3"), ("place", "src")]), [""; 0]);
        assert_eq!(chosen(&[("count", "4"), ("label", "x"), ("home", "src")]), ["count=4", "label=x"]);
    }
}

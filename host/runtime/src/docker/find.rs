//! A volume by its name: as the engine has it, else as compose calls it, when only one is
//! called so, or only one of the projects of compose that the folder holds.
//!
//! Where something is to be put back, the volume is the one that it was captured from, whatever
//! the name means by now: another one is never written into, and one that is gone is gone.

use super::daemon::Daemon;
use super::{fault, project};
use bollard::models::Volume as Found;
use bollard::query_parameters::ListVolumesOptions;
use snapback_core::backend::Part;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::ObjectKind;
use snapback_core::project::nearest;
use snapback_core::store::Source;
use snapback_core::tree::view::read_root;
use snapback_core::volume::Volume as Stored;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The label in which compose keeps the name that its file has for a volume.
const NAME: &str = "com.docker.compose.volume";
/// The label in which compose keeps the project that a volume is of.
const PROJECT: &str = "com.docker.compose.project";
/// Volumes that an error names.
const SHOWN: usize = 5;

/// What a setting says of a volume, and what that is understood by.
#[derive(Debug, Clone, Default)]
pub struct Meant {
    /// The setting's value.
    pub value: String,
    /// The folder: the project whose setting it is.
    pub root: PathBuf,
    /// What the engine called the volume from which came what is to be put back.
    pub was: Option<String>,
}

/// From which volumes came the `parts` that are to be put back, by the setting of each.
pub fn captured_from(source: &dyn Source, parts: &[Part]) -> BTreeMap<String, String> {
    let parts = parts.iter().filter(|part| part.content.kind() == ObjectKind::Volume);
    let volume = |part: &Part| {
        let stored = Stored::load(source, &part.content).ok()?;
        Some((read_root(source, &stored.root).ok()?.setting, stored.name))
    };
    parts.filter_map(volume).collect()
}

/// The volume that is `meant`; none when there is none, or several of compose's.
///
/// # Errors
/// When the engine cannot be asked.
pub fn resolve(daemon: &Daemon, meant: &Meant) -> Result<Option<Found>> {
    if let Some(name) = &meant.was {
        return named(daemon, name);
    }
    if let Some(found) = named(daemon, &meant.value)? {
        return Ok(Some(found));
    }
    let called = called(all(daemon)?, &meant.value);
    if called.len() < 2 {
        return Ok(called.into_iter().next());
    }
    let variables = daemon.lent().variables;
    let of = |projects: &[String]| {
        let is_of = |found: &&Found| found.labels.get(PROJECT).is_some_and(|p| projects.contains(p));
        only(called.iter().filter(is_of))
    };
    let own = of(project::of(&meant.root, variables).as_slice());
    Ok(own.or_else(|| of(&project::below(&meant.root, variables))).cloned())
}

/// The volume that the engine calls `name`.
fn named(daemon: &Daemon, name: &str) -> Result<Option<Found>> {
    if !is_name(name) {
        return Ok(None);
    }
    match daemon.try_ask(async |client| client.inspect_volume(name).await)? {
        Ok(found) => Ok(Some(found)),
        Err(answer) if fault::is_missing(&answer) => Ok(None),
        Err(answer) => Err(daemon.explain(&format!("look at the volume `{name}`"), &answer)),
    }
}

/// Those of `all` that compose calls `name`.
fn called(all: Vec<Found>, name: &str) -> Vec<Found> {
    all.into_iter().filter(|found| found.labels.get(NAME).is_some_and(|n| n == name)).collect()
}

/// The one that there is, if there are not several.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// Why `name` means no volume, with those that are called like it.
///
/// # Errors
/// When the engine cannot be asked.
pub fn missing(daemon: &Daemon, name: &str) -> Result<Error> {
    let all = all(daemon)?;
    let called = called(all.clone(), name);
    if called.len() > 1 {
        let called: Vec<&str> = called.iter().map(|found| &*found.name).collect();
        let why = format!("`{name}` is a volume in several projects of compose: {}", listed(&called));
        return Ok(Error::new(Kind::Invalid, why).hint("name the one that is meant in full"));
    }
    let names: Vec<&str> = all.iter().map(|found| &*found.name).collect();
    let known = |found: &Found| found.labels.get(NAME).cloned();
    let other: Vec<String> = all.iter().filter_map(known).collect();
    let near = nearest(name, names.iter().copied().chain(other.iter().map(String::as_str)));
    let holding: Vec<&str> = names.iter().copied().filter(|other| other.contains(name)).collect();
    let error = Error::new(Kind::NotFound, format!("there is no volume `{name}`"));
    Ok(match (near, holding.is_empty(), names.is_empty()) {
        (_, false, _) => error.hint(format!("did you mean {}?", listed(&holding))),
        (Some(near), ..) => error.hint(format!("did you mean `{near}`?")),
        (None, _, true) => {
            error.hint("the engine has no volumes; is it the right one? (`docker context ls`)")
        }
        (None, ..) => error.hint(format!("the engine has {}", listed(&names))),
    })
}

fn all(daemon: &Daemon) -> Result<Vec<Found>> {
    let list =
        daemon.ask("list volumes", async |client| client.list_volumes(None::<ListVolumesOptions>).await)?;
    let mut all = list.volumes.unwrap_or_default();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Whether the engine could have a volume of this name: nothing else is put into a request.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_get_into_a_request() {
        for name in ["a", "pg_data", "my-project_pg.data", "0"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", ".", "..", "a/b", "../x", "a?force=1", "a b", "ä"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn one_of_several_is_none() {
        assert_eq!([only([].iter()), only([1].iter()), only([1, 2].iter())], [None, Some(&1), None]);
    }

    #[test]
    fn many_names_are_counted() {
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b", "c", "d", "e", "f"]), "`a`, `b`, `c`, `d`, `e` and 1 more");
    }
}

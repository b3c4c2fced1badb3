//! A volume by its name: as the engine has it, else as compose calls it, when only one is
//! called so.

use super::daemon::Daemon;
use super::fault;
use bollard::models::Volume as Found;
use bollard::query_parameters::ListVolumesOptions;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::project::nearest;

/// The label in which compose keeps the name that its file has for a volume.
const NAME: &str = "com.docker.compose.volume";
/// Volumes that an error names.
const SHOWN: usize = 5;

/// The volume that `name` means; none when there is none, or several of compose's.
///
/// # Errors
/// When the engine cannot be asked.
pub fn resolve(daemon: &Daemon, name: &str) -> Result<Option<Found>> {
    if is_name(name) {
        match daemon.try_ask(async |client| client.inspect_volume(name).await)? {
            Ok(found) => return Ok(Some(found)),
            Err(answer) if fault::is_missing(&answer) => {}
            Err(answer) => return Err(daemon.explain(&format!("look at the volume `{name}`"), &answer)),
        }
    }
    let mut called =
        all(daemon)?.into_iter().filter(|found| found.labels.get(NAME).is_some_and(|n| n == name));
    Ok(match (called.next(), called.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    })
}

/// Why `name` means no volume, with those that are called like it.
///
/// # Errors
/// When the engine cannot be asked.
pub fn missing(daemon: &Daemon, name: &str) -> Result<Error> {
    let all = all(daemon)?;
    let called: Vec<&str> =
        all.iter().filter(|f| f.labels.get(NAME).is_some_and(|n| n == name)).map(|f| &*f.name).collect();
    if called.len() > 1 {
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
    fn many_names_are_counted() {
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b", "c", "d", "e", "f"]), "`a`, `b`, `c`, `d`, `e` and 1 more");
    }
}

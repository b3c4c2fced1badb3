//! The containers that use a volume.

use super::daemon::Daemon;
use super::marker;
use bollard::query_parameters::{InspectContainerOptions, ListContainersOptions};
use snapback_core::error::Result;

/// A container that runs with the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// How the engine knows it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Somebody paused it.
    pub paused: bool,
    /// It goes when it is stopped.
    pub fleeting: bool,
}

/// Those that run with the volume `name`, sorted by name; none that this program made.
///
/// # Errors
/// When the engine cannot be asked.
pub fn of(daemon: &Daemon, name: &str) -> Result<Vec<User>> {
    let filters = [("volume".to_owned(), vec![name.to_owned()])].into();
    let options = ListContainersOptions { filters: Some(filters), ..Default::default() };
    let doing = format!("find out who uses the volume `{name}`");
    let found = daemon.ask(&doing, async |client| client.list_containers(Some(options)).await)?;
    let mut users = Vec::new();
    for container in found {
        let ours = container.labels.as_ref().is_some_and(|labels| labels.contains_key(marker::OWNER));
        // The filter also takes a part of a name.
        let mounts = container.mounts.iter().flatten();
        let uses = mounts.into_iter().any(|mount| mount.name.as_deref() == Some(name));
        let Some(id) = container.id.filter(|_| uses && !ours) else { continue };
        if let Some(user) = look(daemon, &id)? {
            users.push(user);
        }
    }
    users.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(users)
}

/// What the container `id` is; none when it does not run any more.
///
/// # Errors
/// When the engine cannot be asked.
pub fn look(daemon: &Daemon, id: &str) -> Result<Option<User>> {
    let doing = format!("look at the container {id}");
    let answer =
        daemon.try_ask(async |client| client.inspect_container(id, None::<InspectContainerOptions>).await)?;
    let found = match answer {
        Ok(found) => found,
        Err(answer) if super::fault::is_missing(&answer) => return Ok(None),
        Err(answer) => return Err(daemon.explain(&doing, &answer)),
    };
    let state = found.state.unwrap_or_default();
    if state.running != Some(true) && state.restarting != Some(true) {
        return Ok(None);
    }
    let name = found.name.unwrap_or_default().trim_start_matches('/').to_owned();
    let fleeting = found.host_config.and_then(|config| config.auto_remove).unwrap_or_default();
    Ok(Some(User { id: id.to_owned(), name, paused: state.paused == Some(true), fleeting }))
}

/// Their names, in words.
pub fn names(users: &[User]) -> String {
    users.iter().map(|user| user.name.as_str()).collect::<Vec<_>>().join(", ")
}

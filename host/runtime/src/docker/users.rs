//! The containers that use a volume.

use super::daemon::Daemon;
use super::marker;
use super::restart::Restart;
use bollard::query_parameters::{InspectContainerOptions, ListContainersOptions};
use snapback_core::error::Result;
use std::collections::HashSet;

/// A container that uses the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// How the engine knows it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// It runs, paused or not.
    pub running: bool,
    /// Somebody paused it.
    pub paused: bool,
    /// It ended by itself, and is started again after a while: until then it cannot be paused.
    pub restarting: bool,
    /// It goes when it is stopped.
    pub fleeting: bool,
    /// When the engine starts it by itself.
    pub restart: Option<Restart>,
}

/// Those that run with the volume `name`, or are `known` to be held and mount it, sorted by
/// name; none that this program made.
///
/// # Errors
/// When the engine cannot be asked.
pub fn of(daemon: &Daemon, name: &str, known: &HashSet<&str>) -> Result<Vec<User>> {
    let filters = [("volume".to_owned(), vec![name.to_owned()])].into();
    let all = !known.is_empty();
    let options = ListContainersOptions { all, filters: Some(filters), ..Default::default() };
    let doing = format!("find out who uses the volume `{name}`");
    let found = daemon.once_settled(|| {
        daemon.try_ask(async |client| client.list_containers(Some(options.clone())).await)
    })?;
    let found = found.map_err(|answer| daemon.explain(&doing, &answer))?;
    let mut users = Vec::new();
    for container in found {
        let ours = container.labels.as_ref().is_some_and(|labels| labels.contains_key(marker::OWNER));
        // The filter also takes a part of a name.
        let mounts = container.mounts.iter().flatten();
        let uses = mounts.into_iter().any(|mount| mount.name.as_deref() == Some(name));
        let Some(id) = container.id.filter(|_| uses && !ours) else { continue };
        if let Some(user) = inspect(daemon, &id)?.filter(|user| user.running || known.contains(&*id)) {
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
    Ok(inspect(daemon, id)?.filter(|user| user.running))
}

/// What the container `id` is; none when there is none.
fn inspect(daemon: &Daemon, id: &str) -> Result<Option<User>> {
    let doing = format!("look at the container {id}");
    let answer = daemon.once_settled(|| {
        daemon.try_ask(async |client| client.inspect_container(id, None::<InspectContainerOptions>).await)
    })?;
    let found = match answer {
        Ok(found) => found,
        Err(answer) if super::fault::is_missing(&answer) => return Ok(None),
        Err(answer) => return Err(daemon.explain(&doing, &answer)),
    };
    let state = found.state.unwrap_or_default();
    let restarting = state.restarting == Some(true);
    let running = state.running == Some(true) || restarting;
    let name = found.name.unwrap_or_default().trim_start_matches('/').to_owned();
    let config = found.host_config.unwrap_or_default();
    let (fleeting, paused) = (config.auto_remove.unwrap_or_default(), state.paused == Some(true));
    let restart = config.restart_policy.and_then(Restart::of);
    Ok(Some(User { id: id.to_owned(), name, running, paused, restarting, fleeting, restart }))
}

/// What people call the container `id`; as the engine knows it, where it does not say.
pub fn name(daemon: &Daemon, id: &str) -> String {
    let found = inspect(daemon, id).ok().flatten();
    found.map_or_else(|| id.to_owned(), |user| user.name)
}

/// Their names, in words.
pub fn names<'u>(users: impl Iterator<Item = &'u User>) -> String {
    users.map(|user| user.name.as_str()).collect::<Vec<_>>().join(", ")
}

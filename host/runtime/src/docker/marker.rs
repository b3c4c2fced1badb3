//! Containers of our own on the engine: each is marked with who made it, so that what a
//! killed process left is found and removed by the next one.
//!
//! One that holds others is never started: it is a record, kept where those are that it is
//! about, and outlives this process and the engine's own end.

use super::daemon::Daemon;
use super::hold::{self, Record};
use super::{image, owner};
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptions, ListContainersOptions, RemoveContainerOptions};
use snapback_core::error::Result;
use std::collections::HashMap;

/// The label that names the process that made it.
pub const OWNER: &str = "dev.snapback.owner";
/// The label that names the volume that it is for.
const VOLUME: &str = "dev.snapback.volume";
/// The label that says what it holds.
const HOLDS: &str = "dev.snapback.holds";
/// What would be run, if it were: nothing that is there.
const NOTHING: &str = "/nothing";

/// Notes on the engine what is about to be held because of `volume`; returns the record's name there.
///
/// # Errors
/// When the engine refuses.
pub fn note(daemon: &Daemon, volume: &str, record: &Record) -> Result<String> {
    let mut labels = labels(volume);
    labels.insert(HOLDS.to_owned(), record.text());
    let body = ContainerCreateBody {
        image: Some(image::empty(daemon)?.into()),
        cmd: Some(vec![NOTHING.into()]),
        labels: Some(labels),
        network_disabled: Some(true),
        ..Default::default()
    };
    create(daemon, body)
}

/// The labels of a container of this process for `volume`.
pub fn labels(volume: &str) -> HashMap<String, String> {
    [(OWNER.to_owned(), owner::me()), (VOLUME.to_owned(), volume.to_owned())].into()
}

/// Makes a container; returns its name on the engine.
///
/// # Errors
/// When the engine refuses.
pub fn create(daemon: &Daemon, body: ContainerCreateBody) -> Result<String> {
    let made = daemon.ask("make a container", async |client| {
        client.create_container(None::<CreateContainerOptions>, body).await
    });
    Ok(made?.id)
}

/// Removes a container of our own; one that is gone is no failure.
///
/// # Errors
/// When the engine refuses.
pub fn remove(daemon: &Daemon, id: &str) -> Result<()> {
    let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
    match daemon.try_ask(async |client| client.remove_container(id, Some(options)).await)? {
        Err(answer) if !super::fault::is_missing(&answer) => {
            Err(daemon.explain("remove a container of our own", &answer))
        }
        _ => Ok(()),
    }
}

/// Lets go of what processes hold that are gone, and removes what they left; says how many
/// containers were let go.
///
/// # Errors
/// When the engine cannot be asked, or refuses.
pub fn sweep(daemon: &Daemon) -> Result<usize> {
    let filters = [("label".to_owned(), vec![OWNER.to_owned()])].into();
    let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
    let ours =
        daemon.ask("look for what was left", async |client| client.list_containers(Some(options)).await)?;
    let mut freed = 0;
    for container in ours {
        let labels = container.labels.unwrap_or_default();
        let Some(id) = container.id.filter(|_| labels.get(OWNER).is_some_and(|owner| owner::is_gone(owner)))
        else {
            continue;
        };
        if let Some(record) = labels.get(HOLDS).and_then(|text| Record::parse(text)) {
            freed += record.held.len();
            hold::let_go(daemon, &record)?;
        }
        remove(daemon, &id)?;
    }
    Ok(freed)
}

//! Containers of our own on the engine: each is marked with who made it, so that what a
//! killed process left is found and removed by the next one.
//!
//! One that holds others is never started: it is a record, kept where those are that it is
//! about, and outlives this process and the engine's own end. What it stands for by now is
//! in its name, which is all of it that can be changed.

use super::daemon::Daemon;
use super::hold::Wanted;
use super::record::{How, Record};
use super::users::{self, User};
use super::{fault, image, owner};
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, ListContainersOptions, RemoveContainerOptions, RenameContainerOptions,
};
use snapback_core::error::Result;
use std::collections::HashMap;
use std::time::Duration;

/// The label that names the process that made it.
pub const OWNER: &str = "dev.snapback.owner";
/// The label that names the volume that it is for.
const VOLUME: &str = "dev.snapback.volume";
/// The label that says what it holds.
const HOLDS: &str = "dev.snapback.holds";
/// The label that names the volume whose files are kept in memory.
pub const KEEPS: &str = "dev.snapback.keeps";
/// The label that says for which project.
const PROJECT: &str = "dev.snapback.project";
/// Digits of a record's number in its name.
const ID: usize = 12;
/// What would be run in one that is never started: nothing that is there.
pub const NOTHING: &str = "/nothing";

/// How often a container of our own is removed once more, and how long is waited between.
const TRIES: u32 = 50;
/// See [`TRIES`].
const AGAIN: Duration = Duration::from_millis(100);

/// What a record stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its containers are held while its process lives.
    Holding,
    /// They are held, whether or not it lives: files are half put back.
    Half,
    /// They are not held any more, at least not because of it.
    Left,
}

impl State {
    /// How the record is called that stands for it; one that was never renamed is held.
    fn name(self) -> &'static str {
        match self {
            Self::Holding => "snapback-holds-",
            Self::Half => "snapback-half-",
            Self::Left => "snapback-left-",
        }
    }

    fn of(names: &[String]) -> Self {
        let is =
            |state: &Self| names.iter().any(|name| name.trim_start_matches('/').starts_with(state.name()));
        [Self::Half, Self::Left].into_iter().find(is).unwrap_or(Self::Holding)
    }
}

/// A record on the engine of what is held.
pub struct Marker {
    /// The engine's name for it.
    pub id: String,
    pub state: State,
    /// The process that made it.
    pub owner: String,
    /// The volume that it is for.
    pub volume: String,
    /// The root of the project; empty where that was not noted.
    pub project: String,
    pub record: Record,
}

impl Marker {
    /// Whether the process that made it may be there still.
    pub fn is_live(&self) -> bool {
        !owner::is_gone(&self.owner)
    }

    /// Whether its containers are to stay held because of it.
    pub fn holds(&self) -> bool {
        match self.state {
            State::Holding => self.is_live(),
            State::Half => true,
            State::Left => false,
        }
    }

    /// Its containers.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.record.held.iter().map(String::as_str)
    }
}

/// A container of our own that holds nothing.
pub struct Helper {
    /// The engine's name for it.
    pub id: String,
    /// The process that made it.
    pub owner: String,
    /// The volume whose files it keeps in memory.
    pub keeps: Option<String>,
}

/// All records on the engine; and the other containers of our own.
///
/// # Errors
/// When the engine cannot be asked.
pub fn all(daemon: &Daemon) -> Result<(Vec<Marker>, Vec<Helper>)> {
    let filters = [("label".to_owned(), vec![OWNER.to_owned()])].into();
    let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
    let ours = daemon.once_settled(|| {
        daemon.try_ask(async |client| client.list_containers(Some(options.clone())).await)
    })?;
    let ours = ours.map_err(|answer| daemon.explain("look for what was left", &answer))?;
    let (mut markers, mut others) = (Vec::new(), Vec::new());
    for container in ours {
        let mut labels = container.labels.unwrap_or_default();
        let mut label = |key: &str| labels.remove(key).unwrap_or_default();
        let (owner, volume, project, holds) = (label(OWNER), label(VOLUME), label(PROJECT), label(HOLDS));
        let keeps = labels.remove(KEEPS);
        let Some(id) = container.id else { continue };
        match Record::parse(&holds) {
            Some(record) => {
                let state = State::of(&container.names.unwrap_or_default());
                markers.push(Marker { id, state, owner, volume, project, record });
            }
            None => others.push(Helper { id, owner, keeps }),
        }
    }
    Ok((markers, others))
}

/// Has the record `id` stand for `state`; one that is gone is no failure.
///
/// # Errors
/// When the engine refuses.
pub fn rename(daemon: &Daemon, id: &str, state: State) -> Result<()> {
    let name = format!("{}{}", state.name(), &id[..id.len().min(ID)]);
    let options = RenameContainerOptions { name };
    match daemon.try_ask(async |client| client.rename_container(id, options).await)? {
        Err(answer) if !fault::is_missing(&answer) && !fault::is_already_so(&answer) => {
            Err(daemon.explain("note what is held", &answer))
        }
        _ => Ok(()),
    }
}

/// Notes on the engine what is about to be held; returns the record's name there.
///
/// # Errors
/// When the engine refuses.
pub fn note(daemon: &Daemon, wanted: &Wanted<'_>, record: &Record) -> Result<String> {
    let mut labels = labels(wanted.volume);
    labels.insert(HOLDS.to_owned(), record.text());
    labels.insert(PROJECT.to_owned(), wanted.project.to_owned());
    let body = ContainerCreateBody {
        image: Some(image::empty(daemon)?),
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

/// Removes a container of our own; one that is gone, or that another process is removing, is
/// no failure. What is refused is tried again for a while: podman has many words for a container
/// with whose end it is not done, and they pass.
///
/// # Errors
/// When the engine goes on refusing.
pub fn remove(daemon: &Daemon, id: &str) -> Result<()> {
    let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
    for left in (0..TRIES).rev() {
        let options = options.clone();
        match daemon.try_ask(async |client| client.remove_container(id, Some(options)).await)? {
            Err(answer) if fault::is_missing(&answer) => break,
            Err(answer) if fault::is_already_so(&answer) || left > 0 && !fault::is_away(&answer) => {
                std::thread::sleep(AGAIN);
            }
            Err(answer) => return Err(daemon.explain("remove a container of our own", &answer)),
            Ok(()) => break,
        }
    }
    Ok(())
}

/// Which containers stay held since a killed process left files half put back in the project
/// at `root`: for each volume.
///
/// # Errors
/// When the engine cannot be asked.
pub fn kept(daemon: &Daemon, root: &str) -> Result<Vec<Kept>> {
    let markers = all(daemon)?.0.into_iter();
    let left = markers.filter(|marker| marker.state == State::Half && marker.project == root);
    let kept = |marker: Marker| {
        let known = marker.ids().collect();
        let users = users::of(daemon, &marker.volume, &known)?;
        let (running, held): (Vec<&User>, Vec<&User>) =
            users.iter().filter(|user| known.contains(&*user.id)).partition(|u| u.running && !u.paused);
        let (containers, running) = (users::names(held.into_iter()), users::names(running.into_iter()));
        Ok(Kept { containers, running, how: marker.record.how, volume: marker.volume.clone() })
    };
    left.filter(|marker| !marker.is_live()).map(kept).collect()
}

/// Containers that stay held.
pub struct Kept {
    /// The volume.
    pub volume: String,
    /// What people call those that are held.
    pub containers: String,
    /// What people call those that somebody started all the same.
    pub running: String,
    /// How they are held.
    pub how: How,
}

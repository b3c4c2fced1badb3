//! Holding the containers that use a volume, and letting go of them, always.
//!
//! Before the first is touched, a record of all stands on the engine, and a small process
//! watches over this one: it lets go at once when this one is gone. If it is gone as well,
//! the next command that talks to the engine finds the record. So nothing stays held but
//! where nobody asks again.
//!
//! Refuses to stop a container that goes when it is stopped.

use super::daemon::{BETWEEN, Daemon, TRIES};
use super::users::{self, User};
use super::watch::Watcher;
use super::{fault, marker};
use bollard::Docker;
use bollard::errors::Error as Fault;
use bollard::query_parameters::{StartContainerOptions, StopContainerOptions};
use serde::{Deserialize, Serialize};
use snapback_core::error::{Error, Kind, Result};

/// What helps where podman holds nobody.
const PODMAN: &str =
    "a rootless podman pauses containers only with version 2 of cgroups; `hold = \"stop\"` needs none";

/// How containers are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// All their processes stand still.
    Pause,
    /// They are ended, and started again.
    Stop,
}

impl How {
    /// What a word asks for; none for not at all.
    ///
    /// # Errors
    /// `Invalid` for another word.
    pub fn parse(word: &str) -> Result<Option<Self>> {
        match word {
            "pause" => Ok(Some(Self::Pause)),
            "stop" => Ok(Some(Self::Stop)),
            "none" => Ok(None),
            _ => Err(Error::new(
                Kind::Invalid,
                format!("containers are held by pause, stop or none, not by `{word}`"),
            )),
        }
    }

    /// How often letting go is done again after a kill, a second between: a container has ten
    /// seconds to stop, and stops although nobody waits for it any more.
    pub fn lags(self) -> u32 {
        match self {
            Self::Pause => 2,
            Self::Stop => 15,
        }
    }

    /// What is done to them, in a word.
    pub fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Stop => "stopped",
        }
    }
}

/// What is held, and how: enough to let go of it without knowing anything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// How.
    pub how: How,
    /// The containers, as the engine knows them, in the order in which they were held.
    pub held: Vec<String>,
}

impl Record {
    /// As text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a record can be written")
    }

    /// Reads what [`Self::text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Containers that are held until this is dropped.
pub struct Held {
    daemon: Daemon,
    record: Record,
    marker: String,
    watcher: Option<Watcher>,
    /// What people call them.
    pub names: String,
}

impl Held {
    /// Holds `users` of `volume`; those that somebody paused stand still already, and stay so.
    ///
    /// # Errors
    /// `Busy` when one of them cannot be stopped without losing it, and when the engine
    /// refuses: then none is held.
    pub fn take(daemon: &Daemon, how: How, volume: &str, users: &[User]) -> Result<Option<Self>> {
        if how == How::Stop {
            refuse(users)?;
        }
        let users: Vec<User> = users.iter().filter(|user| !user.paused).cloned().collect();
        if users.is_empty() {
            return Ok(None);
        }
        let record = Record { how, held: users.iter().map(|user| user.id.clone()).collect() };
        let marker = marker::note(daemon, volume, &record)?;
        let watcher = Watcher::start(daemon, &marker, &record);
        let names = users::names(&users);
        // From here on, whatever happens lets go.
        let held = Self { daemon: daemon.clone(), record, marker, watcher, names };
        for user in &users {
            let (id, doing) = (&user.id, format!("hold the container {}", user.name));
            let done = daemon.try_ask(async |client| match how {
                How::Pause => client.pause_container(id).await,
                How::Stop => client.stop_container(id, None::<StopContainerOptions>).await,
            })?;
            match done {
                // It may have ended by itself meanwhile.
                Err(answer) if users::look(daemon, id)?.is_some() => {
                    let error = daemon.explain(&doing, &answer);
                    return Err(if daemon.is_podman() { error.hint(PODMAN) } else { error });
                }
                _ => {}
            }
        }
        Ok(Some(held))
    }

    fn end(&mut self) -> Result<()> {
        let_go(&self.daemon, &self.record)?;
        marker::remove(&self.daemon, &self.marker)?;
        if let Some(watcher) = self.watcher.take() {
            watcher.dismiss();
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // What fails here is done by the watcher, which sees that it was not dismissed.
        let _ = self.end();
    }
}

fn refuse(users: &[User]) -> Result<()> {
    let of = |pick: fn(&User) -> bool| users.iter().find(|user| pick(user));
    if let Some(user) = of(|user| user.fleeting) {
        let why = format!("the container {} was started with --rm: stopping it would remove it", user.name);
        return Err(Error::new(Kind::Busy, why)
            .hint("end it yourself and try again, or set `hold = \"pause\"` for this target"));
    }
    if let Some(user) = of(|user| user.paused) {
        let why = format!("the container {} is paused, and would not be afterwards", user.name);
        return Err(
            Error::new(Kind::Busy, why).hint(format!("`docker unpause {}`, and try again", user.name))
        );
    }
    Ok(())
}

/// Lets go of what `record` says, the last first. One that is not held is left as it is.
/// An engine that is away is waited for.
///
/// # Errors
/// When the engine refuses.
pub fn let_go(daemon: &Daemon, record: &Record) -> Result<()> {
    let mut failed = None;
    for id in record.held.iter().rev() {
        let mut tries = 0;
        let done = loop {
            match daemon.try_ask(async |client| free(client, record.how, id).await)? {
                Err(answer) if fault::is_away(&answer) && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(BETWEEN);
                }
                done => break done,
            }
        };
        if let Err(answer) = done {
            failed = failed.or(Some(daemon.explain(&format!("let go of the container {id}"), &answer)));
        }
    }
    failed.map_or(Ok(()), Err)
}

async fn free(client: &Docker, how: How, id: &str) -> Result<(), Fault> {
    let done = match how {
        How::Pause => client.unpause_container(id).await,
        How::Stop => client.start_container(id, None::<StartContainerOptions>).await,
    };
    match done {
        // It is not paused (any more), runs already, or was removed.
        Err(Fault::DockerResponseServerError { status_code: 304 | 404 | 409, .. }) => Ok(()),
        // How docker says that a container is not paused.
        Err(Fault::DockerResponseServerError { status_code: 500, message })
            if how == How::Pause && message.contains("not paused") =>
        {
            Ok(())
        }
        done => done,
    }
}

//! Whether an engine that starts again starts a container by itself, switched off while files
//! that it uses are half put back.
//!
//! What it was is in the record of who is held, so that whoever lets go gives it back. A podman
//! that cannot change it is let be: there a service of the system starts them, if anybody does.

use super::daemon::Daemon;
use super::fault;
use bollard::models::{ContainerUpdateBody, RestartPolicy, RestartPolicyNameEnum as Name};
use serde::{Deserialize, Serialize};
use snapback_core::error::Result;

/// When an engine starts a container by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// The engine's word for it.
    name: Name,
    /// How often it is tried, where that is limited.
    tries: Option<i64>,
}

impl Restart {
    /// What a container has; none when it is never started by itself.
    pub fn of(policy: RestartPolicy) -> Option<Self> {
        let name = policy.name.filter(|name| !matches!(name, Name::EMPTY | Name::NO))?;
        Some(Self { name, tries: policy.maximum_retry_count })
    }

    /// Gives it back to the container `id`; one that is gone is no failure.
    ///
    /// # Errors
    /// When the engine refuses.
    pub fn give_back(&self, daemon: &Daemon, id: &str) -> Result<()> {
        // Of the other kinds an engine refuses a number.
        let tries = self.tries.filter(|_| self.name == Name::ON_FAILURE);
        set(daemon, id, RestartPolicy { name: Some(self.name), maximum_retry_count: tries })
    }
}

/// Has the container `id` not started by the engine itself; one that is gone is no failure.
///
/// # Errors
/// When the engine refuses.
pub fn switch_off(daemon: &Daemon, id: &str) -> Result<()> {
    set(daemon, id, RestartPolicy { name: Some(Name::NO), maximum_retry_count: None })
}

fn set(daemon: &Daemon, id: &str, policy: RestartPolicy) -> Result<()> {
    let body = ContainerUpdateBody { restart_policy: Some(policy), ..Default::default() };
    match daemon.try_ask(async |client| client.update_container(id, body).await)? {
        Err(answer) if !fault::is_missing(&answer) && !daemon.is_podman() => {
            Err(daemon.explain("have a container not started by itself", &answer))
        }
        _ => Ok(()),
    }
}

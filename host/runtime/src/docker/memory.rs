//! Keeping the files of a volume that lies in memory while those who use it are stopped: with the
//! last container that runs with it they would be gone.
//!
//! One of our own runs with it meanwhile, and does nothing. Left by a process that was killed
//! while files were half put back, it stays until another goes on with that.

use super::daemon::Daemon;
use super::{image, marker};
use bollard::models::{Mount, MountType};
use bollard::query_parameters::StartContainerOptions;
use snapback_core::error::{Error, Kind, Result};

/// Where the volume is in it.
const AT: &str = "/volume";

/// The files of a volume, kept until this is dropped.
pub struct Kept {
    daemon: Daemon,
    id: String,
    stays: bool,
}

impl Kept {
    /// Keeps those of `volume`.
    ///
    /// # Errors
    /// `Busy` when nothing of ours runs there; when the engine refuses.
    pub fn start(daemon: &Daemon, volume: &str) -> Result<Self> {
        if !daemon.machine()?.runs_programs_of_ours() {
            let why = format!(
                "the files of the volume `{volume}` lie in memory and would be gone with those who use it, and the \
                 engine runs nothing of ours that would keep them"
            );
            return Err(Error::new(Kind::Busy, why).hint("set `hold = \"pause\"` for this target"));
        }
        let mount = Mount {
            typ: Some(MountType::VOLUME),
            source: Some(volume.to_owned()),
            target: Some(AT.to_owned()),
            read_only: Some(true),
            ..Default::default()
        };
        let mut labels = marker::labels(volume);
        labels.insert(marker::KEEPS.to_owned(), volume.to_owned());
        // It waits for what nobody says.
        let body = image::container(daemon, labels, mount)?;
        let id = marker::create(daemon, body)?;
        let kept = Self { daemon: daemon.clone(), id, stays: false };
        let doing = format!("keep the files of the volume `{volume}` in memory");
        daemon.ask(&doing, async |client| {
            client.start_container(&kept.id, None::<StartContainerOptions>).await
        })?;
        Ok(kept)
    }

    /// Leaves it to whoever goes on.
    pub fn leave(mut self) {
        self.stays = true;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.stays {
            // What stays is removed by the next command.
            let _ = marker::remove(&self.daemon, &self.id);
        }
    }
}

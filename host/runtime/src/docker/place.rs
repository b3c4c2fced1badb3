//! Where a volume's files are reached: here, where this process may enter the directory
//! that the engine has for them, else through the engine: by this program in a container, or
//! by archives where the engine's machine does not run it.
//!
//! Here is for root and an engine of this machine. A volume with options of a mount is
//! there only while a container runs with it, and so never reached here.

use super::archive::Archive;
use super::daemon::Daemon;
use super::mount;
use super::remote::Remote;
use bollard::models::{Mount, Volume as Found};
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::Key;
use snapback_core::tree::{self, Directory, Options};
use std::path::Path;
use std::sync::Arc;

/// A volume is captured whole, as plain files, and its times come back: nothing in it is a
/// source that a build looks at.
const OPTIONS: [(&str, &str); 3] = [("max-files-per-dir", "0"), ("git", "true"), ("times", "stored")];

/// Where the files of a volume are.
pub enum Place {
    /// In a directory of this machine.
    Here(Box<Directory>),
    /// At the engine.
    There(Box<Remote>),
    /// At an engine of another kind of machine.
    Apart(Box<Archive>),
}

impl Place {
    /// The files of the volume that was `found`, which `setting` names.
    ///
    /// # Errors
    /// When they cannot be reached.
    pub fn of(daemon: &Daemon, found: &Found, setting: &str) -> Result<Self> {
        if is_here(daemon, found)? {
            match Directory::open(
                Path::new(&found.mountpoint),
                setting,
                ".",
                &options(daemon.lent().own.clone())?,
            ) {
                Ok(directory) => return Ok(Self::Here(Box::new(directory))),
                Err(error) if matches!(error.kind(), Kind::Denied | Kind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Self::away(daemon, &found.name, setting, mount::of_volume(&found.name))
    }

    /// The files in a directory of the engine's machine that a volume was another name for:
    /// its name, the path, and whether what is mounted beneath is part of it.
    ///
    /// # Errors
    /// When they cannot be reached.
    pub fn beside(daemon: &Daemon, bound: (&str, &str, bool), setting: &str) -> Result<Self> {
        let (name, path, whole) = bound;
        Self::away(daemon, name, setting, mount::of_directory(name, path, whole))
    }

    /// The files that `mount` brings into a container.
    fn away(daemon: &Daemon, name: &str, setting: &str, mount: Mount) -> Result<Self> {
        let machine = daemon.machine()?;
        if machine.runs_programs_of_ours() {
            return Ok(Self::There(Box::new(Remote::new(daemon, name, setting, mount)?)));
        }
        if machine.system != "linux" {
            let why = format!(
                "the engine runs containers of {}, and snapback knows those of linux",
                machine.system
            );
            return Err(Error::new(Kind::Incompatible, why)
                .hint("`docker context ls` lists the engines that there are"));
        }
        Ok(Self::Apart(Box::new(Archive::new(daemon, name, setting, mount))))
    }

    /// Stores them.
    ///
    /// # Errors
    /// As core's capture has them.
    pub fn capture(&self, call: &Call, previous: Option<&Key>) -> Result<Key> {
        match self {
            Self::Here(directory) => tree::capture(directory, call, previous),
            Self::There(remote) => remote.capture(call, previous),
            Self::Apart(archive) => archive.capture(call, &options([].into())?),
        }
    }

    /// Puts them back; how many were left as they are.
    ///
    /// # Errors
    /// As core's restore has them.
    pub fn restore(&self, call: &Call, stored: &Key, current: &Key) -> Result<usize> {
        match self {
            Self::Here(directory) => Ok(tree::restore(directory, call, stored, current)?.refused.len()),
            Self::There(remote) => remote.restore(call, stored, current),
            Self::Apart(archive) => archive.restore(call, stored, current),
        }
    }

    /// Whether all in it can only go with the volume itself, and was captured as `current`.
    ///
    /// # Errors
    /// When the engine does not tell.
    pub fn can_only_go_whole(&self, call: &Call, current: &Key) -> Result<bool> {
        match self {
            Self::Here(_) | Self::There(_) => Ok(false),
            Self::Apart(archive) => Ok(call.only.is_empty() && archive.holds_nothing_new(call, current)?),
        }
    }
}

/// Whether the engine's path for the files is one of this machine, and all in it can be
/// reached by this process.
fn is_here(daemon: &Daemon, found: &Found) -> Result<bool> {
    let local = found.driver == "local";
    let mounted = ["type", "device", "o"].iter().any(|key| found.options.contains_key(*key));
    let path = Path::new(&found.mountpoint);
    if !local || mounted || !rustix::process::geteuid().is_root() || !path.is_absolute() || !path.is_dir() {
        return Ok(false);
    }
    daemon.is_here()
}

/// How a volume is captured: without the directories that are `own`.
///
/// # Errors
/// Never: they are known ones.
pub fn options(own: Arc<[(u64, u64)]>) -> Result<Options> {
    Ok(Options { own, ..Options::parse(&OPTIONS)? })
}

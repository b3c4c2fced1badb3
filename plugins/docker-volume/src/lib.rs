//! The docker-volume backend: one volume of a Docker engine a target.
//!
//! Here is the policy: how containers that use the volume are held. For a snapshot it is
//! enough that they stand still; put back under a process that goes on, a database would
//! write what it remembers over what came back, so for a restore they are stopped and
//! started again. The host does the work behind the handle. Imports no WASI and holds no
//! state.

use snapback_sdk::docker::{Quiesced, Volume};
use snapback_sdk::{Backend, Part, Result, Target, take_part};

/// The one setting that carries authority.
const VOLUME: &str = "volume";
/// How containers are held, for both.
const HOLD: &str = "hold";
/// The one part of a snapshot.
const PART: &str = "volume";

struct DockerVolume;

impl Backend for DockerVolume {
    const MANIFEST: &'static str = include_str!("../manifest.toml");

    fn snapshot(target: &Target, previous: Vec<Part>) -> Result<Vec<Part>> {
        let volume = Volume::open(target, VOLUME)?;
        let previous = previous.into_iter().find(|part| part.name == PART).map(|part| part.content);
        let _held = hold(target, &volume)?;
        let content = volume.capture(previous.as_ref())?;
        Ok(vec![Part { name: PART.into(), content }])
    }

    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        let (stored, current) = (take_part(parts, PART)?, take_part(current, PART)?);
        let volume = Volume::open(target, VOLUME)?;
        let _held = hold(target, &volume)?;
        volume.restore(&stored, &current)
    }
}

/// Holds the containers that use the volume, as the target says.
fn hold(target: &Target, volume: &Volume) -> Result<Quiesced> {
    match target.setting(HOLD) {
        Some(word) => volume.quiesce(&word, &word),
        None => volume.quiesce("pause", "stop"),
    }
}

snapback_sdk::export!(DockerVolume);

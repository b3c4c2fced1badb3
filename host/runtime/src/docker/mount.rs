//! What a container of our own has of a volume: the volume, or the directory that it is
//! another name for, at a place of that name.

use bollard::models::{Mount, MountBindOptions, MountType, MountVolumeOptions};

/// Where it is in the container, beneath its name.
pub const VOLUMES: &str = "/volumes";

/// Where the volume `name` is in the container.
pub fn place(name: &str) -> String {
    format!("{VOLUMES}/{name}")
}

/// The volume `name`.
pub fn of_volume(name: &str) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(name.to_owned()),
        target: Some(place(name)),
        volume_options: Some(MountVolumeOptions { no_copy: Some(true), ..Default::default() }),
        ..Default::default()
    }
}

/// The directory `path` of the engine's machine in the place of the volume `name`; `whole`:
/// with what is mounted beneath.
pub fn of_directory(name: &str, path: &str, whole: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(path.to_owned()),
        target: Some(place(name)),
        bind_options: Some(MountBindOptions { non_recursive: Some(!whole), ..Default::default() }),
        ..Default::default()
    }
}

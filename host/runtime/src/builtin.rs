//! The components that come inside the program.
//!
//! They are components like any other. What is known about them without reading them
//! is checked by a test: the manifest is the one inside, the imports are the ones inside.

use crate::propose::Finding;
use std::path::Path;

/// A component that comes inside the program.
pub struct Builtin {
    /// The backend's name.
    pub name: &'static str,
    /// The component.
    pub component: &'static [u8],
    /// What its `manifest` returns.
    pub manifest: &'static str,
    /// The interfaces beyond `types`, `store` and `report` that it imports, and gets.
    pub interfaces: &'static [&'static str],
    /// Makes proposals here of the files that the manifest wants to hear of, where a
    /// component, which may open none, could not.
    pub finder: Option<Finder>,
}

/// Reads files at paths from the root of a project.
pub type Finder = fn(&Path, &[String]) -> Vec<Finding>;

/// All of them.
pub const ALL: &[Builtin] = &[
    Builtin {
        name: "tree",
        component: include_bytes!("../../../plugins/tree/tree.wasm"),
        manifest: include_str!("../../../plugins/tree/manifest.toml"),
        interfaces: &["tree"],
        finder: None,
    },
    Builtin {
        name: "sqlite",
        component: include_bytes!("../../../plugins/sqlite/sqlite.wasm"),
        manifest: include_str!("../../../plugins/sqlite/manifest.toml"),
        interfaces: &["sqlite"],
        finder: None,
    },
    Builtin {
        name: "docker-volume",
        component: include_bytes!("../../../plugins/docker-volume/docker-volume.wasm"),
        manifest: include_str!("../../../plugins/docker-volume/manifest.toml"),
        interfaces: &["docker"],
        finder: Some(crate::docker::compose::propose),
    },
];

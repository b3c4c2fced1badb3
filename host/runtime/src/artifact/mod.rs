//! Compiled components, made once and kept.
//!
//! For each component, files named by its SHA-256: what it says about itself
//! (`.toml`) or why it is no backend (`.broken`), the code (`.cwasm`), and the seal of the code (`.seal`); the latter two also by
//! what else the code depends on. Code is mapped and run as it is, so it is loaded only
//! when nobody but this user can have written it and its seal is the one noted when it
//! was made; anything else is made again. All of it can be removed at any time.

mod folder;

use crate::engine::Engine;
use folder::{Folder, Seal};
use serde::{Deserialize, Serialize};
use snapback_core::error::{Error, Kind, Result};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use wasmtime::component::Component;

/// Longest file about a component that is read, in bytes.
const MAX_FACTS: u64 = 256 * 1024;
/// Longest seal, in bytes.
const MAX_SEAL: u64 = 200;

/// What a component says about itself, and asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The manifest, as it came.
    pub manifest: String,
    /// The interfaces that it imports, with package and version.
    pub imports: Vec<String>,
}

/// Where compiled components are kept: in the first directory that can be used; nowhere,
/// when none was given.
pub struct Cache {
    paths: Vec<PathBuf>,
}

impl Cache {
    /// Touches nothing yet.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { paths: paths.into_iter().collect() }
    }

    /// Why nothing is kept, when no directory can be used.
    pub fn trouble(&self) -> Option<Error> {
        let mut failed = self.paths.iter().map_while(|path| Folder::open(path).err());
        let first = failed.next();
        first.filter(|_| failed.count() + 1 == self.paths.len())
    }

    fn folder(&self) -> Option<Folder> {
        self.paths.iter().find_map(|path| Folder::open(path).ok().flatten())
    }

    /// The one that is written, made where it is not there.
    fn own(&self) -> Option<Folder> {
        self.paths.iter().find_map(|path| Folder::create(path).ok())
    }

    /// What was noted about the component.
    pub fn facts(&self, digest: &str) -> Option<Facts> {
        toml::from_str(&self.folder()?.text(&format!("{digest}.toml"), MAX_FACTS)?).ok()
    }

    /// Notes what the component says. When that fails it is asked again the next time.
    pub fn note(&self, digest: &str, facts: &Facts) {
        if let (Some(folder), Ok(text)) = (self.own(), toml::to_string(facts)) {
            let _ = folder.write(&format!("{digest}.toml"), text.as_bytes());
        }
    }

    /// Notes why the component is no backend that can be used, for who lists it.
    pub fn note_broken(&self, digest: &str, why: &str) {
        if let Some(folder) = self.own() {
            let _ = folder.write(&format!("{digest}.broken"), why.as_bytes());
        }
    }

    /// Why it could not be used, the last time.
    pub fn broken(&self, digest: &str) -> Option<String> {
        self.folder()?.text(&format!("{digest}.broken"), MAX_FACTS)
    }

    /// The component, compiled unless it is already. The second value: whether it was
    /// compiled now.
    ///
    /// # Errors
    /// When the bytes are not a component. That it cannot be kept is no error.
    pub fn load(&self, engine: &Engine, digest: &str, bytes: &[u8]) -> Result<(Component, bool)> {
        let name = format!("{digest}-{}", engine.compatibility());
        if let Some(folder) = self.folder()
            && let Some(file) = sealed(&folder, &name)
            && let Ok(component) = map(engine, file)
        {
            return Ok((component, false));
        }
        let code = engine.compile(bytes)?;
        if let Some(folder) = self.own() {
            // Without it the component is compiled again the next time.
            let _ = keep(&folder, &name, &code);
            folder.sweep();
        }
        Ok((from_bytes(engine, &code)?, true))
    }
}

/// The code called `name`, when its seal is the one that was noted.
fn sealed(folder: &Folder, name: &str) -> Option<File> {
    let noted = Seal::parse(folder.text(&format!("{name}.seal"), MAX_SEAL)?.trim_end())?;
    let (file, seal) = folder.file(&format!("{name}.cwasm"))?;
    (seal == noted).then_some(file)
}

fn keep(folder: &Folder, name: &str, code: &[u8]) -> Result<()> {
    let code_name = format!("{name}.cwasm");
    folder.write(&code_name, code)?;
    let (_, seal) = folder.file(&code_name).ok_or_else(|| Error::new(Kind::Other, "it is gone again"))?;
    folder.write(&format!("{name}.seal"), format!("{}\n", seal.to_text()).as_bytes())
}

/// Maps code from a file that [`sealed`] returned.
fn map(engine: &Engine, mut file: File) -> Result<Component> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    #[allow(unsafe_code, reason = "compiled code is run as it is")]
    // SAFETY: the file is one that `keep` wrote and nobody wrote to since (its seal says so);
    // it is never changed in place, and only this user could. That it is for this engine is
    // checked by wasmtime itself. The path leads to the file that was checked, not to its name.
    let component = unsafe { Component::deserialize_file(engine.raw(), path) };
    match component {
        Ok(component) => Ok(component),
        Err(_) => {
            // There may be no /proc.
            let mut code = Vec::new();
            file.read_to_end(&mut code)
                .map_err(|e| Error::io(e, "could not read", "a compiled component"))?;
            from_bytes(engine, &code)
        }
    }
}

fn from_bytes(engine: &Engine, code: &[u8]) -> Result<Component> {
    #[allow(unsafe_code, reason = "compiled code is run as it is")]
    // SAFETY: the bytes are what `compile` just returned, or what `sealed` vouches for.
    let component = unsafe { Component::deserialize(engine.raw(), code) };
    component
        .map_err(|e| Error::new(Kind::Incompatible, format!("the compiled component does not load: {e:#}")))
}

#[cfg(test)]
mod tests;

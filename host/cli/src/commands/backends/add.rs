//! `snapback backends add`: a component into the user's own folder of backends, once it
//! was found to be one. What it asks for is shown; that it may have it is asked for when
//! a target uses it.

use crate::context::Context;
use crate::exit::Code;
use snapback_core::disk::Disk;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_runtime::{builtin_names, component_of, read_component};
use std::path::{Path, PathBuf};

/// Does it.
///
/// # Errors
/// When it is no backend that this program can run, or cannot be written.
pub fn run(context: &mut Context, file: &Path) -> Result<Code> {
    context.refuse_inside_run("backends add")?;
    let bytes = read(&crate::places::resolve(&context.here, file))?;
    let registry = context.backends(&context.root());
    let found = registry.examine(&bytes).map_err(|error| error.context(show(file)))?;
    let own = &found.manifest.name;
    if builtin_names().any(|name| name == own) {
        let why = format!(
            "{} calls itself `{own}`, as a backend that came with snapback, which would hide it",
            show(file)
        );
        return Err(Error::new(Kind::Invalid, why).hint("a backend is used by its name: give it another one"));
    }
    let folder = folder(context);
    let name = format!("{}.wasm", found.manifest.name);
    let replaced = folder.join(&name).exists();
    let disk = Disk::default();
    let dir = disk.make_dirs(&folder)?;
    disk.write_sealed(&dir, name.as_bytes(), &bytes, 0o644)?;

    let manifest = &found.manifest;
    let word = if replaced { "replaced" } else { "added" };
    context.talk.say(format_args!("{word} {} {}: {}", manifest.name, manifest.version, manifest.summary));
    for want in &found.wants {
        context.talk.detail(format_args!("asks for {want}"));
    }
    if found.wants.is_empty() {
        context.talk.detail("asks for nothing");
    }
    if let Some(other) = registry.list().into_iter().find(|info| info.name == manifest.name)
        && other.origin != show(&folder.join(&name))
    {
        context.talk.say(format_args!("{} stays hidden by the one from {}", manifest.name, other.origin));
    }
    Ok(Code::DONE)
}

/// The user's own folder of backends.
pub fn folder(context: &Context) -> PathBuf {
    context.places.data.join("plugins")
}

/// The component in `path`; a module that was built with the SDK is made one.
///
/// # Errors
/// When it cannot be read, or is neither.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let hint = "name the file of a component, NAME.wasm; `snapback backends` lists those that there are";
    let bytes = read_component(path).map_err(|error| error.hint(hint))?;
    component_of(bytes).map_err(|error| error.context(show(path)))
}

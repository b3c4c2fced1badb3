//! `snapback backends new`: a project for a backend, with all of it that is ours: the
//! contract, for Rust the library, and a settings file for the law.
//!
//! Nothing that is there is written over. What it builds with comes from its language.

mod files;

use crate::args::Language;
use crate::context::Context;
use crate::exit::Code;
use crate::places;
use snapback_core::disk::Disk;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_runtime::builtin_names;
use snapback_runtime::manifest::is_name;
use std::path::Path;

/// Does it.
///
/// # Errors
/// When the name is none, something is there already, or it cannot be written.
pub fn run(context: &mut Context, name: &str, language: Language) -> Result<Code> {
    if !is_name(name) {
        let why = format!("`{name}` is not a backend's name");
        return Err(Error::new(Kind::Invalid, why)
            .hint("it has lower-case letters, digits and hyphens, and begins with a letter"));
    }
    if builtin_names().any(|own| own == name) {
        let why = format!("`{name}` is a backend that came with snapback, and would hide yours");
        return Err(Error::new(Kind::Invalid, why).hint("choose another name"));
    }
    let place = places::resolve(&context.here, Path::new(name));
    if place.symlink_metadata().is_ok() {
        let why = format!("there is something at {} already", show(&place));
        return Err(Error::new(Kind::Invalid, why).hint("choose another name, or move it away"));
    }
    let disk = Disk::default().with_sync(false);
    for (path, text) in files::of(name, language)? {
        let path = place.join(path);
        let (Some(above), Some(file)) = (path.parent(), path.file_name()) else { continue };
        let dir = disk.make_dirs(above)?;
        disk.write_cache(&dir, file.as_encoded_bytes(), text.as_bytes(), 0o644)?;
    }
    context.talk.say(format_args!("made {}: README.md there says how to build and try it", show(&place)));
    Ok(Code::DONE)
}

//! `snapback init`: write a snapback.toml that says what was found, and changes nothing.

use crate::context::Context;
use crate::exit::Code;
use crate::json;
use crate::render::starter::{self, Found};
use crate::render::words::count;
use snapback_core::backend::Backends;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::project::config::FILE;
use snapback_core::report::Report as _;
use snapback_core::text::Bytes;
use std::fs::File;
use std::io::{ErrorKind, Write};

/// Does it.
///
/// # Errors
/// When there is one already, or it cannot be written.
pub fn run(context: &mut Context) -> Result<Code> {
    let project = context.open()?;
    let path = project.root().join(FILE);
    let there = || {
        Error::new(Kind::Invalid, format!("{} is there already", show(&path)))
            .hint("`snapback status` shows what it comes to; move it away to have a new one")
    };
    // Before all of the project is looked at.
    if path.symlink_metadata().is_ok() {
        return Err(there());
    }
    let surveys = project.survey()?;
    let backends = context.backends(project.root());
    let (proposals, failed) = backends.proposals(project.root());
    for error in &failed {
        context.talk.troubled("it may have more to propose", error);
    }
    let found =
        Found { surveys: &surveys, backends: backends.names(), adopter: backends.adopter().ok(), proposals };
    let text = starter::text(&found);
    let mut file =
        File::options().write(true).create_new(true).open(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => there(),
            _ => Error::io(error, "could not write", &path),
        })?;
    file.write_all(text.as_bytes()).map_err(|error| Error::io(error, "could not write", &path))?;
    let databases = starter::databases(&surveys).count();
    if context.global.json {
        let path = Bytes::from(&*path);
        json::write(&mut context.out, &json::Written::new(&path, databases, found.proposals.len()))?;
        return Ok(Code::DONE);
    }
    let mut more = match databases {
        0 => String::new(),
        number => format!(", {} found", count(number as u64, "database")),
    };
    if !found.proposals.is_empty() {
        more += &format!(", {} proposed", count(found.proposals.len() as u64, "target"));
    }
    context.talk.say(format_args!("wrote {}: all of it is as it was without{more}", show(&path)));
    Ok(Code::DONE)
}

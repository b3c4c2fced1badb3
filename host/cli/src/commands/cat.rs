//! `snapback cat`: a file of a snapshot, byte by byte.

use crate::args::CatArgs;
use crate::contents::{self, Found};
use crate::context::Context;
use crate::exit::Code;
use crate::output::Out;
use snapback_core::error::{Error, Kind, Result, shell_word, show_bytes};
use snapback_core::history::Snapshot;
use snapback_core::store::content::{self, Piece};
use snapback_core::store::{BLOCK, Source};
use snapback_core::text::Bytes;
use snapback_core::tree::node::{Entry, Node};
use std::path::Path;

/// Does it.
///
/// # Errors
/// When there is no such file in the snapshot, or it is damaged.
pub fn run(context: &mut Context, args: &CatArgs) -> Result<Code> {
    let project = context.look()?;
    let store = project.need_store()?.clone();
    let snapshot = project.find(&args.id)?;
    let path = context.inside(&project, std::slice::from_ref(&args.path))?.remove(0).0;
    let from_root = || {
        let named = Bytes::from(&*args.path);
        let there =
            find(project.root(), &*store, &snapshot, &named.0).is_ok() && project.root() != context.here;
        there.then(|| {
            let root = shell_word(project.root());
            format!("paths are seen from where you are; with `-C {root}` it is there")
        })
    };
    let entry = find(project.root(), &*store, &snapshot, &path)
        .map_err(|error| from_root().into_iter().fold(error, Error::hint))?;
    write(&*store, &entry, &path, &mut context.out)?;
    context.out.flush()?;
    Ok(Code::DONE)
}

fn find(project: &Path, source: &dyn Source, snapshot: &Snapshot, path: &[u8]) -> Result<Entry> {
    let shown = shown(path);
    let found = contents::look(project, source, &snapshot.targets, path)?;
    if !matches!(found, Found::There(_))
        && let Some(entry) = contents::recorded(project, source, snapshot, path)?
    {
        return Ok(entry);
    }
    let error = match found {
        Found::There(entry) => return Ok(entry),
        Found::LeftOut(why) => format!("{shown} is not in snapshot {}: {why}", snapshot.id),
        Found::Missing => format!("{shown} is not in snapshot {}", snapshot.id),
    };
    Err(Error::new(Kind::NotFound, error).hint("`snapback show` says what a snapshot lacks"))
}

fn write(source: &dyn Source, entry: &Entry, path: &[u8], out: &mut Out) -> Result<()> {
    match &entry.node {
        Node::File { content, size, .. } => {
            content::load(source, content, *size, &mut |_, piece| match piece {
                Piece::Bytes(bytes) => out.bytes(bytes),
                Piece::Zeros(length) => zeros(out, length),
            })
        }
        Node::Symlink(to) => out.bytes(to),
        other => {
            let why = format!("{} is a {}, and has no content of its own", shown(path), other.word());
            Err(Error::new(Kind::Invalid, why).hint("name a file"))
        }
    }
}

/// A path inside the project, for people.
fn shown(path: &[u8]) -> String {
    if path.is_empty() { ".".to_owned() } else { show_bytes(path) }
}

fn zeros(out: &mut Out, mut length: u64) -> Result<()> {
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    while length > 0 {
        let now = length.min(BLOCK as u64);
        out.bytes(&ZEROS[..usize::try_from(now).unwrap_or(BLOCK)])?;
        length -= now;
    }
    Ok(())
}

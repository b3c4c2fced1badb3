//! What was stored as files, and is a database with the log or the journal beside it: as
//! the image that SQLite makes of the two.
//!
//! A snapshot has it so when it was taken without this backend. Put back as two files, it
//! would take the place of what applications have open; an image goes in place. What
//! SQLite makes nothing sound of stays the files that it is.

use super::open::At;
use super::restore::content;
use super::stored::Image;
use super::{copy, fault};
use snapback_core::backend::Call;
use snapback_core::database::{Found, Header, SIDES, fill_file, header, side, state};
use snapback_core::error::{Kind, Result};
use snapback_core::store::Writer;
use snapback_core::store::content::read_begin;
use snapback_core::tree::node::{Entry, Node};
use std::sync::Arc;

/// The image that the files in `stored` are, and where its content is read from; none when
/// they are none.
///
/// # Errors
/// When what is stored cannot be read, or there is no room.
pub fn image_of(at: At<'_>, call: &Call, stored: &Found) -> Result<Option<(Found, Arc<Writer>)>> {
    let Found::Files(entries) = stored else { return Ok(None) };
    let is_file = |entry: &Entry| matches!(entry.node, Node::File { .. });
    let named = |name: &[u8]| entries.iter().find(|entry| entry.name == name && is_file(entry));
    let Some(file) = named(at.place.name()) else { return Ok(None) };
    let beside = SIDES[..2].iter().filter_map(|suffix| Some((suffix, named(&side(&file.name, suffix))?)));
    let beside: Vec<_> = beside.collect();
    let (source, store) = (call.source()?, call.store()?);
    let (key, size) = content(file);
    let begin = read_begin(source, &key, size, header::LENGTH as u64)?;
    let Some(header) = Header::parse(&begin) else { return Ok(None) };
    // Alone, it is what it is, but for what lies behind its pages.
    if beside.is_empty() && header.is_cut(size) {
        return Ok(None);
    }
    let workspace = store.workspace()?;
    let fill = |name: &[u8], entry| {
        fill_file(store.disk(), workspace.dir(), name, source, entry, &call.cancel).map(drop)
    };
    let name = copy::NAME.as_bytes();
    fill(name, file)?;
    beside.iter().try_for_each(|(suffix, entry)| fill(&side(name, suffix), entry))?;
    let writer = match &call.writer {
        Some(writer) => writer.clone(),
        None => Arc::new(store.scratch(true)),
    };
    let mut lane = writer.lane();
    let (key, size) = match copy::image_of(at, &workspace, &mut lane) {
        Err(error) if fault::is_foreign(&error) => return Ok(None),
        read => read.map_err(at.told("could not recover what is stored of"))??,
    };
    lane.publish()?;
    let file = Entry { node: Node::File { content: key, size, sparse: false }, ..file.clone() };
    match Image::make(call, &*writer, &file, at.place)?.check() {
        Err(error) if error.kind() == Kind::Corrupt => Ok(None),
        done => done.and_then(|()| {
            let state = state(&*writer, &key, size)?;
            Ok(Some((Found::Image { file, state }, writer)))
        }),
    }
}

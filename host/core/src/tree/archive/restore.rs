//! Putting a directory back by an archive of what differs.
//!
//! Invariant: before the first byte is sent, all of it was found whole in the store, and what
//! it replaces was looked at once more: what is not as it was captured is left alone. A call
//! that was cut short is completed by a second one.

use super::check::Check;
use super::jobs::{Job, Jobs};
use super::names::is_beneath;
use super::write::Writer;
use super::{Member, What};
use crate::backend::Call;
use crate::error::{Error, Result};
use crate::object::Key;
use crate::store::Source;
use crate::store::content::{Piece, load};
use crate::tree::apply::{CHANGED_SINCE, DAMAGED, Refusal};
use crate::tree::compare::Only;
use crate::tree::node::{Node, Time};
use crate::tree::view::read_root;
use std::collections::HashMap;
use std::io::{Read, Write};

/// Takes an archive that is fetched.
pub type Take<'a> = &'a mut (dyn FnMut(&mut dyn Read) -> Result<()> + Send);
/// Writes an archive that is sent.
pub type Give<'a> = &'a mut (dyn FnMut(&mut dyn Write) -> Result<()> + Send);

/// The other side: whoever has the directory. Paths are from it, empty for itself.
pub trait Far: Sync {
    /// What is at `path`, which is UTF-8; none when there is nothing.
    ///
    /// # Errors
    /// When it does not tell.
    fn look(&self, path: &[u8]) -> Result<Option<Seen>>;

    /// Has an archive of what is at `path` taken, in which one name stands before all others:
    /// its own.
    ///
    /// # Errors
    /// When it does not come, and what `take` returns.
    fn fetch(&self, path: &[u8], take: Take<'_>) -> Result<()>;

    /// Has the archive that is given unpacked: its paths begin with the name of the
    /// directory itself.
    ///
    /// # Errors
    /// When it is not taken, and what `give` returns.
    fn send(&self, give: Give<'_>) -> Result<()>;
}

/// What the other side tells of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A file: bytes, last modified.
    File(u64, Time),
    /// A directory.
    Dir,
    /// A symbolic link, and where it points, verbatim, where that is told.
    Symlink(Option<Vec<u8>>),
    /// Something else.
    Other,
}

impl Seen {
    /// A file of so many bytes that was last modified at `when`, as RFC 3339 has it; none
    /// where that is no time.
    pub fn file(bytes: u64, when: &str) -> Option<Self> {
        let time = when.parse::<jiff::Timestamp>().ok()?;
        // Rounded down, also before 1970.
        let nsec = time.as_nanosecond().rem_euclid(1_000_000_000);
        let sec = time.as_nanosecond().div_euclid(1_000_000_000);
        let time = Time { sec: i64::try_from(sec).ok()?, nsec: u32::try_from(nsec).ok()? };
        Some(Self::File(bytes, time))
    }
}

/// Makes the directory that `far` has, and that is called `name` there, the one that was
/// `stored`, where it is as in `current`; what was left as it is is reported, and counted.
///
/// # Errors
/// `Corrupt` when something is damaged, and then nothing was touched; what `far` says.
pub fn restore(far: &dyn Far, name: &str, call: &Call, stored: &Key, current: &Key) -> Result<usize> {
    let source = call.source()?;
    let (stored, current) = (read_root(source, stored)?, read_root(source, current)?);
    let Jobs { jobs, mut refused, linked } =
        Jobs::between(source, &current, &stored, &Only::new(&call.only)?)?;
    let mut check = Check::new(far, source, current);
    let mut left: Option<Vec<u8>> = None;
    let mut wanted = Vec::with_capacity(jobs.len());
    for job in jobs {
        call.cancel.check()?;
        let is_left = |dir: &Vec<u8>| *dir == job.path || is_beneath(&job.path, dir);
        if left.as_ref().is_some_and(is_left) {
            continue;
        }
        let reason = match check.objection(&job)? {
            Some(reason) => Some(reason.to_owned()),
            None => damage(source, &job, call)?,
        };
        match reason {
            Some(reason) => {
                refused.push(Refusal::new(&job.path, reason));
                left = Some(job.path);
            }
            None => wanted.push(job),
        }
    }
    // A name that somebody gave to something else meanwhile is no way to an inode.
    let mut in_place = HashMap::new();
    for (link, path) in linked {
        match check.is_in_place(&path)? {
            true => drop(in_place.insert(link, path)),
            false => refused.push(Refusal::new(&path, CHANGED_SINCE)),
        }
    }
    if !wanted.is_empty() {
        let total = wanted.iter().map(size_of).sum();
        call.report.begin("restoring", Some(total), "bytes");
        let done = far.send(&mut |output| write(output, name, &wanted, in_place.clone(), source, call));
        call.report.end();
        done?;
    }
    refused.sort_by(|a, b| a.path.cmp(&b.path));
    refused.iter().for_each(|item| call.report.refused(&call.target.name, &item.path, &item.reason));
    Ok(refused.len())
}

/// Whether `far` has nothing but what was captured as `current`.
///
/// # Errors
/// When it does not tell.
pub fn holds_nothing_new(far: &dyn Far, call: &Call, current: &Key) -> Result<bool> {
    let source = call.source()?;
    Check::new(far, source, read_root(source, current)?).holds_nothing_new(b"")
}

fn size_of(job: &Job) -> u64 {
    if let Node::File { size, .. } = job.after.0.node { size } else { 0 }
}

/// Why the content of a job cannot be written, where that is left out; none when it is whole.
fn damage(source: &dyn Source, job: &Job, call: &Call) -> Result<Option<String>> {
    let Node::File { content, size, .. } = &job.after.0.node else { return Ok(None) };
    match load(source, content, *size, &mut |_, _| call.cancel.check()) {
        Ok(()) => Ok(None),
        Err(error) if call.cancel.is_cancelled() => Err(error),
        Err(error) if call.partial => Ok(Some(error.to_string())),
        Err(error) => Err(error.hint(DAMAGED)),
    }
}

fn write(
    output: &mut dyn Write,
    name: &str,
    jobs: &[Job],
    mut linked: HashMap<u64, Vec<u8>>,
    source: &dyn Source,
    call: &Call,
) -> Result<()> {
    let mut archive = Writer::new(output);
    let at = |path: &[u8]| match path {
        b"" => name.as_bytes().to_vec(),
        path => [name.as_bytes(), b"/", path].concat(),
    };
    for job in jobs {
        call.cancel.check()?;
        let (entry, mtime) = &job.after;
        let first = entry.link.and_then(|link| linked.get(&link));
        let what = match (&entry.node, first) {
            (_, Some(first)) => What::Link(at(first)),
            (Node::File { size, .. }, None) => What::File(*size),
            (Node::Dir(_), None) => What::Dir,
            (Node::Symlink(to), None) => What::Symlink(to.clone()),
            (Node::Fifo, None) => What::Fifo,
            (Node::CharDevice(major, minor), None) => What::CharDevice(*major, *minor),
            (Node::BlockDevice(major, minor), None) => What::BlockDevice(*major, *minor),
            (Node::Socket, None) => return Err(Error::corrupt("a socket is in no archive")),
        };
        if let Some(link) = entry.link {
            linked.entry(link).or_insert_with(|| job.path.clone());
        }
        let (mode, uid, gid, xattrs) = (entry.mode, entry.uid, entry.gid, entry.xattrs.clone());
        let is_file = matches!(what, What::File(_));
        archive.add(&Member { path: at(&job.path), mode, uid, gid, mtime: *mtime, xattrs, what })?;
        if let (true, Node::File { content, size, .. }) = (is_file, &entry.node) {
            load(source, content, *size, &mut |_, piece| {
                call.cancel.check()?;
                call.report.advance(piece.length());
                match piece {
                    Piece::Bytes(bytes) => archive.put(bytes),
                    Piece::Zeros(count) => archive.zeros(count),
                }
            })?;
        }
    }
    archive.finish()
}

//! Whether what is about to be replaced is as it was captured: by kind, size, target and
//! second, which is what the other side tells without sending everything. What a call that was
//! cut short left is known by its bytes.

use super::jobs::Job;
use super::names::{is_beneath, split};
use super::restore::{Far, Seen};
use super::{Reader, What, names};
use crate::error::{Error, Result};
use crate::store::Source;
use crate::store::content::{Piece, load_range};
use crate::tree::apply::{CHANGED_SINCE, MADE_SINCE};
use crate::tree::node::{Entry, Node, Time};
use crate::tree::root::Root;
use crate::tree::view::View;
use std::collections::HashMap;
use std::io::Read;

/// Bytes that are compared at once.
const GRAIN: usize = 256 * 1024;

/// Looks at the other side.
pub struct Check<'a> {
    far: &'a dyn Far,
    /// Where what is stored is read from.
    source: &'a dyn Source,
    /// What was captured just before.
    current: View<'a>,
    /// What was listed, by directory.
    listed: HashMap<Vec<u8>, HashMap<Vec<u8>, Seen>>,
    /// A directory that is not there.
    absent: Option<Vec<u8>>,
}

impl<'a> Check<'a> {
    pub fn new(far: &'a dyn Far, source: &'a dyn Source, current: Root) -> Self {
        let current = View::new(source, current);
        Self { far, source, current, listed: HashMap::new(), absent: None }
    }

    /// Why what is at the path of `job` is not replaced; none when it is.
    ///
    /// # Errors
    /// When the other side does not tell.
    pub fn objection(&mut self, job: &Job) -> Result<Option<&'static str>> {
        if job.again || self.absent.as_ref().is_some_and(|dir| is_beneath(&job.path, dir)) {
            return Ok(None);
        }
        let Some(seen) = self.look(&job.path)? else {
            self.absent = job.is_dir().then(|| job.path.clone());
            return Ok(None);
        };
        if job.is_dir() && seen != Seen::Dir {
            // What is in it then is not there yet.
            self.absent = Some(job.path.clone());
        }
        let (after, mtime) = &job.after;
        if is(&seen, after, *mtime) {
            return Ok(None);
        }
        if let Seen::File(size, _) = seen
            && self.is_begun(&job.path, size, after)?
        {
            return Ok(None);
        }
        Ok(match &job.before {
            None => Some(MADE_SINCE),
            Some((before, mtime)) if !is(&seen, before, *mtime) => Some(CHANGED_SINCE),
            // All that is in it goes with it.
            Some((Entry { node: Node::Dir(_), .. }, _)) if !job.is_dir() => {
                (!self.holds_nothing_new(&job.path)?).then_some(CHANGED_SINCE)
            }
            Some(_) => None,
        })
    }

    /// Whether the directory at `path` holds nothing but what was captured of it.
    ///
    /// # Errors
    /// When the other side does not tell.
    pub fn holds_nothing_new(&self, path: &[u8]) -> Result<bool> {
        for (path, seen) in list(self.far, path)? {
            let known = self.current.find(&path)?;
            if !known.is_some_and(|known| is(&seen, &known.entry, known.mtime)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the file at `path`, of `size` bytes, is how `entry` begins: what a call that was
    /// cut short leaves of it.
    fn is_begun(&self, path: &[u8], size: u64, entry: &Entry) -> Result<bool> {
        let Node::File { content, size: whole, .. } = &entry.node else { return Ok(false) };
        if size > *whole || std::str::from_utf8(path).is_err() {
            return Ok(false);
        }
        let mut same = false;
        self.far.fetch(path, &mut |input| {
            let mut archive = Reader::new(input);
            if archive.next()?.map(|member| member.what) != Some(What::File(size)) {
                return Ok(());
            }
            same = true;
            load_range(self.source, content, *whole, 0..size, &mut |_, piece| {
                let mut now = vec![0; piece.length().min(GRAIN as u64) as usize];
                let mut at = 0;
                while same && at < piece.length() {
                    let part = (piece.length() - at).min(GRAIN as u64) as usize;
                    let now = &mut now[..part];
                    archive.read_exact(now).map_err(|e| Error::io(e, "could not read", "the archive"))?;
                    same = match piece {
                        Piece::Bytes(bytes) => bytes[at as usize..at as usize + part] == *now,
                        Piece::Zeros(_) => now.iter().all(|&b| b == 0),
                    };
                    at += part as u64;
                }
                Ok(())
            })
        })?;
        Ok(same)
    }

    /// Whether what is at `path` is what was captured there.
    ///
    /// # Errors
    /// When the other side does not tell.
    pub fn is_in_place(&mut self, path: &[u8]) -> Result<bool> {
        let (known, now) = (self.current.find(path)?, self.look(path)?);
        Ok(known.zip(now).is_some_and(|(known, now)| is(&now, &known.entry, known.mtime)))
    }

    fn look(&mut self, path: &[u8]) -> Result<Option<Seen>> {
        if std::str::from_utf8(path).is_ok() {
            return match self.far.look(path)? {
                Some(Seen::Symlink(None)) => Ok(list(self.far, path)?.remove(path)),
                seen => Ok(seen),
            };
        }
        // No question can have such a name: its directory is listed instead.
        let mut dir = path;
        while std::str::from_utf8(dir).is_err() {
            dir = split(dir).map_or(&b""[..], |(dir, _)| dir);
        }
        if !self.listed.contains_key(dir) {
            self.listed.insert(dir.to_vec(), list(self.far, dir)?);
        }
        Ok(self.listed[dir].get(path).cloned())
    }
}

/// Whether what was `seen` may be `entry`, last modified at `mtime`.
fn is(seen: &Seen, entry: &Entry, mtime: Time) -> bool {
    match (&entry.node, seen) {
        (Node::File { size, .. }, Seen::File(now, time)) => now == size && time.sec == mtime.sec,
        (Node::Symlink(to), Seen::Symlink(now)) => now.as_ref() == Some(to),
        (Node::Dir(_), Seen::Dir) => true,
        (Node::Fifo | Node::Socket | Node::CharDevice(..) | Node::BlockDevice(..), Seen::Other) => true,
        _ => false,
    }
}

/// What is at `path`, and in it.
fn list(far: &dyn Far, path: &[u8]) -> Result<HashMap<Vec<u8>, Seen>> {
    let mut found = HashMap::<Vec<u8>, Seen>::new();
    far.fetch(path, &mut |input| {
        let mut archive = Reader::new(input);
        while let Some(member) = archive.next()? {
            // The first of its names is that of the directory itself.
            let beneath = |name: &[u8]| -> Result<Vec<u8>> {
                let rest = names::inside(name, 1)?;
                Ok(match (path.is_empty(), rest.is_empty()) {
                    (true, _) => rest,
                    (false, true) => path.to_vec(),
                    (false, false) => [path, b"/", &rest].concat(),
                })
            };
            let seen = match &member.what {
                What::File(size) => Seen::File(*size, member.mtime),
                What::Link(to) => found.get(&beneath(to)?).cloned().unwrap_or(Seen::Other),
                What::Dir => Seen::Dir,
                What::Symlink(to) => Seen::Symlink(Some(to.clone())),
                What::Fifo | What::CharDevice(..) | What::BlockDevice(..) => Seen::Other,
            };
            found.insert(beneath(&member.path)?, seen);
        }
        Ok(())
    })?;
    Ok(found)
}

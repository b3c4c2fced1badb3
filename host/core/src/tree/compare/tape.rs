//! The steps of a walk, kept: a restore goes through them many times, and the trees are
//! read and compared once.
//!
//! Some eighty bytes a step, with what most passes ask for in front, so that they do not
//! take apart what they have no use for. What is not comparable is not kept. What the path
//! says, an entry does not say again; nor does leaving a directory what opening it said.

use super::traits::Traits;
use super::{Change, Step};
use crate::error::Result;
use crate::object::codec::{Put, Reader};
use crate::tree::node::{Entry, Time, put_entry_as, take_entry};

/// Bytes that lie together: a list that grew as one piece would be copied, and leave holes.
const PIECE: usize = 256 * 1024;

/// The steps, in their order.
#[derive(Debug, Default)]
pub struct Tape {
    /// Each holds whole steps.
    pieces: Vec<Vec<u8>>,
    /// The path of the last step: the next one begins like it.
    last: Vec<u8>,
    /// Directories that were opened and not yet left: the path, and where the body lies.
    open: Vec<(Vec<u8>, (usize, usize))>,
}

/// One step, not yet taken apart.
pub struct Kept<'a> {
    /// A directory is done, both sides of it as they are: it is no change.
    pub leaves: bool,
    /// It opened a directory, which will be left.
    pub entered: bool,
    /// What is known of it at once.
    pub traits: Traits,
    /// The path.
    pub path: &'a [u8],
    body: &'a [u8],
}

impl Tape {
    /// Adds a step; `entered` says whether it opened a directory.
    pub fn add(&mut self, step: &Step, entered: bool) {
        let (change, leaves) = match step {
            Step::Change(change) => (change, false),
            Step::Leave(change) => (change, true),
            Step::NotComparable { .. } => return,
        };
        let known = match self.open.last() {
            Some((path, at)) if leaves && *path == change.path => Some(*at),
            _ => None,
        };
        let mut step = Vec::with_capacity(160);
        let shared = self.last.iter().zip(&change.path).take_while(|(a, b)| a == b).count();
        step.put_u8(u8::from(leaves) | u8::from(entered) << 1 | u8::from(known.is_some()) << 2);
        step.put_uint(change.traits().to_number());
        step.put_uint(shared as u64);
        step.put_bytes(&change.path[shared..]);
        let body = step.len();
        match known {
            Some((piece, at)) => {
                self.open.pop();
                step.put_uint(piece as u64);
                step.put_uint(at as u64);
            }
            None => step.put_bytes(&body_of(change)),
        }
        if self.pieces.last().is_none_or(|piece| piece.len() + step.len() > piece.capacity()) {
            self.pieces.push(Vec::with_capacity(PIECE.max(step.len())));
        }
        let number = self.pieces.len() - 1;
        let piece = &mut self.pieces[number];
        if entered && !leaves {
            self.open.push((change.path.clone(), (number, piece.len() + body)));
        }
        piece.extend_from_slice(&step);
        self.last.truncate(shared);
        self.last.extend_from_slice(&change.path[shared..]);
    }

    /// Calls `act` for each step, in order.
    ///
    /// # Errors
    /// What `act` returns.
    pub fn each(&self, mut act: impl FnMut(&Kept<'_>) -> Result<()>) -> Result<()> {
        let mut path: Vec<u8> = Vec::new();
        for piece in &self.pieces {
            let mut r = reader(piece);
            while !r.is_empty() {
                let flags = r.u8()?;
                let traits = Traits::from_number(r.uint()?);
                path.truncate(r.uint()? as usize);
                path.extend_from_slice(r.bytes()?);
                let (leaves, entered) = (flags & 1 != 0, flags & 2 != 0);
                let body = match flags & 4 != 0 {
                    true => {
                        let (piece, at) = (r.uint()? as usize, r.uint()? as usize);
                        reader(&self.pieces[piece][at..]).bytes()?
                    }
                    false => r.bytes()?,
                };
                act(&Kept { leaves, entered, traits, path: &path, body })?;
            }
        }
        Ok(())
    }
}

/// All of `change` but its path and what is known of it at once.
fn body_of(change: &Change) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    body.put_uint(change.common as u64);
    for (entry, time) in [(&change.before, change.before_time), (&change.after, change.after_time)] {
        if let Some(entry) = entry {
            put_entry_as(&mut body, b"", entry);
        }
        body.put_int(time.sec);
        body.put_uint(u64::from(time.nsec));
    }
    body
}

fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader::new(bytes, "a step of a comparison")
}

impl Kept<'_> {
    /// All of it.
    ///
    /// # Errors
    /// `Corrupt`, which cannot be: it was made by [`Tape::add`].
    pub fn change(&self) -> Result<Change> {
        let mut r = reader(self.body);
        let name = self.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let common = r.uint()? as usize;
        let mut side = |is: bool| -> Result<(Option<Entry>, Time)> {
            let entry = if is { Some(Entry { name: name.to_vec(), ..take_entry(&mut r)? }) } else { None };
            Ok((entry, Time { sec: r.int()?, nsec: r.u32()? }))
        };
        let (before, before_time) = side(self.traits.before())?;
        let (after, after_time) = side(self.traits.after())?;
        let (path, passage) = (self.path.to_vec(), self.traits.passage());
        Ok(Change { path, before, before_time, after, after_time, common, passage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::compare::{Only, Walk};
    use crate::tree::sample::{Objects, Sample, dir, file, sample_root};

    #[test]
    fn leaving_a_directory_does_not_say_again_what_opening_it_said() {
        const LONG: usize = 1000;
        let objects = Objects::default();
        let root = |content: &str| {
            let mut marked: Sample = dir("d", vec![file("f", content)]);
            marked.entry.xattrs = vec![(b"user.a".to_vec(), content.repeat(LONG).into_bytes())];
            sample_root(&objects, vec![marked])
        };
        let (before, after) = (root("1"), root("2"));
        let mut walk = Walk::new(&objects, &before, &after, &Only::all()).unwrap();
        let mut tape = Tape::default();
        while let Some(step) = walk.next() {
            tape.add(&step.unwrap(), walk.entered());
        }
        let length: usize = tape.pieces.iter().map(Vec::len).sum();
        assert!((2 * LONG..3 * LONG).contains(&length), "{length} bytes");
        let mut told = Vec::new();
        tape.each(|step| {
            told.push((step.path.to_vec(), step.leaves, step.change()?));
            Ok(())
        })
        .unwrap();
        let d: Vec<_> = told.iter().filter(|(path, ..)| path == b"d").collect();
        assert!(d.len() == 2 && !d[0].1 && d[1].1 && d[0].2 == d[1].2);
    }
}

//! The steps of a walk, kept: a restore goes through them many times, and the trees are
//! read and compared once.
//!
//! About a hundred bytes a step, with what most passes ask for in front, so that they do
//! not take apart what they have no use for. What is not comparable is not kept.

use super::traits::Traits;
use super::{Change, Step};
use crate::error::Result;
use crate::object::codec::{Put, Reader};
use crate::tree::node::{Entry, Time, put_entry, take_entry};

/// The steps, in their order.
#[derive(Debug, Default)]
pub struct Tape {
    bytes: Vec<u8>,
    /// The path of the last step: the next one begins like it.
    last: Vec<u8>,
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
        let mut body = Vec::with_capacity(128);
        body.put_uint(change.common as u64);
        for (entry, time) in [(&change.before, change.before_time), (&change.after, change.after_time)] {
            if let Some(entry) = entry {
                put_entry(&mut body, entry);
            }
            body.put_int(time.sec);
            body.put_uint(u64::from(time.nsec));
        }
        let shared = self.last.iter().zip(&change.path).take_while(|(a, b)| a == b).count();
        let out = &mut self.bytes;
        out.put_u8(u8::from(leaves) | u8::from(entered) << 1);
        out.put_uint(change.traits().to_number());
        out.put_uint(shared as u64);
        out.put_bytes(&change.path[shared..]);
        out.put_bytes(&body);
        self.last.truncate(shared);
        self.last.extend_from_slice(&change.path[shared..]);
    }

    /// Calls `act` for each step, in order.
    ///
    /// # Errors
    /// What `act` returns.
    pub fn each(&self, mut act: impl FnMut(&Kept<'_>) -> Result<()>) -> Result<()> {
        let mut r = reader(&self.bytes);
        let mut path: Vec<u8> = Vec::new();
        while !r.is_empty() {
            let flags = r.u8()?;
            let traits = Traits::from_number(r.uint()?);
            path.truncate(r.uint()? as usize);
            path.extend_from_slice(r.bytes()?);
            let (leaves, entered) = (flags & 1 != 0, flags & 2 != 0);
            act(&Kept { leaves, entered, traits, path: &path, body: r.bytes()? })?;
        }
        Ok(())
    }
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
        let common = r.uint()? as usize;
        let mut side = |is: bool| -> Result<(Option<Entry>, Time)> {
            let entry = if is { Some(take_entry(&mut r)?) } else { None };
            Ok((entry, Time { sec: r.int()?, nsec: r.u32()? }))
        };
        let (before, before_time) = side(self.traits.before())?;
        let (after, after_time) = side(self.traits.after())?;
        let (path, passage) = (self.path.to_vec(), self.traits.passage());
        Ok(Change { path, before, before_time, after, after_time, common, passage })
    }
}

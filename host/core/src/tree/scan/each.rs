//! Going through all directories that are captured, one after the other: for looking at
//! what there is without capturing it.

use super::{Enter, Place, Scratch, Taken, Walk};
use crate::backend::Cancel;
use crate::error::Result;
use rustix::fs::FileType;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A directory to be entered.
struct Below {
    above: Arc<Place>,
    name: CString,
    taken: Taken,
}

/// What is done in each directory.
type Visit<'v> = &'v mut dyn FnMut(&Arc<Place>, &OwnedFd, &Scratch) -> Result<Next>;

/// Where the walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// In the directory.
    Inside,
    /// Past it.
    Past,
    /// Nowhere.
    End,
}

impl Walk<'_> {
    /// Calls `visit` for each directory that is captured, before those in it, until it
    /// wants an end: returns whether it never did.
    ///
    /// # Errors
    /// `Cancelled`, what `visit` returns, and what kept the directory that is walked from
    /// being read.
    pub fn each_directory(&self, cancel: &Cancel, visit: Visit<'_>) -> Result<bool> {
        let mut scratch = Scratch::default();
        let mut below: Vec<Below> = Vec::new();
        let mut next = None;
        loop {
            cancel.check()?;
            let entered = match &next {
                None => self.enter_top(&mut scratch)?,
                Some(Below { above, name, taken }) => self.enter(above, name, taken, &mut scratch)?,
            };
            if let Enter::In { place, handle, .. } = entered {
                let next = visit(&place, &handle, &scratch)?;
                if next == Next::End {
                    return Ok(false);
                }
                let inside = |kind| next == Next::Inside && kind == FileType::Directory;
                let inside = scratch.selected.iter().filter(|selected| inside(selected.kind));
                let before = below.len();
                below.extend(inside.rev().map(|selected| Below {
                    above: place.clone(),
                    name: scratch.listing.name(selected.at as usize).to_owned(),
                    taken: selected.taken.clone(),
                }));
                if below.len() > before {
                    self.kept.keep(&place.dir, handle);
                }
            }
            match below.pop() {
                Some(below) => next = Some(below),
                None => return Ok(true),
            }
        }
    }
}

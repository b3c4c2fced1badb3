//! Making an entry aside, whole and with all its attributes, before it takes its place.
//!
//! Invariant: content is checked against its hash as it is read, so what stands aside
//! under its final name is what was stored. Nothing in the tree is touched.

use super::Run;
use super::aside::{Aside, unfinished};
use super::attributes::On;
use super::outcome::Refusal;
use crate::disk::Special;
use crate::error::{Kind, Result};
use crate::object::Key;
use crate::tree::node::{Entry, Node, Time};

/// An entry to be made.
pub struct Draft<'a> {
    /// Its path in the tree.
    pub path: &'a [u8],
    /// Its name aside.
    pub name: &'a [u8],
    /// What it is to be.
    pub entry: &'a Entry,
    /// Its stored time.
    pub mtime: Time,
}

impl Run<'_> {
    /// Makes `draft` in `aside`, where its name is free. False when this system or this
    /// user cannot make such an entry; that is then refused.
    pub(super) fn make(&self, aside: &Aside<'_>, draft: &Draft<'_>) -> Result<bool> {
        let Draft { path, name, entry, mtime } = *draft;
        let special = match &entry.node {
            Node::File { content, size, sparse } => {
                self.make_file(aside, draft, (content, *size, *sparse))?;
                return Ok(true);
            }
            Node::Symlink(to) => {
                self.disk.symlink(&aside.dir, name, to)?;
                None
            }
            Node::Fifo => Some(Special::Fifo),
            Node::Socket => Some(Special::Socket),
            Node::CharDevice(major, minor) => Some(Special::CharDevice(*major, *minor)),
            Node::BlockDevice(major, minor) => Some(Special::BlockDevice(*major, *minor)),
            Node::Dir(_) => return Ok(false),
        };
        if let Some(special) = special {
            match self.disk.mknod(&aside.dir, name, special, 0o600) {
                Err(e) if e.kind() == Kind::Denied => {
                    let reason = format!("a {} cannot be made by this user", entry.node.word());
                    self.refuse(Refusal::new(path, reason).hint("run the same command with sudo"));
                    return Ok(false);
                }
                done => done?,
            }
        }
        if let Some(held) = aside.dir.hold(name)? {
            let on = On::Held(&held);
            let have = if aside.inherits { on.xattrs() } else { Vec::new() };
            self.attributes().settle(on, &on.stat(path)?, &have, entry, Some(mtime), path)?;
        }
        Ok(true)
    }

    fn make_file(&self, aside: &Aside<'_>, draft: &Draft<'_>, what: (&Key, u64, bool)) -> Result<()> {
        let Draft { path, name, entry, mtime } = *draft;
        // What takes several writes may be cut short: it has another name meanwhile.
        let is_long = what.1 > crate::store::BLOCK as u64;
        let first = if is_long { unfinished(name) } else { name.to_vec() };
        // Mostly that is its mode already. Nobody else comes to what stands aside.
        let file = self.disk.create_file(&aside.dir, &first, entry.mode & 0o777 | 0o600)?;
        let done = self.fill(&file, what).and_then(|()| {
            let on = On::File(&file);
            let have = if aside.inherits { on.xattrs() } else { Vec::new() };
            let mtime = self.options.stored_times.then_some(mtime);
            self.attributes().settle(on, &on.stat(path)?, &have, entry, mtime, path)?;
            if is_long { self.disk.rename(&aside.dir, &first, &aside.dir, name) } else { Ok(()) }
        });
        if done.is_err() {
            // The first failure is what is told.
            let _ = self.disk.unlink(&aside.dir, &first);
        }
        done.map_err(|e| e.context(crate::error::show_bytes(path)))
    }
}

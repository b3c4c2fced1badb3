//! What a command removed altogether: the project's folder, or a directory that was
//! captured.
//!
//! A directory that is gone, or in whose place something else is, is captured as an empty one that is otherwise as it was
//! stored, and a restore makes it again first. Only beneath the project's root and never
//! through a link; what else may be missing is the backend's to say. The project's own
//! folder is made again only in the directory that held it.

use super::capture::Job;
use super::lock::moved;
use super::preflight::Preflight;
use super::{NotRestored, Project, Session};
use crate::backend::Target;
use crate::disk::Dir;
use crate::error::{Error, Kind, Result, show};
use crate::history::snapshot::Captured;
use crate::object::ObjectKind;
use crate::project::root;
use crate::store::Writer;
use crate::text::Bytes;
use crate::tree::node::{Entry, Node, encode_times, encode_tree};
use crate::tree::root::Root;
use rustix::fs::Access;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::atomic::Ordering;

impl Project {
    /// Makes the project's folder again when it is gone and its history is not: an
    /// undo has to put something somewhere.
    ///
    /// # Errors
    /// `NotFound` when what held the folder is gone as well, `Invalid` when something
    /// else took its place.
    pub fn make_root(&self) -> Result<()> {
        let root = &self.env.root;
        if root::is_there(root) || self.store.as_ref().is_some_and(|store| moved(store, root).is_some()) {
            return Ok(());
        }
        if root.symlink_metadata().is_ok() {
            let why = format!("something else stands where the project was: {}", show(root));
            return Err(Error::new(Kind::Invalid, why).hint("move it away, and try again"));
        }
        let (Some(parent), Some(name)) = (root.parent(), root.file_name()) else { return root::check(root) };
        let parent = Dir::open(parent).map_err(|error| {
            let gone = format!("the project {} is gone, and what held it", show(root));
            error.context(gone).hint(format!("`mkdir -p {}` makes room for it", show(parent)))
        })?;
        self.env.disk.mkdir(&parent, name.as_bytes(), 0o700)?;
        self.made.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What is captured for `job` when all the directories that it covers are gone;
    /// none when they are not, or when it covers something else.
    pub(super) fn absent(&self, job: &Job, writer: &Writer) -> Result<Option<Captured>> {
        let mut parts = job.cover.clone();
        let mut roots = Vec::with_capacity(parts.len());
        for part in &parts {
            if part.content.kind() != ObjectKind::Root {
                return Ok(None);
            }
            let root = Root::decode(&writer.read(&part.content)?)?;
            let is_there = || -> Result<bool> {
                let through = job.through.as_ref();
                Ok(!self.is_gone(&root.value)? && self.displaced(&root.value, through)?.is_none())
            };
            if !is_of(&job.target, &root) || is_there()? {
                return Ok(None);
            }
            roots.push(root);
        }
        if roots.is_empty() {
            return Ok(None);
        }
        let mut lane = writer.lane();
        let tree = lane.put(ObjectKind::Tree, &encode_tree(&[]))?;
        let times = lane.put(ObjectKind::Times, &encode_times(&[]))?;
        for (part, root) in parts.iter_mut().zip(roots) {
            let top = Entry { node: Node::Dir(tree), ..root.top };
            let (left_out, ignored, ignored_stamps) = (Vec::new(), Vec::new(), Vec::new());
            let root =
                Root { top, times, left_out, ignored, ignored_stamps, files: 0, bytes: 0, git: None, ..root };
            part.content = lane.put(ObjectKind::Root, &root.encode())?;
        }
        lane.publish()?;
        Ok(Some(Captured { parts, ..Captured::nothing(job.target.clone()) }))
    }

    /// Whether the directory that a setting names by `value` is not there.
    pub(super) fn is_gone(&self, value: &str) -> Result<bool> {
        let Some(names) = names(&self.env.root, value) else { return Ok(false) };
        let mut at = match Dir::open(&self.env.root) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(true),
            other => other?,
        };
        for name in names {
            match at.stat(name)? {
                None => return Ok(true),
                // What took its place is for the backend to refuse.
                Some(_) => match at.child(name) {
                    Ok(dir) => at = dir,
                    Err(_) => return Ok(false),
                },
            }
        }
        Ok(false)
    }

    /// Finds out whether the directory that a setting names by `value` can be made again.
    pub(super) fn can_make(&self, value: &str, stored: &Captured, found: &mut Preflight) {
        let mut at = self.env.root.clone();
        for name in names(&self.env.root, value).unwrap_or_default() {
            let next = at.join(OsStr::from_bytes(name));
            if !next.exists() {
                break;
            }
            at = next;
        }
        // The project's folder is made with its parent's leave, or not at all.
        let at = if at.exists() { &at } else { at.parent().unwrap_or(&at) };
        if rustix::fs::access(at, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            found.blocked.push(NotRestored {
                target: stored.target.name.clone(),
                path: Bytes::default(),
                reason: format!("{} is gone, and {} cannot be written", show(Path::new(value)), show(at)),
                in_part: false,
            });
        }
    }
}

impl Session {
    /// Makes the directories again that `stored` was captured from, where they are gone.
    pub(super) fn make_again(&self, stored: &Captured) -> Result<()> {
        for part in stored.parts.iter().filter(|part| part.content.kind() == ObjectKind::Root) {
            let root = Root::decode(&self.opened().read(&part.content)?)?;
            if !is_of(&stored.target, &root) {
                continue;
            }
            let Some(names) = names(&self.env().root, &root.value) else { continue };
            let mut at = Dir::open(&self.env().root)?;
            let last = names.len().saturating_sub(1);
            for (depth, name) in names.into_iter().enumerate() {
                let disk = &self.env().disk;
                if let Some(stat) = at.stat(name)? {
                    let error = match at.child(name) {
                        Ok(dir) => {
                            at = dir;
                            continue;
                        }
                        Err(error) => error,
                    };
                    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
                    if depth == last && is_own && error.kind() == Kind::Denied {
                        // Its owner took from itself what the restore needs, and gives its mode.
                        disk.set_mode(&at, name, stat.st_mode & 0o7777 | 0o700)?;
                    }
                    // The restore says what else is wrong with what it finds there.
                    break;
                }
                disk.mkdir(&at, name, if depth == last { 0o700 } else { 0o777 })?;
                at = at.child(name)?;
                if depth == last {
                    disk.set_mode_of(&at, root.top.mode)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether `root` is of the directory that the settings of `target` name. One that no
/// setting names is the project's own.
pub(super) fn is_of(target: &Target, root: &Root) -> bool {
    target.settings.get(&root.setting).map_or(".", String::as_str) == root.value
}

/// The names that lead from `root` to what a setting names by `value`, when it lies
/// beneath it.
pub(super) fn names<'v>(root: &Path, value: &'v (impl AsRef<[u8]> + ?Sized)) -> Option<Vec<&'v [u8]>> {
    let path = Path::new(OsStr::from_bytes(value.as_ref()));
    let relative = path.strip_prefix(root).unwrap_or(path);
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(names)
}

//! Looking a path of the project up in what was captured: in directories, in volumes, among
//! databases. A path that neither the snapshot nor the present has is misspelt, and refused.
//!
//! Invariant: a path is found by stored names alone; a link on the way is not followed.

use super::Project;
use super::capture::directories;
use super::diff::{Difference, What};
use super::scope::{base, directory_base, is_volume, volume_base};
use crate::database::{Database, may_be_database};
use crate::error::{Error, Kind, Result, shell_word};
use crate::history::Id;
use crate::history::snapshot::{Captured, Snapshot};
use crate::object::ObjectKind;
use crate::store::Source;
use crate::text::Bytes;
use crate::tree::node::Entry;
use crate::tree::root::{Root, Why};
use crate::tree::view::View;
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What was captured at a path.
pub enum Found {
    /// This.
    There(Entry),
    /// Nothing, for this reason.
    LeftOut(&'static str),
    /// Nothing.
    Missing,
}

/// What `targets` have at `path`, which is one inside the project at `project`.
///
/// # Errors
/// When a directory on the way cannot be read.
pub fn look(project: &Path, source: &dyn Source, targets: &[Captured], path: &[u8]) -> Result<Found> {
    let mut found = Found::Missing;
    for captured in targets {
        if let Some(entry) = in_database(source, captured, path)? {
            return Ok(Found::There(entry));
        }
        for (base, root) in placed(project, source, captured)? {
            let Some(path) = within(path, &base) else { continue };
            let mut left_out = root.left_out.iter().filter(|item| item.why != Why::Elsewhere);
            if let Some(item) = left_out.find(|item| within(path, &item.path).is_some()) {
                found = Found::LeftOut(item.why.word());
            }
            if let Some(seen) = View::new(source, root).find(path)? {
                return Ok(Found::There(seen.entry));
            }
        }
    }
    Ok(found)
}

/// The directories of `captured` that lie in the project at `project`, each with where it
/// does: a volume lies at `NAME:`, where NAME is the target's.
///
/// # Errors
/// When one cannot be read.
pub fn placed(project: &Path, source: &dyn Source, captured: &Captured) -> Result<Vec<(Vec<u8>, Root)>> {
    let base = |root: &Root| match is_volume(captured) {
        true => Some(volume_base(&captured.target.name)),
        false => directory_base(project, &root.value),
    };
    let mut placed = Vec::new();
    for root in directories(source, &captured.parts) {
        let root = root?;
        placed.extend(base(&root).map(|base| (base, root)));
    }
    Ok(placed)
}

/// `path` as seen from the directory `of`, when it is that or lies in it.
pub fn within<'p>(path: &'p [u8], of: &[u8]) -> Option<&'p [u8]> {
    if of.is_empty() {
        return Some(path);
    }
    match path.strip_prefix(of)? {
        [] => Some(&[]),
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// The file at `path` among those of captured databases, and of what lies beside them.
fn in_database(source: &dyn Source, captured: &Captured, path: &[u8]) -> Result<Option<Entry>> {
    for part in captured.parts.iter().filter(|part| part.content.kind() == ObjectKind::Database) {
        let database = Database::load(source, &part.content)?;
        let at = database.path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
        let name = path.strip_prefix(&database.path[..at]).unwrap_or_default();
        if let Some(entry) = database.found.entries().iter().find(|entry| entry.name == name) {
            return Ok(Some(entry.clone()));
        }
    }
    Ok(None)
}

/// Where a change is in the project, when the directory of its target lies at `base` there.
pub fn place(change: &Difference, base: Option<&[u8]>) -> Vec<u8> {
    match (change.what, base) {
        // A database is told by its path in the project.
        (What::Entry | What::Dir, Some(base)) if !base.is_empty() => match &change.path[..] {
            [] => base.to_vec(),
            path => [base, path].join(&b'/'),
        },
        _ => change.path.clone(),
    }
}

impl Project {
    /// Refuses one of `paths` at which nothing is among `changes`, and neither `to` nor what
    /// is there now, captured as `current` in `source`, has anything.
    ///
    /// # Errors
    /// `NotFound`.
    pub(super) fn all_known(
        &self,
        paths: &[Bytes],
        changes: &[Difference],
        source: &dyn Source,
        (to, current): (&Snapshot, &[Captured]),
    ) -> Result<()> {
        let root = &self.env.root;
        let mut open: HashSet<&[u8]> = paths.iter().map(|path| &path.0[..]).collect();
        open.remove(&b""[..]);
        let bases = to.targets.iter().chain(current).map(|c| (&*c.target.name, base(root, c)));
        let bases: HashMap<&str, Option<Vec<u8>>> = bases.collect();
        for change in changes {
            if open.is_empty() {
                return Ok(());
            }
            let place = place(change, bases.get(&*change.target).and_then(Option::as_deref));
            let above = place.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &place[..at]);
            for path in above.chain([&place[..]]) {
                open.remove(path);
            }
        }
        for path in paths.iter().filter(|path| open.contains(&path.0[..])) {
            let why = match (look(root, source, &to.targets, &path.0)?, look(root, source, current, &path.0)?)
            {
                (Found::There(_), _) | (_, Found::There(_)) => continue,
                (Found::LeftOut(why), _) => format!("{path} is not in snapshot {}: {why}", to.id),
                (_, Found::LeftOut(why)) => format!("{path} is not covered, and stays as it is: {why}"),
                (Found::Missing, _) => format!("there is no {path}, neither now nor in snapshot {}", to.id),
            };
            let hint = match self.newest_with(source, path)? {
                Some(id) => format!(
                    "snapshot {id} has it: `snapback restore {id} --path {}`",
                    shell_word(OsStr::from_bytes(&path.0))
                ),
                None => "`snapback show` says what a snapshot lacks".to_owned(),
            };
            return Err(Error::new(Kind::NotFound, why).hint(hint));
        }
        Ok(())
    }

    /// The newest snapshot that has something at `path`, of those that can be read.
    fn newest_with(&self, source: &dyn Source, path: &Bytes) -> Result<Option<Id>> {
        for id in self.ids()? {
            let Ok(snapshot) = self.load(&id) else { continue };
            if let Ok(Found::There(_)) = look(&self.env.root, source, &snapshot.targets, &path.0) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Whether at `path`, which a database is known by, a tree has something that is none: in
    /// `to`, or on the disk now.
    ///
    /// # Errors
    /// When what is stored cannot be read.
    pub(super) fn is_trees(&self, to: &Snapshot, path: &[u8]) -> Result<bool> {
        let root = &self.env.root;
        let there = root.join(OsStr::from_bytes(path)).symlink_metadata();
        if there.is_ok_and(|there| !may_be_database(FileType::from_raw_mode(there.mode()))) {
            return Ok(true);
        }
        Ok(match look(root, &**self.need_store()?, &to.targets, path)? {
            Found::There(entry) => !entry.node.may_be_database(),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_where_a_target_lies() {
        let base = |value| directory_base(Path::new("/p"), value);
        assert_eq!(base("./code//").as_deref(), Some(&b"code"[..]));
        assert_eq!(base(".").as_deref(), Some(&b""[..]));
        assert_eq!(base("/p/code").as_deref(), Some(&b"code"[..]));
        assert_eq!((base("/code"), base("../code")), (None, None));
        assert_eq!(within(b"code/f", b"code"), Some(&b"f"[..]));
        assert_eq!(within(b"code", b"code"), Some(&b""[..]));
        assert_eq!(within(b"coder", b"code"), None);
        assert_eq!(within(b"f", b""), Some(&b"f"[..]));
    }
}

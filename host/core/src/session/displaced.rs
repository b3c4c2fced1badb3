//! What a command put in the place of a directory that was captured: a file, a link, anything
//! that is no directory. Nothing of the directory is there then, and nothing is looked for, or
//! written, behind a link.
//!
//! It goes when another target has it, and a directory there: that one's restore is what
//! replaces it. Else nobody captured it, and nobody removes it. A link that was there when the
//! directory was captured, and leads where it led, is none of this.

use super::absent::{is_of, names};
use super::lookup::{Found, look};
use super::plan::is_within;
use super::preflight::Preflight;
use super::{NotRestored, Project};
use crate::disk::{Dir, Lent};
use crate::error::{Error, Kind, Result, shell_word};
use crate::history::snapshot::{Captured, Snapshot};
use crate::object::ObjectKind;
use crate::store::{Source, Writer};
use crate::text::Bytes;
use crate::tree::node::Node;
use crate::tree::root::Root;
use rustix::fs::FileType;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

impl Project {
    /// The path in the project of what took the place of the directory that a setting names by
    /// `value`, or of one above it; none when nothing did. When it was captured, links led
    /// `through` to there.
    pub(super) fn displaced(&self, value: &str, through: Option<&Bytes>) -> Result<Option<Vec<u8>>> {
        let Some(names) = names(&self.env.root, value) else { return Ok(None) };
        let mut at = match Dir::open(&self.env.root) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            other => other?,
        };
        let mut path = Vec::new();
        for name in names {
            path.extend(if path.is_empty() { &b""[..] } else { b"/" });
            path.extend(name);
            let Some(stat) = at.stat(name)? else { return Ok(None) };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => match at.child(name) {
                    Ok(child) => at = child,
                    // Whoever has to open it says why it cannot be.
                    Err(_) => return Ok(None),
                },
                FileType::Symlink if through.is_some() && self.through(value).as_ref() == through => {
                    return Ok(None);
                }
                _ => return Ok(Some(path)),
            }
        }
        Ok(None)
    }

    /// The same for a directory of `captured` that a setting of its target names.
    pub(super) fn displaced_of(&self, captured: &Captured, source: &dyn Source) -> Result<Option<Vec<u8>>> {
        for part in captured.parts.iter().filter(|part| part.content.kind() == ObjectKind::Root) {
            let root = Root::decode(&source.read(&part.content)?)?;
            if is_of(&captured.target, &root)
                && let Some(path) = self.displaced(&root.value, captured.through.as_ref())?
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Where the directory that a setting names by `value` is, when links in the project lead
    /// there.
    pub(super) fn through(&self, value: &str) -> Option<Bytes> {
        let names: PathBuf = names(&self.env.root, value)?.into_iter().map(OsStr::from_bytes).collect();
        let root = self.env.root.canonicalize().ok()?;
        let real = root.join(&names).canonicalize().ok()?;
        (real != root.join(names)).then(|| Bytes::from(&*real))
    }

    /// Notes in `found` the directories of `stored` whose places are taken by what no other
    /// target of `to` brings away: `current` is what is there, and `only` what is put back.
    pub(super) fn taken_places(
        &self,
        (to, current): (&Snapshot, &[Captured]),
        stored: &Captured,
        only: &[Bytes],
        writer: &Writer,
        found: &mut Preflight,
    ) -> Result<()> {
        let Some(path) = self.displaced_of(stored, writer)? else { return Ok(()) };
        let others = |all: &[Captured]| -> Vec<Captured> {
            let is_other = |c: &&Captured| c.target.name != stored.target.name;
            let is_meant = |c: &&Captured| current.iter().any(|now| now.target.name == c.target.name);
            all.iter().filter(is_other).filter(is_meant).cloned().collect()
        };
        let at = |all: &[Captured]| look(&self.env.root, writer, &others(all), &path);
        let is_kept = matches!(at(current)?, Found::There(_));
        let comes_back =
            matches!(at(&to.targets)?, Found::There(entry) if matches!(entry.node, Node::Dir(_)));
        if is_kept && comes_back && is_within(&path, only) {
            return Ok(());
        }
        let shown = self.env.root.join(OsStr::from_bytes(&path));
        let word = shell_word(&shown);
        found.blocked.push(NotRestored {
            target: stored.target.name.clone(),
            path: Bytes::default(),
            reason: format!(
                "something that no snapshot has stands in the place of its directory (mend it: mv {word} {word}.other)"
            ),
            in_part: false,
        });
        Ok(())
    }

    /// Lends the permission to enter the directory that a setting names by `value`, where its
    /// owner has taken it from itself.
    pub(super) fn lend(&self, value: &str) -> Option<Lent> {
        let mut names = names(&self.env.root, value)?;
        let last = CString::new(names.pop()?).ok()?;
        let above = Dir::open(&self.env.root).ok()?;
        let above = names.into_iter().try_fold(above, |dir, name| dir.child(name)).ok()?;
        self.env.disk.lend(&above, &last)
    }
}

/// Why a restore leaves the directory of `target`, whose place is taken.
pub(super) fn left(target: &str) -> NotRestored {
    let reason = "something else stands in the place of its directory".to_owned();
    NotRestored { target: target.to_owned(), path: Bytes::default(), reason, in_part: false }
}

/// Whether the directories of `captured` were empty, or not there.
pub(super) fn is_empty(captured: &Captured, source: &dyn Source) -> Result<bool, Error> {
    let mut roots = super::capture::roots(source, &captured.parts);
    roots.try_fold(true, |empty, root| {
        let root = root?;
        Ok(empty && root.files == 0 && root.left_out.is_empty())
    })
}

//! Targets that capture files of the project by themselves, databases: trees leave these
//! to them, are captured before them, and are put back in between.
//!
//! A tree opens and closes files, and a process that closes a file lets go of all locks
//! that it has on it: so nothing walks a tree while a database is held.

use super::Project;
use super::absent::names;
use super::lookup::{Found, look};
use super::plan::is_within;
use super::scope::{Narrow, base, inside};
use crate::backend::{Elsewhere, Target};
use crate::database::{Database, of_setting};
use crate::error::{Error, Kind, Result};
use crate::history::snapshot::{Captured, Snapshot};
use crate::object::ObjectKind;
use crate::store::Source;
use crate::text::Bytes;
use crate::tree::node::Node;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Project {
    /// What `target` captures by itself. A backend that is away claims nothing: that is no reason
    /// to keep other targets from anything, and what it captured stays out of trees by their own
    /// record, or as the database that it is.
    pub(super) fn claims(&self, target: &Target) -> Result<Vec<Elsewhere>> {
        let values = self.env.backends.claims(target).unwrap_or_default();
        let paths = values.iter().filter_map(|value| claimed(value, &self.env.root));
        Ok(paths.map(|path| Elsewhere { path, target: target.name.clone() }).collect())
    }

    /// The same of a target that takes no part: nothing where its backend was never used here,
    /// which is not made ready for that. What is left out costs nothing, and runs nothing.
    pub(super) fn known_claims(&self, target: &Target) -> Result<Vec<Elsewhere>> {
        let is_known = self.env.backends.is_known(&target.backend);
        if is_known { self.claims(target) } else { Ok(Vec::new()) }
    }

    /// What all `targets` capture by themselves.
    pub(super) fn all_claims<'t>(&self, targets: impl Iterator<Item = &'t Target>) -> Result<Vec<Elsewhere>> {
        let mut all = Vec::new();
        for target in targets {
            all.extend(self.claims(target)?);
        }
        all.sort();
        Ok(all)
    }

    /// Whether a link took the place of a directory that leads to what `target` captures by
    /// itself, and had in `like`: nothing of it is there, and what is behind the link is not
    /// its own. A link out of the project may have been agreed to.
    pub(super) fn is_cut_off(&self, like: &Snapshot, target: &Target) -> Result<bool> {
        let root = &self.env.root;
        for Elsewhere { path, .. } in self.claims(target)? {
            for at in (0..path.len()).filter(|at| path[*at] == b'/') {
                let above = root.join(OsStr::from_bytes(&path[..at]));
                if !above.is_symlink() {
                    continue;
                }
                let leaves = above.canonicalize().is_ok_and(|to| !to.starts_with(root));
                let had = look(root, &**self.need_store()?, &like.targets, &path[..at])?;
                return Ok(
                    !leaves || matches!(had, Found::There(entry) if matches!(entry.node, Node::Dir(_)))
                );
            }
        }
        Ok(false)
    }

    /// The names of `targets` in the order in which they are put back: files that are to
    /// go leave their directories first, and those that come find theirs.
    pub(super) fn in_order(&self, source: &dyn Source, targets: &[Captured]) -> Result<Vec<String>> {
        let mut ranked = Vec::new();
        for captured in targets {
            let mut comes = !captured.parts.is_empty();
            for part in captured.parts.iter().filter(|part| part.content.kind() == ObjectKind::Database) {
                // What lies beside it alone leaves room for a directory.
                comes &= Database::load(source, &part.content)?.file().is_some();
            }
            let rank = match (self.claims(&captured.target)?.is_empty(), comes) {
                (false, false) => 0,
                (true, _) => 1,
                (false, true) => 2,
            };
            ranked.push((rank, captured.target.name.clone()));
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        Ok(ranked.into_iter().map(|(_, name)| name).collect())
    }

    /// Those of `targets` of the snapshot `to` that `paths` are about, and the paths that
    /// are about trees.
    ///
    /// # Errors
    /// `NotFound` when they are about none.
    pub(super) fn narrowed(
        &self,
        to: &Snapshot,
        targets: &[&Captured],
        narrow: &Narrow,
    ) -> Result<(Vec<String>, Vec<Bytes>)> {
        let (paths, root) = (&narrow.paths, &self.env.root);
        let claims = self.all_claims(targets.iter().map(|captured| &captured.target))?;
        let mut trees = self.of_trees(to, paths, &claims)?;
        let mut names = Vec::new();
        for captured in targets {
            let (target, own) = (&captured.target, self.claims(&captured.target)?);
            let whole = narrow.whole.contains(&target.name);
            let concerned = match &own[..] {
                [] => !trees.is_empty() && inside(root, captured, &trees).is_some(),
                own => !paths.is_empty() && own.iter().any(|claim| is_within(&claim.path, paths)),
            };
            if whole {
                trees.extend(base(root, captured).map(Bytes));
            }
            if concerned || whole {
                names.push(target.name.clone());
            }
        }
        match (names.is_empty(), paths.first()) {
            (true, Some(path)) => {
                let text = format!("{path} is in no target of snapshot {}", to.id);
                Err(Error::new(Kind::NotFound, text).hint("`snapback show` says what a snapshot has"))
            }
            _ => Ok((names, trees)),
        }
    }

    /// Those of `paths` that are about trees: all but those that targets claim, where nothing
    /// but their databases is.
    fn of_trees(&self, to: &Snapshot, paths: &[Bytes], claims: &[Elsewhere]) -> Result<Vec<Bytes>> {
        let mut trees = Vec::new();
        for path in paths {
            if claims.iter().all(|claim| claim.path != path.0) || self.is_trees(to, &path.0)? {
                trees.push(path.clone());
            }
        }
        Ok(trees)
    }

    /// Takes the paths of databases that were found out of `trees`, the paths that are
    /// about trees: when none is left, trees have nothing to do with it.
    pub(super) fn leave_to_databases(
        &self,
        to: &Snapshot,
        current: &mut Vec<Captured>,
        trees: &mut Vec<Bytes>,
    ) -> Result<()> {
        if trees.is_empty() {
            return Ok(());
        }
        let found = current.iter().filter(|now| to.target(&now.target.name).is_none());
        let claims = self.all_claims(found.map(|now| &now.target))?;
        *trees = self.of_trees(to, trees, &claims)?;
        if trees.is_empty() {
            let mut kept = Vec::new();
            for captured in current.drain(..) {
                if !self.claims(&captured.target)?.is_empty() {
                    kept.push(captured);
                }
            }
            *current = kept;
        }
        Ok(())
    }
}

/// A setting that names a file, as a path inside the project.
fn claimed(value: &str, root: &Path) -> Option<Vec<u8>> {
    let path = of_setting(value);
    names(root, &path).filter(|names| !names.is_empty()).map(|names| names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_path_inside_or_none() {
        let root = Path::new("/p");
        for (value, path) in [
            ("app.db", Some("app.db")),
            ("./data//app.db", Some("data/app.db")),
            ("/p/data/app.db", Some("data/app.db")),
            ("/q/app.db", None),
            ("../app.db", None),
            (".", None),
            ("\"./a\\nb/\\xff\"", Some("a\nb/?")),
        ] {
            assert_eq!(
                claimed(value, root),
                path.map(|path| path.bytes().map(|b| if b == b'?' { 0xff } else { b }).collect()),
                "{value}"
            );
        }
    }
}

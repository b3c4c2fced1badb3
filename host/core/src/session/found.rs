//! Databases that nobody declared: found while trees are captured, each a target of its
//! own that is called by its path. Which backend takes them in, the backends say.
//!
//! So one snapshot may have a target that another lacks. What the other has of it then is
//! what its trees have: a file, which is handed over to the target; nothing, and the
//! database goes; or nothing is known since it was left out, and the database is left alone.

use super::Project;
use super::absent::names;
use super::capture::{Job, roots};
use crate::backend::{Adopter, Elsewhere, Part, Target};
use crate::database::{
    Database, Found, Header, SIDES, bases, header, is_stored_side, of_setting, side, state, to_setting,
};
use crate::disk::Dir;
use crate::error::{Error, Result};
use crate::history::snapshot::{Captured, Snapshot};
use crate::object::ObjectKind;
use crate::store::content::read_begin;
use crate::store::{Source, Writer};
use crate::tree::node::{Entry, Node};
use crate::tree::root::{LeftOut, Why};
use crate::tree::view::View;
use std::collections::BTreeSet;
use std::path::Path;

/// A database that nobody declared, and the target that it becomes.
pub(super) struct Stray {
    /// Where it is in the project.
    pub path: Vec<u8>,
    pub target: Target,
}

/// Decides about a database that was found: how it is captured, if it is.
pub(super) type EachFound<'a> = &'a mut dyn FnMut(Stray) -> Result<Option<Job>>;

/// What a snapshot has of a database that is no target of its own in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Handed {
    /// It was left out, or lies in nothing that was captured.
    Unknown,
    /// There was none.
    Nothing,
    /// This was in a tree.
    Is(Database),
}

impl Project {
    /// Targets for the databases that the trees in `captured` left to them; those that
    /// lie beside another one belong to it. `others` are the targets that are there.
    pub(super) fn found(
        &self,
        source: &dyn Source,
        captured: &[&Captured],
        others: &BTreeSet<String>,
    ) -> Result<Vec<Stray>> {
        let mut paths = BTreeSet::new();
        for root in captured.iter().flat_map(|captured| roots(source, &captured.parts)) {
            let root = root?;
            let Some(base) = names(&self.env.root, &root.value) else { continue };
            let found = |item: &&LeftOut| item.why == Why::Elsewhere && item.detail.is_empty();
            for item in root.left_out.iter().filter(found) {
                paths.insert(base.iter().copied().chain([&item.path[..]]).collect::<Vec<_>>().join(&b'/'));
            }
        }
        let is_beside =
            |path: &[u8]| bases(path).any(|(of, _)| paths.contains(of)) && !self.is_database(path);
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let adopter = self.env.backends.adopter()?;
        let alone = paths.iter().filter(|path| !is_beside(path));
        Ok(alone.map(|path| Stray { path: path.clone(), target: adopted(&adopter, path, others) }).collect())
    }

    /// The target for the database that `value` names in the project, when one is there.
    ///
    /// # Errors
    /// When no backend covers it.
    pub(super) fn found_at(&self, value: &str, others: &BTreeSet<String>) -> Result<Option<Target>> {
        let path = of_setting(value);
        match self.is_database(&path) {
            true => Ok(Some(adopted(&self.env.backends.adopter()?, &path, others))),
            false => Ok(None),
        }
    }

    fn is_database(&self, path: &[u8]) -> bool {
        let file = || {
            let mut names = names(&self.env.root, path)?;
            let name = names.pop()?;
            let root = Dir::open(&self.env.root).ok()?;
            names.into_iter().try_fold(root, |dir, name| dir.child(name).ok())?.open_file(name).ok()
        };
        file().is_some_and(|file| matches!(header::read(&file), Ok(Some(_))))
    }

    /// The target that is to be captured for a database that is no target of the snapshot
    /// `like`: where today's settings name one, that one; none where `like` does not say
    /// what was there.
    pub(super) fn found_for(
        &self,
        like: &Snapshot,
        source: &dyn Source,
        stray: &Stray,
    ) -> Result<Option<Job>> {
        if handed(source, &like.targets, &self.env.root, &stray.path)? == Handed::Unknown {
            return Ok(None);
        }
        let declared = self.declared(|claim| claim.path == stray.path)?;
        Ok(Some(Job::of(declared.first().map_or(&stray.target, |(target, _)| target))))
    }

    /// Today's targets for files that the trees of `like` have as files of theirs.
    pub(super) fn declared_since(
        &self,
        like: &Snapshot,
        source: &dyn Source,
    ) -> Result<Vec<(Target, Elsewhere)>> {
        let known = self.all_claims(like.targets.iter().map(|captured| &captured.target))?;
        let mut since = self.declared(|claim| known.iter().all(|known| known.path != claim.path))?;
        let mut failed = Ok(());
        since.retain(|(_, claim)| match handed(source, &like.targets, &self.env.root, &claim.path) {
            Ok(handed) => matches!(handed, Handed::Is(_)),
            Err(error) => {
                failed = Err(error);
                false
            }
        });
        failed.map(|()| since)
    }

    /// Today's targets with a claim that is `wanted`. Where snapback.toml cannot be read
    /// there are none: what a snapshot has comes back all the same.
    fn declared(&self, wanted: impl Fn(&Elsewhere) -> bool) -> Result<Vec<(Target, Elsewhere)>> {
        let Ok(config) = self.config() else { return Ok(Vec::new()) };
        let mut declared = Vec::new();
        for configured in &config.targets {
            for claim in self.known_claims(&configured.target)?.into_iter().filter(|claim| wanted(claim)) {
                declared.push((configured.target.clone(), claim));
            }
        }
        Ok(declared)
    }

    /// What `snapshot` has for the target of `like`, a capture in another snapshot: what
    /// was handed over is stored through `writer`.
    ///
    /// # Errors
    /// `Corrupt` when it has nothing to do with it.
    pub(super) fn of_target(
        &self,
        snapshot: &Snapshot,
        like: &Captured,
        writer: &Writer,
    ) -> Result<Captured> {
        let name = &like.target.name;
        if let Some(captured) = snapshot.target(name) {
            return Ok(captured.clone());
        }
        let missing = || Error::corrupt(format!("snapshot {} has no target `{name}`", snapshot.id));
        let claim = self.claims(&like.target)?.into_iter().next().ok_or_else(missing)?;
        let parts = match handed(writer, &snapshot.targets, &self.env.root, &claim.path)? {
            Handed::Unknown => return Err(missing()),
            Handed::Nothing => Vec::new(),
            Handed::Is(database) => {
                let mut lane = writer.lane();
                let content = lane.put(ObjectKind::Database, &database.encode())?;
                lane.publish()?;
                vec![Part { name: self.env.backends.adopter()?.part, content }]
            }
        };
        Ok(Captured { parts, ..Captured::nothing(like.target.clone()) })
    }
}

/// The target for the database at `path`: called so, unless something else is.
fn adopted(adopter: &Adopter, path: &[u8], others: &BTreeSet<String>) -> Target {
    let value = to_setting(path);
    let name = if others.contains(&value) { format!("./{value}") } else { value.clone() };
    let settings = [(adopter.setting.clone(), value)].into();
    Target { name, backend: adopter.backend.clone(), settings }
}

/// What the trees in `captured` have of the database at `path` in the project at `root`.
///
/// # Errors
/// When what is stored cannot be read.
pub(super) fn handed(source: &dyn Source, captured: &[Captured], root: &Path, path: &[u8]) -> Result<Handed> {
    for tree in captured.iter().flat_map(|captured| roots(source, &captured.parts)) {
        let tree = tree?;
        let Some(base) = names(root, &tree.value).map(|names| names.join(&b'/')) else { continue };
        let inside = match &base[..] {
            [] => Some(path),
            base => path.strip_prefix(base).and_then(|rest| rest.strip_prefix(b"/")),
        };
        let Some(inside) = inside else { continue };
        // What another target has is a file.
        let covers = |item: &LeftOut| match inside.strip_prefix(&item.path[..]) {
            Some(rest) => rest.is_empty() || rest[0] == b'/' && item.why != Why::Elsewhere,
            None => false,
        };
        if tree.left_out.iter().any(covers) {
            return Ok(Handed::Unknown);
        }
        let view = View::new(source, tree);
        let mut entries = Vec::new();
        for suffix in [&b""[..], SIDES[0], SIDES[1]] {
            let Some(seen) = view.find(&side(inside, suffix))? else { continue };
            let node = &seen.entry.node;
            // What was no file is the tree's, and stays with it.
            if node.may_be_database() && (suffix.is_empty() || is_stored_side(source, node, suffix)?) {
                entries.push(plain(seen.entry));
            }
        }
        return match entries.is_empty() {
            true => Ok(Handed::Nothing),
            false => Ok(Handed::Is(Database { path: path.to_vec(), found: as_found(source, entries)? })),
        };
    }
    Ok(Handed::Unknown)
}

/// A file as it is kept with a database.
fn plain(mut entry: Entry) -> Entry {
    entry.link = None;
    if let Node::File { sparse, .. } = &mut entry.node {
        *sparse = false;
    }
    entry
}

/// What files are as a database: one that is all of it is an image, also of an empty one.
fn as_found(source: &dyn Source, mut entries: Vec<Entry>) -> Result<Found> {
    if let [file] = &entries[..]
        && let Node::File { content, size, .. } = file.node
    {
        let begin = read_begin(source, &content, size, header::LENGTH as u64)?;
        if size == 0 || Header::parse(&begin).is_some_and(|header| header.image(size) == Some(size)) {
            let state = state(source, &content, size)?;
            return Ok(Found::Image { file: entries.remove(0), state });
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Found::Files(entries))
}

//! What differs between two states, target by target.

use super::capture::same_content;
use super::found::{Handed, handed};
use super::{Project, snapshots};
use crate::backend::{Call, Explained, Part};
use crate::database::{Database, state};
use crate::error::Result;
use crate::history::changes::Changes;
use crate::history::snapshot::{Captured, Snapshot, SnapshotKind};
use crate::object::{Key, ObjectKind};
use crate::store::{Source, Writer};
use crate::tree::Plans;
use crate::tree::compare::{self, Change, ChangeKind, Only};
use crate::tree::node::{Entry, Node};
use crate::tree::view::read_root;
use crate::volume::{Volume, directory_of};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The target.
    pub target: Arc<str>,
    /// Whether it came, changed, or went.
    pub kind: ChangeKind,
    /// Path inside the target, or the backend's name for the part.
    pub path: Vec<u8>,
    /// What the path names.
    pub what: What,
    /// Who made it, where that is known.
    pub by: Option<By>,
    /// What a backend says of it beyond that.
    pub detail: Option<Box<str>>,
}

/// What the path of a difference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A part that a backend stored.
    Part,
    /// A database, by its path in the project.
    Database,
    /// An entry of a tree that is no directory afterwards.
    Entry,
    /// A directory of a tree; one that is gone was one.
    Dir,
}

impl What {
    fn of(change: &Change) -> Self {
        let is_dir = change.becomes_dir() || (change.after.is_none() && change.was_dir());
        if is_dir { Self::Dir } else { Self::Entry }
    }
}

impl Difference {
    /// The entry on one side of it, as it is known again: of a database, what counts commits
    /// is not part of it, since that goes on when the database is put back.
    ///
    /// # Errors
    /// When what is stored cannot be read.
    pub fn known<'e>(&self, source: &dyn Source, entry: Option<&'e Entry>) -> Result<Option<Cow<'e, Entry>>> {
        let Some(entry) = entry else { return Ok(None) };
        let Node::File { content, size, .. } = entry.node else { return Ok(Some(Cow::Borrowed(entry))) };
        if self.what != What::Database {
            return Ok(Some(Cow::Borrowed(entry)));
        }
        let content = Key::from_parts(content.kind(), state(source, &content, size)?);
        let node = Node::File { content, size, sparse: false };
        Ok(Some(Cow::Owned(Entry { node, ..entry.clone() })))
    }
}

/// What is done with each difference; where it is one of a tree or a
/// database, with its two entries.
/// They are not kept in a [`Difference`], of which there may be hundreds of thousands.
pub type EachDifference<'a> = &'a mut dyn FnMut(Difference, Option<&Change>) -> Result<()>;

/// Who made a change to what a run was started in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The run, or something else while it was going on.
    Run,
    /// Somebody, after the run had ended.
    Later,
    /// Somebody, since the step that is done again was undone.
    Since,
}

impl By {
    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Later | Self::Since => "later",
        }
    }

    /// Whether it is no part of the step.
    pub fn is_edit(self) -> bool {
        self != Self::Run
    }
}

/// Tells the changes of a run from those made after it had ended.
pub struct Apart {
    left: Option<Changes>,
    /// The project's folder was made again for this: how that looks is nobody's edit.
    made: bool,
}

impl Apart {
    /// How many paths the run changed, where that is known.
    pub fn count(&self) -> Option<usize> {
        self.left.as_ref().map(Changes::count)
    }

    /// Who made a change between the snapshot before the run and the present, which has
    /// `now` at `path` of `target`. None when it is not known.
    pub fn by(&self, target: &str, path: &[u8], now: Option<&Entry>) -> Option<By> {
        let left = self.left.as_ref()?;
        let is_run = (self.made && path.is_empty()) || left.explain(target, path, now);
        Some(if is_run { By::Run } else { By::Later })
    }
}

impl Project {
    /// For changes since `start`, which knows nothing when that is not the snapshot
    /// before a run, or the end of the run was not recorded.
    pub fn apart(&self, start: &Snapshot) -> Apart {
        let store = self.store().filter(|_| start.kind == SnapshotKind::Run);
        let left = store.and_then(|store| Changes::load(&snapshots(store), &start.id));
        Apart { left, made: self.made.load(Ordering::Relaxed) }
    }

    /// The finer words of the target's backend for what leads from `before` to `after`, which
    /// `writer` and the store have; none when it has none, may not be asked or fails.
    fn explain(
        &self,
        writer: Option<&Arc<Writer>>,
        before: &Captured,
        after: &Captured,
    ) -> Option<Vec<Explained>> {
        let (env, target) = (&self.env, &after.target);
        if before.target.backend != target.backend {
            return None;
        }
        let call = Call { writer: writer.cloned(), ..Call::new(env, target, self.store()) };
        let told =
            env.backends.get(&target.backend).and_then(|b| b.explain(&call, &before.parts, &after.parts));
        told.unwrap_or_else(|error| {
            let doing = format!("the backend of `{}` could not tell what differs", target.name);
            env.report.troubled(&doing, &error);
            None
        })
    }

    /// Calls `found` for each difference that leads from `before` to `after`, target by
    /// target as in `before`, sorted by path in each. Of targets that only one of the two
    /// has, only databases are compared. What parts hold that only their backend can read is
    /// told in its words, if it has any. `present` has what is in no snapshot.
    ///
    /// # Errors
    /// When an object cannot be read, or `found` fails.
    pub fn differences(
        &self,
        present: Option<&Arc<Writer>>,
        before: &[Captured],
        after: &[Captured],
        found: EachDifference<'_>,
    ) -> Result<()> {
        for before in before {
            if let Some(after) = after.iter().find(|c| c.target.name == before.target.name) {
                self.in_target(present, (before, after), &Plans::default(), found)?;
            } else {
                of_one(self.source(present)?, before, after, false, found)?;
            }
        }
        let is_new = |c: &&Captured| before.iter().all(|before| before.target.name != c.target.name);
        for only in after.iter().filter(is_new) {
            of_one(self.source(present)?, only, before, true, found)?;
        }
        Ok(())
    }

    /// Where what was captured is read from.
    fn source<'s>(&'s self, present: Option<&'s Arc<Writer>>) -> Result<&'s dyn Source> {
        Ok(match present {
            Some(writer) => &**writer,
            None => &**self.need_store()?,
        })
    }

    /// Calls `found` for each difference of one target. Where a plan leads from `before` to
    /// `after`, they are known already.
    pub(super) fn in_target(
        &self,
        present: Option<&Arc<Writer>>,
        (before, after): (&Captured, &Captured),
        plans: &Plans,
        found: EachDifference<'_>,
    ) -> Result<()> {
        let source = self.source(present)?;
        let target: Arc<str> = before.target.name.as_str().into();
        let mut told = None;
        let mut whole = |parts: (Option<&Part>, Option<&Part>), found: EachDifference<'_>| {
            let is_opaque =
                |part: Option<&Part>| part.is_none_or(|part| part.content.kind() == ObjectKind::Opaque);
            if !is_opaque(parts.0) || !is_opaque(parts.1) {
                return whole_part(source, &target, parts, found);
            }
            // All at once, when the first is met.
            let told: &mut bool = match &mut told {
                Some(told) => told,
                none => none.insert(explained(&target, self.explain(present, before, after), found)?),
            };
            if *told { Ok(()) } else { whole_part(source, &target, parts, found) }
        };
        for part in &before.parts {
            let Some(other) = after.parts.iter().find(|other| other.name == part.name) else {
                whole((Some(part), None), found)?;
                continue;
            };
            if same_content(source, &part.content, &other.content, false)? {
                continue;
            }
            let directories = (directory_of(source, &part.content)?, directory_of(source, &other.content)?);
            if let (Some(a), Some(b)) = directories
                && part.content.kind() == other.content.kind()
            {
                let mut any = false;
                let mut tell = |change: &Change| {
                    any = true;
                    let (target, path) = (target.clone(), change.path.clone());
                    let (kind, what) = (change.kind(), What::of(change));
                    found(Difference { target, kind, path, what, by: None, detail: None }, Some(change))
                };
                if let Some(told) = plans.changes(&other.content, &part.content, &mut tell) {
                    told?;
                    continue;
                }
                let (a, b) = (read_root(source, &a)?, read_root(source, &b)?);
                for change in compare::compare(source, &a, &b, &Only::default())? {
                    tell(&change?)?;
                }
                if !any && let Some(kind) = went_or_came(source, &part.content, &other.content)? {
                    let (target, path) = (target.clone(), part.name.as_bytes().to_vec());
                    found(Difference { target, kind, path, what: What::Part, by: None, detail: None }, None)?;
                }
            } else {
                whole((Some(part), Some(other)), found)?;
            }
        }
        for part in &after.parts {
            if !before.parts.iter().any(|other| other.name == part.name) {
                whole((None, Some(part)), found)?;
            }
        }
        Ok(())
    }
}

/// The differences of a target that only one of two snapshots has: a database, which the
/// trees of the `other` may have, or have none where it is. `came`: the other is the one
/// before.
fn of_one(
    source: &dyn Source,
    only: &Captured,
    other: &[Captured],
    came: bool,
    found: EachDifference<'_>,
) -> Result<()> {
    for part in only.parts.iter().filter(|part| part.content.kind() == ObjectKind::Database) {
        let database = Database::load(source, &part.content)?;
        let handed = match handed(source, other, Path::new(""), &database.path)? {
            Handed::Unknown => continue,
            Handed::Nothing => None,
            Handed::Is(handed) if handed.same_state(&database) => continue,
            Handed::Is(handed) => Some(handed),
        };
        let (old, new) = if came { (handed, Some(database)) } else { (Some(database), handed) };
        of_database(&only.target.name.as_str().into(), old, new, found)?;
    }
    Ok(())
}

/// Whether a volume went or came, whatever became of its files: some stay where they are.
fn went_or_came(source: &dyn Source, before: &Key, after: &Key) -> Result<Option<ChangeKind>> {
    if before.kind() != ObjectKind::Volume {
        return Ok(None);
    }
    Ok(match (Volume::load(source, before)?.present, Volume::load(source, after)?.present) {
        (true, false) => Some(ChangeKind::Deleted),
        (false, true) => Some(ChangeKind::Added),
        _ => None,
    })
}

/// Tells what a backend says; whether it says anything.
fn explained(target: &Arc<str>, said: Option<Vec<Explained>>, found: EachDifference<'_>) -> Result<bool> {
    let Some(said) = said else { return Ok(false) };
    for Explained { kind, subject: path, detail } in said {
        let (target, detail) = (target.clone(), detail.map(String::into_boxed_str));
        found(Difference { target, kind, path, what: What::Part, by: None, detail }, None)?;
    }
    Ok(true)
}

/// The difference between two parts that are not compared inside; a database is told by
/// its path and its file.
fn whole_part(
    source: &dyn Source,
    target: &Arc<str>,
    (before, after): (Option<&Part>, Option<&Part>),
    found: EachDifference<'_>,
) -> Result<()> {
    let kind = match (before, after) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
        _ => ChangeKind::Modified,
    };
    let database = |part: Option<&Part>| match part {
        Some(part) if part.content.kind() == ObjectKind::Database => {
            Database::load(source, &part.content).map(Some)
        }
        _ => Ok(None),
    };
    let (old, new) = (database(before)?, database(after)?);
    if old.is_some() || new.is_some() {
        return of_database(target, old, new, found);
    }
    let path = before.or(after).map_or(Vec::new(), |part| part.name.as_bytes().to_vec());
    let target = target.clone();
    found(Difference { target, kind, path, what: What::Part, by: None, detail: None }, None)
}

/// The difference between two databases, of which one may not be there.
fn of_database(
    target: &Arc<str>,
    old: Option<Database>,
    new: Option<Database>,
    found: EachDifference<'_>,
) -> Result<()> {
    // What lies beside it alone is no database.
    let is_there = |database: &Option<Database>| database.as_ref().is_some_and(|it| it.file().is_some());
    let kind = match (is_there(&old), is_there(&new)) {
        (false, true) => ChangeKind::Added,
        (true, false) => ChangeKind::Deleted,
        _ => ChangeKind::Modified,
    };
    let path = new.as_ref().or(old.as_ref()).map_or(Vec::new(), |database| database.path.clone());
    let file = |database: Option<Database>| database.and_then(|database| database.file().cloned());
    let change = Change::of_file(path.clone(), file(old), file(new));
    let target = target.clone();
    found(Difference { target, kind, path, what: What::Database, by: None, detail: None }, Some(&change))
}

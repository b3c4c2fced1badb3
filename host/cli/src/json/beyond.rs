//! What no restore brings back, in JSON.

use super::names::{Named, path};
use crate::render::beyond::commands;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use snapback_core::history::Id;
use snapback_core::session;
use snapback_core::text::Bytes;
use snapback_core::tree::git::{Moved, Operation, Position};

/// What lies beyond what is covered, under two keys: `git` (repositories that stand
/// elsewhere) and `uncovered` (things that are not as they were).
#[derive(Serialize, Default)]
pub struct Beyond {
    git: Vec<Git>,
    uncovered: Vec<Uncovered>,
}

/// The same two keys, null where nothing is known of it.
#[derive(Serialize)]
pub struct Perhaps<'a> {
    git: Option<&'a [Git]>,
    uncovered: Option<&'a [Uncovered]>,
}

impl<'a> From<Option<&'a Beyond>> for Perhaps<'a> {
    fn from(beyond: Option<&'a Beyond>) -> Self {
        let (git, uncovered) = (beyond.map(|b| &*b.git), beyond.map(|b| &*b.uncovered));
        Self { git, uncovered }
    }
}

#[derive(Serialize)]
struct Git {
    target: String,
    state: &'static str,
    before: Option<Place>,
    now: Option<Place>,
    /// What takes all of it back, each as it can be typed.
    commands: Vec<String>,
    /// What git is in the middle of since, and is no longer in the middle of.
    begun: Vec<&'static str>,
    ended: Vec<&'static str>,
    /// Whether something else is in the index.
    restaged: bool,
    lost_refs: Vec<Ref>,
    moved_refs: Vec<Ref>,
}

/// Where a repository stands.
pub(super) struct Place {
    branch: Option<Bytes>,
    commit: Option<String>,
}

struct Ref {
    name: Bytes,
    object: String,
}

struct Uncovered {
    target: String,
    path: Bytes,
    reason: &'static str,
    change: &'static str,
}

impl Beyond {
    /// For JSON; `to` is the snapshot that the commands lead to.
    pub fn new(beyond: &session::Beyond, to: &Id) -> Self {
        let words = |all: &[Operation]| all.iter().map(|of| of.word()).collect();
        let refs = |refs: &[(Vec<u8>, String)]| {
            let one = |(name, object): &(Vec<u8>, String)| Ref {
                name: Bytes(name.clone()),
                object: object.clone(),
            };
            refs.iter().map(one).collect()
        };
        let git = |(target, moved): &(String, Moved)| Git {
            target: target.clone(),
            state: moved.state.word(),
            before: moved.before.as_ref().map(Place::of),
            now: moved.now.as_ref().map(Place::of),
            commands: commands(moved, to),
            begun: words(&moved.begun),
            ended: words(&moved.ended),
            restaged: moved.restaged,
            lost_refs: refs(&moved.lost_refs),
            moved_refs: refs(&moved.moved_refs),
        };
        let uncovered = |item: &session::Uncovered| Uncovered {
            target: item.target.clone(),
            path: item.path.clone(),
            reason: item.why.word(),
            change: item.fate.word(),
        };
        Self {
            git: beyond.git.iter().map(git).collect(),
            uncovered: beyond.uncovered.iter().map(uncovered).collect(),
        }
    }
}

impl Place {
    pub(super) fn of(position: &Position) -> Self {
        Self {
            branch: position.head.branch().map(|name| Bytes(name.to_vec())),
            commit: position.commit.clone(),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        match self.branch.as_ref().map(|name| (name.text(), name.base64())) {
            None => map.serialize_entry("branch", &None::<()>)?,
            Some((Some(text), _)) => map.serialize_entry("branch", text)?,
            Some((None, base64)) => map.serialize_entry("branch_b64", &base64)?,
        }
        map.serialize_entry("commit", &self.commit)?;
        map.end()
    }
}

impl Serialize for Ref {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            #[serde(flatten)]
            name: Named<'a, 1>,
            object: &'a str,
        }
        Form { name: Named([("ref", "ref_b64", &self.name)]), object: &self.object }.serialize(s)
    }
}

impl Serialize for Uncovered {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            target: &'a str,
            #[serde(flatten)]
            path: Named<'a, 1>,
            reason: &'static str,
            change: &'static str,
        }
        let Self { target, path: name, reason, change } = self;
        Form { target, path: path(name), reason, change }.serialize(s)
    }
}

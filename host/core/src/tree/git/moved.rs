//! What became of a repository between two captures of its work tree.
//!
//! A file `.git` is covered like others, so it comes back and says where the repository is: where
//! that is another file, nothing is known of what it leads to.

use super::operation::Operation;
use super::position::{Head, Position, is_in_reflog};
use super::staged::By;
use super::way_back::{Step, WayBack, begun, restaged, way_back};
use crate::error::Result;
use crate::store::Source;
use crate::tree::node::{Node, decode_tree};
use crate::tree::root::{Root, Stamp};

/// Digits of a commit in a command: enough for large repositories, few enough to read.
const SHORT: usize = 10;
/// Where `git stash` keeps its newest.
const STASH: &[u8] = b"refs/stash";

/// What became of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// In a word.
    pub state: State,
    /// Where it stood before; none when there was none.
    pub before: Option<Position>,
    /// Where it stands now; none when there is none.
    pub now: Option<Position>,
    /// What takes HEAD back, what is staged, and what git is in the middle of.
    pub steps: Vec<Step>,
    /// After these steps, no ref may lead to where HEAD is now.
    pub leaves: bool,
    /// After these steps nothing is staged, since what was is not known.
    pub unstages: bool,
    /// What git is in the middle of now, and was not before.
    pub begun: Vec<Operation>,
    /// What git was in the middle of before, and is not now.
    pub ended: Vec<Operation>,
    /// Something else is staged; of a HEAD that moved, something else is in the index.
    pub restaged: bool,
    /// Something that was staged is not, as far as that shows.
    pub lost_staged: bool,
    /// Refs, HEAD among them, may have moved: they are in a form that is not read.
    pub unread: bool,
    /// Nothing that git has now names the commit that HEAD led to before.
    pub lost_commit: bool,
    /// Branches, tags and the stash that are gone: name, object.
    pub lost_refs: Vec<(Vec<u8>, String)>,
    /// Branches and tags that are elsewhere: name, the object that they named.
    pub moved_refs: Vec<(Vec<u8>, String)>,
}

/// What became of a repository, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// HEAD is elsewhere, or its branch is.
    Moved,
    /// The same, and it is another repository.
    Replaced,
    /// HEAD is where it was, and something else of it is not.
    Changed,
    /// There is no `.git` any more.
    Gone,
    /// `.git` is there, and is no repository any more.
    Broken,
    /// There was none.
    New,
}

impl State {
    /// As JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::Replaced => "replaced",
            Self::Changed => "changed",
            Self::Gone => "gone",
            Self::Broken => "broken",
            Self::New => "new",
        }
    }
}

/// The first digits of a commit's name.
pub fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// What became of the repository of the directory captured as `before`, which is `now`;
/// none when nothing that is recorded differs, or when one of the two says nothing of a
/// repository that is there.
///
/// # Errors
/// When what is stored cannot be read.
pub fn moved(source: &dyn Source, before: &Root, now: &Root) -> Result<Option<Moved>> {
    if before.git == now.git {
        return Ok(None);
    }
    let (link, other) = (link(source, before)?, link(source, now)?);
    if link != other && !is_left_out(before) && !is_left_out(now) {
        return Ok(None);
    }
    let read = |root: &Root| root.git.map(|git| Position::read(source, &git.tree)).transpose();
    let (then, here) = (read(before)?, read(now)?);
    let is_own = (is_left_out(before) || link.is_some(), is_left_out(now) || other.is_some());
    let state = match (&then, &here) {
        (Some(then), Some(here)) if (&then.head, &then.commit) == (&here.head, &here.commit) => {
            State::Changed
        }
        // One in the directory itself, and one above it.
        (Some(_), Some(_)) if is_own.0 != is_own.1 => State::Replaced,
        (Some(_), Some(_)) => match (stamp(before), stamp(now)) {
            (Some(a), Some(b)) if a.ino != b.ino => State::Replaced,
            _ => State::Moved,
        },
        (Some(_), None) if is_own.1 => State::Broken,
        (Some(_), None) => State::Gone,
        (None, Some(_)) if !is_own.0 => State::New,
        (None, _) => return Ok(None),
    };
    let mut moved = Moved::nothing(state);
    if let (Some(then), Some(here), Some(git)) = (&then, &here, &now.git) {
        let named = |id: &str| -> Result<bool> {
            Ok(here.refs().any(|(_, other)| other == id) || is_in_reflog(source, &git.tree, id)?)
        };
        if matches!(state, State::Moved | State::Changed) {
            let WayBack { steps, moves_head, unstages } = way_back(then, here);
            (moved.steps, moved.unstages) = (steps, unstages);
            moved.leaves = moves_head && is_left(then, here);
            (moved.begun, moved.ended) = (begun(then, here), begun(here, then));
            moved.restaged = restaged(then, here) == Some(true);
            let listed = |of: &Position| of.staged.as_ref().is_some_and(|staged| staged.by == By::List);
            moved.unread = then.unread != here.unread;
            if moved.unread {
                // What to stage again would stand on a commit that nobody knows.
                moved.steps.clear();
            }
            moved.lost_staged = moved.restaged && (listed(then) || !listed(here));
        }
        moved.lost_commit = match &then.commit {
            Some(id) if state != State::Changed => !named(id)?,
            _ => false,
        };
        for (name, id) in then.refs() {
            let own = matches!(&then.head, Head::Branch(own) if own == name);
            let of_people = name.starts_with(b"refs/heads/") || name.starts_with(b"refs/tags/");
            let lost = || (name.to_vec(), id.to_owned());
            match here.id(name) {
                None if (of_people && !own) || (name == STASH && !named(id)?) => moved.lost_refs.push(lost()),
                Some(_) if name == STASH && !named(id)? => moved.lost_refs.push(lost()),
                Some(other) if of_people && !own && other != id && state != State::Replaced => {
                    moved.moved_refs.push(lost());
                }
                _ => {}
            }
        }
        if state == State::Changed && moved.is_nothing() {
            return Ok(None);
        }
    }
    Ok(Some(Moved { before: then, now: here, ..moved }))
}

impl Moved {
    /// Nothing but the state.
    pub fn nothing(state: State) -> Self {
        Self {
            state,
            before: None,
            now: None,
            steps: Vec::new(),
            leaves: false,
            unstages: false,
            begun: Vec::new(),
            ended: Vec::new(),
            restaged: false,
            lost_staged: false,
            unread: false,
            lost_commit: false,
            lost_refs: Vec::new(),
            moved_refs: Vec::new(),
        }
    }

    fn is_nothing(&self) -> bool {
        self.begun.is_empty()
            && self.ended.is_empty()
            && !self.restaged
            && !self.unread
            && self.lost_refs.is_empty()
            && self.moved_refs.is_empty()
    }
}

/// What is called `.git` in the directory captured as `root` and is covered: a file that says
/// where the repository is.
fn link(source: &dyn Source, root: &Root) -> Result<Option<Node>> {
    let Node::Dir(tree) = root.top.node else { return Ok(None) };
    let found = decode_tree(&source.read(&tree)?)?.into_iter().find(|entry| entry.name == b".git");
    Ok(found.map(|entry| entry.node).filter(|node| !matches!(node, Node::Dir(_))))
}

fn stamp(root: &Root) -> Option<Stamp> {
    root.left_out.iter().find(|item| item.path == b".git").and_then(|item| item.stamp)
}

/// Whether there is a `.git` of which only that is known.
fn is_left_out(root: &Root) -> bool {
    root.left_out.iter().any(|item| item.path == b".git")
}

/// Whether taking HEAD from `here` back to `then` leaves no ref where HEAD is now.
fn is_left(then: &Position, here: &Position) -> bool {
    let Some(id) = here.commit.as_ref().filter(|id| then.commit.as_ref() != Some(id)) else { return false };
    let moves = |name: &[u8]| matches!(&then.head, Head::Branch(own) if own == name);
    !here.refs().any(|(name, other)| other == id && !moves(name))
}

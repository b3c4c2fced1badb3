//! What became of a repository between two captures of its work tree, and the commands
//! of git that would take HEAD back.
//!
//! The commands touch neither files nor index: they are what is left to do when the files
//! are as they were. (`git switch` refuses then, unless both branches are at one commit.)

use super::position::{Head, Position, is_in_reflog};
use crate::error::Result;
use crate::store::Source;
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
    /// Commands, each word by word, that take HEAD back.
    pub commands: Vec<Vec<Vec<u8>>>,
    /// After these commands, no ref may lead to where HEAD is now.
    pub leaves: bool,
    /// Nothing that git has now names the commit that HEAD led to before.
    pub lost_commit: bool,
    /// Branches, tags and the stash that are gone: name, object.
    pub lost_refs: Vec<(Vec<u8>, String)>,
}

/// What became of a repository, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// HEAD is elsewhere, or its branch is.
    Moved,
    /// The same, and it is another repository.
    Replaced,
    /// Only refs are gone.
    RefsGone,
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
            Self::RefsGone => "refs gone",
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
/// none when HEAD is where it was and nothing is gone, or when one of the two says nothing
/// of a repository that is there.
///
/// # Errors
/// When what is stored cannot be read.
pub fn moved(source: &dyn Source, before: &Root, now: &Root) -> Result<Option<Moved>> {
    if before.git == now.git {
        return Ok(None);
    }
    let read = |root: &Root| root.git.map(|git| Position::read(source, &git.tree)).transpose();
    let (then, here) = (read(before)?, read(now)?);
    let (state, commands) = match (&then, &here) {
        (Some(then), Some(here)) if (&then.head, &then.commit) == (&here.head, &here.commit) => {
            (State::RefsGone, Vec::new())
        }
        // One in the directory itself, and one above it.
        (Some(_), Some(_)) if is_left_out(before) != is_left_out(now) => (State::Replaced, Vec::new()),
        (Some(then), Some(here)) => match (stamp(before), stamp(now)) {
            (Some(a), Some(b)) if a.ino != b.ino => (State::Replaced, Vec::new()),
            _ => (State::Moved, way_back(then, here)),
        },
        (Some(_), None) if is_left_out(now) => (State::Broken, Vec::new()),
        (Some(_), None) => (State::Gone, Vec::new()),
        (None, Some(_)) if !is_left_out(before) => (State::New, Vec::new()),
        (None, _) => return Ok(None),
    };
    let (mut leaves, mut lost_commit, mut lost_refs) = (false, false, Vec::new());
    if let (Some(then), Some(here), Some(git)) = (&then, &here, &now.git) {
        let named = |id: &str| -> Result<bool> {
            Ok(here.refs().any(|(_, other)| other == id) || is_in_reflog(source, &git.tree, id)?)
        };
        leaves = !commands.is_empty() && is_left(then, here);
        lost_commit = match &then.commit {
            Some(id) if state != State::RefsGone => !named(id)?,
            _ => false,
        };
        for (name, id) in then.refs() {
            let kept = here.id(name).is_some() || matches!(&then.head, Head::Branch(own) if own == name);
            let of_people = name.starts_with(b"refs/heads/") || name.starts_with(b"refs/tags/");
            if (!kept && of_people) || (name == STASH && !named(id)?) {
                lost_refs.push((name.to_vec(), id.to_owned()));
            }
        }
        if state == State::RefsGone && lost_refs.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some(Moved { state, before: then, now: here, commands, leaves, lost_commit, lost_refs }))
}

fn stamp(root: &Root) -> Option<Stamp> {
    root.left_out.iter().find(|item| item.path == b".git").and_then(|item| item.stamp)
}

/// Whether there is a `.git` of which only that is known.
fn is_left_out(root: &Root) -> bool {
    root.left_out.iter().any(|item| item.path == b".git")
}

/// The commands that take HEAD from `here` back to `then`.
fn way_back(then: &Position, here: &Position) -> Vec<Vec<Vec<u8>>> {
    let command = |words: &[&[u8]]| {
        let git: &[u8] = b"git";
        std::iter::once(git).chain(words.iter().copied()).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let id = then.commit.as_deref().map(|id| short(id).as_bytes());
    let reset = |id: &[u8]| command(&[b"reset", b"--soft", id]);
    match (&then.head, &here.head, id) {
        (Head::Branch(then_on), Head::Branch(now_on), Some(id)) if then_on == now_on => vec![reset(id)],
        (Head::Branch(then_on), _, id) => {
            let mut commands = Vec::new();
            // What `switch` takes, and takes for a branch.
            let plain = then.head.branch().filter(|name| name.len() < then_on.len() && name[..1] != *b"-");
            let still_there = id.is_some() && here.id(then_on) == then.commit.as_deref();
            match plain {
                Some(name) if still_there && here.commit == then.commit => {
                    return vec![command(&[b"switch", name])];
                }
                _ if here.head == then.head => {}
                _ => commands.push(command(&[b"symbolic-ref", b"HEAD", then_on])),
            }
            match id {
                Some(id) if !still_there => commands.push(reset(id)),
                // Before the first commit, a branch is only a name.
                None if here.id(then_on).is_some() => {
                    commands.push(command(&[b"update-ref", b"-d", b"HEAD"]))
                }
                _ => {}
            }
            commands
        }
        (Head::Detached, Head::Detached, Some(id)) => vec![reset(id)],
        (Head::Detached, _, Some(id)) => vec![command(&[b"update-ref", b"--no-deref", b"HEAD", id])],
        _ => Vec::new(),
    }
}

/// Whether taking HEAD from `here` back to `then` leaves no ref where HEAD is now.
fn is_left(then: &Position, here: &Position) -> bool {
    let Some(id) = here.commit.as_ref().filter(|id| then.commit.as_ref() != Some(id)) else { return false };
    let moves = |name: &[u8]| matches!(&then.head, Head::Branch(own) if own == name);
    !here.refs().any(|(name, other)| other == id && !moves(name))
}

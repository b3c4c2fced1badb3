//! The commands of git that take a repository back to where it stood: what is staged, what it
//! is in the middle of, HEAD.
//!
//! They leave the files alone: they are what is left to do when these are as they were. What
//! is staged comes first, since a conflict keeps the others from their work; with a list that
//! was recorded it is emptied first and filled last, since a conflict may be in that as well.

use super::moved::short;
use super::operation::Operation;
use super::position::{Head, Position};
use super::staged::{By, Mark};

/// A step of the way back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A command, word by word.
    Command(Vec<Vec<u8>>),
    /// What was staged is read from the record.
    Stage,
    /// Entries are marked again as the record says.
    Mark(Mark),
    /// The file that git needs to be in the middle of something is made from the record.
    Resume(&'static str),
}

/// The way back.
#[derive(Debug, Default)]
pub(super) struct WayBack {
    pub steps: Vec<Step>,
    /// A step takes HEAD back.
    pub moves_head: bool,
    /// A step leaves nothing staged, whatever was.
    pub unstages: bool,
}

/// What git is in the middle of in `now`, and was not in `before`.
pub(super) fn begun(before: &Position, now: &Position) -> Vec<Operation> {
    match (&before.under_way, &now.under_way) {
        (Some(before), Some(now)) => now.iter().filter(|of| !before.contains(of)).copied().collect(),
        _ => Vec::new(),
    }
}

/// Whether something else is staged in `now` than in `before`; none when that is not known.
pub(super) fn restaged(before: &Position, now: &Position) -> Option<bool> {
    Some(before.staged.as_ref()?.hash != now.staged.as_ref()?.hash)
}

/// The way from `here` back to `then`.
pub(super) fn way_back(then: &Position, here: &Position) -> WayBack {
    let mut way = WayBack::default();
    let restaged = restaged(then, here);
    let by = then.staged.as_ref().map(|staged| &staged.by).filter(|_| restaged == Some(true));
    let empty = command(&[b"read-tree", b"--empty"]);
    match by {
        Some(By::Nothing | By::List) => way.steps.push(empty),
        Some(By::Tree(tree)) => {
            way.steps.push(command(&[b"read-tree", b"--reset", short(tree).as_bytes()]));
        }
        Some(By::Unnamed) | None => {}
    }
    way.steps.extend(begun(then, here).iter().map(|of| command(of.end())));
    // Where what is staged is not known to be right by now, HEAD's commit is.
    let mixed = restaged.is_none() || by == Some(&By::Unnamed);
    let is_elsewhere = then.commit != here.commit;
    // git moves no branch by `reset` in the middle of what goes on.
    let ends = begun(then, here);
    let goes_on = here.under_way.iter().flatten().any(|of| !ends.contains(of));
    let head = head(then, here, (mixed, goes_on));
    way.moves_head = !head.is_empty();
    let resets = head.last().is_some_and(|last| matches!(last, Step::Command(words) if words[1] == b"reset"));
    way.steps.extend(head);
    way.unstages = mixed && (resets || is_elsewhere || restaged.is_some());
    if way.unstages && !resets {
        way.steps.push(command(&[b"reset"]));
    }
    if by == Some(&By::List) {
        way.steps.push(Step::Stage);
    }
    let named = by.is_some_and(|by| *by != By::Unnamed);
    let marks = then.staged.iter().filter(|_| named).flat_map(|staged| &staged.marks);
    way.steps.extend(marks.map(|mark| Step::Mark(*mark)));
    way.steps.extend(begun(here, then).iter().filter_map(|of| of.file()).map(Step::Resume));
    way
}

/// The steps that take HEAD back; `mixed` also what is staged, to what its commit has. Something
/// `goes_on` that git is in the middle of.
fn head(then: &Position, here: &Position, (mixed, goes_on): (bool, bool)) -> Vec<Step> {
    let id = then.commit.as_deref().map(|id| short(id).as_bytes());
    let reset = |name: &[u8], id: &[u8]| match (mixed, goes_on) {
        (true, _) => command(&[b"reset", id]),
        (false, false) => command(&[b"reset", b"--soft", id]),
        (false, true) => command(&[b"update-ref", name, id]),
    };
    match (&then.head, &here.head, id) {
        (a, b, _) if a == b && then.commit == here.commit => Vec::new(),
        (Head::Branch(then_on), Head::Branch(now_on), Some(id)) if then_on == now_on => {
            vec![reset(then_on, id)]
        }
        (Head::Branch(then_on), _, id) => {
            let mut steps = Vec::new();
            // What `switch` takes, and takes for a branch; it refuses in the middle of something.
            let plain = then.head.branch().filter(|name| name.len() < then_on.len() && name[..1] != *b"-");
            let is_free = here.under_way.as_ref().is_none_or(Vec::is_empty);
            let still_there = id.is_some() && here.id(then_on) == then.commit.as_deref();
            match plain {
                Some(name) if still_there && is_free && here.commit == then.commit => {
                    return vec![command(&[b"switch", name])];
                }
                _ if here.head == then.head => {}
                _ => steps.push(command(&[b"symbolic-ref", b"HEAD", then_on])),
            }
            match id {
                // Before HEAD leads there.
                Some(id) if !still_there && goes_on => steps.insert(0, reset(then_on, id)),
                Some(id) if !still_there => steps.push(reset(then_on, id)),
                // Before the first commit, a branch is only a name.
                None if here.id(then_on).is_some() => {
                    steps.push(command(&[b"update-ref", b"-d", b"HEAD"]));
                }
                _ => {}
            }
            steps
        }
        (Head::Detached, Head::Detached, Some(id)) if !goes_on => vec![reset(b"HEAD", id)],
        (Head::Detached, _, Some(id)) => vec![command(&[b"update-ref", b"--no-deref", b"HEAD", id])],
        _ => Vec::new(),
    }
}

fn command(words: &[&[u8]]) -> Step {
    let git: &[u8] = b"git";
    Step::Command(std::iter::once(git).chain(words.iter().copied()).map(<[u8]>::to_vec).collect())
}

//! What is to be done about one change.

use super::links::{Links, Role};
use crate::tree::compare::Change;

/// What is to be done about one change to the entry itself, besides removing what
/// stands in its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it is to be gone, or only lies on the way.
    Nothing,
    /// A directory is made.
    MakeDir,
    /// The directory keeps its place; attributes or times differ.
    SettleDir,
    /// A new entry is made aside and put in place.
    Put,
    /// Its content is right; attributes or times are changed in place.
    Settle,
    /// It becomes one more name of an inode that another name has.
    Link,
    /// Its content is right but its inode has other names that it must not have: it
    /// keeps the inode if by then it is the only name, else it gets a new one.
    Unshare,
}

/// What `change` asks for.
pub fn action(change: &Change, links: &Links) -> Action {
    let Some(after) = &change.after else { return Action::Nothing };
    if change.passage && !(change.becomes_dir() && change.before.is_none()) {
        return Action::Nothing;
    }
    if change.becomes_dir() {
        return if change.was_dir() { Action::SettleDir } else { Action::MakeDir };
    }
    match links.role(change) {
        Role::Follower => return Action::Link,
        Role::Leader => return Action::Put,
        Role::Base => return Action::Settle,
        Role::Alone => {}
    }
    let Some(before) = &change.before else { return Action::Put };
    let differs = change.aspects();
    if differs.kind || differs.content {
        Action::Put
    } else if before.link.is_some() && after.link.is_none() {
        Action::Unshare
    } else {
        Action::Settle
    }
}

/// Whether what was there and is no directory has to go without a successor.
pub fn removes(change: &Change) -> bool {
    !change.passage
        && change.before.is_some()
        && !change.was_dir()
        && (change.after.is_none() || change.becomes_dir())
}

/// Whether the directory that was there has to go.
pub fn removes_dir(change: &Change) -> bool {
    !change.passage && change.was_dir() && !change.becomes_dir()
}

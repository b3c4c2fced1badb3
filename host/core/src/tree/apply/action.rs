//! What is to be done about one change.

use super::links::Role;
use crate::tree::compare::Traits;

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

/// What a change with these `traits` asks for; `role` is what it is among the names of
/// its inode.
pub fn action(traits: Traits, role: Role) -> Action {
    if !traits.after() || (traits.passage() && !traits.is_new_dir()) {
        return Action::Nothing;
    }
    if traits.becomes_dir() {
        return if traits.was_dir() { Action::SettleDir } else { Action::MakeDir };
    }
    match role {
        Role::Follower => return Action::Link,
        Role::Leader => return Action::Put,
        Role::Base => return Action::Settle,
        Role::Shared => return Action::Nothing,
        Role::Alone => {}
    }
    if !traits.before() || !traits.same_content() {
        Action::Put
    } else if traits.unshared() {
        Action::Unshare
    } else {
        Action::Settle
    }
}

/// Whether what was there and is no directory has to go without a successor.
pub fn removes(traits: Traits) -> bool {
    !traits.passage() && traits.before() && !traits.was_dir() && (!traits.after() || traits.becomes_dir())
}

/// Whether the directory that was there has to go.
pub fn removes_dir(traits: Traits) -> bool {
    !traits.passage() && traits.was_dir() && !traits.becomes_dir()
}

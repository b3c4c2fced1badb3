//! What an undo, a redo or a restore will do, before it does it, and what it did.

use super::words::{Counts, about, age, letter, short_command};
use snapback_core::error::{show, show_bytes};
use snapback_core::history::snapshot::{Snapshot, SnapshotKind};
use snapback_core::project::config::TREE;
use snapback_core::session::{Action, By, Difference, NotRestored, Plan, What};
use std::path::Path;

/// Paths that are shown before they are only counted.
const SHOWN: usize = 10;

/// The announcement: a first line, and lines that belong to it.
pub struct Announcement {
    /// Where to, of what, and how much.
    pub first: String,
    /// The first paths, and what will not come back.
    pub rest: Vec<String>,
}

/// Says what `plan` will do to the project at `root`; of a redo, what is `redone`.
pub fn announce(plan: &Plan, redone: Option<&str>, root: &Path, now: i64) -> Announcement {
    let counts = Counts::of(plan.changes.iter().map(|change| change.kind));
    let amount =
        if counts.total() == 0 { "nothing differs".to_owned() } else { counts.as_to_do(plan.action) };
    let first = format!("{} in {}: {amount}", headline(plan, redone, now), show(root));
    // Edits after the run come first: they are what nobody expects to be undone.
    let others = plan.changes.iter().filter(|change| !change.by.is_some_and(By::is_edit));
    let mut rest = first_lines(plan.edits().chain(others), plan.changes.len());
    rest.extend(refusals(&plan.not_restored, "will not come back"));
    Announcement { first, rest }
}

/// Lines about the first of `changes`.
pub fn first_paths(changes: &[Difference]) -> Vec<String> {
    first_lines(changes.iter(), changes.len())
}

fn first_lines<'a>(changes: impl Iterator<Item = &'a Difference>, count: usize) -> Vec<String> {
    let mut first: Vec<String> = changes.take(SHOWN).map(path_line).collect();
    if count > SHOWN {
        first.push(format!("... and {} more", super::words::grouped((count - SHOWN) as u64)));
    }
    first
}

fn headline(plan: &Plan, redone: Option<&str>, now: i64) -> String {
    let when = age(plan.to.created.0.as_millisecond(), now);
    let to = format!("{} ({when}, {})", plan.to.id, about(&plan.to));
    match plan.action {
        Action::Undo => format!("undo: to {to}"),
        Action::Redo => match redone {
            Some(what) => format!("redo of {what}: to {} ({when})", plan.to.id),
            None => format!("redo: to {to}"),
        },
        Action::Restore => format!("restore: from {to}"),
    }
}

/// One change as a line: a letter for what happens to the path, seen from the present.
pub fn path_line(change: &Difference) -> String {
    format!("{} {}{}", letter(change.kind), place(change), when(change))
}

/// What is said of a change that no run made.
pub fn when(change: &Difference) -> &'static str {
    match change.by {
        Some(By::Later) => " (changed after the run)",
        Some(By::Since) => " (changed after the undo)",
        Some(By::Run) | None => "",
    }
}

/// Where a change is: the path, with the target before it where that is not the project's.
pub fn place(change: &Difference) -> String {
    let slash = if change.what == What::Dir { "/" } else { "" };
    let path = if change.path.is_empty() { ".".to_owned() } else { show_bytes(&change.path) };
    if change.what == What::Database || (change.what != What::Part && *change.target == *TREE) {
        return format!("{path}{slash}");
    }
    format!("{}: {path}{slash}", change.target)
}

/// Lines about what is left as it is.
pub fn refusals(items: &[NotRestored], what: &str) -> Vec<String> {
    let line = |item: &NotRestored| {
        let subject = if item.path.0.is_empty() { item.target.clone() } else { item.path.to_string() };
        let part = if item.in_part { " in full" } else { "" };
        format!("{what}{part}: {subject} ({})", super::words::one_line(&item.reason))
    };
    let mut lines: Vec<String> = items.iter().take(SHOWN).map(line).collect();
    let more = items.iter().skip(SHOWN).map(NotRestored::count).fold(0, u64::saturating_add);
    if more > 0 {
        lines.push(format!("{what}: {more} more"));
    }
    lines
}

/// What is said when a step has nothing to put back: what the next undo would take back.
pub fn nothing_changed(plan: &Plan, next: Option<String>) -> String {
    let what = match plan.action {
        Action::Undo => match (plan.to.kind, plan.to.command.as_deref()) {
            (SnapshotKind::Run, Some(command)) if plan.to.targets.is_empty() => {
                format!("nothing was covered when `{}` ran", short_command(command))
            }
            _ if plan.to.targets.is_empty() => format!("nothing is covered by snapshot {}", plan.to.id),
            (SnapshotKind::Run, Some(command)) => {
                format!("`{}` left nothing to undo", short_command(command))
            }
            _ => format!("nothing changed since snapshot {}", plan.to.id),
        },
        Action::Redo => "nothing to redo: all that this step did is there already".into(),
        Action::Restore => format!("nothing to restore: all is as in snapshot {}", plan.to.id),
    };
    match (plan.action, next) {
        (Action::Undo, Some(next)) => format!("{what}; the next `snapback undo` takes back {next}"),
        (Action::Undo, None) => format!("{what}; there is nothing more to undo"),
        _ => what,
    }
}

/// One line about what was done, and the way back.
pub fn done(action: Action, to: &Snapshot, saved: &str, changes: &[Difference]) -> String {
    let counts = Counts::of(changes.iter().map(|change| change.kind));
    let changed = super::words::count(counts.total(), "path");
    match action {
        Action::Undo => format!(
            "undone, {changed} as in {}; what was there is {saved}, and `snapback redo` brings it back",
            to.id
        ),
        Action::Redo => {
            format!(
                "redone, {changed} as in {}; what was there is {saved}, and `snapback undo` brings it back",
                to.id
            )
        }
        Action::Restore => {
            format!(
                "restored, {changed} as in {}; what was there is {saved}, and `snapback undo` brings it back",
                to.id
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snapback_core::text::Bytes;
    use snapback_core::tree::compare::ChangeKind;

    fn change(kind: ChangeKind, path: &str, what: What) -> Difference {
        Difference {
            target: "tree".into(),
            kind,
            path: path.as_bytes().to_vec(),
            what,
            by: None,
            detail: None,
        }
    }

    #[test]
    fn a_change_is_a_letter_and_a_path() {
        for (change, line) in [
            (change(ChangeKind::Added, "a b", What::Entry), "A a b"),
            (change(ChangeKind::Deleted, "d", What::Dir), "D d/"),
            (change(ChangeKind::Modified, "d", What::Entry), "M d"),
            (change(ChangeKind::Modified, "", What::Dir), "M ./"),
            (change(ChangeKind::Modified, "a\nb", What::Entry), "M \"a\\nb\""),
            (change(ChangeKind::Modified, "main", What::Part), "M tree: main"),
        ] {
            assert_eq!(path_line(&change), line);
        }
    }

    #[test]
    fn long_lists_of_refusals_are_counted() {
        let item = |n: u32| NotRestored {
            target: "tree".into(),
            path: Bytes(format!("f{n}").into_bytes()),
            reason: "not in the snapshot: unreadable".into(),
            in_part: false,
        };
        let items: Vec<_> = (0..12).map(item).collect();
        let lines = refusals(&items, "not restored");
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[0], "not restored: f0 (not in the snapshot: unreadable)");
        assert_eq!(lines[10], "not restored: 2 more");
        let rest = NotRestored { path: Bytes::default(), reason: "and 19000 more".into(), ..item(0) };
        let lines = refusals(&[items, vec![rest]].concat(), "not restored");
        assert_eq!(lines[10], "not restored: 19002 more");
    }
}

//! Words for numbers, times, commands and kinds.

use super::table::cut;
use snapback_core::error::{escaped, shell_word};
use snapback_core::history::snapshot::{Snapshot, SnapshotKind};
use snapback_core::history::timeline::Step;
use snapback_core::session::{Action, Listing};
use snapback_core::text::Bytes;
use snapback_core::tree::compare::ChangeKind;

/// Columns of a command that a sentence names.
const LONGEST: usize = 60;

/// Milliseconds since 1970, as text for people: how long before `now` it was.
pub fn age(then: i64, now: i64) -> String {
    let seconds = now.saturating_sub(then) / 1000;
    let (number, unit) = match seconds {
        i64::MIN..5 => return "just now".into(),
        5..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} ago", count(number.unsigned_abs(), unit))
}

/// The same in a few letters, for a table.
pub fn short_age(then: i64, now: i64) -> String {
    match now.saturating_sub(then) / 1000 {
        seconds @ ..60 => format!("{}s", seconds.max(0)),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// `1 file`, `2 files`, `12,345 files`.
pub fn count(number: u64, of: &str) -> String {
    let plural = match (number, of.strip_suffix('y')) {
        (1, _) => of.to_owned(),
        (_, Some(stem)) if stem.ends_with(|c| !"aeiou".contains(c)) => format!("{stem}ies"),
        _ => format!("{of}s"),
    };
    format!("{} {plural}", grouped(number))
}

/// The first `most` of `all`, and how many there are besides.
pub fn first(all: impl ExactSizeIterator<Item = String>, most: usize) -> impl Iterator<Item = String> {
    let more = all.len().saturating_sub(most);
    all.take(most).chain((more > 0).then(|| format!("{} more", grouped(more as u64))))
}

/// A number with commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Numbers of changes by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// New entries.
    pub added: u64,
    /// Entries that are not as they were.
    pub modified: u64,
    /// Entries that are gone.
    pub deleted: u64,
}

impl Counts {
    /// Counts one more.
    pub fn add(&mut self, kind: ChangeKind) {
        match kind {
            ChangeKind::Added => self.added += 1,
            ChangeKind::Modified => self.modified += 1,
            ChangeKind::Deleted => self.deleted += 1,
        }
    }

    /// All of `kinds`.
    pub fn of(kinds: impl IntoIterator<Item = ChangeKind>) -> Self {
        let mut counts = Self::default();
        kinds.into_iter().for_each(|kind| counts.add(kind));
        counts
    }

    /// All together.
    pub fn total(self) -> u64 {
        self.added + self.modified + self.deleted
    }

    /// `3 modified, 1 deleted`, seen as what happened.
    pub fn as_happened(self) -> String {
        self.words(["added", "modified", "deleted"])
    }

    /// `3 to change, 1 to remove`, seen as what is to be done.
    pub fn as_to_do(self, action: Action) -> String {
        match action {
            Action::Undo | Action::Restore => self.words(["to bring back", "to change back", "to remove"]),
            Action::Redo => self.words(["to add", "to change", "to remove"]),
        }
    }

    fn words(self, [added, modified, deleted]: [&str; 3]) -> String {
        let parts = [(self.modified, modified), (self.added, added), (self.deleted, deleted)];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        parts.map(|(number, word)| format!("{} {word}", grouped(number))).collect::<Vec<_>>().join(", ")
    }
}

/// The letter for a kind of change.
pub fn letter(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "A",
        ChangeKind::Modified => "M",
        ChangeKind::Deleted => "D",
    }
}

/// A command as it could be typed into a shell.
pub fn command_line(words: &[Bytes]) -> String {
    words.iter().map(|word| shell_word(word.path())).collect::<Vec<_>>().join(" ")
}

/// The same in a sentence: cut, where it is long.
pub fn short_command(words: &[Bytes]) -> String {
    cut(&command_line(words), LONGEST)
}

/// What a snapshot was taken for, in a few words that follow its ID.
pub fn about(snapshot: &Snapshot) -> String {
    let command = snapshot.command.as_deref().map(short_command);
    let message = snapshot.message.as_deref().map(one_line);
    match (snapshot.kind, command, message) {
        (SnapshotKind::Run, Some(command), _) => format!("before `{command}`"),
        (_, _, Some(message)) => format!("\"{message}\""),
        (SnapshotKind::PreUndo, ..) => "what an undo replaced".into(),
        (SnapshotKind::PreRedo, ..) => "what a redo replaced".into(),
        (SnapshotKind::PreRestore, ..) => "what a restore replaced".into(),
        (SnapshotKind::Manual, ..) => "taken by hand".into(),
        (SnapshotKind::Interval, ..) => "taken during a run".into(),
        (SnapshotKind::Run, None, None) => "before a command".into(),
    }
}

/// A step in a few words, as what an undo takes back.
pub fn step(step: &Step, before: Option<&Snapshot>) -> String {
    let command = before.filter(|s| s.kind == SnapshotKind::Run).and_then(|s| s.command.as_deref());
    match (step.kind, command) {
        (SnapshotKind::Run, Some(command)) => format!("`{}`", short_command(command)),
        (SnapshotKind::Run, None) => "a run".into(),
        (SnapshotKind::Manual, _) => format!("what changed since snapshot {}", step.before),
        _ => format!("a restore ({})", step.before),
    }
}

/// What a redo of `step` does.
pub fn again(step: &Step, before: Option<&Snapshot>) -> String {
    let what = self::step(step, before);
    match step.kind {
        SnapshotKind::Manual => format!("brings back {what}"),
        _ => format!("brings back what {what} did"),
    }
}

/// What became of a snapshot's run, where that is worth a word.
pub fn outcome(listing: &Listing) -> Option<String> {
    use snapback_core::session::State;
    match (listing.state, &listing.end) {
        (State::Ended, Some(end)) if end.exit_code != 0 => Some(format!("exit {}", end.exit_code)),
        (State::Running | State::Interrupted, _) => Some(listing.state.word().into()),
        _ => None,
    }
}

/// A text of the user's on one line, without what a terminal would act on.
pub fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escaped(&words).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_said_in_the_largest_whole_unit() {
        for (seconds, text) in [
            (-3, "just now"),
            (0, "just now"),
            (5, "5 seconds ago"),
            (61, "1 minute ago"),
            (3599, "59 minutes ago"),
            (7200, "2 hours ago"),
            (86_400 * 40, "40 days ago"),
        ] {
            assert_eq!(age(0, seconds * 1000), text);
        }
        for (seconds, text) in [(-3, "0s"), (59, "59s"), (60, "1m"), (7200, "2h"), (86_400 * 40, "40d")] {
            assert_eq!(short_age(0, seconds * 1000), text);
        }
    }

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(0, "directory"), "0 directories");
        assert_eq!(count(1_234_567, "file"), "1,234,567 files");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(100_000), "100,000");
    }

    #[test]
    fn counts_name_only_what_there_is() {
        let counts = Counts { added: 0, modified: 3, deleted: 1 };
        assert_eq!(counts.as_happened(), "3 modified, 1 deleted");
        assert_eq!(counts.as_to_do(Action::Undo), "3 to change back, 1 to remove");
        assert_eq!(counts.as_to_do(Action::Redo), "3 to change, 1 to remove");
        assert_eq!(counts.total(), 4);
        assert_eq!(Counts::default().as_happened(), "");
    }

    #[test]
    fn a_command_can_be_typed_again() {
        let words = |list: &[&[u8]]| list.iter().map(|word| Bytes(word.to_vec())).collect::<Vec<_>>();
        assert_eq!(command_line(&words(&[b"rm", b"-rf", b"src/x"])), "rm -rf src/x");
        assert_eq!(command_line(&words(&[b"sh", b"-c", b"echo 'a b'"])), "sh -c 'echo '\\''a b'\\'''");
        assert_eq!(command_line(&words(&[b"", b"a\nb", b"\xfe"])), "'' $'a\\nb' $'\\xfe'");
        let long = words(&[b"sh", b"-c", "echo line >> a\n".repeat(60).as_bytes()]);
        assert_eq!(short_command(&long).chars().count(), LONGEST);
        assert_eq!(short_command(&words(&[b"rm", b"a"])), "rm a");
    }
}

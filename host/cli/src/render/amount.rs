//! How much of a file changed, in a few signs: lines of text that came and went, or sizes.

use super::patch::{self, File};
use crate::terminal::{Terminal, Tone};
use similar::{Algorithm, DiffTag, TextDiff};
use snapback_core::project::units::human;
use snapback_core::store::Source;
use snapback_core::tree::compare::Change;
use std::time::Duration;

/// Longest content whose lines are counted, in bytes: there may be many such files.
const LONGEST: u64 = 1 << 20;
/// How long one comparison looks for the smallest difference before it takes any.
const PATIENCE: Duration = Duration::from_millis(100);

/// How much of a file changed.
#[derive(Debug, PartialEq, Eq)]
pub enum Amount {
    /// Lines that came, and lines that went.
    Lines(usize, usize),
    /// No text, or a long one: its size before and after.
    Sizes(Option<u64>, Option<u64>),
}

/// Reads the content of a file that is there now, by its path in the target, up to a size.
pub type Now<'a> = &'a dyn Fn(&[u8], u64) -> Option<Vec<u8>>;

/// How much of the content of `change` changed; none when no file's did, or it cannot be
/// read. What is there after it is read through `now`, where that is given.
pub fn of(change: &Change, source: &dyn Source, now: Option<Now<'_>>) -> Option<Amount> {
    let (old, new) = (File::of(change.before.as_ref()), File::of(change.after.as_ref()));
    if old.is_none() && new.is_none() || patch::same(&old, &new) {
        return None;
    }
    let size = |file: &Option<File<'_>>| file.as_ref().map(|file| file.size);
    let sizes = Amount::Sizes(size(&old), size(&new));
    if [&old, &new].into_iter().any(|file| size(file).is_some_and(|size| size > LONGEST)) {
        return Some(sizes);
    }
    let before = patch::text(&old, source).ok()?;
    let after = match (&new, now) {
        (Some(_), Some(now)) => patch::as_text(now(&change.path, LONGEST)?),
        _ => patch::text(&new, source).ok()?,
    };
    let (Some(before), Some(after)) = (before, after) else { return Some(sizes) };
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(PATIENCE)
        .diff_lines(&before[..], &after[..]);
    let mut lines = (0, 0);
    for op in diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal) {
        lines = (lines.0 + op.new_range().len(), lines.1 + op.old_range().len());
    }
    Some(Amount::Lines(lines.0, lines.1))
}

impl Amount {
    /// As it stands behind a path.
    pub fn shown(&self, terminal: &Terminal) -> String {
        match self {
            Self::Lines(added, deleted) => {
                let part = |count: &usize, sign, tone| {
                    (*count > 0).then(|| terminal.paint(tone, &format!("{sign}{count}")))
                };
                let parts = [part(added, '+', Tone::Added), part(deleted, '-', Tone::Deleted)];
                parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
            Self::Sizes(Some(a), Some(b)) => format!("{} -> {}", human(*a), human(*b)),
            Self::Sizes(Some(size), None) | Self::Sizes(None, Some(size)) => human(*size),
            Self::Sizes(None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::patch::tests::{PLAIN, change_of};

    #[test]
    fn lines_are_counted_and_what_is_no_text_is_told_by_its_size() {
        let amount = |before: Option<&[u8]>, after: Option<&[u8]>| {
            let (change, objects) = change_of(before, after);
            of(&change, &objects, None).map(|amount| amount.shown(&PLAIN))
        };
        assert_eq!(amount(Some(b"a\nb\n"), Some(b"a\nc\nd\n")).as_deref(), Some("+2 -1"));
        assert_eq!(amount(None, Some(b"a\nb")).as_deref(), Some("+2"));
        assert_eq!(amount(Some(b"a\n"), None).as_deref(), Some("-1"));
        assert_eq!(amount(None, Some(b"")).as_deref(), Some(""));
        assert_eq!(amount(Some(b"a\0"), Some(b"a\0bc")).as_deref(), Some("2 B -> 4 B"));
        assert_eq!(amount(Some(b"a"), Some(b"a")), None);
        let long = vec![b'x'; LONGEST as usize + 1];
        assert_eq!(amount(None, Some(&long)).as_deref(), Some("1.0 MB"));
    }

    #[test]
    fn what_is_there_now_is_read_where_it_lies() {
        let (change, objects) = change_of(Some(b"a\n"), Some(b"stored\n"));
        let now = |path: &[u8], _: u64| (path == b"d/f").then(|| b"a\nb\n".to_vec());
        assert_eq!(of(&change, &objects, Some(&now)), Some(Amount::Lines(1, 0)));
        assert_eq!(of(&change, &objects, Some(&|_: &[u8], _: u64| None)), None);
    }
}

//! What became of things that are not covered, as far as that shows from outside.
//!
//! Two captures of one directory are compared by what they left out: a name that is gone,
//! another inode, another change time. Nothing is looked at but the two records.

use crate::error::Result;
use crate::store::Source;
use crate::tree::root::{LeftOut, Root, Why};
use crate::tree::view::View;
use std::collections::HashMap;

/// Something that is not covered, and is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncovered {
    /// Its path in the captured directory.
    pub path: Vec<u8>,
    /// Why it is not covered.
    pub why: Why,
    /// What became of it.
    pub fate: Fate,
}

/// What became of something that is not covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is no longer there.
    Gone,
    /// It is another one, something came into it or went, or it is no longer left out.
    Changed,
    /// It was not there before.
    New,
    /// It was covered before.
    Hidden,
}

impl Fate {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Hidden => "no longer covered",
        }
    }
}

/// What differs between what `before` and `after` left out, sorted by path.
///
/// # Errors
/// When a stored directory cannot be read.
pub fn uncovered(source: &dyn Source, before: &Root, after: &Root) -> Result<Vec<Uncovered>> {
    let (old, new) = (by_path(before), by_path(after));
    let mut all = Vec::new();
    let mut tell = |item: &LeftOut, fate| {
        all.push(Uncovered { path: item.path.clone(), why: item.why, fate });
    };
    let present = View::new(source, after.clone());
    // What another target has is covered.
    let is_told = |item: &&LeftOut| item.why != Why::Elsewhere;
    for item in before.left_out.iter().filter(is_told) {
        match new.get(item.path.as_slice()) {
            Some(now) => match (item.stamp, now.stamp) {
                (Some(then), Some(here)) if !here.is_like(&then) => tell(now, Fate::Changed),
                _ => {}
            },
            // Nothing is known of what lies in something that is left out itself, which is told.
            None if is_inside(&item.path, &new) => {}
            None if present.find(&item.path)?.is_none() => tell(item, Fate::Gone),
            // Something else has its name, or it lost what made it be left out.
            None => tell(item, Fate::Changed),
        }
    }
    let past = View::new(source, before.clone());
    for item in after.left_out.iter().filter(is_told) {
        if old.contains_key(item.path.as_slice()) || is_inside(&item.path, &old) {
            continue;
        }
        let was_there = past.find(&item.path)?.is_some();
        tell(item, if was_there { Fate::Hidden } else { Fate::New });
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

fn by_path(root: &Root) -> HashMap<&[u8], &LeftOut> {
    root.left_out.iter().map(|item| (item.path.as_slice(), item)).collect()
}

/// Whether `path` lies in something of `all`.
fn is_inside(path: &[u8], all: &HashMap<&[u8], &LeftOut>) -> bool {
    path.iter().enumerate().any(|(at, &b)| b == b'/' && all.contains_key(&path[..at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::node::Time;
    use crate::tree::root::Stamp;
    use crate::tree::sample::{Objects, Sample, dir, file, sample_root};

    fn left(path: &str, why: Why, ino: u64, sec: i64) -> LeftOut {
        let stamp = Some(Stamp { ino, ctime: Some(Time { sec, nsec: 0 }) });
        LeftOut { path: path.into(), why, detail: String::new(), files: None, stamp }
    }

    fn told(objects: &Objects, before: &Root, after: &Root) -> Vec<(String, Fate)> {
        let all = uncovered(objects, before, after).unwrap();
        all.into_iter().map(|item| (String::from_utf8(item.path).unwrap(), item.fate)).collect()
    }

    #[test]
    fn what_is_not_covered_is_gone_changed_new_or_hidden() {
        let objects = Objects::default();
        let root =
            |inside: Vec<Sample>, left_out: Vec<LeftOut>| Root { left_out, ..sample_root(&objects, inside) };
        let before = root(
            vec![dir("a", vec![]), dir("mnt", vec![file("f", "x")]), dir("over", vec![])],
            vec![
                left("a/gone", Why::Regenerable, 1, 1),
                left("a/same", Why::Regenerable, 2, 1),
                left("covered", Why::Unreadable, 3, 1),
                left("inside", Why::Ignored, 4, 1),
                left("other", Why::Ignored, 5, 1),
                left("over/deep", Why::Regenerable, 6, 1),
                left("unknown", Why::ChangedWhileRead, 7, 1),
            ],
        );
        let mut now = vec![
            left("a/same", Why::Regenerable, 2, 1),
            left("inside", Why::Ignored, 4, 2),
            left("inside/more", Why::Ignored, 9, 2),
            left("mnt", Why::Mount, 8, 1),
            left("new", Why::Regenerable, 9, 1),
            left("other", Why::Ignored, 6, 1),
            left("over", Why::TooManyFiles, 7, 1),
            left("unknown", Why::ChangedWhileRead, 8, 3),
        ];
        now[7].stamp = None;
        let after = root(vec![dir("a", vec![]), file("covered", "y")], now);
        let want = [
            ("a/gone", Fate::Gone),
            ("covered", Fate::Changed),
            ("inside", Fate::Changed),
            ("mnt", Fate::Hidden),
            ("new", Fate::New),
            ("other", Fate::Changed),
            ("over", Fate::Hidden),
        ];
        assert_eq!(told(&objects, &before, &after), want.map(|(path, fate)| (path.to_owned(), fate)));
        assert_eq!(told(&objects, &before, &before), []);
    }
}

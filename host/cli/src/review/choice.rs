//! What is to become of each change: kept as it is now, or put back as it was.
//!
//! Invariant: what nobody decided about stays as it is. A directory is put back as a whole
//! only when everything in it is: else the things in it are, one by one.

use crate::contents;
use snapback_core::session::{Difference, Narrow, What};
use snapback_core::text::Bytes;
use snapback_core::tree::Patterns;
use snapback_core::tree::compare::ChangeKind;
use std::collections::HashSet;

/// What was decided about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Nothing: it stays.
    #[default]
    Open,
    /// It stays.
    Accepted,
    /// The state of the snapshot comes back.
    Rejected,
}

/// A change that is decided about.
#[derive(Debug, Clone)]
pub struct Item {
    /// The target that it is in.
    pub target: String,
    /// Its path in the project; in the target, where that lies elsewhere.
    pub place: Vec<u8>,
    /// What the place names.
    pub what: What,
    /// Whether it came, changed, or went.
    pub kind: ChangeKind,
    /// What was decided.
    pub verdict: Verdict,
    /// Whether a restore can be narrowed to the place; else only to the target.
    has_path: bool,
}

impl Item {
    /// For `change`, in a target whose directory lies at `base` of the project.
    pub fn new(change: &Difference, base: Option<&[u8]>) -> Self {
        let place = contents::place(change, base);
        let has_path = match change.what {
            What::Database => true,
            What::Entry | What::Dir => base.is_some(),
            What::Part => false,
        };
        let (target, verdict) = (change.target.to_string(), Verdict::default());
        Self { target, place, what: change.what, kind: change.kind, verdict, has_path }
    }

    /// Whether it is `place` of `target`, or lies in it.
    pub fn is_in(&self, target: &str, place: &[u8]) -> bool {
        self.target == target && contents::within(&self.place, place).is_some()
    }

    /// Its place, and all that it lies in; the empty one last.
    fn upwards(&self) -> impl Iterator<Item = &[u8]> {
        let cut = |at: &usize| self.place[*at] == b'/';
        let above = (0..self.place.len()).rev().filter(cut).map(|at| &self.place[..at]);
        [&self.place[..]].into_iter().chain(above).chain([&b""[..]])
    }

    /// Whether one of `patterns` means it, or a directory that it is in, or its target.
    fn is_meant(&self, patterns: &Patterns) -> bool {
        let is = |path: &[u8], dir| patterns.decide(path, dir).is_some_and(|(_, meant)| meant);
        let above =
            self.place.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &self.place[..at]);
        is(&self.place, self.what == What::Dir)
            || above.into_iter().any(|dir| is(dir, true))
            || !self.has_path && is(self.target.as_bytes(), false)
    }
}

/// All changes that are decided about.
#[derive(Debug, Default)]
pub struct Choice {
    /// In the order of targets and paths.
    pub items: Vec<Item>,
}

impl Choice {
    /// Decides about all that `is_meant`; how many they are.
    pub fn decide(&mut self, verdict: Verdict, is_meant: impl Fn(&Item) -> bool) -> usize {
        let meant = self.items.iter_mut().filter(|item| is_meant(item));
        meant.map(|item| item.verdict = verdict).count()
    }

    /// Decides about what patterns mean: those of .gitignore, for paths of the project and
    /// for targets that have none. How many there are of each.
    pub fn by_globs(&mut self, accept: &[String], reject: &[String]) -> (usize, usize) {
        let of = |globs: &[String]| Patterns::of(globs.iter().map(String::as_str));
        let (accept, reject) = (of(accept), of(reject));
        let rejected = self.decide(Verdict::Rejected, |item| item.is_meant(&reject));
        // What is to stay stays, whatever else means it.
        (self.decide(Verdict::Accepted, |item| item.is_meant(&accept)), rejected)
    }

    /// How many have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.items.iter().filter(|item| item.verdict == verdict).count()
    }

    /// The one verdict about all that `is_meant`; none when they differ.
    pub fn verdict_of(&self, is_meant: impl Fn(&Item) -> bool) -> Option<Verdict> {
        let mut all = self.items.iter().filter(|item| is_meant(item)).map(|item| item.verdict);
        let first = all.next()?;
        all.all(|verdict| verdict == first).then_some(first)
    }

    /// What a restore has to be narrowed to.
    pub fn narrow(&self) -> Narrow {
        let mut narrow = Narrow::default();
        let (back, stay): (Vec<&Item>, Vec<&Item>) =
            self.items.iter().partition(|item| item.verdict == Verdict::Rejected);
        // Where something stays, and all that is above it.
        let kept: HashSet<(&str, &[u8])> =
            stay.iter().flat_map(|item| item.upwards().map(|place| (&*item.target, place))).collect();
        for item in back {
            if !item.has_path {
                if !narrow.whole.contains(&item.target) {
                    narrow.whole.push(item.target.clone());
                }
            } else if item.what != What::Dir || !kept.contains(&(&item.target, &item.place)) {
                narrow.paths.push(Bytes(item.place.clone()));
            }
        }
        narrow
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A choice between changes of the tree: directories end with a slash.
    pub fn of(places: &[&str]) -> Choice {
        let item = |place: &&str| {
            let what = if place.ends_with('/') { What::Dir } else { What::Entry };
            let path = place.trim_end_matches('/').as_bytes().to_vec();
            let change = Difference {
                target: "tree".into(),
                kind: ChangeKind::Modified,
                path,
                what,
                by: None,
                detail: None,
            };
            Item::new(&change, Some(b""))
        };
        Choice { items: places.iter().map(item).collect() }
    }

    fn paths(choice: &Choice) -> Vec<String> {
        choice.narrow().paths.iter().map(ToString::to_string).collect()
    }

    fn globs(choice: &mut Choice, accept: &[&str], reject: &[&str]) -> (usize, usize) {
        let own = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        choice.by_globs(&own(accept), &own(reject))
    }

    #[test]
    fn globs_mean_what_they_mean_in_gitignore_and_accepting_wins() {
        let all = ["a.rs", "src/", "src/b.rs", "src/deep/c.txt", "top.txt"];
        for (accept, reject, count, back) in [
            (&[][..], &["*.rs"][..], (0, 2), &["a.rs", "src/b.rs"][..]),
            (&[], &["/*.rs"], (0, 1), &["a.rs"]),
            (&[], &["src/"], (0, 3), &["src", "src/b.rs", "src/deep/c.txt"]),
            (&["*.txt"], &["*"], (2, 5), &["a.rs", "src/b.rs"]),
            (&[], &["nothing"], (0, 0), &[]),
            (&["a.rs"], &[], (1, 0), &[]),
        ] {
            let mut choice = of(&all);
            assert_eq!(globs(&mut choice, accept, reject), count, "{accept:?} {reject:?}");
            assert_eq!(paths(&choice), back, "{accept:?} {reject:?}");
        }
    }

    #[test]
    fn a_directory_comes_back_as_a_whole_only_with_everything_in_it() {
        let mut choice = of(&["d/", "d/a", "d/b", "e"]);
        choice.decide(Verdict::Rejected, |item| item.is_in("tree", b"d"));
        assert_eq!(paths(&choice), ["d", "d/a", "d/b"]);
        choice.decide(Verdict::Open, |item| item.place == b"d/b");
        assert_eq!(paths(&choice), ["d/a"]);
        assert_eq!(choice.verdict_of(|item| item.is_in("tree", b"d")), None);
        assert_eq!((choice.count(Verdict::Rejected), choice.count(Verdict::Open)), (2, 2));
    }

    #[test]
    fn what_has_no_path_in_the_project_goes_by_its_target() {
        let change = |target: &str, path: &str, what| Difference {
            target: target.into(),
            kind: ChangeKind::Modified,
            path: path.as_bytes().to_vec(),
            what,
            by: None,
            detail: None,
        };
        let mut choice = Choice {
            items: vec![
                Item::new(&change("volume", "x", What::Entry), None),
                Item::new(&change("volume", "y", What::Entry), None),
                Item::new(&change("data", "f", What::Entry), Some(b"a/data")),
                Item::new(&change("app.db", "app.db", What::Database), None),
            ],
        };
        assert_eq!(choice.items[2].place, b"a/data/f");
        assert_eq!(globs(&mut choice, &[], &["volume", "a/", "app.db"]), (0, 4));
        let narrow = choice.narrow();
        assert_eq!(narrow.whole, ["volume"]);
        assert_eq!(paths(&choice), ["a/data/f", "app.db"]);
    }
}

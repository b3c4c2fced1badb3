//! What is to become of each change: kept as it is now, or put back as it was.
//!
//! Invariant: what nobody decided about stays as it is. A directory is put back as a whole
//! only when everything in it is: else the things in it are, one by one.

use crate::contents;
use snapback_core::error::Result;
use snapback_core::session::{Difference, Narrow, What, scope};
use snapback_core::text::Bytes;
use snapback_core::tree::Patterns;
use snapback_core::tree::compare::ChangeKind;
use std::collections::{HashMap, HashSet};

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

    /// Whether it is no path of the project: a part of a target, or in a volume.
    fn is_outside(&self) -> bool {
        !self.has_path || contents::within(&self.place, &scope::volume_base(&self.target)).is_some()
    }

    /// Whether one of `patterns` means it, or a directory that it is in; outside the project, its
    /// target.
    fn is_meant(&self, patterns: &Patterns) -> bool {
        let is = |path: &[u8], dir| patterns.decide(path, dir).is_some_and(|(_, meant)| meant);
        let above =
            self.place.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &self.place[..at]);
        is(&self.place, self.what == What::Dir)
            || above.into_iter().any(|dir| is(dir, true))
            || self.is_outside() && is(self.target.as_bytes(), true)
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

    /// Decides as was decided in `then`; what is to go back only where it `is_same`, which is
    /// asked with the numbers here and there. Whether all that was to go back then, and nothing
    /// besides, goes back.
    ///
    /// # Errors
    /// What `is_same` returns.
    pub fn follow(&mut self, then: &Self, is_same: impl Fn(usize, usize) -> Result<bool>) -> Result<bool> {
        let numbered = then.items.iter().enumerate();
        let by_place: HashMap<(&str, &[u8]), usize> =
            numbered.map(|(number, item)| ((&*item.target, &*item.place), number)).collect();
        for (number, item) in self.items.iter_mut().enumerate() {
            let Some(&before) = by_place.get(&(&*item.target, &*item.place)) else { continue };
            let verdict = then.items[before].verdict;
            if verdict != Verdict::Rejected || is_same(number, before)? {
                item.verdict = verdict;
            }
        }
        let (now, then) = (self.narrow(), then.narrow());
        Ok((now.paths, now.whole) == (then.paths, then.whole))
    }

    /// Those of `globs` that mean none of the changes.
    pub fn idle<'g>(&self, globs: &'g [String]) -> impl Iterator<Item = &'g String> {
        globs.iter().filter(|glob| {
            let meant = Patterns::of([glob.trim_start_matches('!')]);
            !self.items.iter().any(|item| item.is_meant(&meant))
        })
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
    fn what_was_decided_holds_where_nothing_changed_meanwhile() {
        let rejected = |places: &[&str], back: &[u8]| {
            let mut choice = of(places);
            choice.decide(Verdict::Accepted, |item| !item.is_in("tree", back));
            choice.decide(Verdict::Rejected, |item| item.is_in("tree", back));
            choice
        };
        let then = rejected(&["d/", "d/a", "e"], b"d");
        for (now, changed, holds, back) in [
            (&["d/", "d/a", "e"][..], None, true, &["d", "d/a"][..]),
            // What was to stay may change, come and go.
            (&["d/", "d/a", "e"], Some(2), true, &["d", "d/a"]),
            (&["d/", "d/a", "f"], None, true, &["d", "d/a"]),
            (&["d/", "d/a", "e"], Some(1), false, &[]),
            (&["d/", "e"], None, false, &["d"]),
            (&["d/", "d/a", "d/new", "e"], None, false, &["d/a"]),
        ] {
            let mut choice = of(now);
            let same = choice.follow(&then, |number, _| Ok(Some(number) != changed)).unwrap();
            assert_eq!(
                (same, &paths(&choice)[..]),
                (holds, &back.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>()[..]),
                "{now:?} {changed:?}"
            );
        }
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
                Item::new(&change("volume", "x", What::Entry), Some(b"volume:")),
                Item::new(&change("volume", "d/y", What::Entry), Some(b"volume:")),
                Item::new(&change("cache", "", What::Part), None),
                Item::new(&change("data", "f", What::Entry), Some(b"a/data")),
                Item::new(&change("app.db", "app.db", What::Database), None),
            ],
        };
        assert_eq!(choice.items[3].place, b"a/data/f");
        assert_eq!(globs(&mut choice, &[], &["volume", "cache/", "a/", "app.db"]), (0, 5));
        assert_eq!(choice.narrow().whole, ["cache"]);
        assert_eq!(paths(&choice), ["volume:/x", "volume:/d/y", "a/data/f", "app.db"]);
        choice.decide(Verdict::Open, |_| true);
        assert_eq!(globs(&mut choice, &["volume:/d"], &["vol*", "data"]), (1, 3));
        assert_eq!(paths(&choice), ["volume:/x", "a/data/f"]);
        let all = ["volume".to_owned(), "volum".to_owned(), "!a".to_owned(), "x/".to_owned()];
        assert_eq!(choice.idle(&all).collect::<Vec<_>>(), ["volum", "x/"]);
    }
}

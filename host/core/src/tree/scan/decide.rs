//! The decision about one name: captured, or left out and why.
//!
//! Order: what a snapshot that must be covered has is captured; then `paths`, then
//! `include`, then what leaves out (`git`, `ignore`, `regenerable`). Stores and other
//! file systems are never captured; that is seen when they are entered, and a store is
//! called one whatever rule leaves it out.

use super::git::Git;
use super::{Listing, Place, Scope, Walk};
use crate::error::Result;
use crate::tree::node::Node;
use crate::tree::root::Why;
use crate::tree::select::{Rule, When};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How an entry is captured.
#[derive(Debug, Clone)]
pub struct Taken {
    /// What holds inside, if it is a directory.
    pub scope: Scope,
    /// It was named, so what is found inside it is no reason to leave it out.
    pub sure: bool,
}

/// The decision about one name.
#[derive(Clone)]
pub(super) enum Verdict {
    /// Captured.
    Take(Taken),
    /// Left out, and recorded by its path.
    Leave(Why, Arc<str>),
    /// A single file that this pattern of `ignore` left out: only counted.
    Ignore(usize),
}

/// How an entry is captured that no rule is about.
pub(super) const PLAIN: Taken = Taken { scope: Scope::Whole, sure: false };

/// The verdict about `name`, which the user named.
fn named(name: &[u8]) -> Verdict {
    Verdict::Take(Taken { scope: inside(name), sure: true })
}

/// Which rules hold in the directory `name`, when it is captured as a whole.
fn inside(name: &[u8]) -> Scope {
    if name == GIT { Scope::Git } else { Scope::Whole }
}

/// What git calls a repository.
const GIT: &[u8] = b".git";

impl Walk<'_> {
    /// Whether all files in `place` are captured, whatever their names.
    pub(super) fn takes_files(&self, place: &Place) -> bool {
        let options = self.directory.options();
        matches!(place.scope, Scope::Whole) && options.ignore.is_empty() && options.include.is_empty()
    }

    /// The decision about `name` in `place`, whose names are in `listing`. `path` is
    /// the path of `name` if the rules need paths, else the name alone.
    pub(super) fn decide(
        &self,
        place: &Place,
        listing: &Listing,
        name: &[u8],
        directory: bool,
        path: &[u8],
    ) -> Result<Verdict> {
        match self.by_rules(place, listing, name, directory, path)? {
            Verdict::Leave(..) if directory && self.is_own_store(place, name) => {
                Ok(Verdict::Leave(Why::Store, "".into()))
            }
            Verdict::Leave(why, detail) => self.unless_wanted(place, name, directory, path, why, detail),
            Verdict::Ignore(at) => Ok(match self.wanted_by_cover(place, name, directory)? {
                Some(taken) => Verdict::Take(taken),
                None => Verdict::Ignore(at),
            }),
            verdict => Ok(verdict),
        }
    }

    /// What becomes of an entry that a rule leaves out.
    pub(super) fn unless_wanted(
        &self,
        place: &Place,
        name: &[u8],
        directory: bool,
        path: &[u8],
        why: Why,
        detail: Arc<str>,
    ) -> Result<Verdict> {
        if let Some(taken) = self.wanted_by_cover(place, name, directory)? {
            return Ok(Verdict::Take(taken));
        }
        if directory && self.included_beneath(path) {
            return Ok(Verdict::Take(Taken { scope: Scope::Toward(why, detail), sure: true }));
        }
        Ok(Verdict::Leave(why, detail))
    }

    /// How an entry is captured because of the snapshot that must be covered.
    fn wanted_by_cover(&self, place: &Place, name: &[u8], directory: bool) -> Result<Option<Taken>> {
        let scope = match self.covered(place, name)? {
            Some(Node::Dir(_)) if directory && matches!(place.scope, Scope::Git) => Scope::Git,
            Some(Node::Dir(_)) if directory => inside(name),
            // It stands in the way of what is to come back: nothing in it may be lost.
            Some(_) => Scope::All,
            None if self.stands_in_the_way(place)? => Scope::All,
            None => return Ok(None),
        };
        Ok(Some(Taken { scope, sure: true }))
    }

    fn by_rules(
        &self,
        place: &Place,
        listing: &Listing,
        name: &[u8],
        directory: bool,
        path: &[u8],
    ) -> Result<Verdict> {
        let options = self.directory.options();
        match &place.scope {
            Scope::All => return Ok(Verdict::Take(Taken { scope: Scope::All, sure: true })),
            Scope::Toward(Why::Outside, detail) => return Ok(self.by_paths(path, directory, detail)),
            Scope::Toward(why, detail) => {
                let included = matches!(options.include.decide(path, directory), Some((_, true)));
                return Ok(if included { named(name) } else { Verdict::Leave(*why, detail.clone()) });
            }
            Scope::Git => {
                let ignored = options.ignore.decide_by_path(path, directory).filter(|(_, ignored)| *ignored);
                let taken = || Verdict::Take(Taken { scope: Scope::Git, sure: true });
                return Ok(ignored.map_or_else(taken, |(at, _)| self.ignored_by(at, directory)));
            }
            Scope::Whole => {}
        }
        if let Some((_, true)) = options.include.decide(path, directory) {
            return Ok(named(name));
        }
        // A file of that name only says where the repository is: it is one like any other.
        if name == GIT && (directory || options.git) {
            return Ok(if options.git { named(name) } else { Verdict::Leave(Why::Git, "".into()) });
        }
        if let Some((at, true)) = options.ignore.decide(path, directory) {
            return Ok(self.ignored_by(at, directory));
        }
        if directory {
            for rule in options.regenerable.iter().filter(|rule| rule.is_about(name)) {
                if let Some(sign) = self.sign(rule, place, listing, name)? {
                    return Ok(Verdict::Leave(Why::Regenerable, sign));
                }
            }
        }
        Ok(Verdict::Take(PLAIN))
    }

    fn ignored_by(&self, at: usize, directory: bool) -> Verdict {
        if !directory {
            return Verdict::Ignore(at);
        }
        let (why, detail) = self.ignored_because(at);
        Verdict::Leave(why, detail)
    }

    /// Why the pattern of `ignore` at `at` leaves something out.
    pub(super) fn ignored_because(&self, at: usize) -> (Why, Arc<str>) {
        let pattern = self.directory.options().ignore.iter().nth(at);
        (Why::Ignored, pattern.map_or("", |pattern| pattern.text()).into())
    }

    /// The sign by which `rule`, which is about `name`, holds, in words; none where it does not,
    /// as far as is seen from outside.
    fn sign(&self, rule: &Rule, place: &Place, listing: &Listing, name: &[u8]) -> Result<Option<Arc<str>>> {
        let beside = |files: &[crate::tree::select::Name]| {
            let is_there = files.iter().any(|file| listing.has_match(file));
            is_there.then(|| format!("beside {}", rule.files()).into())
        };
        Ok(match rule.when() {
            When::Always => Some(rule.text().into()),
            When::Holding(_) => None,
            When::Beside(files) => beside(files),
            When::Ignored(files) => match self.git(place, name)? {
                Git::Ignored => Some("ignored by git".into()),
                Git::NotIgnored => None,
                Git::Absent => beside(files),
            },
        })
    }

    fn by_paths(&self, path: &[u8], directory: bool, detail: &Arc<str>) -> Verdict {
        let names = || path.split(|&b| b == b'/');
        let depth = names().count();
        let (mut chosen, mut on_the_way) = (false, false);
        for (wanted, met) in self.directory.options().paths.iter().zip(&self.met) {
            if names().zip(wanted).any(|(have, want)| have != want) {
                continue;
            }
            if depth >= wanted.len() {
                met.store(true, Ordering::Relaxed);
                chosen = true;
            } else {
                on_the_way = true;
            }
        }
        match (chosen, on_the_way && directory) {
            (true, _) => named(names().next_back().unwrap_or_default()),
            (_, true) => {
                Verdict::Take(Taken { scope: Scope::Toward(Why::Outside, detail.clone()), sure: true })
            }
            _ => Verdict::Leave(Why::Outside, detail.clone()),
        }
    }

    /// Whether `include` names a path beneath `path`.
    fn included_beneath(&self, path: &[u8]) -> bool {
        let literal = self.directory.options().include.iter().filter_map(|pattern| pattern.literal_path());
        literal
            .into_iter()
            .any(|wanted| wanted.strip_prefix(path).is_some_and(|rest| rest.len() > 1 && rest[0] == b'/'))
    }
}

//! Whether git ignores a directory that the walk has met: found out only when a rule
//! asks, from the files that lie on the way.

use super::{Place, Walk, read_small};
use crate::error::Result;
use crate::store::content::read_all;
use crate::tree::ignore::{LARGEST_FILE, Outer, Patterns, Repository};
use crate::tree::node::Node;
use rustix::fs::CWD;

/// What git says about a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Git {
    /// It ignores it.
    Ignored,
    /// It does not.
    NotIgnored,
    /// There is no repository here.
    Absent,
}

impl Walk<'_> {
    /// Whether git's rules ignore `name` in `place`, which they do not ignore itself. A
    /// file that is tracked all the same is not told from others.
    ///
    /// # Errors
    /// When a snapshot that must be covered cannot be read.
    pub fn is_ignored_by_git(&self, place: &Place, name: &[u8], directory: bool) -> Result<bool> {
        Ok(name != b".git" && self.asked(place, name, directory)? == Git::Ignored)
    }

    /// What git says about the directory `name` in `place`.
    pub(super) fn git(&self, place: &Place, name: &[u8]) -> Result<Git> {
        self.asked(place, name, true)
    }

    fn asked(&self, place: &Place, name: &[u8], directory: bool) -> Result<Git> {
        let mut places = Vec::new();
        let mut found = None;
        for place in place.upwards() {
            places.push(place);
            if let Some(repository) = self.repository(place) {
                found = Some(repository);
                break;
            }
        }
        let outer = match found {
            Some(_) => None,
            None => match self.outer.get_or_init(|| Outer::find(self.directory.path())) {
                Some(outer) => Some(outer),
                None => return Ok(Git::Absent),
            },
        };
        let mut names: Vec<&[u8]> = Vec::new();
        let mut ignores: Vec<&Patterns> = Vec::new();
        if let Some(outer) = outer {
            names.extend(outer.names.iter().map(Vec::as_slice));
            ignores.extend(&outer.ignores);
        }
        for (at, place) in places.iter().rev().enumerate() {
            if at > 0 {
                names.push(place.dir.name());
            }
            ignores.push(self.gitignore(place)?);
        }
        names.push(name);
        let Some(repository) = found.or(outer.map(|outer| &outer.repository)) else { return Ok(Git::Absent) };
        let ignored = repository.ignores(&names, directory, &ignores, self.excludes());
        Ok(if ignored { Git::Ignored } else { Git::NotIgnored })
    }

    fn repository<'p>(&self, place: &'p Place) -> Option<&'p Repository> {
        if !place.has_git {
            return None;
        }
        let find = || self.kept.open(&place.dir).ok().and_then(|handle| Repository::at(&handle));
        place.repository.get_or_init(find).as_ref()
    }

    /// The `.gitignore` in `place`: as it was in the snapshot that must be covered,
    /// if there is one, since a run may have changed it.
    fn gitignore<'p>(&self, place: &'p Place) -> Result<&'p Patterns> {
        if let Some(known) = place.gitignore.get() {
            return Ok(known);
        }
        let file = match &self.cover {
            Some(cover) => match self.covered(place, b".gitignore")? {
                Some(Node::File { content, size, .. }) if *size <= LARGEST_FILE => {
                    Some(read_all(cover.source, content, *size, LARGEST_FILE)?)
                }
                _ => None,
            },
            None if place.has_gitignore => {
                self.kept.open(&place.dir).ok().and_then(|dir| read_small(&dir, ".gitignore", LARGEST_FILE))
            }
            None => None,
        };
        Ok(place.gitignore.get_or_init(|| file.map(|file| Patterns::parse(&file)).unwrap_or_default()))
    }

    fn excludes(&self) -> &Patterns {
        self.excludes.get_or_init(|| {
            let path = self.directory.options().git_excludes.as_ref();
            let file = path.and_then(|path| read_small(CWD, path.as_path(), LARGEST_FILE));
            file.map(|file| Patterns::parse(&file)).unwrap_or_default()
        })
    }
}

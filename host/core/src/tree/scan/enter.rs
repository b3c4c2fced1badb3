//! Entering one directory: open, list, look whether it is captured at all.

use super::decide::{Taken, Verdict};
use super::{Dir, Listing, Place, Scope, Stat, Walk, read_small};
use crate::database::SIDES;
use crate::disk::Lent;
use crate::error::{Error, Result, show_bytes};
use crate::project::STORE;
use crate::store::FORMAT;
use crate::tree::root::Why;
use crate::tree::select::{CACHEDIR_TAG, Name, Rule, When};
use rustix::fs::{Access, AtFlags, FileType};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// What is said of such a directory.
const OWN: &str = "where snapback keeps its own files";

/// Whether this process may look at what is in the directory `handle`.
fn may_look_into(handle: &OwnedFd) -> bool {
    let all = Access::READ_OK | Access::EXEC_OK;
    rustix::fs::accessat(handle, c".", all, AtFlags::EACCESS).is_ok()
}

/// What is reused from directory to directory by one thread.
#[derive(Default)]
pub struct Scratch {
    /// The names in the directory that was entered last.
    pub listing: Listing,
    /// Those of them that are captured, in order.
    pub selected: Vec<Selected>,
    pub(super) path: Vec<u8>,
    pub(super) ignored: Vec<(u32, usize)>,
    pub(super) left: Vec<(u32, Why, Arc<str>)>,
    /// What is not there, and must not come back.
    pub(super) barred: Vec<(Vec<u8>, Why, Arc<str>)>,
}

/// One entry that is captured.
#[derive(Debug, Clone)]
pub struct Selected {
    /// Its place in the listing.
    pub at: u32,
    /// What it is, as far as its directory knows.
    pub kind: FileType,
    /// How it is captured.
    pub taken: Taken,
}

/// What came of entering a directory.
pub enum Enter {
    /// It is open; what to capture of it is in the `Scratch`.
    In {
        /// Where it is.
        place: Arc<Place>,
        /// Its handle.
        handle: Arc<OwnedFd>,
        /// Its attributes, from the handle.
        stat: Stat,
    },
    /// It is left out, which was recorded.
    LeftOut,
    /// It is no longer there.
    Gone,
    /// Something that is no directory is there by now.
    Replaced,
}

impl Walk<'_> {
    /// Enters the directory that is walked.
    ///
    /// # Errors
    /// When it cannot be read or nothing of it would be captured.
    pub fn enter_top(&self, scratch: &mut Scratch) -> Result<Enter> {
        let directory = self.directory;
        let shown = || directory.path();
        // A handle of its own: the directory's is shared, and listing moves it.
        let handle = self.kept.open_in(directory.handle(), c".");
        let handle = handle.map_err(|e| Error::io(e, "could not open", shown()))?;
        let stat = Stat::of_open(&handle).map_err(|e| Error::io(e, "could not look at", shown()))?;
        scratch.listing.read(&handle).map_err(|e| Error::io(e, "could not list", shown()))?;
        let handle = Arc::new(handle);
        let dir = Dir::top(handle.clone(), stat.id());
        let covers_all = directory.options().covers_all();
        let scope = if covers_all { Scope::Whole } else { Scope::Toward(Why::Outside, "".into()) };
        let place = self.place(dir, None, scope, &scratch.listing);
        if self.is_own(&stat) {
            let shown = crate::error::show(shown());
            return Err(Error::new(crate::error::Kind::Invalid, format!("{shown} is {OWN}")));
        }
        if self.is_store(&handle, &scratch.listing) {
            return Err(Error::new(
                crate::error::Kind::Invalid,
                format!("{} is a snapback store itself", crate::error::show(shown())),
            ));
        }
        let files = self.select(&place, scratch)?;
        if let Some(limit) = self.over_limit(files)
            && self.cover_of(&place)?.is_none()
            && covers_all
        {
            let text = format!(
                "{} directly holds {files} files, more than the limit of {limit} for one directory",
                crate::error::show(shown())
            );
            return Err(Error::new(crate::error::Kind::Invalid, text)
                .hint("leave some out with `ignore`, or set `max-files-per-dir` higher (0 is no limit)"));
        }
        self.commit(&place, &handle, scratch);
        Ok(Enter::In { place, handle, stat })
    }

    /// Enters the directory `name` in `above`, which was `taken`.
    ///
    /// # Errors
    /// What stops the whole walk; a directory that cannot be read is left out instead.
    pub fn enter(
        &self,
        above: &Arc<Place>,
        name: &CStr,
        taken: &Taken,
        scratch: &mut Scratch,
    ) -> Result<Enter> {
        let hole = |error: Errno, doing: &str| self.unreadable(above, name.to_bytes(), error, doing);
        let parent = match self.kept.open(&above.dir) {
            Ok(parent) => parent,
            Err(error) => return self.lost(above, name.to_bytes(), error).map(|()| Enter::LeftOut),
        };
        let mut lent = None;
        let handle = match self.kept.open_in(&parent, name) {
            Err(Errno::ACCESS) => {
                lent = self.lend(above, &parent, name);
                self.kept.open_in(&parent, name)
            }
            done => done,
        };
        let handle = match handle {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(Enter::Gone),
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Enter::Replaced),
            Err(error) => return hole(error, "opened"),
        };
        let mut stat = match Stat::of_open(&handle) {
            Ok(stat) => stat,
            Err(error) => return hole(error, "looked at"),
        };
        if lent.is_none() {
            lent = self.lent_to_others(&handle);
            if lent.is_some() && self.was_hole(above, name) {
                return hole(Errno::ACCESS, "opened");
            }
        }
        if lent.is_none() && stat.permissions() & 0o500 != 0o500 && !may_look_into(&handle) {
            // It may be listed, and nothing in it be looked at; or was lent a moment ago.
            lent = self.lend(above, &parent, name);
        }
        if let Some(lent) = &lent {
            stat.mode = stat.mode & !0o7777 | lent.mode();
        }
        let dir = Dir::below(&above.dir, name.to_owned(), stat.id(), lent);
        if self.is_own(&stat) {
            self.leave_out(dir.path(), Why::Store, OWN, None, Some(&stat));
            return Ok(Enter::LeftOut);
        }
        if self.is_other_mount(&stat) {
            self.leave_out(dir.path(), Why::Mount, "", None, Some(&stat));
            return Ok(Enter::LeftOut);
        }
        if let Err(error) = scratch.listing.read(&handle) {
            return hole(error, "listed");
        }
        if self.is_store(&handle, &scratch.listing) {
            self.leave_out(dir.path(), Why::Store, "", None, Some(&stat));
            return Ok(Enter::LeftOut);
        }
        let mut scope = taken.scope.clone();
        let mut sure = taken.sure;
        let leave = |why: Why, detail: &str, files: Option<u64>| -> Result<Option<Scope>> {
            let path = dir.path();
            match self.unless_wanted(above, name.to_bytes(), true, &path, why, detail.into())? {
                Verdict::Take(taken) => Ok(Some(taken.scope)),
                _ => {
                    self.leave_out(path, why, detail, files, Some(&stat));
                    Ok(None)
                }
            }
        };
        if !sure && let Some(rule) = self.held(name.to_bytes(), &handle, &scratch.listing) {
            match leave(Why::Regenerable, &format!("holding {}", rule.files()), None)? {
                Some(other) => (scope, sure) = (other, true),
                None => return Ok(Enter::LeftOut),
            }
        }
        let place = self.place(dir.clone(), Some(above.clone()), scope, &scratch.listing);
        let files = self.select(&place, scratch)?;
        let handle = Arc::new(handle);
        if !sure && let Some(limit) = self.over_limit(files) {
            let detail = format!("more than {limit}");
            let Some(scope) = leave(Why::TooManyFiles, &detail, Some(files))? else {
                return Ok(Enter::LeftOut);
            };
            if let Scope::Toward(..) = scope {
                let place = self.place(dir, Some(above.clone()), scope, &scratch.listing);
                self.select(&place, scratch)?;
                self.commit(&place, &handle, scratch);
                return Ok(Enter::In { place, handle, stat });
            }
        }
        self.commit(&place, &handle, scratch);
        self.note_repository(&place, &handle);
        Ok(Enter::In { place, handle, stat })
    }

    fn place(&self, dir: Arc<Dir>, above: Option<Arc<Place>>, scope: Scope, listing: &Listing) -> Arc<Place> {
        Arc::new(Place::new(dir, above, scope, listing.has(b".git"), listing.has(b".gitignore")))
    }

    /// Whether it is a directory of snapback's own.
    fn is_own(&self, stat: &Stat) -> bool {
        self.directory.options().own.contains(&stat.id())
    }

    /// Whether it lies on another file system that is not to be entered.
    pub fn is_other_mount(&self, stat: &Stat) -> bool {
        !self.directory.options().cross_mounts && stat.mount != self.directory.mount()
    }

    /// Permission to read `name` in `above`, open as `parent`, where this user took it
    /// from itself and what is there has to be captured: it may be replaced next.
    pub fn lend(&self, above: &Place, parent: impl AsFd, name: &CStr) -> Option<Lent> {
        let disk = &self.cover.as_ref()?.disk;
        // What could not be read then either is left alone.
        if self.was_hole(above, name) { None } else { disk.lend(parent, name) }
    }

    /// The same for a directory that is open, when it is lent to whoever captures another target.
    fn lent_to_others(&self, handle: &OwnedFd) -> Option<Lent> {
        self.cover.as_ref()?.disk.share(handle)
    }

    /// Whether what is covered could not read `name` in `above`.
    fn was_hole(&self, above: &Place, name: &CStr) -> bool {
        let path = above.dir.path_of(name.to_bytes());
        self.cover.as_ref().is_some_and(|cover| cover.root.left_out.iter().any(|item| item.path == path))
    }

    /// Records that `name` in `above` cannot be read.
    fn unreadable(&self, above: &Arc<Place>, name: &[u8], error: Errno, doing: &str) -> Result<Enter> {
        self.hole(above, name, error, doing).map(|()| Enter::LeftOut)
    }

    /// Records that `name` cannot be reached, since `place` was moved while it was read.
    ///
    /// # Errors
    /// As [`Self::hole`] has them.
    pub fn lost(&self, place: &Place, name: &[u8], error: Errno) -> Result<()> {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => {
                let detail = "the directory that it is in was moved";
                self.leave_out(place.dir.path_of(name), Why::ChangedWhileRead, detail, None, None);
                Ok(())
            }
            error => self.hole(place, name, error, "reached"),
        }
    }

    /// Records that `name` in `place` cannot be `doing` (opened, read).
    ///
    /// # Errors
    /// When the reason is no property of the entry: it stops the walk.
    pub fn hole(&self, place: &Place, name: &[u8], error: Errno, doing: &str) -> Result<()> {
        let path = place.dir.path_of(name);
        if matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM) {
            return Err(Error::io(error, "could not open", show_bytes(&path)));
        }
        let detail = format!("could not be {doing}: {}", Error::reason(error));
        let seen = CString::new(name).ok().and_then(|name| {
            let handle = self.kept.open(&place.dir).ok()?;
            Stat::of(&handle, &name).ok()
        });
        self.leave_out(path, Why::Unreadable, detail, None, seen.as_ref());
        Ok(())
    }

    /// A directory is a store if it says so, wherever it lies and whatever its name.
    fn is_store(&self, handle: &OwnedFd, listing: &Listing) -> bool {
        let (name, begins) = FORMAT;
        listing.has(name.as_bytes()) && begins_with(handle, name, begins.as_bytes())
    }

    /// Whether `name` in `place` is what a project's store is called, and is one.
    pub(super) fn is_own_store(&self, place: &Place, name: &[u8]) -> bool {
        let open = || {
            let name = CString::new(name).ok()?;
            self.kept.open_in(self.kept.open(&place.dir).ok()?, &name).ok()
        };
        let (file, begins) = FORMAT;
        name == STORE.as_bytes() && open().is_some_and(|handle| begins_with(&handle, file, begins.as_bytes()))
    }

    /// The rule that is about `name` and holds by what is in the directory.
    fn held(&self, name: &[u8], handle: &OwnedFd, listing: &Listing) -> Option<&Rule> {
        let holds = |file: &Name| match file {
            Name::Exact(exact) if exact == CACHEDIR_TAG.0.as_bytes() => {
                listing.has(exact) && begins_with(handle, CACHEDIR_TAG.0, CACHEDIR_TAG.1)
            }
            file => listing.has_match(file),
        };
        self.directory.options().regenerable.iter().find(|rule| match rule.when() {
            When::Holding(files) => rule.is_about(name) && files.iter().any(holds),
            _ => false,
        })
    }

    fn over_limit(&self, files: u64) -> Option<u64> {
        self.directory.options().max_files_per_dir.filter(|limit| files > *limit)
    }
}

impl Scratch {
    /// The places in the listing of databases that were told by what lies beside them.
    pub fn databases(&self) -> impl Iterator<Item = u32> {
        let found = self.left.iter().filter(|(_, why, target)| *why == Why::Elsewhere && target.is_empty());
        let is_beside = |at: u32| {
            let name = self.listing.get(at as usize).0;
            SIDES.iter().find_map(|suffix| name.strip_suffix(*suffix)).is_some_and(|of| self.listing.has(of))
        };
        found.map(|(at, ..)| *at).filter(move |at| !is_beside(*at))
    }
}

fn begins_with(handle: &OwnedFd, name: &str, begins: &[u8]) -> bool {
    read_small(handle, name, 1 << 16).is_some_and(|bytes| bytes.starts_with(begins))
}

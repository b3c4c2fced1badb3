//! Making and opening a store: its directory and the small files in it.
//!
//! `format` is written last: a directory without it is a store that was never
//! finished, and `create` finishes it. A store of a newer version is refused before
//! anything in it is looked at.

use super::{Lock, Store, birth, frames::Frames, not_a_store, random_hex};
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result, show};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

/// The version of the store's form that is written here; older ones are read.
pub const VERSION: u32 = 1;
/// The file that makes a directory a store, and its first line.
pub(crate) const FORMAT: (&str, &str) = ("format", "snapback store");
/// The mode of the store and of each directory in it.
pub(super) const DIR_MODE: u32 = 0o700;
const ID: &[u8] = b"id";
const PACKS: &[u8] = b"packs";
const TMP: &[u8] = b"tmp";
const SNAPSHOTS: &[u8] = b"snapshots";
/// So that git, and tools that leave caches out, pass the store over.
const GITIGNORE: (&[u8], &[u8]) = (b".gitignore", b"*\n");
const CACHEDIR: (&[u8], &[u8]) = (
    b"CACHEDIR.TAG",
    b"Signature: 8a477f597d28d172789f06886806bc55\n\
      # This directory holds snapshots made by snapback. Removing it removes the history.\n",
);

impl Store {
    /// Makes a new, empty store at `path`, and opens it. What a killed process left
    /// unfinished there is finished.
    ///
    /// # Errors
    /// `Invalid` when there is something else, or a store already.
    pub fn create(path: &Path, disk: Disk) -> Result<Arc<Self>> {
        let (parent, name) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => {
                (if parent.as_os_str().is_empty() { Path::new(".") } else { parent }, name.as_bytes())
            }
            _ => return Err(Error::new(Kind::Invalid, format!("{} cannot be a store", show(path)))),
        };
        let parent = Dir::open(parent)?;
        if parent.stat(name)?.is_none() {
            match disk.mkdir(&parent, name, DIR_MODE) {
                // Somebody else was quicker; the lock decides.
                Err(_) if parent.stat(name)?.is_some() => {}
                done => done?,
            }
        }
        let dir = parent.child(name)?;
        let _lock = Lock::take(&disk, &dir, &mut || {})?;
        if dir.stat(FORMAT.0.as_bytes())?.is_some() {
            return Err(Error::new(Kind::Invalid, format!("there is a store at {} already", show(path))));
        }
        let ours = [GITIGNORE.0, CACHEDIR.0, ID, birth::FILE, PACKS, TMP, SNAPSHOTS, super::lock::FILE];
        if let Some(other) = dir.names()?.iter().find(|name| {
            let name = name.strip_suffix(b".new").unwrap_or(name);
            !ours.contains(&name) && name != FORMAT.0.as_bytes()
        }) {
            let other = crate::error::show_bytes(other);
            return Err(Error::new(
                Kind::Invalid,
                format!("{} holds {other}, so it cannot become a store", show(path)),
            )
            .hint("move it away, or give another root"));
        }
        for sub in [PACKS, SNAPSHOTS] {
            let holds = |dir: Dir| dir.names().is_ok_and(|names| !names.is_empty());
            if !birth::is_born_in(&dir) && dir.child(sub).is_ok_and(holds) {
                let why = format!("{} holds snapshots that were not taken here", show(path));
                return Err(Error::new(Kind::Denied, why).hint("it is no whole store; move it away"));
            }
        }
        disk.set_mode_of(&dir, DIR_MODE)?;
        for sub in [PACKS, TMP, SNAPSHOTS] {
            if dir.stat(sub)?.is_none() {
                disk.mkdir(&dir, sub, DIR_MODE)?;
            }
        }
        for (name, bytes) in [GITIGNORE, CACHEDIR] {
            disk.write_synced(&dir, name, bytes, 0o400)?;
        }
        disk.write_synced(&dir, ID, &new_id()?, 0o400)?;
        birth::mark(&disk, &dir)?;
        // The names of all these are durable before the one that says that they are there.
        disk.sync_dir(&dir)?;
        disk.write_sealed(
            &dir,
            FORMAT.0.as_bytes(),
            format!("{}\nversion {VERSION}\n", FORMAT.1).as_bytes(),
            0o400,
        )?;
        disk.sync_dir(&parent)?;
        Self::with(disk, dir)
    }

    /// Opens the store at `path`, or makes it when there is none. Several may do so at once.
    pub fn open_or_create(path: &Path, disk: Disk) -> Result<Arc<Self>> {
        match Self::open(path, disk.clone()) {
            Err(e) if e.kind() == Kind::NotFound => {}
            done => return done,
        }
        let failed = match Self::create(path, disk.clone()) {
            Err(e) if e.kind() == Kind::Invalid => e,
            done => return done,
        };
        // Somebody else was quicker, or it really cannot be.
        Self::open(path, disk).map_err(|_| failed)
    }

    /// Opens the store at `path`.
    ///
    /// # Errors
    /// `NotFound` when there is none or it was never finished, `Incompatible` when it is
    /// of a newer version, `Corrupt` when it is damaged.
    pub fn open(path: &Path, disk: Disk) -> Result<Arc<Self>> {
        let none = || Error::new(Kind::NotFound, format!("there is no store at {}", show(path)));
        let dir = Dir::open(path).map_err(|e| match e.kind() {
            Kind::NotFound => none(),
            _ => odd(path, e),
        })?;
        let has_snapshots =
            || dir.child(SNAPSHOTS).and_then(|dir| dir.names()).is_ok_and(|names| !names.is_empty());
        let format = dir.read(FORMAT.0.as_bytes(), 4096).map_err(|e| match e.kind() {
            Kind::NotFound if has_snapshots() => {
                not_a_store(path, "its file `format` is missing").hint(mend())
            }
            Kind::NotFound if dir.stat(PACKS).is_ok_and(|s| s.is_none()) => none(),
            Kind::NotFound => none().hint("what is there was never finished; the next snapshot finishes it"),
            _ => odd(path, e),
        })?;
        match version(&format) {
            Some(VERSION) => Self::with(disk, dir),
            Some(_) => Err(Error::new(
                Kind::Incompatible,
                format!("the store at {} was made by a newer snapback", show(path)),
            )
            .hint("use that version, or a newer one, for this project")),
            None => Err(not_a_store(path, "its file `format` is damaged").hint(mend())),
        }
    }

    /// Whether `path` holds a store that was made to its end, of whatever version.
    pub(crate) fn is_finished(path: &Path) -> bool {
        let format = Dir::open(path).and_then(|dir| dir.read(FORMAT.0.as_bytes(), 4096));
        format.is_ok_and(|format| version(&format).is_some())
    }

    /// The identity of the store at `path`, of whatever version; none where there is none.
    pub(crate) fn identity(path: &Path) -> Option<String> {
        let bytes = Dir::open(path).and_then(|dir| dir.read(ID, 64)).ok()?;
        let id = String::from_utf8(bytes.strip_suffix(b"\n")?.to_vec()).ok()?;
        is_id(id.as_bytes()).then_some(id)
    }

    fn with(disk: Disk, dir: Dir) -> Result<Arc<Self>> {
        let packs = sub(&disk, &dir, PACKS).map_err(|e| odd(dir.path(), e))?;
        Ok(Arc::new(Self {
            disk,
            dir,
            packs,
            tmp: OnceLock::new(),
            catalog: RwLock::default(),
            open_packs: Mutex::default(),
            frames: Frames::of_store(),
            far: None,
        }))
    }

    /// Where packs are written, made when there is something to write.
    pub(super) fn tmp(&self) -> Result<&Dir> {
        match self.tmp.get() {
            Some(tmp) => Ok(tmp),
            None => {
                let tmp = sub(&self.disk, &self.dir, TMP).map_err(|e| odd(self.path(), e))?;
                Ok(self.tmp.get_or_init(|| tmp))
            }
        }
    }

    /// The store's identity: 32 hexadecimal digits, random.
    pub fn id(&self) -> Result<String> {
        let bytes = self.dir.read(ID, 64)?;
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        match String::from_utf8(text.to_vec()) {
            Ok(id) if is_id(text) => Ok(id),
            _ => Err(not_a_store(self.path(), "its file `id` is damaged")),
        }
    }

    /// Gives the store an identity of its own: it is a copy of another.
    pub fn renew_id(&self) -> Result<String> {
        self.disk.write_sealed(&self.dir, ID, &new_id()?, 0o400)?;
        self.id()
    }

    /// Marks the store as made where it lies, unless it is.
    pub fn settle(&self) -> Result<()> {
        if birth::is_born_in(&self.dir) { Ok(()) } else { birth::mark(&self.disk, &self.dir) }
    }
}

/// The directory `name` of a store. Removed by somebody, there is nothing in it, which is
/// what an empty one says.
fn sub(disk: &Disk, dir: &Dir, name: &[u8]) -> Result<Dir> {
    match dir.child(name) {
        Err(e) if e.kind() == Kind::NotFound => match disk.mkdir(dir, name, 0o700) {
            // Somebody else was quicker.
            Err(e) => dir.child(name).map_err(|_| e),
            Ok(()) => dir.child(name),
        },
        done => done,
    }
}

/// What is found in the place of something of a store, and can be no part of one.
pub(super) fn odd(path: &Path, error: Error) -> Error {
    if error.kind() != Kind::Invalid {
        return error;
    }
    let told = not_a_store(path, error.message());
    match error.hint_text() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// How `format` is made good by hand: what wrote the store is not for us to say.
fn mend() -> String {
    let lines = format!("`{}` and `version {VERSION}`", FORMAT.1);
    format!("if no newer snapback was used here, write it again: it has two lines, {lines}")
}

fn new_id() -> Result<Vec<u8>> {
    Ok(format!("{}\n", random_hex(16)?).into_bytes())
}

fn is_id(text: &[u8]) -> bool {
    text.len() == 32 && text.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b))
}

fn version(format: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(format).ok()?;
    let mut lines = text.lines();
    (lines.next()? == FORMAT.1).then_some(())?;
    lines.next()?.strip_prefix("version ")?.parse().ok()
}

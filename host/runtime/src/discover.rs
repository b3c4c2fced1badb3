//! Where backends are found: in the program, then in the directories given, in order.
//!
//! A backend is one file, `NAME.wasm`; the first of a name wins. Finding opens no file,
//! so a broken one disturbs nobody who does not use it. What is not a file that can
//! be a backend is named with the reason.

use crate::builtin::{self, Builtin};
use crate::manifest::is_name;
use rustix::fs::OFlags;
use snapback_core::error::{Error, Kind, Result, show};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Largest component that is read, in bytes; a compiled Python takes 18 MB.
const MAX_LEN: u64 = 256 * 1024 * 1024;

/// Where a backend comes from.
#[derive(Clone)]
pub enum Origin {
    /// From inside the program.
    Builtin(&'static Builtin),
    /// From a file.
    File(PathBuf),
}

impl Origin {
    /// The component's bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self) -> Result<Cow<'static, [u8]>> {
        match self {
            Self::Builtin(builtin) => Ok(Cow::Borrowed(builtin.component)),
            Self::File(path) => read(path).map(Cow::Owned),
        }
    }

    /// In words, for people.
    pub fn words(&self) -> String {
        match self {
            Self::Builtin(_) => "built-in".into(),
            Self::File(path) => show(path),
        }
    }
}

/// The bytes of the file of a component. Whatever else is there, fifo or terminal, is not
/// waited for.
///
/// # Errors
/// `Invalid` when it is no regular file, or too large; when it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |e| Error::io(e, "could not read", path);
    let at_once = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(at_once).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Error::new(Kind::Invalid, format!("{} is not a file", show(path))));
    }
    let mut bytes = Vec::new();
    file.take(MAX_LEN + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_LEN {
        let message = format!("{} is larger than {} MiB", show(path), MAX_LEN >> 20);
        return Err(Error::new(Kind::Invalid, message));
    }
    Ok(bytes)
}

/// A place where a backend is, or what keeps it from being one.
pub struct Found {
    /// Its name: that of the file.
    pub name: String,
    /// Where it is.
    pub origin: Origin,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// All backends, in the order in which they are looked for. Of one name only the first
/// has no problem.
pub fn all(folders: &[PathBuf]) -> Vec<Found> {
    let mut found: Vec<Found> = builtin::ALL
        .iter()
        .map(|b| Found { name: b.name.to_owned(), origin: Origin::Builtin(b), problem: None })
        .collect();
    for folder in folders {
        for entry in WalkDir::new(folder).min_depth(1).max_depth(1).follow_links(true).sort_by_file_name() {
            let (path, is_file) = match &entry {
                Ok(entry) => (entry.path(), entry.file_type().is_file()),
                // A folder that is not there holds nothing.
                Err(e)
                    if e.depth() == 0
                        && e.io_error().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound) =>
                {
                    continue;
                }
                Err(e) => (e.path().unwrap_or(folder), false),
            };
            let unreadable = entry.as_ref().err().map(|_| "it cannot be read".to_owned());
            if unreadable.is_none() && path.extension().is_none_or(|e| e != "wasm") {
                continue;
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let problem = if unreadable.is_some() {
                unreadable
            } else if !is_file {
                Some("it is not a file".into())
            } else if !is_name(&name) {
                Some("its name is not a backend's: lower-case letters, digits and hyphens".into())
            } else {
                let first = found.iter().find(|other| other.name == name && other.problem.is_none());
                first.map(|first| format!("it is hidden by the one of that name: {}", first.origin.words()))
            };
            found.push(Found { name, origin: Origin::File(path.to_owned()), problem });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::fs;

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let scratch = Scratch::new();
        let fifo = scratch.path().join("fifo.wasm");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", scratch.path().join("zero.wasm")).unwrap();
        for name in ["fifo.wasm", "zero.wasm", ""] {
            assert_eq!(read(&scratch.path().join(name)).unwrap_err().kind(), Kind::Invalid, "{name}");
        }
    }

    #[test]
    fn the_first_of_a_name_wins_and_the_rest_is_named() {
        let scratch = Scratch::new();
        let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
        for folder in [&one, &two] {
            fs::create_dir(folder).unwrap();
        }
        for path in [one.join("pg.wasm"), two.join("pg.wasm"), two.join("tree.wasm"), two.join("No.wasm")] {
            fs::write(path, "").unwrap();
        }
        fs::write(two.join("README"), "").unwrap();
        fs::create_dir(two.join("dir.wasm")).unwrap();
        std::os::unix::fs::symlink("gone", two.join("link.wasm")).unwrap();
        let found = all(&[scratch.path().join("missing"), one.clone(), two.clone()]);
        let inside = builtin::ALL.len();
        assert!(
            found[..inside].iter().zip(builtin::ALL).all(|(f, b)| f.name == b.name && f.problem.is_none())
        );
        let lines: Vec<_> = found[inside..]
            .iter()
            .map(|f| (f.name.as_str(), f.problem.as_deref().map(|p| p.split(':').next().unwrap())))
            .collect();
        assert_eq!(
            lines,
            [
                ("pg", None),
                ("No", Some("its name is not a backend's")),
                ("dir", Some("it is not a file")),
                ("link", Some("it cannot be read")),
                ("pg", Some("it is hidden by the one of that name")),
                ("tree", Some("it is hidden by the one of that name")),
            ]
        );
    }
}

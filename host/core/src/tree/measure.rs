//! How much a directory holds, before anything of it is captured.
//!
//! The same selection as a capture, but nothing is opened except directories. Ends as
//! soon as a limit is passed: then it is known to be huge, and where most of it lies
//! so far.

use super::directory::Directory;
use super::scan::{Elsewhere, Next, Scratch, Stat, Walk};
use super::statcache::StatCache;
use crate::backend::{Cancel, Huge};
use crate::disk::size_text;
use crate::error::{Error, Kind, Result, show, show_bytes};
use rustix::fs::FileType;
use std::borrow::Cow;
use std::os::fd::OwnedFd;

/// How many of the largest directories are named.
const LARGEST: usize = 5;

/// What a directory holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Measure {
    /// Entries that are no directories.
    pub files: u64,
    /// Bytes of regular files, holes aside.
    pub bytes: u64,
    /// Whether all was counted, rather than ended at a limit.
    pub complete: bool,
    /// The directories right beneath that hold most: name, files, bytes; most bytes first.
    pub largest: Vec<(Vec<u8>, u64, u64)>,
}

impl Measure {
    /// Whether it is beyond one of the limits.
    fn is_beyond(&self, files: u64, bytes: u64) -> bool {
        self.files > files || self.bytes > bytes
    }

    /// Counts what the directory at `path` beneath the measured one holds itself. The directories
    /// of one part follow each other.
    pub(super) fn add(&mut self, path: &[u8], files: u64, bytes: u64) {
        (self.files, self.bytes) = (self.files + files, self.bytes + bytes);
        if path.is_empty() {
            return;
        }
        let part = path.split(|&b| b == b'/').next().unwrap_or_default();
        match self.largest.last_mut().filter(|(name, ..)| name == part) {
            Some(part) => (part.1, part.2) = (part.1 + files, part.2 + bytes),
            None => self.largest.push((part.to_vec(), files, bytes)),
        }
    }

    /// Ends the counting, which came to the end of all or did not.
    pub(super) fn end(&mut self, complete: bool) {
        self.complete = complete;
        self.largest.sort_by(|a, b| (b.2, b.1, &a.0).cmp(&(a.2, a.1, &b.0)));
        self.largest.truncate(LARGEST);
    }

    /// How much it is and where most of it lies, in words.
    pub fn text(&self) -> String {
        let size = |files: u64, bytes: u64| format!("{files} files, {}", size_text(bytes));
        let more = if self.complete { "" } else { "more than " };
        let all = format!("{more}{}", size(self.files, self.bytes));
        let most = self.largest.iter().filter(|(_, files, _)| *files > 0).take(3);
        let most: Vec<String> = most
            .map(|(name, files, bytes)| format!("{} ({})", show_bytes(name), size(*files, *bytes)))
            .collect();
        match most.is_empty() {
            true => all,
            false => format!("{all}; most of what was counted is in {}", most.join(", ")),
        }
    }

    /// What makes it less: a line for snapback.toml.
    pub fn hint(&self) -> String {
        let largest = self.largest.iter().find(|(_, files, _)| *files > 0);
        let name = largest.map_or(Cow::Borrowed("data"), |(name, ..)| String::from_utf8_lossy(name));
        format!(
            "leave out what need not come back, in snapback.toml: `[snapshot]`, `ignore = [\"/{name}/\"]`; or \
             insist with `--allow-huge`"
        )
    }
}

/// Counts what of `dir` would be captured, up to `limit_files` or `limit_bytes`.
///
/// # Errors
/// `Cancelled`; what kept the directory itself from being read.
pub fn measure(dir: &Directory, limit_files: u64, limit_bytes: u64, cancel: &Cancel) -> Result<Measure> {
    measure_without(dir, None, (limit_files, limit_bytes), cancel)
}

/// Bytes of regular files that a capture with `cache` would read: at most so many are stored.
///
/// # Errors
/// As [`measure`] has them.
pub(super) fn unknown_bytes(dir: &Directory, cache: &StatCache, cancel: &Cancel) -> Result<u64> {
    Ok(measure_without(dir, Some(cache), (u64::MAX, u64::MAX), cancel)?.bytes)
}

/// Counts what `known` does not have as it is.
fn measure_without(
    dir: &Directory,
    known: Option<&StatCache>,
    (limit_files, limit_bytes): (u64, u64),
    cancel: &Cancel,
) -> Result<Measure> {
    let walk = Walk::new(dir, None, Elsewhere::default());
    let mut measure = Measure::default();
    let complete = walk.each_directory(cancel, &mut |place, handle, scratch| {
        let (files, bytes) = count(&walk, handle, scratch, known);
        measure.add(&place.dir.path(), files, bytes);
        Ok(if measure.is_beyond(limit_files, limit_bytes) { Next::End } else { Next::Inside })
    })?;
    measure.end(complete);
    Ok(measure)
}

/// Refuses a directory that holds more than is captured without a question.
///
/// # Errors
/// `TooLarge`, with how much it is and where most of it lies.
pub(super) fn refuse_huge(dir: &Directory, limit: Huge, cancel: &Cancel) -> Result<()> {
    let found = measure(dir, limit.files, limit.bytes, cancel)?;
    if found.complete {
        return Ok(());
    }
    let text = format!("{} is huge: {}", show(dir.path()), found.text());
    Err(Error::new(Kind::TooLarge, text).hint(found.hint()))
}

fn count(walk: &Walk<'_>, handle: &OwnedFd, scratch: &Scratch, known: Option<&StatCache>) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    let record = known.and_then(|known| Stat::of_open(handle).ok().and_then(|s| known.dir(s.dev, s.ino)));
    for selected in scratch.selected.iter().filter(|selected| selected.kind != FileType::Directory) {
        let name = scratch.listing.name(selected.at as usize);
        let cached = record.as_ref().and_then(|record| record.entry(name.to_bytes()));
        match Stat::of(handle, name) {
            Ok(stat) if stat.is_dir() || walk.is_other_mount(&stat) => {}
            Ok(stat) if cached.is_some_and(|cached| cached.matches(&stat)) => {}
            // Holes are neither read nor stored.
            Ok(stat) if stat.is_file() => (files, bytes) = (files + 1, bytes + stat.size.min(stat.allocated)),
            Ok(_) => files += 1,
            Err(_) => {}
        }
    }
    (files, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use crate::tree::Options;

    #[test]
    fn a_hole_does_not_count() {
        let temp = TempDir::new();
        let file = std::fs::File::create(temp.path().join("sparse")).unwrap();
        file.set_len(1 << 30).unwrap();
        let dir = Directory::open(temp.path(), "path", ".", &Options::default()).unwrap();
        let found = measure(&dir, 10, 1 << 20, &Cancel::default()).unwrap();
        assert_eq!((found.files, found.complete), (1, true));
    }

    #[test]
    fn a_directory_is_counted_with_what_is_left_out_left_out() {
        let temp = TempDir::new();
        for (path, size) in [("a/1", 10), ("a/b/2", 20), ("c/3", 5), ("node_modules/4", 1000), ("5", 1)] {
            let path = temp.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![0; size]).unwrap();
        }
        let options = Options::parse(&[("regenerable", "node_modules")]).unwrap();
        let dir = Directory::open(temp.path(), "path", ".", &options).unwrap();
        let cancel = Cancel::default();
        let all = measure(&dir, 100, 1000, &cancel).unwrap();
        let largest = vec![(b"a".to_vec(), 2, 30), (b"c".to_vec(), 1, 5)];
        assert_eq!(all, Measure { files: 4, bytes: 36, complete: true, largest });
        assert!(!measure(&dir, 2, 1000, &cancel).unwrap().complete);
        assert!(!measure(&dir, 100, 15, &cancel).unwrap().complete);
        refuse_huge(&dir, Huge { files: 4, bytes: 36 }, &cancel).unwrap();
        let error = refuse_huge(&dir, Huge { files: 3, bytes: 1000 }, &cancel).unwrap_err();
        assert_eq!(error.kind(), Kind::TooLarge);
        assert!(
            error.message().ends_with("most of what was counted is in a (2 files, 30 B), c (1 files, 5 B)"),
            "{error}"
        );
        assert!(error.hint_text().unwrap().contains("ignore = [\"/a/\"]"));
        cancel.cancel();
        assert!(measure(&dir, 100, 1000, &cancel).is_err());
    }
}

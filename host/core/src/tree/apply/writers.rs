//! Who still has a displaced file open for writing, as far as `/proc` tells: where the
//! system does not let a file be asked (`disk::lease`).
//!
//! What was moved aside cannot be opened by its name any more, so whoever can still
//! write to it has it open now: as a file, or mapped into memory. Processes of others
//! are not looked into; what they write until the end is seen in the file itself.

use crate::disk::Dir;
use std::collections::HashSet;
use std::path::Path;

const WRITES: u32 = 0o200;

/// Those of `files` (device and inode) that some process has open for writing.
pub fn of(files: &HashSet<(u64, u64)>) -> HashSet<(u64, u64)> {
    let mut found = HashSet::new();
    if files.is_empty() {
        return found;
    }
    // Without /proc, or for processes that may not be looked into, nothing is known.
    let Ok(proc) = Dir::open(Path::new("/proc")) else { return found };
    for pid in proc.names().unwrap_or_default() {
        if pid.iter().all(u8::is_ascii_digit)
            && let Ok(process) = proc.child(&pid)
        {
            open_files(&process, files, &mut found);
            mapped_files(&process, files, &mut found);
        }
    }
    found
}

fn open_files(process: &Dir, files: &HashSet<(u64, u64)>, found: &mut HashSet<(u64, u64)>) {
    let Ok(open) = process.child(b"fd") else { return };
    for name in open.names().unwrap_or_default() {
        // The mode of such an entry says how the file was opened.
        if !matches!(open.stat(&name), Ok(Some(stat)) if stat.st_mode & WRITES != 0) {
            continue;
        }
        let flags = rustix::fs::AtFlags::empty();
        if let Ok(stat) = rustix::fs::statat(&open, name.as_slice(), flags) {
            let id = (stat.st_dev, stat.st_ino);
            if files.contains(&id) {
                found.insert(id);
            }
        }
    }
}

fn mapped_files(process: &Dir, files: &HashSet<(u64, u64)>, found: &mut HashSet<(u64, u64)>) {
    /// Longer ones are not looked at to their end.
    const LONGEST: u64 = 16 << 20;
    let Ok(maps) = process.read(b"maps", LONGEST) else { return };
    for line in maps.split(|&b| b == b'\n') {
        let Ok(line) = std::str::from_utf8(line.get(..line.len().min(100)).unwrap_or_default()) else {
            continue;
        };
        let mut fields = line.split_ascii_whitespace();
        let (Some(_), Some(rights), Some(_), Some(dev), Some(ino)) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if !(rights.contains('w') && rights.ends_with('s')) {
            continue;
        }
        let number = |text: &str| u32::from_str_radix(text, 16).ok();
        if let Some((major, minor)) = dev.split_once(':')
            && let (Some(major), Some(minor), Ok(ino)) = (number(major), number(minor), ino.parse())
        {
            let id = (rustix::fs::makedev(major, minor), ino);
            if files.contains(&id) {
                found.insert(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn an_open_handle_is_found_and_a_closed_one_is_not() {
        let path = std::env::temp_dir().join(format!("snapback-writers-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let stat = file.metadata().unwrap();
        let id = HashSet::from([(stat.dev(), stat.ino())]);
        assert_eq!(of(&id), id);
        drop(file);
        let reader = std::fs::File::open(&path).unwrap();
        assert!(of(&id).is_empty());
        drop(reader);
        std::fs::remove_file(&path).unwrap();
    }
}

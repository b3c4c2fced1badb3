//! What a directory holds, told by find, sha256sum, getfattr and getfacl.
//!
//! The store at the top is not part of it; everything else is. Where getfattr or
//! getfacl is missing that column is empty, and said.

use crate::have;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// find's letter: f, d, l, p, s, c, b.
    pub kind: u8,
    /// Permissions, octal.
    pub mode: String,
    /// Numbers of owner and group.
    pub owner: String,
    /// Bytes of a file; empty for the rest.
    pub size: String,
    /// Seconds with fraction.
    pub mtime: String,
    /// Where a link points to.
    pub link: Vec<u8>,
    /// Device and inode.
    pub inode: String,
    /// How many names it has.
    pub names: String,
    /// SHA-256 of a file, where it could be read.
    pub hash: String,
    /// Extended attributes and ACLs.
    pub attributes: BTreeSet<String>,
}

/// Everything beneath a directory, by path; the directory itself has the empty path, and
/// no mtime: making a store in it changes that.
#[derive(Debug, Clone, Default)]
pub struct Record(pub BTreeMap<Vec<u8>, Entry>);

/// All that is not in the store at the top.
const WALK: [&str; 6] = [".", "-path", "./.snapback", "-prune", "-o", "-type"];

impl Record {
    /// Takes the record of `dir`.
    ///
    /// # Panics
    /// When find cannot be run.
    pub fn take(dir: &Path) -> Self {
        let format = "%P\\0%y\\0%m\\0%U:%G\\0%s\\0%T@\\0%l\\0%D:%i\\0%n\\0";
        let mut find = Command::new("find");
        find.current_dir(dir).args(&WALK[..5]).args(["-printf", format]);
        let listing = output(&mut find);
        let fields: Vec<&[u8]> = listing.split(|&b| b == 0).collect();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut entries = BTreeMap::new();
        for row in fields.chunks_exact(9) {
            let kind = row[1].first().copied().unwrap_or(b'?');
            let entry = Entry {
                kind,
                mode: text(row[2]),
                owner: text(row[3]),
                size: if kind == b'f' { text(row[4]) } else { String::new() },
                mtime: text(row[5]),
                link: row[6].to_vec(),
                inode: text(row[7]),
                names: if kind == b'd' { String::new() } else { text(row[8]) },
                hash: String::new(),
                attributes: BTreeSet::new(),
            };
            entries.insert(row[0].to_vec(), entry);
        }
        if let Some(top) = entries.get_mut(&b""[..]) {
            top.mtime.clear();
        }
        let mut record = Self(entries);
        record.add_hashes(dir);
        record.add_attributes(dir);
        record
    }

    /// How many regular files it holds.
    pub fn files(&self) -> usize {
        self.0.values().filter(|e| e.kind == b'f').count()
    }

    /// One entry.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn entry(&self, path: &str) -> &Entry {
        self.0.get(path.as_bytes()).unwrap_or_else(|| panic!("the record has no {path}"))
    }

    /// The record without what lies at or beneath `paths`.
    #[must_use]
    pub fn without(&self, paths: &[&str]) -> Self {
        let inside = |path: &[u8]| paths.iter().any(|p| Path::new(OsStr::from_bytes(path)).starts_with(p));
        Self(self.0.iter().filter(|(path, _)| !inside(path)).map(|(p, e)| (p.clone(), e.clone())).collect())
    }

    /// Whether `now` tells the same state, times and inodes aside.
    pub fn is_like(&self, now: &Self) -> bool {
        differences(self, now, &|_| true).is_empty()
    }

    fn add_hashes(&mut self, dir: &Path) {
        let mut command = Command::new("sh");
        command.current_dir(dir).args(["-c", "find \"$@\" f -print0 | xargs -0 -r sha256sum -z --", "sh"]);
        for line in output(command.args(WALK)).split(|&b| b == 0) {
            // "hash, two spaces, ./path"
            if let Some(entry) = line.get(68..).and_then(|path| self.0.get_mut(path)) {
                entry.hash = String::from_utf8_lossy(&line[..64]).into_owned();
            }
        }
    }

    fn add_attributes(&mut self, dir: &Path) {
        for tool in ["getfattr -h -d -m - -e hex", "getfacl -P -n -s -p"] {
            if !have(tool.split(' ').next().unwrap_or_default()) {
                continue;
            }
            // getfacl follows links even when told not to: links have no ACL.
            let script = format!("find \"$@\" d,f,p,s -print0 | xargs -0 -r {tool} --");
            let mut command = Command::new("sh");
            let text = output(command.current_dir(dir).args(["-c", &script, "sh"]).args(WALK));
            let mut path: Option<Vec<u8>> = None;
            for line in text.split(|&b| b == b'\n') {
                match line.strip_prefix(b"# file: ") {
                    Some(name) => {
                        let name = unescape(name);
                        let name = name.strip_prefix(b"./").unwrap_or(&name);
                        path = Some(if name == b"." { Vec::new() } else { name.to_vec() });
                    }
                    None if line.is_empty() || line.starts_with(b"# ") => {}
                    None => {
                        let entry = path.as_ref().and_then(|path| self.0.get_mut(path));
                        let entry = entry.expect("attributes of something that find found");
                        entry.attributes.insert(String::from_utf8_lossy(line).into_owned());
                    }
                }
            }
        }
    }

    /// The names that are one file, for all that have several.
    fn link_groups(&self) -> BTreeSet<Vec<&[u8]>> {
        let mut groups: BTreeMap<&str, Vec<&[u8]>> = BTreeMap::new();
        for (path, entry) in &self.0 {
            if entry.kind != b'd' && entry.names != "1" {
                groups.entry(&entry.inode).or_default().push(path);
            }
        }
        groups.into_values().collect()
    }
}

/// Asserts that two records tell the same state, times included, inodes aside.
///
/// # Panics
/// When they do not.
#[track_caller]
pub fn assert_same(want: &Record, now: &Record) {
    report(&differences(want, now, &|_| false));
}

/// Asserts that one restore of `want` onto `before` gave `now`: see [`Restores`].
///
/// # Panics
/// When it did not.
#[track_caller]
pub fn assert_back(want: &Record, before: &Record, now: &Record) {
    Restores::default().assert_back(want, before, now);
}

/// A chain of restores: a regular file whose bytes one of them had to write has got the
/// time of that, so its mtime is no longer that of the record.
#[derive(Default)]
pub struct Restores {
    written: BTreeSet<Vec<u8>>,
}

impl Restores {
    /// Asserts that a restore of `want` onto `before` gave `now`: all is as in `want`, the
    /// mtime of what was written aside; and what did not differ was not touched: it is
    /// the same inode.
    ///
    /// # Panics
    /// When it is not so.
    #[track_caller]
    pub fn assert_back(&mut self, want: &Record, before: &Record, now: &Record) {
        let files = || want.0.iter().filter(|(_, want)| want.kind == b'f');
        let differs_in_bytes = |path: &Vec<u8>, want: &Entry| {
            before.0.get(path).is_none_or(|b| b.kind != b'f' || b.hash != want.hash)
        };
        let written = files().filter(|(path, want)| differs_in_bytes(path, want));
        // All names of a file have its one time.
        let written: BTreeSet<&str> = written.map(|(_, want)| want.inode.as_str()).collect();
        let names = files().filter(|(_, want)| written.contains(want.inode.as_str()));
        self.written.extend(names.map(|(path, _)| path.clone()));
        let mut wrong = differences(want, now, &|path| self.written.contains(path));
        for (path, want) in &want.0 {
            let (Some(before), Some(now)) = (before.0.get(path), now.0.get(path)) else { continue };
            let was_right = differs(want, before, self.written.contains(path)).is_empty();
            if was_right && before.inode != now.inode {
                wrong.push(format!("{}: was right and was replaced all the same", show(path)));
            }
        }
        report(&wrong);
    }
}

fn differences(want: &Record, now: &Record, any_time: &dyn Fn(&[u8]) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, entry) in &want.0 {
        match now.0.get(path) {
            None => wrong.push(format!("{}: missing", show(path))),
            Some(found) => wrong
                .extend(differs(entry, found, any_time(path)).iter().map(|d| format!("{}: {d}", show(path)))),
        }
    }
    let extra = now.0.keys().filter(|path| !want.0.contains_key(*path));
    wrong.extend(extra.map(|path| format!("{}: should not be there", show(path))));
    if want.link_groups() != now.link_groups() {
        wrong.push("other names are one file".to_owned());
    }
    wrong
}

fn differs(want: &Entry, now: &Entry, any_time: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, want: &dyn std::fmt::Debug, now: &dyn std::fmt::Debug| {
        let (want, now) = (format!("{want:?}"), format!("{now:?}"));
        if want != now {
            wrong.push(format!("{what} is {now}, should be {want}"));
        }
    };
    compare("kind", &char::from(want.kind), &char::from(now.kind));
    compare("mode", &want.mode, &now.mode);
    compare("owner", &want.owner, &now.owner);
    compare("size", &want.size, &now.size);
    compare("link", &show(&want.link), &show(&now.link));
    compare("number of names", &want.names, &now.names);
    compare("SHA-256", &want.hash, &now.hash);
    compare("attributes", &want.attributes, &now.attributes);
    if !any_time {
        compare("mtime", &want.mtime, &now.mtime);
    }
    wrong
}

#[track_caller]
fn report(wrong: &[String]) {
    let first = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} differences, the first of them:\n{first}", wrong.len());
}

fn show(path: &[u8]) -> String {
    if path.is_empty() { ".".to_owned() } else { path.escape_ascii().to_string() }
}

/// Runs a tool for what it prints; what it could not read it says on standard error.
fn output(command: &mut Command) -> Vec<u8> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).env("LC_ALL", "C").output();
    output.unwrap_or_else(|e| panic!("could not run {command:?}: {e}")).stdout
}

/// A name as getfattr and getfacl print it: `\ooo` for what is not plain, and getfacl
/// `\\` for a backslash.
fn unescape(name: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), name);
    while let Some((&byte, after)) = rest.split_first() {
        let octal = || u8::from_str_radix(std::str::from_utf8(after.get(..3)?).ok()?, 8).ok();
        let (value, len) = match (byte, after.first()) {
            (b'\\', Some(b'\\')) => (b'\\', 1),
            (b'\\', _) => octal().map_or((byte, 0), |value| (value, 3)),
            _ => (byte, 0),
        };
        out.push(value);
        rest = &after[len..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base;
    use std::fs;

    #[test]
    fn a_record_sees_every_kind_of_difference() {
        let dir = base::fresh("record");
        fs::create_dir_all(dir.join("d")).unwrap();
        for name in ["a", "b c", "d/new\nline", "d/back\\slash"] {
            fs::write(dir.join(name), name).unwrap();
        }
        let before = Record::take(&dir);
        assert_eq!(before.files(), 4);
        assert_same(&before, &Record::take(&dir));
        assert_eq!(before.entry("a").hash.len(), 64);
        for script in [
            "touch a",
            "chmod 600 a",
            "printf x > a",
            "rm a",
            "touch e",
            "ln a e",
            "rm a; ln -s x a",
            "setfattr -n user.x -v 1 'd/new\nline'",
            "setfacl -m u:1:r 'd/back\\slash'",
            "chmod 700 d",
            "rm a; mkdir a",
        ] {
            let copy = base::fresh("copy");
            assert!(Command::new("cp").arg("-a").args([&dir, &copy]).status().unwrap().success());
            let same = Record::take(&copy);
            assert!(differences(&before, &same, &|_| false).is_empty());
            let done = Command::new("sh").current_dir(&copy).args(["-ec", script]).status().unwrap();
            assert!(done.success(), "{script}");
            assert!(!differences(&before, &Record::take(&copy), &|_| false).is_empty(), "{script}");
            base::remove(&copy);
        }
        base::remove(&dir);
    }
}

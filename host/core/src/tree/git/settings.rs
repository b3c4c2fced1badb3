//! Git's settings, as far as they say what is ignored: `core.excludesFile`.
//!
//! Read from the files that git reads, in its order and its form, `include` with it. Which
//! conditions of an `includeIf` hold is not asked: where one could name an excludes file, and
//! where a file of settings cannot be read, none is known, and none is read. So what is said
//! to be ignored is ignored by git. A value that git would refuse says nothing.

use super::Located;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files of settings that include each other go no deeper, as in git.
const DEEPEST: usize = 10;
/// So many files of settings are read for one repository: each may include many others.
const MOST: usize = 100;
/// A file of settings or of patterns is not larger than this, in bytes.
const LARGEST: u64 = 1 << 20;

/// Where this user's git has its settings: lent, since the environment is not read here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitUser {
    /// The files of settings, in the order in which git reads them.
    pub settings: Vec<PathBuf>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// The excludes file that counts where no setting names one.
    pub excludes: Option<PathBuf>,
    /// The environment has settings of its own that may name an excludes file.
    pub overridden: bool,
}

/// What settings say about the excludes file.
#[derive(Debug, Default, PartialEq, Eq)]
enum Named {
    /// Nothing: it is where git looks by itself.
    #[default]
    Unsaid,
    /// It is this.
    As(Vec<u8>),
    /// It may be another.
    InDoubt,
}

impl GitUser {
    /// The excludes file of the repository `located`, whose work tree begins at `top`; none
    /// when there is none, when it cannot be read, or when it is not known which it is.
    pub fn excludes(&self, located: &Located, top: impl AsFd) -> Option<Vec<u8>> {
        let (mut named, mut looked) = (Named::default(), 0);
        for file in &self.settings {
            self.look(CWD, file, (0, &mut looked), &mut named);
        }
        let config = Path::new("config");
        self.look(located.common(), config, (0, &mut looked), &mut named);
        if read(located.common(), config, LARGEST).is_some_and(|text| is_for_each_tree(&text)) {
            self.look(located.own(), Path::new("config.worktree"), (0, &mut looked), &mut named);
        }
        match named {
            _ if self.overridden => None,
            Named::Unsaid => read(CWD, self.excludes.as_ref()?, LARGEST),
            Named::As(path) => read(top, &self.path(&path)?, LARGEST),
            Named::InDoubt => None,
        }
    }

    /// Finds the last value in `file`, which is relative to `at`, and in what it includes. It is
    /// so deep in others, and so many were `looked` at before.
    fn look(&self, at: impl AsFd, file: &Path, (depth, looked): (usize, &mut usize), named: &mut Named) {
        let at = at.as_fd();
        *looked += 1;
        let text = if *looked <= MOST { read(at, file, LARGEST) } else { None };
        let Some(text) = text else {
            let stat = rustix::fs::statat(at, file, AtFlags::empty());
            if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile) {
                *named = Named::InDoubt;
            }
            return;
        };
        let above = file.parent().unwrap_or(Path::new(""));
        let mut include = |value: &[u8], named: &mut Named| match self.path(value) {
            Some(path) if depth < DEEPEST => {
                self.look(at, &above.join(path), (depth + 1, &mut *looked), named);
            }
            Some(_) => {}
            None => *named = Named::InDoubt,
        };
        each(&text, &mut |section, key, value| match (section, key, value) {
            (b"core", b"excludesfile", Some(value)) => *named = Named::As(value.to_vec()),
            (b"include", b"path", Some(value)) => include(value, named),
            (section, b"path", Some(value)) if section.starts_with(b"includeif") => {
                let mut there = Named::default();
                include(value, &mut there);
                if there != Named::Unsaid {
                    *named = Named::InDoubt;
                }
            }
            _ => {}
        });
    }

    /// The path that a value stands for.
    fn path(&self, value: &[u8]) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(value));
        match value {
            [] => None,
            b"~" => self.home.clone(),
            [b'~', b'/', rest @ ..] => Some(self.home.as_ref()?.join(OsStr::from_bytes(rest))),
            // Another user's home, or where git was installed.
            [b'~', ..] | [b'%', b'(', ..] => None,
            _ => Some(path.to_owned()),
        }
    }
}

/// Whether a repository with these settings has others for each of its work trees.
fn is_for_each_tree(text: &[u8]) -> bool {
    let mut on = false;
    each(text, &mut |section, key, value| {
        if (section, key) == (b"extensions", b"worktreeconfig") {
            let value = value.map(<[u8]>::to_ascii_lowercase);
            on = !matches!(value.as_deref(), Some(b"" | b"false" | b"no" | b"off" | b"0"));
        }
    });
    on
}

/// The bytes of the file `path`, links followed: it is the user's, who may keep it elsewhere.
pub fn read(at: impl AsFd, path: &Path, largest: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::openat(at, path, flags, Mode::empty()).ok()?);
    let is_small = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= largest);
    let mut bytes = Vec::new();
    file.take(is_small?.len() + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// What is done with a setting.
pub(crate) type Tell<'t> = &'t mut dyn FnMut(&[u8], &[u8], Option<&[u8]>);

/// Tells each setting in `text`: section and key in small letters, value; none for a key
/// alone, which means true. Ends where git would refuse the file.
pub(crate) fn each(text: &[u8], tell: Tell<'_>) {
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut section: Vec<u8> = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        match rest {
            [] => return,
            [b'#' | b';', ..] => rest = line(rest).1,
            [b'[', after @ ..] => {
                let mut quoted = false;
                let end = after.iter().position(|&b| {
                    quoted ^= b == b'"';
                    b == b'\n' || (b == b']' && !quoted)
                });
                let Some(end) = end.filter(|&at| after[at] == b']') else { return };
                section = after[..end].to_ascii_lowercase();
                rest = &after[end + 1..];
            }
            _ => {
                let is_key = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
                let end = rest.iter().position(|b| !is_key(b)).unwrap_or(rest.len());
                if end == 0 {
                    return;
                }
                let key = rest[..end].to_ascii_lowercase();
                let blank = rest[end..].iter().position(|b| !matches!(b, b' ' | b'\t'));
                rest = &rest[end + blank.unwrap_or(rest.len() - end)..];
                if let [b'=', after @ ..] = rest {
                    let Some((value, after)) = value(after) else { return };
                    tell(&section, &key, Some(&value));
                    rest = after;
                } else {
                    tell(&section, &key, None);
                    rest = line(rest).1;
                }
            }
        }
    }
}

fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&b| b == b'\n').unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

/// A value, and what follows its line; none when git refuses it.
fn value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut value, mut kept, mut quoted, mut at) = (Vec::new(), 0, false, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'\n' if quoted => return None,
            b'\n' => break,
            b'#' | b';' if !quoted => {
                at += line(&text[at..]).0.len();
                continue;
            }
            b'"' => quoted = !quoted,
            b' ' | b'\t' | b'\r' if !quoted => {
                if !value.is_empty() {
                    value.push(byte);
                }
                continue;
            }
            b'\\' => {
                let escaped = *text.get(at)?;
                at += 1;
                match escaped {
                    b'\n' => continue,
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'\\' | b'"' => value.push(escaped),
                    _ => return None,
                }
            }
            byte => value.push(byte),
        }
        kept = value.len();
    }
    // Blanks at the end do not count.
    value.truncate(kept);
    (!quoted).then(|| (value, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use std::process::Command;

    fn ours(dir: &Path) -> Named {
        let mut named = Named::default();
        GitUser::default().look(CWD, &dir.join("config"), (0, &mut 0), &mut named);
        named
    }

    #[test]
    fn the_value_is_the_one_that_git_finds() {
        let temp = TempDir::new();
        std::fs::write(temp.path().join("more"), "[core]\nexcludesfile = from more\n").unwrap();
        for text in [
            "[core]\n\texcludesFile = ~/x\n",
            "[core] excludesfile=a b ; comment\n",
            "[CORE]\nEXCLUDESFILE = \"a ; b\" c # d\n",
            "[core]\nexcludesfile = one\n[other]\nexcludesfile = two\n",
            "[core]\nexcludesfile = one\nexcludesfile = two\n",
            "[core \"sub\"]\nexcludesfile = no\n[core]\nbare = false\nexcludesfile = yes\n",
            "[core]\nexcludesfile = a\\\n  b\\tc\\\\\n",
            "[core]\nexcludesfile = \"a  \"  \t \n",
            "[core]\nexcludesfile = tail   \t\r\n",
            "[core]\nexcludesfile =\n",
            "; [core]\n# excludesfile = no\n",
            "[core]\nfilemode\nexcludesfile = after a key alone\n",
            "[include]\npath = more\n",
            "[core]\nexcludesfile = before\n[include]\npath = more\n",
            "[include]\npath = more\n[core]\nexcludesfile = after\n",
            "[include]\npath = missing\n[core]\nexcludesfile = there\n",
            "[a \"]\"]\nb = c\n[core]\nexcludesfile = behind\n",
        ] {
            std::fs::write(temp.path().join("config"), text).unwrap();
            let mut git = Command::new("git");
            git.args(["config", "--includes", "-z", "--file"]).arg(temp.path().join("config"));
            let Ok(theirs) = git.args(["--get", "core.excludesfile"]).output() else { return };
            let theirs = theirs.stdout.strip_suffix(b"\0");
            let theirs = theirs.map_or(Named::Unsaid, |value| Named::As(value.to_vec()));
            assert_eq!(ours(temp.path()), theirs, "{text:?}");
        }
    }

    #[test]
    fn a_path_is_meant_from_the_home_or_from_the_top() {
        let user = GitUser { home: Some("/home/me".into()), ..GitUser::default() };
        for (value, path) in [
            ("~/ignore", Some("/home/me/ignore")),
            ("~", Some("/home/me")),
            ("/etc/ignore", Some("/etc/ignore")),
            ("ignore", Some("ignore")),
            ("~other/ignore", None),
            ("%(prefix)/ignore", None),
            ("", None),
        ] {
            assert_eq!(user.path(value.as_bytes()), path.map(PathBuf::from), "{value}");
        }
    }

    #[test]
    fn hostile_settings_end() {
        let temp = TempDir::new();
        let write = |text: &[u8]| std::fs::write(temp.path().join("config"), text).unwrap();
        write(b"[include]\npath = config\n[core]\nexcludesfile = x\n");
        assert_eq!(ours(temp.path()), Named::As(b"x".to_vec()));
        write(&b"[include]\npath = config\n".repeat(1000));
        assert_eq!(ours(temp.path()), Named::InDoubt);
        for text in [
            &b"[core"[..],
            b"[core]\nexcludesfile = \"x",
            b"[core]\n=",
            b"\\",
            b"[core]\nexcludesfile = \\q\n",
        ] {
            write(text);
            assert_eq!(ours(temp.path()), Named::Unsaid);
        }
        std::os::unix::fs::symlink("/dev/zero", temp.path().join("zero")).unwrap();
        assert_eq!(read(CWD, &temp.path().join("zero"), 10), None);
    }
}

//! What is staged in a repository: the entries of its index (mode, object, stage, path), and
//! whatever names all of them again. What else the index holds, such as times, says nothing.
//!
//! An index that is too large, damaged, or shares its entries with another says nothing.

use super::index::{HASHES, Item, LARGEST, Tail, each, hex};
use super::look::LARGEST_FILE;
use crate::object::{Key, ObjectKind};
use crate::tree::scan::read_small;
use std::os::fd::BorrowedFd;

/// How the line of an entry begins that stands for a directory.
const DIRECTORY: &[u8] = b"040000 ";

/// What is staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Of all entries, in hexadecimal.
    pub hash: String,
    /// What names all entries.
    pub by: By,
    /// What entries are marked as, each recorded in a list.
    pub marks: Vec<Mark>,
}

/// What an entry can be marked as besides: no tree says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Only meant to be added.
    Intent,
    /// Not to be in the work tree.
    Skipped,
    /// Taken for unchanged.
    Assumed,
}

impl Mark {
    /// All of them, in the order in which they are made again.
    pub(super) const ALL: [Self; 3] = [Self::Intent, Self::Skipped, Self::Assumed];

    /// The file of the record that lists the paths.
    pub fn file(self) -> &'static str {
        match self {
            Self::Intent => "intent-to-add",
            Self::Skipped => "skip-worktree",
            Self::Assumed => "assume-unchanged",
        }
    }

    /// The words for git that mark the paths that it reads.
    pub fn command(self) -> &'static str {
        match self {
            Self::Intent => "--literal-pathspecs add -f -N --pathspec-from-file=- --pathspec-file-nul",
            Self::Skipped => "update-index -z --skip-worktree --stdin",
            Self::Assumed => "update-index -z --assume-unchanged --stdin",
        }
    }

    fn is_of(self, item: &Item<'_>) -> bool {
        match self {
            Self::Intent => item.intent,
            Self::Skipped => item.skipped,
            Self::Assumed => item.assumed,
        }
    }
}

/// What an index says.
#[derive(Default)]
struct Listed {
    /// The entries, as `git ls-files --stage -z` lists them.
    entries: Vec<u8>,
    /// The tree of all.
    tree: Option<String>,
    /// The paths of each [`Mark::ALL`], each with a zero behind it.
    marked: [Vec<u8>; 3],
}

/// What names all that is staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// Nothing is staged, nor tracked.
    Nothing,
    /// The tree that git wrote of it, in hexadecimal.
    Tree(String),
    /// The list of entries, which was recorded.
    List,
    /// Nothing that was recorded: the list is too long, or not one of files.
    Unnamed,
}

impl Staged {
    /// What is staged in the repository whose own directory is `git`, as files to be recorded:
    /// name, content.
    pub(in crate::tree) fn files(git: BorrowedFd<'_>) -> Vec<(&'static str, Vec<u8>)> {
        let index = read_small(git, "index", LARGEST);
        let (hash, more) = match index.as_deref().and_then(list) {
            Some(listed) => (hash_of(&listed.entries), named(listed)),
            None => (String::new(), Vec::new()),
        };
        std::iter::once(("hash", format!("{hash}\n").into_bytes())).chain(more).collect()
    }

    /// What is staged where there is no index.
    pub(in crate::tree) fn nothing() -> Vec<(&'static str, Vec<u8>)> {
        vec![("hash", format!("{}\n", hash_of(b"")).into_bytes())]
    }

    /// What was recorded: the `hash`, the `tree`, whether the list was, and lists of `marks`.
    pub(super) fn of(hash: &[u8], tree: Option<String>, listed: bool, marks: Vec<Mark>) -> Option<Self> {
        let hash = String::from_utf8(hash.trim_ascii().to_vec()).ok().filter(|hash| !hash.is_empty())?;
        let by = match tree {
            _ if hash == hash_of(b"") => By::Nothing,
            Some(tree) => By::Tree(tree),
            None if listed => By::List,
            None => By::Unnamed,
        };
        Some(Self { hash, by, marks })
    }
}

fn hash_of(list: &[u8]) -> String {
    hex(Key::of(ObjectKind::Opaque, list).hash())
}

/// What `index` says.
fn list(index: &[u8]) -> Option<Listed> {
    // Nothing is written into an index before there is something to stage.
    if index.is_empty() {
        return Some(Default::default());
    }
    HASHES.into_iter().find_map(|hash| {
        let Listed { mut entries, mut marked, .. } = Listed::default();
        let tail = each(index, hash, &mut |item| {
            let Item { mode, stage, path, .. } = item;
            let named = |list: &mut Vec<u8>| {
                list.extend_from_slice(path);
                list.push(0);
            };
            if !item.intent {
                entries.extend_from_slice(format!("{mode:06o} {} {stage}\t", hex(item.object)).as_bytes());
                named(&mut entries);
            }
            let marks = Mark::ALL.into_iter().zip(&mut marked);
            marks.filter(|(mark, _)| mark.is_of(item)).for_each(|(_, list)| named(list));
            entries.len() as u64 <= 2 * LARGEST
        });
        match tail? {
            Tail { shared: Some(_), .. } => None,
            Tail { tree, .. } => Some(Listed { entries, tree: tree.map(|tree| hex(&tree)), marked }),
        }
    })
}

/// The files that name all entries again, and what they are marked as. What is too much of that
/// to be recorded makes the entries ones that nothing names.
fn named(listed: Listed) -> Vec<(&'static str, Vec<u8>)> {
    let Listed { entries, tree, marked } = listed;
    let of_files = || !entries.split(|&b| b == 0).any(|line| line.starts_with(DIRECTORY));
    let fits = |list: &Vec<u8>| list.len() as u64 <= LARGEST_FILE;
    let marks = Mark::ALL.map(Mark::file).into_iter().zip(marked).filter(|(_, list)| !list.is_empty());
    let marks: Vec<_> = marks.collect();
    let named = match tree {
        _ if !marks.iter().all(|(_, list)| fits(list)) => return Vec::new(),
        Some(tree) => Some(("tree", format!("{tree}\n").into_bytes())),
        None if entries.is_empty() => None,
        None if !fits(&entries) || !of_files() => return Vec::new(),
        None => Some(("entries", entries)),
    };
    named.into_iter().chain(marks).collect()
}

/// [`Staged::files`] of an index, for whatever bytes.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn staged_in(index: &[u8]) -> Option<usize> {
    list(index).map(|listed| listed.entries.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::process::Command;

    fn sh(dir: &Path, script: &str) -> Vec<u8> {
        let mut sh = Command::new("sh");
        sh.current_dir(dir).env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            sh.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        let done = sh.args(["-ec", script]).output().unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
        done.stdout
    }

    fn staged(dir: &Path) -> (Option<Staged>, Vec<(&'static str, Vec<u8>)>) {
        let files = Staged::files(File::open(dir.join(".git")).unwrap().as_fd());
        let text = |name: &str| files.iter().find(|file| file.0 == name).map(|file| file.1.clone());
        let tree = text("tree").map(|tree| String::from_utf8(tree).unwrap().trim().to_owned());
        let marks = Mark::ALL.into_iter().filter(|mark| text(mark.file()).is_some()).collect();
        (Staged::of(&text("hash").unwrap(), tree, text("entries").is_some(), marks), files)
    }

    #[test]
    fn what_is_staged_is_what_git_lists_and_how_it_is_named() {
        if Command::new("git").arg("--version").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "git is needed for this test");
            return;
        }
        for init in ["git init -q .", "git init -q --object-format=sha256 ."] {
            let temp = TempDir::new();
            let (dir, by) = (temp.path(), |dir: &Path| staged(dir).0.unwrap().by);
            let is_listed = |dir: &Path| {
                let (staged, files) = staged(dir);
                assert_eq!(staged.unwrap().by, By::List);
                assert_eq!(files[1], ("entries", sh(dir, "git ls-files --stage -z")));
            };
            sh(
                dir,
                &format!(
                    "{init}; git config core.autocrlf false; mkdir d; echo 1 > d/f; echo 1 > \"$(printf 'o\\nd')\""
                ),
            );
            sh(dir, "git add d; git rm -q --cached -r d");
            assert_eq!(by(dir), By::Nothing);
            sh(dir, "git add .");
            is_listed(dir);
            sh(dir, "git commit -q -m one");
            let tree = |of: &str| {
                By::Tree(String::from_utf8(sh(dir, &format!("git rev-parse {of}"))).unwrap().trim().into())
            };
            let (first, before) = (staged(dir).0.unwrap(), tree("HEAD^{tree}"));
            assert_eq!(first.by, before);
            // Times say nothing, nor does what is only meant to be added.
            sh(dir, "touch d/f; git status; git update-index --index-version 4");
            assert_eq!(staged(dir).0.unwrap(), first);
            sh(dir, "echo 2 > n; git add -N n");
            assert_eq!(staged(dir).0.unwrap().hash, first.hash);
            assert_eq!(staged(dir).1.last(), Some(&("intent-to-add", b"n\0".to_vec())));
            sh(dir, "git add n");
            is_listed(dir);
            sh(dir, "git update-index --skip-worktree d/f; git update-index --assume-unchanged n");
            is_listed(dir);
            let marks = [("skip-worktree", b"d/f\0".to_vec()), ("assume-unchanged", b"n\0".to_vec())];
            assert_eq!(staged(dir).1[2..], marks);
            // A commit that a hook refused, and one that is taken back.
            let hash = staged(dir).0.unwrap().hash;
            sh(
                dir,
                "git update-index --no-skip-worktree d/f; git update-index --no-assume-unchanged n; printf '#!/bin/sh\\nexit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; ! git commit -q -m two",
            );
            assert_eq!(staged(dir).0.unwrap(), Staged { hash, by: tree("$(git write-tree)"), marks: vec![] });
            sh(dir, "git rm -q --cached n");
            assert_eq!(staged(dir).0.unwrap().hash, first.hash);
            // A conflict.
            sh(
                dir,
                "rm .git/hooks/pre-commit; git switch -q -c side; echo 3 > d/f; git commit -q -a -m 3; git switch -q -; echo 4 > d/f; git commit -q -a -m 4; ! git merge -q side",
            );
            is_listed(dir);
            sh(dir, "git reset -q --hard; git update-index --split-index");
            assert_eq!(staged(dir).0, None, "what it shares is not looked at");
        }
    }

    #[test]
    fn what_is_no_index_says_nothing() {
        let temp = TempDir::new();
        let of = |bytes: &[u8]| {
            std::fs::create_dir_all(temp.path().join(".git")).unwrap();
            std::fs::write(temp.path().join(".git/index"), bytes).unwrap();
            staged(temp.path()).0
        };
        let mut many = b"DIRC\0\0\0\x02\xff\xff\xff\xff".to_vec();
        many.resize(500, 0);
        let trees = [&b"DIRC\0\0\0\x02\0\0\0\0TREE\xff\xff\xff\xff"[..], &[0; 60]].concat();
        for bytes in [&b"DIRC"[..], b"DIRC\0\0\0\x09\0\0\0\x01", &many, &many[..60], &trees] {
            assert_eq!(of(bytes), None, "{bytes:?}");
        }
        assert_eq!(of(b"").unwrap().by, By::Nothing);
        assert_eq!(Staged::of(&Staged::nothing()[0].1, None, false, vec![]), of(b""));
    }
}

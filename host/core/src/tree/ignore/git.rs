//! Whether git ignores a directory: its `.gitignore` files, `info/exclude`, and the
//! user's own excludes file, in git's order.
//!
//! Asked only about the few directories whose name a rule mentions, so everything
//! here is read when it is first needed. Nothing of git's is ever written or locked,
//! and git is not started. As for `git check-ignore`, a directory in which something is
//! tracked is not ignored, whatever patterns say.

use super::{LARGEST_FILE, Patterns};
use crate::tree::git::{GitUser, Located, Tracked, locate, read};
use crate::tree::scan::read_small;
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A repository, seen from its work tree.
#[derive(Debug, Default)]
pub struct Repository {
    /// `info/exclude`.
    exclude: Patterns,
    /// The excludes file that its settings, or those of the user, name.
    excludes: Patterns,
    tracked: OnceLock<Tracked>,
}

impl Repository {
    /// The repository whose work tree begins at `dir`; `None` when there is none, or
    /// when what is called `.git` there is not one.
    pub fn at(dir: impl AsFd, user: &GitUser) -> Option<Self> {
        locate(&dir).map(|located| Self::of(&located, dir, user))
    }

    fn of(located: &Located, dir: impl AsFd, user: &GitUser) -> Self {
        let patterns = |file: Option<Vec<u8>>| file.map(|file| Patterns::parse(&file)).unwrap_or_default();
        Self {
            exclude: patterns(read(located.common(), Path::new("info/exclude"), LARGEST_FILE)),
            excludes: patterns(user.excludes(located, dir)),
            tracked: OnceLock::new(),
        }
    }

    /// Whether something in the directory `names[0]/names[1]/...` of the work tree that
    /// begins at `dir` is tracked.
    pub fn tracks(&self, dir: impl AsFd, names: &[&[u8]]) -> bool {
        let tracked = || locate(dir).map(|located| Tracked::of(located.own())).unwrap_or_default();
        self.tracked.get_or_init(tracked).is_any_in(&names.join(&b'/'))
    }

    /// Whether git ignores `names[0]/names[1]/...` of this work tree, which is a
    /// `directory` or not. `ignores[i]` is the `.gitignore` of the directory that holds
    /// `names[i]`.
    pub fn ignores(&self, names: &[&[u8]], directory: bool, ignores: &[&Patterns]) -> bool {
        let mut path: Vec<u8> = Vec::new();
        let mut starts = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            if !path.is_empty() {
                path.push(b'/');
            }
            starts.push(path.len());
            path.extend_from_slice(name);
            let nearest_first = starts.iter().zip(ignores).rev().map(|(&start, list)| (start, *list));
            let all = nearest_first.chain([(0, &self.exclude), (0, &self.excludes)]);
            // What lies in an ignored directory is ignored, whatever patterns inside say.
            if let Some((_, true)) = all
                .into_iter()
                .find_map(|(start, list)| list.decide(&path[start..], directory || at + 1 < names.len()))
            {
                return true;
            }
        }
        false
    }
}

/// The repository that a captured directory lies in, when its work tree begins above.
#[derive(Debug)]
pub struct Outer {
    /// The repository.
    pub repository: Repository,
    /// Where its work tree begins.
    pub top: OwnedFd,
    /// The names from the work tree's top down to the captured directory.
    pub names: Vec<Vec<u8>>,
    /// The `.gitignore` of each directory that holds one of `names`.
    pub ignores: Vec<Patterns>,
}

impl Outer {
    /// Looks upwards from `dir` (an absolute path without links), not beyond the file
    /// system that it lies on. A repository of another user, which git refuses, ignores nothing.
    pub fn find(dir: &Path, user: &GitUser) -> Option<Self> {
        let here = rustix::fs::stat(dir).ok()?;
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut below = dir;
        for above in dir.ancestors().skip(1) {
            names.insert(0, below.file_name()?.as_bytes().to_vec());
            below = above;
            let fd = open_dir(CWD, above)?;
            if rustix::fs::fstat(&fd).ok()?.st_dev != here.st_dev {
                return None;
            }
            if let Some(located) = locate(&fd) {
                let (repository, ignores) = match located.is_of(here.st_uid) {
                    true => (Repository::of(&located, &fd, user), Self::read(above, &names)),
                    false => (Repository::default(), vec![Patterns::default(); names.len()]),
                };
                return Some(Self { repository, top: fd, ignores, names });
            }
        }
        None
    }

    fn read(top: &Path, names: &[Vec<u8>]) -> Vec<Patterns> {
        let mut path: PathBuf = top.to_owned();
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            let file = read_small(CWD, path.join(".gitignore"), LARGEST_FILE);
            all.push(file.map(|file| Patterns::parse(&file)).unwrap_or_default());
            path.push(OsStr::from_bytes(name));
        }
        all
    }
}

fn open_dir(at: impl AsFd, path: &Path) -> Option<OwnedFd> {
    rustix::fs::openat(at, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use std::process::Command;

    /// Each of them is in one excludes file: the one where git looks by itself, `one`, `two`.
    const NAMES: [&str; 3] = ["default", "one", "two"];

    /// What is done with settings in `$HOME`, and whether it is then known which excludes file
    /// counts in each of the work trees `main`, `linked` and `main/sub`.
    const TABLE: &[(&str, bool)] = &[
        ("true", true),
        ("git config --global core.excludesFile '~/one'", true),
        ("git config --global core.excludesFile ''", true),
        ("git config --global include.path more", true),
        ("git -C main config include.path ../../more", true),
        ("git config --global include.path '~root/no-such'", false),
        ("git config --global 'includeIf.gitdir:~/main/.path' more", false),
        ("git config --global 'includeIf.gitdir:~/elsewhere/.path' more", false),
        ("git -C main config includeIf.onbranch:no-such.path ../../more", false),
        ("printf '[includeIf\t\"gitdir:main/**\"] path = more\n' > .gitconfig", false),
        ("git config --global 'includeIf.gitdir:~/main/.path' other", true),
        (
            "printf '[includeif \"gitdir:~/main/\"] path = more\n[core] excludesfile = one\n' > .gitconfig; \
          for at in main linked main/sub; do cp one $at; done",
            true,
        ),
        (
            "printf '[include] path = nest\n' > .gitconfig; printf '[includeIf \"gitdir:main/\"]\npath = more\n' > nest",
            false,
        ),
        // A file of settings that is too large to be read may say anything.
        ("{ echo '[core] excludesfile ='; seq -f '; %g' 200000; } > .gitconfig", true),
        // Settings of one work tree, which count where the repository says so.
        (
            "git -C main config extensions.worktreeConfig true; git -C linked config --worktree core.excludesFile '~/two'",
            true,
        ),
        (
            "git -C main config extensions.worktreeConfig true; git -C main config --worktree core.excludesFile '~/one'",
            true,
        ),
        (
            "printf '[extensions]\nworktreeConfig\n' >> main/.git/config; printf '[core] excludesfile =\n' > main/.git/config.worktree",
            true,
        ),
        ("printf '[core] excludesfile =\n' > main/.git/config.worktree", true),
        (
            "git -C main config extensions.worktreeConfig off; printf '[core] excludesfile =\n' > main/.git/config.worktree",
            true,
        ),
        ("git -C main/sub config core.excludesFile '~/two'", true),
        ("git -C main config core.excludesFile '~/two'", true),
    ];

    #[test]
    fn what_git_does_not_ignore_is_never_said_to_be_ignored() {
        if Command::new("git").arg("--version").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "git is needed for this test");
            return;
        }
        for (script, known) in TABLE {
            let temp = TempDir::new();
            let home = temp.path();
            let run = |program: &str, args: &[&str]| {
                let mut command = Command::new(program);
                command.args(args).current_dir(home).env_clear().env("HOME", home);
                command
                    .env("GIT_CONFIG_NOSYSTEM", "1")
                    .env("PATH", std::env::var_os("PATH").unwrap_or_default());
                let done = command.output().unwrap();
                assert!(matches!(done.status.code(), Some(0 | 1)), "{script}: {done:?}");
                String::from_utf8(done.stdout).unwrap()
            };
            run(
                "sh",
                &[
                    "-ec",
                    "mkdir -p .config/git; echo default > .config/git/ignore; echo one > one; echo two > two
                printf '[core] excludesfile = ~/two\n' > more; printf '[user] name = me\n' > other
                git init -q main; git -C main -c user.name=me -c user.email=me commit -q --allow-empty -m 1
                git -C main worktree add -q ../linked 2>&1
                mkdir main/.git/modules; git init -q --separate-git-dir main/.git/modules/sub main/sub",
                ],
            );
            run("sh", &["-ec", script]);
            let user = GitUser {
                settings: vec![home.join(".config/git/config"), home.join(".gitconfig")],
                home: Some(home.to_owned()),
                excludes: Some(home.join(".config/git/ignore")),
                overridden: false,
            };
            let mut all_known = true;
            for tree in ["main", "linked", "main/sub"] {
                let told = run("git", &[&["-C", tree, "check-ignore"], &NAMES[..]].concat());
                let theirs: Vec<&str> = told.lines().collect();
                let repository = Repository::at(open_dir(CWD, &home.join(tree)).unwrap(), &user).unwrap();
                let ignored = |name: &&str| repository.ignores(&[name.as_bytes()], true, &[]);
                let ours: Vec<&str> = NAMES.into_iter().filter(ignored).collect();
                assert!(
                    ours.iter().all(|name| theirs.contains(name)),
                    "{script}: {tree}: {ours:?}, {theirs:?}"
                );
                all_known &= ours == theirs;
            }
            assert_eq!(all_known, *known, "{script}");
        }
    }

    #[test]
    fn a_repository_above_that_is_another_user_s_ignores_nothing() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let temp = TempDir::new();
        let project = temp.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::create_dir(temp.path().join(".git")).unwrap();
        std::fs::write(temp.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(temp.path().join(".gitignore"), "dist\n").unwrap();
        let ignored = || {
            let outer = Outer::find(&project, &GitUser::default()).unwrap();
            let names: Vec<&[u8]> = outer.names.iter().map(Vec::as_slice).chain([&b"dist"[..]]).collect();
            outer.repository.ignores(&names, true, &outer.ignores.iter().collect::<Vec<_>>())
        };
        assert!(ignored());
        let chown = |path: &Path| std::os::unix::fs::chown(path, Some(65534), None).unwrap();
        chown(&temp.path().join(".git"));
        assert!(!ignored());
        chown(&project);
        assert!(ignored(), "it is of whoever owns the project");
    }
}

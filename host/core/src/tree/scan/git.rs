//! Whether git ignores a directory that the walk has met: found out only when a rule
//! asks, from the files that lie on the way.

use super::{Place, Walk, read_small};
use crate::error::Result;
use crate::store::content::read_all;
use crate::tree::git::GitUser;
use crate::tree::ignore::{LARGEST_FILE, Outer, Patterns, Repository};
use crate::tree::node::Node;

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
    /// Whether git's rules ignore `name` in `place`, which they do not ignore itself. What
    /// is tracked all the same is not told from others.
    ///
    /// # Errors
    /// When a snapshot that must be covered cannot be read.
    pub fn is_ignored_by_git(&self, place: &Place, name: &[u8], directory: bool) -> Result<bool> {
        Ok(name != b".git" && self.asked(place, name, directory, false)? == Git::Ignored)
    }

    /// What git says about the directory `name` in `place`.
    pub(super) fn git(&self, place: &Place, name: &[u8]) -> Result<Git> {
        self.asked(place, name, true, true)
    }

    /// With `whole`, what holds something that is tracked is not ignored.
    fn asked(&self, place: &Place, name: &[u8], directory: bool, whole: bool) -> Result<Git> {
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
            None => match self.outer.get_or_init(|| Outer::find(self.directory.path(), self.git_user())) {
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
        let ignored = repository.ignores(&names, directory, &ignores);
        let tracks = || match (outer, places.last()) {
            (Some(outer), _) => repository.tracks(&outer.top, &names),
            (None, Some(top)) => self.kept.open(&top.dir).is_ok_and(|dir| repository.tracks(&dir, &names)),
            (None, None) => false,
        };
        Ok(if ignored && !(whole && tracks()) { Git::Ignored } else { Git::NotIgnored })
    }

    fn git_user(&self) -> &GitUser {
        &self.directory.options().git_user
    }

    fn repository<'p>(&self, place: &'p Place) -> Option<&'p Repository> {
        if !place.has_git {
            return None;
        }
        let find =
            || self.kept.open(&place.dir).ok().and_then(|handle| Repository::at(&handle, self.git_user()));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cancel;
    use crate::testing::TempDir;
    use crate::tree::scan::{Elsewhere, Next};
    use crate::tree::{Directory, Options};
    use rustix::fs::FileType;
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// The same cases in each run.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % n as u64) as usize
        }

        fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
            from[self.below(from.len())]
        }

        fn patterns(&mut self) -> String {
            let lines = (0..self.below(3)).map(|_| {
                let (begin, end) =
                    (self.of(&["", "", "/", "!", "!/", "**/"]), self.of(&["", "/", "/*", "/**"]));
                let (a, b) = (self.of(NAMES), self.of(&["*", "a", "out", "[b-d]*"]));
                let middle = [a.to_owned(), b.to_owned(), format!("{a}/{b}")];
                format!("{begin}{}{end}\n", middle[self.below(3)])
            });
            lines.collect()
        }
    }

    const NAMES: &[&str] = &["a", "b", "dist", "out", "target", "x y"];

    fn git(home: &Path, at: &Path, words: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = Command::new("git");
        command.arg("-C").arg(at).args(words).env_clear().env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().stdout
    }

    /// What of all directories beneath `root` git ignores, each asked of its repository.
    fn theirs(
        home: &Path,
        root: &Path,
        all: &BTreeSet<String>,
        nested: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let mut asked: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in all {
            let is_above =
                |of: &&String| path.strip_prefix(of.as_str()).is_some_and(|rest| rest.starts_with('/'));
            let of = nested.iter().filter(is_above).max_by_key(|of| of.len()).map_or("", String::as_str);
            asked.entry(of).or_default().push(path);
        }
        let mut ignored = BTreeSet::new();
        for (of, paths) in asked {
            let inside = |path: &str| path[of.len()..].trim_start_matches('/').to_owned();
            let input: String = paths.iter().map(|path| inside(path) + "\0").collect();
            let told = git(home, &root.join(of), &["check-ignore", "-z", "--stdin"], input.as_bytes());
            let told = String::from_utf8(told).unwrap();
            let whole = |path: &str| if of.is_empty() { path.to_owned() } else { format!("{of}/{path}") };
            ignored.extend(told.split_terminator('\0').map(whole));
        }
        ignored
    }

    #[test]
    fn a_directory_is_ignored_where_git_check_ignore_says_so() {
        if Command::new("git").arg("--version").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "git is needed for this test");
            return;
        }
        let mut chance = Chance(20_260_729);
        let (mut cases, mut ignored, mut kept) = (0, 0, 0);
        for round in 0..40 {
            let temp = TempDir::new();
            let (home, root) = (temp.path().join("home"), temp.path().join("root"));
            std::fs::create_dir_all(home.join(".config/git")).unwrap();
            std::fs::create_dir(&root).unwrap();
            let write = |path: std::path::PathBuf, text: &str| std::fs::write(path, text).unwrap();
            // The excludes file of the user: where git looks by itself, or where it was told.
            match chance.below(4) {
                0 => write(home.join(".config/git/ignore"), &chance.patterns()),
                1 => write(home.join(".gitconfig"), "[core]\n\texcludesFile = ~/mine # here\n"),
                2 => {
                    write(home.join(".config/git/config"), "[include]\n\tpath = more\n");
                    write(home.join(".config/git/more"), "[core] excludesfile = \"~/mine\"\n");
                }
                _ => {}
            }
            write(home.join("mine"), &chance.patterns());
            let (mut all, mut nested) = (BTreeSet::new(), BTreeSet::new());
            for _ in 0..25 {
                let names: Vec<&str> = (0..=chance.below(3)).map(|_| chance.of(NAMES)).collect();
                (1..=names.len()).for_each(|depth| all.extend([names[..depth].join("/")]));
            }
            all.iter().for_each(|path| std::fs::create_dir_all(root.join(path)).unwrap());
            let dirs: Vec<&String> = all.iter().collect();
            git(&home, &root, &["init", "-q"], b"");
            let mut repositories = vec![root.clone()];
            for _ in 0..chance.below(3) {
                let dir = dirs[chance.below(dirs.len())];
                if nested.iter().all(|other: &String| !other.starts_with(dir.as_str())) {
                    git(&home, &root.join(dir), &["init", "-q"], b"");
                    repositories.push(root.join(dir));
                    nested.insert(dir.clone());
                }
            }
            for at in &repositories {
                write(at.join(".git/info/exclude"), &chance.patterns());
                match chance.below(5) {
                    0 => {
                        write(at.join("own"), &chance.patterns());
                        git(&home, at, &["config", "core.excludesFile", "own"], b"");
                    }
                    1 => drop(git(&home, at, &["config", "core.excludesFile", ""], b"")),
                    _ => {}
                }
                write(at.join(".gitignore"), &chance.patterns());
            }
            for _ in 0..4 {
                write(root.join(dirs[chance.below(dirs.len())]).join(".gitignore"), &chance.patterns());
            }
            // Some of it is tracked all the same.
            for _ in 0..3 {
                let dir = root.join(dirs[chance.below(dirs.len())]);
                write(dir.join("kept"), "");
                git(&home, &dir, &["add", "-f", "kept"], b"");
            }
            let user = GitUser {
                settings: vec![home.join(".config/git/config"), home.join(".gitconfig")],
                home: Some(home.clone()),
                excludes: Some(home.join(".config/git/ignore")),
                overridden: false,
            };
            let options = Options { git_user: user.into(), ..Options::default() };
            let directory = Directory::open(&root, "path", ".", &options).unwrap();
            let walk = Walk::new(&directory, None, Elsewhere::default());
            let mut ours = BTreeSet::new();
            let whole = walk.each_directory(&Cancel::default(), &mut |place, _, scratch| {
                for selected in scratch.selected.iter().filter(|s| s.kind == FileType::Directory) {
                    let name = scratch.listing.get(selected.at as usize).0;
                    let path = String::from_utf8(place.dir.path_of(name)).unwrap();
                    if walk.git(place, name)? == Git::Ignored {
                        ours.insert(path);
                    }
                }
                Ok(Next::Inside)
            });
            assert!(whole.unwrap());
            let theirs = theirs(&home, &root, &all, &nested);
            assert_eq!(ours, theirs, "round {round}");
            let untracked = |path: &&String| !root.join(path).join("kept").exists();
            kept += all.iter().filter(|path| !untracked(path)).count();
            (cases, ignored) = (cases + all.len(), ignored + ours.len());
        }
        assert!(
            cases > 800 && ignored > 150 && kept > 40,
            "{cases} cases, {ignored} ignored, {kept} tracked"
        );
    }
}

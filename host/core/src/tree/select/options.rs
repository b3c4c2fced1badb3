//! The options of a directory: what the component that opens it wants captured, and how.
//!
//! They come as pairs of text, a key perhaps several times, a value perhaps several
//! lines. An unknown key or a value that makes no sense is refused: a rule that is
//! quietly not understood would be a trap. Which rules there are is the component's
//! choice; nothing is left out here unless an option says so.

use super::rule::Rule;
use crate::error::{Error, Kind, Result, show_bytes};
use crate::tree::git::GitUser;
use crate::tree::ignore::Patterns;
use crate::tree::node::is_name;
use std::sync::Arc;

/// Directories that directly hold more files are left out, unless another limit is given.
pub const MAX_FILES_PER_DIR: u64 = 10_000;

/// How a directory is captured and put back.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only these paths and what is beneath them; each a list of names. One empty
    /// path is all.
    pub paths: Vec<Vec<Vec<u8>>>,
    /// Patterns of what is left out.
    pub ignore: Patterns,
    /// Patterns of what is captured whatever another rule says.
    pub include: Patterns,
    /// What can be made again, and is left out.
    pub regenerable: Vec<Rule>,
    /// A directory that directly holds more regular files is left out; `None`: no limit.
    pub max_files_per_dir: Option<u64>,
    /// Whether `.git` is captured.
    pub git: bool,
    /// Whether SQLite databases are left to targets of their own.
    pub sqlite: bool,
    /// Whether other file systems that are mounted beneath are captured.
    pub cross_mounts: bool,
    /// How content gets into the store and back.
    pub strategy: Strategy,
    /// What a restore does with modification times.
    pub times: Times,
    /// Where the user's git has its settings. Not an option in text: a component does
    /// not choose what the host reads.
    pub git_user: Arc<GitUser>,
    /// Directories that are never captured, whatever an option says, by device and inode:
    /// snapback's own, above all what the user agreed to. An undo would change it.
    pub own: Arc<[(u64, u64)]>,
    /// All of this as it was given, to be kept with what is captured.
    pub text: Vec<(String, String)>,
}

/// How content gets into the store and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Blocks of large files are shared with them where the file system does that, all
    /// else is copied.
    #[default]
    Auto,
    /// Everything is copied.
    Copy,
    /// Blocks of large files are shared with them: where that cannot be, nothing is captured.
    Reflink,
}

/// What a regular file gets whose bytes a restore writes; all else keeps stored times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Times {
    /// The present time, so that builds see that it changed.
    #[default]
    Now,
    /// The stored time.
    Stored,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            paths: vec![Vec::new()],
            ignore: Patterns::default(),
            include: Patterns::default(),
            regenerable: Vec::new(),
            max_files_per_dir: Some(MAX_FILES_PER_DIR),
            git: false,
            sqlite: false,
            cross_mounts: false,
            strategy: Strategy::default(),
            times: Times::default(),
            git_user: Arc::default(),
            own: Arc::default(),
            text: Vec::new(),
        }
    }
}

impl Options {
    /// Reads pairs of key and value:
    ///
    /// - `paths`: relative paths, one a line; `.` is all, and the default;
    /// - `ignore`, `include`: patterns in gitignore form, one a line;
    /// - `regenerable`: rules, one a line (see [`Rule`]);
    /// - `max-files-per-dir`: a number, 0 for no limit;
    /// - `git`, `cross-mounts`: `true` or `false`;
    /// - `strategy`: `auto`, `copy` or `reflink`;
    /// - `times`: `now` or `stored`.
    ///
    /// # Errors
    /// `Invalid`, with the key and what is wrong with its value.
    pub fn parse<K: AsRef<str>, V: AsRef<str>>(pairs: &[(K, V)]) -> Result<Self> {
        let mut options = Self::default();
        let (mut paths, mut ignore, mut include) = (Vec::new(), Vec::new(), Vec::new());
        for (key, value) in pairs {
            let (key, value) = (key.as_ref(), value.as_ref());
            options.text.push((key.to_owned(), value.to_owned()));
            let lines = value.lines().filter(|line| !line.is_empty());
            match key {
                "paths" => {
                    for line in lines {
                        paths.push(path(line)?);
                    }
                }
                "ignore" => ignore.extend(lines),
                "include" => include.extend(lines),
                "regenerable" => {
                    for line in lines {
                        options.regenerable.push(Rule::parse(line)?);
                    }
                }
                "max-files-per-dir" => {
                    let limit: u64 = value.trim().parse().map_err(|_| wrong(key, value, "a number"))?;
                    options.max_files_per_dir = (limit > 0).then_some(limit);
                }
                "git" => options.git = flag(key, value)?,
                "sqlite" => options.sqlite = flag(key, value)?,
                "cross-mounts" => options.cross_mounts = flag(key, value)?,
                "strategy" => {
                    options.strategy = match value {
                        "auto" => Strategy::Auto,
                        "copy" => Strategy::Copy,
                        "reflink" => Strategy::Reflink,
                        _ => return Err(wrong(key, value, "auto, copy or reflink")),
                    }
                }
                "times" => {
                    options.times = match value {
                        "now" => Times::Now,
                        "stored" => Times::Stored,
                        _ => return Err(wrong(key, value, "now or stored")),
                    }
                }
                _ => {
                    let text = format!("a directory has no option `{key}`");
                    return Err(Error::new(Kind::Invalid, text).hint(
                        "the options are paths, ignore, include, regenerable, max-files-per-dir, git, \
                         sqlite, cross-mounts, strategy and times",
                    ));
                }
            }
        }
        if !paths.is_empty() {
            options.paths = paths;
        }
        options.ignore = Patterns::of(ignore);
        options.include = Patterns::of(include);
        Ok(options)
    }

    /// Whether all of the directory is covered, not only some paths.
    pub(crate) fn covers_all(&self) -> bool {
        self.paths.iter().any(Vec::is_empty)
    }
}

fn wrong(key: &str, value: &str, wanted: &str) -> Error {
    Error::new(Kind::Invalid, format!("`{key}` is {wanted}, not `{value}`"))
}

fn flag(key: &str, value: &str) -> Result<bool> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(wrong(key, value, "true or false")),
    }
}

/// A relative path as its names; `.` stands for nothing.
fn path(text: &str) -> Result<Vec<Vec<u8>>> {
    let refuse = |why: &str| {
        let text = show_bytes(text.as_bytes());
        Err(Error::new(Kind::Invalid, format!("`paths` holds {text}, which {why}"))
            .hint("paths are relative to the directory and stay beneath it"))
    };
    if text.starts_with('/') {
        return refuse("is absolute");
    }
    let names = text.split('/').filter(|name| !matches!(*name, "" | "."));
    let names: Vec<Vec<u8>> = names.map(|name| name.as_bytes().to_vec()).collect();
    if !names.iter().all(|name| is_name(name)) {
        return refuse("leads out of it");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_as_lines_or_one_by_one() {
        let options = Options::parse(&[
            ("paths", "src\n./docs/api/"),
            ("paths", "a b"),
            ("ignore", "*.log"),
            ("ignore", "!keep.log\n/tmp/"),
            ("include", "a"),
            ("include", "b"),
            ("max-files-per-dir", "0"),
            ("git", "true"),
            ("strategy", "copy"),
            ("times", "stored"),
        ])
        .unwrap();
        let names = |path: &[&str]| path.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
        assert_eq!(options.paths, [names(&["src"]), names(&["docs", "api"]), names(&["a b"])]);
        assert_eq!(
            options.ignore.iter().map(|p| p.text()).collect::<Vec<_>>(),
            ["*.log", "!keep.log", "/tmp/"]
        );
        assert_eq!(options.include.iter().map(|p| p.text()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(options.max_files_per_dir, None);
        assert!(options.git && !options.cross_mounts && !options.covers_all());
        assert_eq!((options.strategy, options.times), (Strategy::Copy, Times::Stored));
        assert!(Options::parse(&[("paths", "src\n.")]).unwrap().covers_all(), "one that is all is all");
        let other = Options::parse(&[("sqlite", "true"), ("cross-mounts", "true"), ("strategy", "reflink")]);
        let other = other.unwrap();
        assert!(other.sqlite && other.cross_mounts && other.strategy == Strategy::Reflink && !other.git);
        let none: [(&str, &str); 0] = [];
        let default = Options::parse(&none).unwrap();
        assert!(default.covers_all() && default.max_files_per_dir == Some(10_000));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (key, value, says) in [
            ("colour", "red", "no option `colour`"),
            ("git", "yes", "`git` is true or false, not `yes`"),
            ("strategy", "magic", "`strategy` is auto, copy or reflink, not `magic`"),
            ("times", "", "`times` is now or stored"),
            ("max-files-per-dir", "many", "`max-files-per-dir` is a number"),
            ("paths", "/etc", "is absolute"),
            ("paths", "a/../..", "leads out of it"),
            ("regenerable", "x near y", "near"),
        ] {
            let error = Options::parse(&[(key, value)]).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
            assert!(error.message().contains(says), "{error}");
        }
    }
}

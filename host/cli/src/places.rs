//! The environment: the only reader of it, once, at the start.
//!
//! Invariant: every directory here is absolute. A variable of the XDG specification
//! that is empty or relative counts as unset, as the specification wants. A missing
//! HOME is looked up in the list of users; where even that says nothing, snapback
//! works all the same and keeps nothing outside the project.

use crate::pager;
use snapback_core::project::root::plain;
use snapback_core::text::Bytes;
use snapback_core::tree::git::GitUser;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What the environment says.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Where known roots and trust are kept.
    pub state: PathBuf,
    /// Where the user's own settings are.
    pub config: PathBuf,
    /// Where what can be made again is kept.
    pub cache: PathBuf,
    /// Where compiled components are kept when that cannot be written.
    pub spare: PathBuf,
    /// Where the user's components are.
    pub data: PathBuf,
    /// More directories with components.
    pub plugin_path: Vec<PathBuf>,
    /// Where programs are looked for.
    pub path: OsString,
    /// Digests of questions that are agreed to for once.
    pub trusted: Vec<String>,
    /// The run inside which this command is called.
    pub run_id: Option<String>,
    /// Where git has its settings.
    pub git: GitUser,
    /// What long output goes through on a terminal.
    pub pager: Option<pager::Chosen>,
    /// The user wants no colour.
    pub no_color: bool,
    /// The terminal says of itself that it only writes one line below the other.
    pub dumb: bool,
    /// The user whose files these are.
    pub uid: u32,
    /// The current directory, also when it is gone.
    pub here: PathBuf,
    /// It is gone, and nothing says where it was: `here` is only where paths begin.
    pub is_lost: bool,
}

/// The value of a variable that a target was granted.
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// What is searched when PATH is not set, as the C library does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

impl Places {
    /// Reads the environment.
    pub fn read() -> Self {
        let uid = rustix::process::getuid().as_raw();
        let home = absolute("HOME").or_else(|| home_of(uid));
        // Beneath what is no directory nothing is ever found or made.
        let base = home.clone().unwrap_or_else(|| PathBuf::from("/dev/null"));
        let dir = |variable: &str, default: &str| {
            absolute(variable).unwrap_or_else(|| base.join(default)).join("snapback")
        };
        Self {
            state: dir("XDG_STATE_HOME", ".local/state"),
            config: dir("XDG_CONFIG_HOME", ".config"),
            cache: dir("XDG_CACHE_HOME", ".cache"),
            spare: absolute("TMPDIR")
                .unwrap_or_else(|| "/tmp".into())
                .join(format!("snapback-components-{uid}")),
            data: dir("XDG_DATA_HOME", ".local/share"),
            plugin_path: env::var_os("SNAPBACK_PLUGIN_PATH")
                .map(|list| env::split_paths(&list).filter(|dir| dir.is_absolute()).collect())
                .unwrap_or_default(),
            path: env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into()),
            trusted: env::var("SNAPBACK_TRUST")
                .map(|list| list.split([',', ' ']).filter(|d| !d.is_empty()).map(str::to_owned).collect())
                .unwrap_or_default(),
            run_id: env::var("SNAPBACK_RUN_ID").ok().filter(|id| !id.is_empty()),
            git: git(home.clone()),
            pager: pager::chosen(|name| env::var_os(name)),
            no_color: env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            dumb: env::var_os("TERM").is_some_and(|term| term == "dumb"),
            is_lost: here().is_none(),
            here: here().unwrap_or_else(|| PathBuf::from("/")),
            // As a root is: links are resolved, or the one would not be known by the other.
            home: home.map(|home| fs::canonicalize(&home).unwrap_or(home)),
            uid,
        }
    }
}

/// `path` as an absolute one, seen from `here`: `.` and `..` are resolved, and links as
/// far as it exists. What does not exist any more keeps its name.
pub fn resolve(here: &Path, path: &Path) -> PathBuf {
    let whole = plain(&here.join(path));
    let (mut existing, mut gone) = (whole.as_path(), Vec::new());
    loop {
        if let Ok(real) = fs::canonicalize(existing) {
            return gone.iter().rev().fold(real, |path: PathBuf, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else { return whole };
        gone.push(name);
        existing = parent;
    }
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|dir| dir.is_absolute())
}

/// The current directory. When it was removed, the shell's name for it, if that says it.
fn here() -> Option<PathBuf> {
    match env::current_dir() {
        Ok(here) => Some(here),
        Err(error) => {
            let named = absolute("PWD").filter(|_| error.kind() == io::ErrorKind::NotFound)?;
            Some(resolve(Path::new("/"), &named))
        }
    }
}

/// Where git has its settings, by the variables that it reads itself.
fn git(home: Option<PathBuf>) -> GitUser {
    let file = |variable: &str| env::var_os(variable).map(PathBuf::from);
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    let mut settings = Vec::new();
    if !env::var("GIT_CONFIG_NOSYSTEM").is_ok_and(|value| matches!(&*value, "1" | "true" | "yes" | "on")) {
        settings.push(file("GIT_CONFIG_SYSTEM").unwrap_or_else(|| PathBuf::from("/etc/gitconfig")));
    }
    match file("GIT_CONFIG_GLOBAL") {
        Some(global) => settings.push(global),
        None => {
            settings.extend(config.iter().map(|dir| dir.join("git/config")));
            settings.extend(home.iter().map(|home| home.join(".gitconfig")));
        }
    }
    let excludes = config.map(|dir| dir.join("git/ignore"));
    GitUser { settings, home, excludes, overridden: env::vars_os().any(may_name_excludes) }
}

/// Whether a variable holds settings of git, as `git -c` passes them on to what it starts, that
/// may name an excludes file.
fn may_name_excludes((name, value): (OsString, OsString)) -> bool {
    let name = name.to_string_lossy();
    let value = value.to_string_lossy().to_ascii_lowercase();
    (name == "GIT_CONFIG_PARAMETERS" || name.starts_with("GIT_CONFIG_KEY_"))
        && (value.contains("core.excludesfile") || value.contains("include"))
}

/// The home directory that the list of users has for `uid`.
fn home_of(uid: u32) -> Option<PathBuf> {
    let users = fs::read("/etc/passwd").ok()?;
    let fields = users.split(|&b| b == b'\n').map(|line| line.split(|&b| b == b':').collect::<Vec<_>>());
    let found = fields.into_iter().find(|f| f.len() >= 6 && f[2] == uid.to_string().as_bytes())?;
    let home = PathBuf::from(OsString::from_vec(found[5].to_vec()));
    home.is_absolute().then_some(home)
}

/// A path of the user's, as a path inside the project at `root`: `/` between names,
/// none at the start, empty for the root itself. It need not exist.
///
/// # Errors
/// `Invalid` when it lies outside.
pub fn inside(root: &Path, here: &Path, path: &Path) -> snapback_core::Result<Bytes> {
    use snapback_core::error::{Error, Kind, show};
    let base = if here.starts_with(root) { here } else { root };
    let whole = plain(&base.join(path));
    // A link in the project is an entry like any other: only what leads to the project is resolved.
    let rest = match whole.strip_prefix(root) {
        Ok(rest) => Some(rest.to_owned()),
        Err(_) => resolve(base, path).strip_prefix(root).ok().map(Path::to_owned),
    };
    rest.map(|rest| Bytes::from(&*rest)).ok_or_else(|| {
        let why = format!("{} is not inside the project {}", show(path), show(root));
        Error::new(Kind::Invalid, why).hint("paths are relative to the current directory")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_paths_inside_the_project() {
        let (root, here) = (Path::new("/p/q"), Path::new("/p/q/sub"));
        for (path, inside_it) in [
            ("a", "sub/a"),
            ("./a//b/", "sub/a/b"),
            ("..", ""),
            ("../x", "x"),
            ("/p/q/sub/x", "sub/x"),
            (".", "sub"),
        ] {
            assert_eq!(inside(root, here, Path::new(path)).unwrap(), Bytes(inside_it.into()), "{path}");
        }
        let outside = Path::new("/elsewhere");
        assert_eq!(inside(root, outside, Path::new("a")).unwrap(), Bytes(b"a".to_vec()));
        for path in ["../..", "/p/qq", "/etc/passwd", "../../../../p/other"] {
            let error = inside(root, here, Path::new(path)).unwrap_err();
            assert!(error.to_string().contains("is not inside the project /p/q"), "{error}");
        }
    }

    #[test]
    fn names_that_are_not_utf8_stay_as_they_are() {
        let odd = OsString::from_vec(b"\xfe\xff".to_vec());
        let found = inside(Path::new("/p"), Path::new("/p"), Path::new(&odd)).unwrap();
        assert_eq!(found.0, b"\xfe\xff");
    }

    #[test]
    fn what_is_gone_keeps_its_name() {
        let dir = env::temp_dir();
        let real = fs::canonicalize(&dir).unwrap();
        assert_eq!(resolve(&dir, Path::new("no-such-thing/x")), real.join("no-such-thing/x"));
        assert_eq!(resolve(&dir, Path::new(".")), real);
        assert_eq!(resolve(Path::new("/no/where"), Path::new("../x")), Path::new("/no/x"));
    }

    #[test]
    fn the_home_of_root_is_in_the_list_of_users() {
        assert_eq!(home_of(0), Some("/root".into()));
        assert_eq!(home_of(u32::MAX - 7), None);
    }
}

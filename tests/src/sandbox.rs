//! One user with a home, a project and the program: hermetic.
//!
//! The program sees no variable of the tests' own environment but PATH. What it
//! compiles from components is shared by the sandboxes of one test process and user,
//! since it depends on nothing else; `cold` gives a sandbox a cache of its own.

use crate::user::User;
use crate::{Output, Running, base};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// A user's world, removed when it is dropped (kept when SNAPBACK_KEEP is set).
pub struct Sandbox {
    program: PathBuf,
    user: User,
    dir: PathBuf,
    cache: PathBuf,
}

impl Sandbox {
    /// A new one for `user`, with an empty project; `program` is the binary to test,
    /// unless the variable SNAPBACK_BIN names another.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(program: &str, user: User) -> Self {
        let program = std::env::var_os("SNAPBACK_BIN").map_or_else(|| program.into(), PathBuf::from);
        let program = reachable(program, user);
        let dir = base::fresh("sandbox");
        let cache = base::base().join(format!("cache-{user:?}"));
        let sandbox = Self { program, user, dir, cache };
        sandbox.make_dir(&sandbox.dir);
        for dir in ["home", "home/project", "tmp", "config", "data", "state", "run"] {
            sandbox.make_dir(&sandbox.dir.join(dir));
        }
        sandbox.make_dir(&sandbox.cache);
        sandbox
    }

    /// The same with an empty cache of compiled components.
    #[must_use]
    pub fn cold(mut self) -> Self {
        self.cache = self.dir.join("cache");
        self.make_dir(&self.cache);
        self
    }

    /// Who runs the program here.
    pub fn user(&self) -> User {
        self.user
    }

    /// The directory that holds everything, the project's victims included.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The project's root.
    pub fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// The user's home.
    pub fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// Where compiled components are kept.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// The user's state directory.
    pub fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// The user's configuration of snapback.
    pub fn config(&self) -> PathBuf {
        self.dir.join("config/snapback/config.toml")
    }

    /// `program` as this user in the project, hermetic, without standard input.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let at = |name: &str| self.dir.join(name);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("HOME", self.home())
            .env("XDG_CONFIG_HOME", at("config"))
            .env("XDG_DATA_HOME", at("data"))
            .env("XDG_STATE_HOME", at("state"))
            .env("XDG_RUNTIME_DIR", at("run"))
            .env("XDG_CACHE_HOME", &self.cache)
            .env("TMPDIR", at("tmp"))
            .env("LANG", "C.UTF-8")
            .env("SNAPBACK", &self.program)
            .current_dir(self.project())
            .stdin(Stdio::null());
        self.user.become_in(&mut command);
        command
    }

    /// The program itself, not yet started.
    pub fn program(&self) -> Command {
        self.command(&self.program)
    }

    /// Runs the program in the project.
    pub fn snapback<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        self.finish(self.program().args(arguments))
    }

    /// Runs the program and expects it to succeed.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        let output = self.snapback(arguments);
        output.exits(0);
        output
    }

    /// `snapback run -- sh -c script`, expected to succeed.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn run(&self, script: &str) -> Output {
        self.ok(["run", "--", "sh", "-ec", script])
    }

    /// Runs a prepared command to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn finish(&self, command: &mut Command) -> Output {
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
        let program = if command.get_program() == self.program {
            OsStr::new("snapback")
        } else {
            command.get_program()
        };
        let line = std::iter::once(program.to_string_lossy().into_owned())
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ");
        let output = command.output().unwrap_or_else(|e| panic!("could not start {line}: {e}"));
        Output { line, status: output.status, stdout: output.stdout, stderr: output.stderr }
    }

    /// Starts the program and goes on; it is killed when what is returned is dropped.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Running {
        Running::of(self.program().args(arguments))
    }

    /// Starts `words`, a step, and kills it `after` it has written down what it is about to
    /// do: the file `journal` is there for just that (docs/HISTORY.md). Whether it was hit in
    /// its middle; else it had ended.
    pub fn cut_short(&self, words: &[&str], after: Duration) -> bool {
        let journal = self.project().join(".snapback/journal");
        let mut step = self.start(words);
        while !journal.exists() && !step.has_ended() {
            std::hint::spin_loop();
        }
        std::thread::sleep(after);
        if !step.has_ended() {
            step.signal(Signal::KILL);
            step.wait();
        }
        self.ok(["status", "--json"]).json()["pending"].is_object()
    }

    /// Runs a shell script in the project as the user, outside any snapshot, and
    /// returns what it printed.
    ///
    /// # Panics
    /// When a command of it fails.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        let output = self.finish(self.command("sh").args(["-ec", script]));
        output.exits(0);
        output.out()
    }

    /// Writes a file of the project, as the user.
    ///
    /// # Panics
    /// When it cannot be written.
    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.project().join(path);
        let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|p| !p.exists()).collect();
        for dir in missing.into_iter().rev() {
            self.make_dir(dir);
        }
        let isnew = !path.exists();
        fs::write(&path, content).unwrap_or_else(|e| panic!("could not write {}: {e}", path.display()));
        if isnew {
            self.user.own(&path);
        }
    }

    /// What a file of the project holds.
    ///
    /// # Panics
    /// When it cannot be read as text.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        let path = self.project().join(path);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("could not read {}: {e}", path.display()))
    }

    /// Whether something of that name is in the project.
    pub fn has(&self, path: &str) -> bool {
        self.project().join(path).symlink_metadata().is_ok()
    }

    fn make_dir(&self, dir: &Path) {
        if fs::create_dir(dir).is_ok() {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
            self.user.own(dir);
        }
        assert!(dir.is_dir(), "could not make {}", dir.display());
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if std::env::var_os("SNAPBACK_KEEP").is_none() {
            base::remove(&self.dir);
        }
    }
}

/// The program where `user` can start it: a build may lie in a folder that only its
/// owner may enter.
fn reachable(program: PathBuf, user: User) -> PathBuf {
    static COPY: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut copy = COPY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut test = Command::new("test");
    user.become_in(test.arg("-x").arg(&program));
    if test.status().is_ok_and(|s| s.success()) {
        return program;
    }
    copy.get_or_insert_with(|| {
        let to = base::base().join("snapback");
        fs::copy(&program, &to).unwrap_or_else(|e| panic!("could not copy {}: {e}", program.display()));
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
        // The program that goes into containers stands beside it.
        let beside = |program: &Path| program.with_file_name("snapback-volumes");
        let _ = fs::copy(beside(&program), beside(&to));
        to
    })
    .clone()
}

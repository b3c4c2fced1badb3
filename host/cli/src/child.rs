//! The wrapped command: started as if snapback were not there, and waited for.
//!
//! Invariants: same process group, same terminal, same standard streams; arguments as they were
//! typed; the environment as it was, and two variables more; signals that were ignored or blocked
//! stay so.
//! The job is stopped when the command is stopped, no sooner and no later, so the shell's job
//! control works; where nobody would wake it, it is not. Refuses nothing: what cannot be
//! started gets the shell's exit code.

use crate::exit::Code;
use crate::inherited;
use crate::process;
use crate::signals::Signals;
use crate::umask;
use rustix::fs::Access;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use rustix::process::{getpid, kill_process, waitid, waitpid};
use snapback_core::error::{Error, Kind, Result, shell_word, show, show_bytes};
use snapback_core::history::Id;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The run's ID, for the command.
pub const RUN_ID: &str = "SNAPBACK_RUN_ID";
/// The project's root, for the command.
pub const ROOT: &str = "SNAPBACK_ROOT";

/// What the shell says of a file that is no program and has no `#!` line.
const ENOEXEC: i32 = 8;
/// Bytes at the start of such a file that are looked at.
const LOOKED_AT: u64 = 128;

/// A command that is there and can be executed, as far as can be seen.
#[derive(Debug)]
pub struct Wrapped<'a> {
    words: &'a [OsString],
    directory: Option<&'a Path>,
    /// The file, where the search for it ended.
    file: PathBuf,
}

/// Why a command cannot be started, and the exit code for it.
#[derive(Debug)]
pub struct Unstartable {
    /// What to say.
    pub error: Error,
    /// What to end with.
    pub code: Code,
}

impl<'a> Wrapped<'a> {
    /// Looks for the program in `search`, a value of PATH, as the shell does.
    /// `directory` is where it is to run, when not here.
    ///
    /// # Errors
    /// 127 when there is none, 126 when it cannot be executed.
    pub fn find(
        words: &'a [OsString],
        search: &OsStr,
        directory: Option<&'a Path>,
    ) -> Result<Self, Unstartable> {
        let name = words.first().map_or(OsStr::new(""), |word| word);
        let place = |dir: &Path| directory.unwrap_or(Path::new("")).join(dir);
        let is_place = name.as_bytes().contains(&b'/');
        let candidates: Vec<PathBuf> = if is_place {
            vec![place(Path::new(name))]
        } else if name.is_empty() {
            Vec::new()
        } else {
            env::split_paths(search)
                .map(|dir| if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir })
                .map(|dir| place(&dir).join(name))
                .collect()
        };
        let mut refused = None;
        for file in candidates {
            match fs::metadata(&file) {
                Ok(meta) if meta.is_dir() => refused = refused.or(Some((file, Obstacle::Directory))),
                Ok(_) if rustix::fs::access(&file, Access::EXEC_OK).is_ok() => {
                    return Ok(Self { words, directory, file });
                }
                Ok(_) => refused = refused.or(Some((file, Obstacle::Permission))),
                // In PATH, what cannot be looked at is not there: the next one may have it.
                Err(error) if is_place && error.kind() == io::ErrorKind::PermissionDenied => {
                    refused = refused.or(Some((file, Obstacle::Permission)));
                }
                Err(_) => {}
            }
        }
        Err(match refused {
            Some((file, why)) => not_executable(&file, why),
            None => no_command(name, words.len()),
        })
    }

    /// Starts it in the run `id` of the project at `root`, and waits for it: how it ended,
    /// and the number that its process had.
    ///
    /// # Errors
    /// When it cannot be started, with the shell's exit code; `Cancelled` when a signal came first.
    pub fn run(&self, id: &Id, root: &Path, signals: &Signals) -> Result<(Code, u32), Unstartable> {
        let name = &self.words[0];
        inherited::close_streams();
        let spawn = |command: &mut Command| {
            umask::as_given(|| command.env(RUN_ID, id.as_str()).env(ROOT, root).spawn())
        };
        let started = signals.starting(|| match spawn(&mut self.command(name)) {
            // No program and no `#!` line: the shell takes it for its own, and so does this.
            Err(error) if error.raw_os_error() == Some(ENOEXEC) && is_text(&self.file) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg(&self.file).args(&self.words[1..]);
                spawn(self.placed(&mut shell))
            }
            other => other,
        })?;
        let child = started.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !self.file.exists() => no_command(name, self.words.len()),
            // The file is there: what its `#!` line names is not.
            io::ErrorKind::NotFound => not_executable(&self.file, Obstacle::Interpreter),
            _ if error.raw_os_error() == Some(ENOEXEC) => not_executable(&self.file, Obstacle::Foreign),
            _ => {
                let error = Error::io(error, "could not start", &self.file);
                Unstartable { error, code: Code::NOT_EXECUTABLE }
            }
        })?;
        Ok((wait(Pid::from_child(&child), signals), child.id()))
    }

    fn command(&self, name: &OsStr) -> Command {
        let mut command = inherited::command(name);
        command.args(&self.words[1..]);
        self.placed(&mut command);
        command
    }

    fn placed<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        match self.directory {
            Some(directory) => command.current_dir(directory),
            None => command,
        }
    }
}

/// Waits until the command has ended, stopping and going on with it.
fn wait(pid: Pid, signals: &Signals) -> Code {
    loop {
        // Only looks: the number stays the command's until it is reaped below.
        let look = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(pid), look) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            // How it ended cannot be known; that it ended is certain.
            Err(_) => {
                signals.lost();
                return Code::FAILED;
            }
        }
        let status = signals.reaping(|| {
            let status = waitpid(Some(pid), WaitOptions::UNTRACED | WaitOptions::NOHANG);
            status.ok().flatten().map(|(_, status)| status)
        });
        match status.map(ended) {
            Some(Some(code)) => return code,
            Some(None) => stop_with(pid, signals),
            None => {}
        }
    }
}

fn ended(status: WaitStatus) -> Option<Code> {
    status.exit_status().map(Code::of_exit).or_else(|| status.terminating_signal().map(Code::of_signal))
}

/// The command was stopped: stop too, so that the shell sees a stopped job, and let the command
/// go on when the shell wakes us. Not where nobody is there who would: in a script, when the
/// command alone was stopped. It may have been woken in the meantime, too, and then stopping
/// would stop a job that nobody will wake.
fn stop_with(pid: Pid, signals: &Signals) {
    let is_stopped = || process::is_stopped(pid.as_raw_nonzero().get()).unwrap_or(true);
    if is_stopped() && (process::is_job() || signals.told_to_stop()) && is_stopped() {
        let _ = kill_process(getpid(), Signal::STOP);
        // A command in a process group of its own is not woken by the shell.
        if is_stopped() {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

/// Whether a file looks like a script: shells look for a zero byte in its first line, too.
fn is_text(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start));
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    read.is_ok() && !line.contains(&0)
}

/// There is no command `name`, the first of so many `words`.
fn no_command(name: &OsStr, words: usize) -> Unstartable {
    const OF_A_SHELL: &[u8] = b" \t\n;&|<>$`(){}*?!~";
    let why = format!("there is no command {}", show_bytes(name.as_bytes()));
    let is_line = words == 1 && name.as_bytes().iter().any(|byte| OF_A_SHELL.contains(byte));
    // What changes the shell itself is in no file.
    const OF_THE_SHELL_ITSELF: [&str; 8] =
        ["alias", "cd", "eval", "exec", "export", "set", "source", "unset"];
    let text = name.to_string_lossy();
    let is_builtin = OF_THE_SHELL_ITSELF.contains(&&*text) || text.contains('=');
    let hint = match is_line {
        false if is_builtin => {
            "nothing was run; that is a word of the shell: `snapback run -- sh -c 'LINE'` runs a line of it"
                .into()
        }
        true => {
            format!("nothing was run; a line for the shell is `snapback run -- sh -c {}`", shell_word(name))
        }
        false => "nothing was run; check its name, and PATH".to_owned(),
    };
    Unstartable { error: Error::new(Kind::NotFound, why).hint(hint), code: Code::NO_COMMAND }
}

/// Why a file cannot be executed, and what to do.
#[derive(Debug, Clone, Copy)]
enum Obstacle {
    Directory,
    Permission,
    Interpreter,
    /// Neither a program of this machine nor a script.
    Foreign,
}

fn not_executable(file: &Path, obstacle: Obstacle) -> Unstartable {
    let (why, hint) = match obstacle {
        Obstacle::Directory => ("it is a directory", "name a program"),
        Obstacle::Permission => ("permission denied", "`chmod +x` makes a program of your own executable"),
        Obstacle::Interpreter => (
            "the program that its first line names is missing",
            "the line begins with `#!`; correct it, or install that program",
        ),
        Obstacle::Foreign => (
            "it is neither a program for this processor nor a script",
            "get one that is made for this machine (`uname -m` names it)",
        ),
    };
    let error = Error::new(Kind::Denied, format!("could not execute {}: {why}", show(file))).hint(hint);
    let code = match obstacle {
        Obstacle::Directory | Obstacle::Permission | Obstacle::Foreign => Code::NOT_EXECUTABLE,
        // To a shell, what is not there is the command.
        Obstacle::Interpreter => Code::NO_COMMAND,
    };
    Unstartable { error, code }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn words(name: &str) -> Vec<OsString> {
        vec![name.into()]
    }

    #[test]
    fn programs_are_looked_for_as_the_shell_does() {
        let dir = env::temp_dir().join(format!("snapback-cli-child-{}", std::process::id()));
        fs::create_dir_all(dir.join("folder")).unwrap();
        fs::write(dir.join("plain"), "").unwrap();
        fs::write(dir.join("program"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.join("program"), fs::Permissions::from_mode(0o755)).unwrap();

        let code = |name: &str, search: &str, at: Option<&Path>| {
            Wrapped::find(&words(name), OsStr::new(search), at).map(|found| found.file).map_err(|e| e.code)
        };
        let search = dir.to_str().unwrap();
        assert_eq!(code("program", search, None), Ok(dir.join("program")));
        assert_eq!(code("./program", "", Some(&dir)), Ok(dir.join("./program")));
        assert_eq!(code("nothing", search, None), Err(Code::NO_COMMAND));
        assert_eq!(code("", search, None), Err(Code::NO_COMMAND));
        let hint = |all: &[&str]| {
            let all: Vec<OsString> = all.iter().map(OsString::from).collect();
            let refused = Wrapped::find(&all, OsStr::new(search), None).unwrap_err();
            refused.error.hint_text().unwrap().to_owned()
        };
        assert!(hint(&["cd src && ls"]).ends_with("`snapback run -- sh -c 'cd src && ls'`"));
        assert!(hint(&["no such", "x"]).contains("PATH") && hint(&["nothing"]).contains("PATH"));
        assert_eq!(code("plain", search, None), Err(Code::NOT_EXECUTABLE));
        assert_eq!(code("folder", search, None), Err(Code::NOT_EXECUTABLE));
        // A later one that can be executed wins over an earlier one that cannot.
        assert!(code("sh", &format!("{search}:/bin"), None).is_ok());
        fs::remove_dir_all(&dir).unwrap();
    }
}

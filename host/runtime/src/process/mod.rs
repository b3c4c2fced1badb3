//! Programs on the user's machine, run for a component: the one thing that leaves the sandbox.
//!
//! What runs is the file that was agreed to, by its content at this moment: without a
//! shell, with no environment but what it is given, in an empty directory of its own, and
//! in a process group that ends with it. What the program then does, nobody watches.

mod pipes;

pub use pipes::{Stdin, Stdout};

use crate::reach::program::Program;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use snapback_core::disk::{Dir, Disk};
use snapback_core::error::{Error, Kind, Result, show};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of standard error that are kept: the last ones, which say why it failed.
const TAIL: usize = 64 * 1024;
/// Longest time between two looks at whether a program ended.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the end of standard error is waited for when the program has ended: whoever
/// left its process group may hold it open for ever.
const GRACE: u32 = 50;
/// What variables begin with that have other code loaded into the program than was agreed to.
const LOADER: &str = "LD_";

/// A program that was started. Dropped, it and all of its process group are killed.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    /// Whether it was waited for, so that its number may be another's by now.
    reaped: bool,
    said: Arc<Mutex<VecDeque<u8>>>,
    saying: JoinHandle<()>,
    _folder: Folder,
}

impl Child {
    /// Starts `program` with these arguments and this environment; its empty directory
    /// is made in `scratch`.
    ///
    /// # Errors
    /// `Changed` when its file is no longer what was agreed to, `Invalid` for an argument
    /// or a variable that cannot be one.
    pub fn spawn(
        program: &Program,
        args: &[String],
        env: &[(String, String)],
        scratch: &Path,
    ) -> Result<Self> {
        check(args, env)?;
        let failed = |e: io::Error| Error::io(e, "could not run", &program.path);
        let (file, is_script) = program.open()?;
        let folder = Folder::new(scratch)?;
        let mut command = match is_script {
            // Its interpreter opens it once more, by the name that it goes by.
            true => Command::new(&program.path),
            // By the open file, so that it is the one that was looked at.
            false => Command::new(format!("/proc/self/fd/{}", file.as_raw_fd())),
        };
        command.arg0(&program.path).args(args).env_clear().envs(env.iter().map(|(k, v)| (k, v)));
        command.current_dir(&folder.path).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let (said, stderr) = (Arc::<Mutex<VecDeque<u8>>>::default(), process.stderr.take());
        let to = said.clone();
        let saying = thread::spawn(move || stderr.into_iter().for_each(|from| keep_tail(from, &to)));
        Ok(Self { process, reaped: false, said, saying, _folder: folder })
    }

    /// Its standard input, once.
    ///
    /// # Errors
    /// `Invalid` the second time.
    pub fn stdin(&mut self) -> Result<Stdin> {
        let pipe = self.process.stdin.take().ok_or_else(|| taken("standard input"))?;
        Stdin::new(pipe.into())
    }

    /// Its standard output, once.
    ///
    /// # Errors
    /// `Invalid` the second time.
    pub fn stdout(&mut self) -> Result<Stdout> {
        let pipe = self.process.stdout.take().ok_or_else(|| taken("standard output"))?;
        Stdout::new(pipe.into())
    }

    /// Waits for its end, without a thread: the exit status, 128 and the number of the
    /// signal that ended it, and the last it said on standard error. Input that was not
    /// taken is empty, output that was not taken is thrown away.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn wait(mut self) -> Result<(i32, String)> {
        drop(self.process.stdin.take());
        if let Some(mut output) = self.process.stdout.take() {
            thread::spawn(move || io::copy(&mut output, &mut io::sink()));
        }
        let mut pause = Duration::from_millis(1);
        while !self.has_ended()? {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE);
        }
        let status = self.end()?;
        for _ in 0..GRACE {
            if self.saying.is_finished() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(said.make_contiguous()).into_owned();
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        Ok((code.unwrap_or(-1), said))
    }

    /// Whether it ended; its number stays its own.
    fn has_ended(&self) -> Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match rustix::process::waitid(WaitId::Pid(self.pid()), options) {
            Err(Errno::INTR) => Ok(false),
            ended => Ok(ended.map_err(lost)?.is_some()),
        }
    }

    /// Ends it, and whatever it started that is still in its group.
    fn end(&mut self) -> Result<ExitStatus> {
        if !self.reaped {
            // Nobody there to be killed is as good.
            let _ = rustix::process::kill_process_group(self.pid(), Signal::KILL);
        }
        self.reaped = true;
        self.process.wait().map_err(lost)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Before its input closes, whose end it could take for the end of its work.
        let _ = self.end();
    }
}

fn lost(error: impl Into<io::Error>) -> Error {
    Error::new(Kind::Other, format!("a program cannot be waited for: {}", error.into()))
}

fn taken(what: &str) -> Error {
    Error::new(Kind::Invalid, format!("the {what} of a program can be taken once"))
}

/// Refuses what cannot be handed to a program, or would make another one of it.
fn check(args: &[String], env: &[(String, String)]) -> Result<()> {
    let invalid = |why: String| Err(Error::new(Kind::Invalid, why));
    if args.iter().any(|arg| arg.contains('\0')) {
        return invalid("an argument has a zero byte in it".into());
    }
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return invalid(format!("`{}` is no variable for a program", crate::manifest::shorten(name)));
        }
        if name.starts_with(LOADER) {
            let why =
                format!("`{}` would have other code loaded into the program", crate::manifest::shorten(name));
            return Err(Error::new(Kind::Denied, why));
        }
    }
    Ok(())
}

fn keep_tail(mut from: impl Read, said: &Mutex<VecDeque<u8>>) {
    let mut chunk = [0; 4096];
    loop {
        match from.read(&mut chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
            Ok(len) => {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.extend(&chunk[..len]);
                let over = said.len().saturating_sub(TAIL);
                said.drain(..over);
            }
        }
    }
}

/// A directory of its own, empty at the beginning, gone at the end.
#[derive(Debug)]
struct Folder {
    above: Dir,
    name: String,
    path: PathBuf,
}

impl Folder {
    fn new(scratch: &Path) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Where directories for such things lie is often a link.
        let above = Dir::open(&scratch.join("."))?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("snapback-program-{}-{number}", std::process::id());
            match Disk::default().mkdir(&above, name.as_bytes(), 0o700) {
                Ok(()) => return Ok(Self { path: scratch.join(&name), above, name }),
                // Left by a process of that number that was killed.
                Err(_) if above.stat(name.as_bytes())?.is_some() => {}
                Err(error) => {
                    return Err(error.context(format_args!("a directory for a program in {}", show(scratch))));
                }
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover in the directory for such things does no harm.
        let _ = Disk::default().remove_all(&self.above, self.name.as_bytes());
    }
}

#[cfg(test)]
mod tests;

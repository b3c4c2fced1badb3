//! A process of this program that does nothing but stand in the same process group: what
//! somebody sends to the whole group comes to it as well, and to snapback alone never.
//!
//! Invariants: it lives no longer than who started it, and holds nothing up: one that does not
//! answer is done without. Its name is another one, so that what is sent to every snapback by
//! name is not taken for sent to the group.

use crate::caught;
use rustix::thread::set_name;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What this program is started with to be one.
pub const WORD: &str = "--witness-of-signals";
/// What it is called.
const NAME: &str = "signal-witness";
/// An answer takes no time; one that takes so long never comes.
const PATIENCE: Duration = Duration::from_secs(3);
/// What asks.
const QUESTION: u8 = b'?';

/// A signal by its number, and the process that sent it.
pub type Sent = (i32, i32);

/// The process, as who started it has it.
pub struct Witness {
    child: Child,
    /// None once it did not answer.
    line: Option<UnixStream>,
}

impl Witness {
    /// Starts one.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(PATIENCE))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).arg(WORD).env_clear().current_dir("/");
        command.stdin(OwnedFd::from(theirs.try_clone()?)).stdout(OwnedFd::from(theirs));
        let child = command.stderr(Stdio::null()).spawn()?;
        Ok(Self { child, line: Some(ours) })
    }

    /// What came to it since it was asked the last time, but for what the system sent.
    pub fn seen(&mut self) -> BTreeSet<Sent> {
        let answer = self.line.as_mut().map(ask);
        if let Some(Err(_)) = answer {
            self.line = None;
        }
        answer.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(line: &mut UnixStream) -> io::Result<BTreeSet<Sent>> {
    line.write_all(&[QUESTION])?;
    let mut count = [0];
    line.read_exact(&mut count)?;
    let mut sent = BTreeSet::new();
    for _ in 0..count[0] {
        let (mut signal, mut sender) = ([0; 4], [0; 4]);
        line.read_exact(&mut signal)?;
        line.read_exact(&mut sender)?;
        sent.insert((i32::from_ne_bytes(signal), i32::from_ne_bytes(sender)));
    }
    Ok(sent)
}

/// Is one: answers each byte that comes from `asked` with what was received until then.
///
/// # Errors
/// When signals cannot be caught, or nobody is there any more.
pub fn serve(mut asked: impl Read, mut told: impl Write) -> io::Result<()> {
    let mut incoming = SignalsInfo::<WithOrigin>::new(std::iter::empty::<i32>())?;
    caught::catch_all(&incoming.handle(), 0);
    let _ = set_name(c"signal-witness");
    let mut question = [0];
    loop {
        match asked.read(&mut question) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        // What was sent before the question was received before that was read.
        let received: BTreeSet<Sent> =
            incoming.pending().filter_map(|origin| caught::sent(&origin)).collect();
        let received: Vec<&Sent> = received.iter().take(usize::from(u8::MAX)).collect();
        let mut answer = vec![u8::try_from(received.len()).unwrap_or(u8::MAX)];
        for (signal, sender) in received {
            answer.extend(signal.to_ne_bytes());
            answer.extend(sender.to_ne_bytes());
        }
        told.write_all(&answer)?;
        told.flush()?;
    }
}

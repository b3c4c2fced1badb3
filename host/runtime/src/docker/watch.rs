//! The watcher: this program once more, in a process of its own, which lets go of what is
//! held when the one that held it is gone.
//!
//! It waits for one word on its standard input. If that ends without the word, whoever
//! would have said it was killed; in the middle of putting files back, nothing is let go of:
//! the next command goes on with that first.

use super::daemon::{Daemon, Lent};
use super::endpoint::Endpoint;
use super::let_go;
use super::marker::{self, State};
use super::record::Record;
use serde::{Deserialize, Serialize};
use snapback_core::error::{Error, Kind, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// The word that this program is started with as a watcher.
pub const WORD: &str = "--let-go-of-containers";
/// What a watcher that is not needed any more is told.
const DISMISSED: &str = "dismissed";
/// What it is told while files are put back, and when they are.
const HALF: &str = "half";
const WHOLE: &str = "whole";

/// Time between two looks at what is let go.
const AGAIN: Duration = Duration::from_secs(1);

/// What a watcher has to know.
#[derive(Serialize, Deserialize)]
struct Orders {
    endpoint: String,
    marker: String,
    record: Record,
}

/// A watcher at work.
pub struct Watcher {
    child: Child,
    orders: ChildStdin,
}

impl Watcher {
    /// Starts one; none where that is not possible: the next command is there as well.
    pub fn start(daemon: &Daemon, marker: &str, record: &Record) -> Option<Self> {
        let orders =
            Orders { endpoint: daemon.endpoint().text(), marker: marker.to_owned(), record: record.clone() };
        // What ends this one's group or session does not concern it.
        let mut child = Command::new(daemon.lent().program.as_ref()?)
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .spawn()
            .ok()?;
        let mut stdin = child.stdin.take()?;
        let text = serde_json::to_string(&orders).ok()?;
        writeln!(stdin, "{text}").ok()?;
        Some(Self { child, orders: stdin })
    }

    /// Tells it that files are being put back: it lets go of nothing then.
    ///
    /// # Errors
    /// When it is gone.
    pub fn half(&mut self) -> Result<()> {
        self.say(HALF)
    }

    /// Tells it that none is half put back any more.
    ///
    /// # Errors
    /// When it is gone.
    pub fn whole(&mut self) -> Result<()> {
        self.say(WHOLE)
    }

    fn say(&mut self, word: &str) -> Result<()> {
        let gone = |e| Error::io(e, "could not tell", "the process that watches over containers");
        writeln!(self.orders, "{word}").map_err(gone)
    }

    /// Tells it that all is done.
    pub fn dismiss(mut self) {
        let _ = self.say(DISMISSED);
        drop(self.orders);
        let _ = self.child.wait();
    }
}

/// What the watcher does: waits, and lets go unless it is told that this was done.
///
/// # Errors
/// When it was not told what to do, or the engine refuses.
pub fn serve(orders: impl Read) -> Result<()> {
    // A session of its own: what ends a terminal ends others.
    let _ = rustix::process::setsid();
    let mut lines = BufReader::new(orders).lines().map_while(std::io::Result::ok);
    let unclear = || {
        Error::new(Kind::Invalid, "a watcher is started by snapback itself")
            .hint("`snapback --help` lists what it does for people")
    };
    let first = lines.next().ok_or_else(unclear)?;
    let orders: Orders = serde_json::from_str(&first).map_err(|_| unclear())?;
    if let Some(DISMISSED | HALF) = lines.last().as_deref() {
        return Ok(());
    }
    let endpoint = Endpoint::parse(&orders.endpoint, "the order")?;
    let daemon = Daemon::patiently(endpoint, &Lent::default())?;
    marker::rename(&daemon, &orders.marker, State::Left)?;
    // What was being done when that one was killed, the engine may still be doing.
    for _ in 0..orders.record.how.lags() {
        let_go::free_of(&daemon, &orders.record)?;
        std::thread::sleep(AGAIN);
    }
    let_go::sweep(&daemon).map(drop)
}

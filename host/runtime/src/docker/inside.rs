//! This program in a container that has a volume and nothing else: it captures the volume or
//! puts it back with core, as it would outside, and its store is at the other end of a pipe.
//!
//! Nothing is taken from the container's environment. Whoever started it being gone, it
//! stops as if it had been asked to.

use super::pipe::{self, Done, Frame, Order, Told, What};
use super::place;
use snapback_core::backend::{Call, Cancel, Huge, Target};
use snapback_core::disk::Disk;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::Key;
use snapback_core::report::Report;
use snapback_core::store::{Far, Store};
use snapback_core::tree::statcache::carry;
use snapback_core::tree::{self, Directory};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The word that this program is started with in a container.
pub const WORD: &str = "--volume-in-a-container";
/// Where the store is that a restore works with.
const STORE: &str = "/store/store";
/// What is gathered before it is sent, in bytes.
const ROOM: usize = 256 * 1024;

/// Does what the order on `input` says, and answers on `output`.
///
/// # Errors
/// When there is no order, or nobody to answer to.
pub fn serve(mut input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Result<()> {
    let no_order = || Error::new(Kind::Invalid, "this is started by snapback itself");
    let order = pipe::next(&mut input)?.filter(|frame| frame.what == What::Order).ok_or_else(no_order)?;
    let order: Order = serde_json::from_slice(&order.bytes).map_err(|_| no_order())?;
    let cache = pipe::next(&mut input)?.filter(|frame| frame.what == What::Cache).ok_or_else(no_order)?;
    let cancel = Cancel::default();
    let (answers, heard) = channel();
    let told = cancel.clone();
    std::thread::spawn(move || listen(input, &answers, &told));
    let output: Box<dyn Write + Send> = Box::new(output);
    let line = Arc::new(Line {
        output: Mutex::new(BufWriter::with_capacity(ROOM, output)),
        heard: Mutex::new(heard),
    });
    let done = work(&order, cache.bytes, &line, cancel);
    let done = done.unwrap_or_else(|error| Done::from(&error));
    line.say(What::Done, &[&serde_json::to_vec(&done).expect("an end can be written")])?;
    line.flush()
}

/// Hands on what comes in; the end of it, or the word, stops everything.
fn listen(mut input: impl Read, answers: &Sender<Frame>, cancel: &Cancel) {
    while let Ok(Some(frame)) = pipe::next(&mut input) {
        match frame.what {
            What::Cancel => cancel.cancel(),
            _ => drop(answers.send(frame)),
        }
    }
    cancel.cancel();
}

fn work(order: &Order, cache: Vec<u8>, line: &Arc<Line>, cancel: Cancel) -> Result<Done> {
    let store = Store::create_far(Path::new(STORE), Disk::default(), line.clone())?;
    if !cache.is_empty() {
        carry::keep(&store, &order.target, &order.setting, cache);
    }
    let directory = Directory::open(
        Path::new(&order.path),
        &order.setting,
        ".",
        &place::options(order.own.clone().into())?,
    )?;
    let target = Target { name: order.target.clone(), backend: String::new(), settings: [].into() };
    let call = Call {
        cancel,
        partial: order.partial,
        only: Arc::new(order.only.clone()),
        huge: order.huge.map(|(files, bytes)| Huge { files, bytes }),
        ..Call::about(order.path.clone().into(), target, Some(store.clone()), line.clone())
    };
    let key = |text: &String| Key::parse(text);
    if let Some((stored, current)) = &order.restore {
        let outcome = tree::restore(&directory, &call, &key(stored)?, &key(current)?)?;
        return Ok(Done::Restored(outcome.refused.len()));
    }
    let writer = Arc::new(store.writer()?);
    let call = Call { writer: Some(writer.clone()), ..call };
    let previous = order.previous.as_ref().map(key).transpose()?;
    let captured = tree::capture(&directory, &call, previous.as_ref())?;
    // What was gathered and is still here goes, too, before it is said that all went.
    writer.seal()?;
    if let Some(cache) = carry::fetch(store.path(), &order.target, &order.setting) {
        line.say(What::Cache, &[&cache])?;
    }
    Ok(Done::Captured(captured.to_string()))
}

/// The way to the other end.
struct Line {
    output: Mutex<BufWriter<Box<dyn Write + Send>>>,
    /// Answers; who asks waits for one before another asks.
    heard: Mutex<Receiver<Frame>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    fn say(&self, what: What, parts: &[&[u8]]) -> Result<()> {
        let mut output = lock(&self.output);
        let length = parts.iter().map(|part| part.len()).sum();
        let done = output.write_all(&pipe::head(what, length));
        done.and_then(|()| parts.iter().try_for_each(|part| output.write_all(part))).map_err(unheard)
    }

    fn flush(&self) -> Result<()> {
        lock(&self.output).flush().map_err(unheard)
    }

    fn ask(&self, what: What, key: &Key) -> Result<Frame> {
        let heard = lock(&self.heard);
        self.say(what, &[&key.to_bytes()])?;
        self.flush()?;
        heard.recv().map_err(|_| Error::new(Kind::Cancelled, "whoever started this is gone"))
    }

    fn tell(&self, told: &Told) {
        // What cannot be told is no reason to stop; what must be sent says so itself.
        let _ = self.say(What::Tell, &[&serde_json::to_vec(told).unwrap_or_default()]);
    }
}

fn unheard(error: std::io::Error) -> Error {
    Error::io(error, "could not write to", "the other end")
}

impl Far for Line {
    fn contains(&self, key: &Key) -> Result<bool> {
        Ok(self.ask(What::Has, key)?.bytes.first() == Some(&1))
    }

    fn read(&self, key: &Key) -> Result<Vec<u8>> {
        let frame = self.ask(What::Get, key)?;
        match frame.bytes.split_first() {
            Some((_, bytes)) => Ok(bytes.to_vec()),
            None => Err(Error::new(Kind::NotFound, format!("{key} is not in the store"))),
        }
    }

    fn put(&self, key: &Key, bytes: &[u8]) -> Result<()> {
        self.say(What::Put, &[&key.to_bytes(), bytes])
    }
}

impl Report for Line {
    fn log(&self, _: &str, level: &str, message: &str) {
        self.tell(&Told::Log(level.to_owned(), message.to_owned()));
    }

    fn omitted(&self, _: &str, subject: &[u8], reason: &str) {
        self.tell(&Told::Omitted(subject.to_vec(), reason.to_owned()));
    }

    fn refused(&self, _: &str, subject: &[u8], reason: &str) {
        self.tell(&Told::Refused(subject.to_vec(), reason.to_owned()));
    }

    fn begin(&self, title: &str, total: Option<u64>, unit: &str) {
        self.tell(&Told::Begin(title.to_owned(), total, unit.to_owned()));
    }

    fn advance(&self, by: u64) {
        self.tell(&Told::Advance(by));
    }

    fn end(&self) {
        self.tell(&Told::End);
    }
}

//! What is written after a copy was taken, as the server passes it on to replicas.
//!
//! With it is known who wrote what between the copy and the moment at which the data is
//! exchanged: nobody, we ourselves into databases that were empty, or somebody else, be it
//! into one of these.

use crate::scope::Scope;
use crate::wire::{PATIENCE, Reply, Wire, ended, put, strange};
use snapback_sdk::streams::StreamError;
use snapback_sdk::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufRead;
use std::time::Duration;

/// How long nothing may come before the server is told again how far we are.
const AGAIN: Duration = Duration::from_millis(100);
/// Bytes of others' commands, and keys of theirs, that are remembered.
const MANY: (usize, usize) = (128 << 20, 200_000);
/// What says nothing about data.
const SILENT: [&str; 8] = ["PING", "REPLCONF", "SELECT", "MULTI", "EXEC", "PUBLISH", "SPUBLISH", "SCRIPT"];
/// What changes more than the keys that it names.
const SWEEPING: [&str; 6] = ["FLUSHALL", "FLUSHDB", "SWAPDB", "MOVE", "COPY", "FUNCTION"];

/// The words of a command, and its length in bytes.
type Whole<'a> = (Vec<&'a [u8]>, usize);
/// A key of a database.
pub type Place = (u64, Vec<u8>);

/// The connection that a copy came through.
pub struct Follower {
    wire: Wire,
    scope: Scope,
    /// How far the stream was read, in the server's count.
    position: u64,
    pending: Vec<u8>,
    database: u64,
    /// Databases that we fill.
    ours: BTreeSet<u64>,
    /// What we sent there, by [`print`], in that order.
    expected: VecDeque<u64>,
    /// When that expires, in milliseconds since 1970, by [`print`] of its removal.
    expiring: BTreeMap<u64, u64>,
    others: Vec<(u64, Vec<Vec<u8>>)>,
    bytes: usize,
    /// The keys that others wrote to, as far as that was found out.
    written: BTreeSet<Place>,
    /// Where each command has its keys.
    keys: BTreeMap<String, Keys>,
}

/// Which words of a command are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// From the first to the last (from the end, where negative), with so many words from
    /// one to the next.
    At(usize, i64, usize),
    /// The server has to be asked for each.
    Moving,
}

impl Keys {
    /// Those among `words`.
    fn of(self, words: &[Vec<u8>]) -> impl Iterator<Item = &Vec<u8>> {
        let (first, last, step) = match self {
            Self::At(first, last, step) if last < 0 => {
                (first, words.len().saturating_add_signed(last as isize), step)
            }
            Self::At(first, last, step) => (first, last as usize, step),
            Self::Moving => (0, 0, 1),
        };
        let many = if first == 0 { 0 } else { (last + 1).saturating_sub(first) };
        words.iter().skip(first).take(many).step_by(step.max(1))
    }
}

impl Follower {
    /// Follows from `position`, where the copy ends, what concerns `scope`.
    pub fn new(wire: Wire, scope: Scope, position: u64) -> Self {
        Self {
            wire,
            scope,
            position,
            pending: Vec::new(),
            database: 0,
            ours: BTreeSet::new(),
            expected: VecDeque::new(),
            expiring: BTreeMap::new(),
            others: Vec::new(),
            bytes: 0,
            written: BTreeSet::new(),
            keys: BTreeMap::new(),
        }
    }

    /// From now on `database` is one that we fill: what else is written there is others'.
    pub fn own(&mut self, database: u64) {
        self.ours.insert(database);
    }

    /// It is none of ours.
    pub fn disown(&mut self, database: u64) {
        self.ours.remove(&database);
    }

    /// We are about to give a command for `key` there, which expires then.
    pub fn expect(&mut self, database: u64, name: &[u8], key: &[u8], expires: Option<u64>) {
        self.expected.push_back(print(database, name, key));
        if let Some(at) = expires {
            self.expiring.insert(print(database, b"DEL", key), at);
        }
    }

    /// Whether it is the next one that we gave, or one after it: of a key that has expired by
    /// then the server says nothing.
    fn is_expected(&mut self, words: &[&[u8]]) -> bool {
        let (Some(name), Some(key)) = (words.first(), words.get(1)) else { return false };
        let print = print(self.database, name, key);
        let Some(at) = self.expected.iter().position(|expected| *expected == print) else { return false };
        self.expected.drain(..=at);
        true
    }

    /// Takes in what has come, without waiting: what nobody takes fills the server's memory.
    ///
    /// # Errors
    /// When the connection fails, or others write too much.
    pub fn drain(&mut self) -> Result<()> {
        self.acknowledge()?;
        self.take_buffered();
        loop {
            match self.wire.stream.input().input().read(256 * 1024) {
                Ok(bytes) if bytes.is_empty() => break,
                Ok(bytes) => self.pending.extend_from_slice(&bytes),
                Err(StreamError::Closed) => return Err(ended()),
                Err(StreamError::LastOperationFailed(error)) => {
                    return Err(Error::new(ErrorKind::Other, error.to_debug_string()));
                }
            }
            self.parse()?;
        }
        self.parse()
    }

    /// Reads on to `position`.
    ///
    /// # Errors
    /// As [`Self::drain`] has them.
    pub fn reach(&mut self, position: u64) -> Result<()> {
        self.take_buffered();
        self.parse()?;
        let mut silent = Duration::ZERO;
        while self.position < position {
            self.acknowledge()?;
            if self.wire.await_more(AGAIN)? {
                self.take_buffered();
                self.parse()?;
                silent = Duration::ZERO;
            } else if silent > PATIENCE {
                return Err(crate::wire::lost(std::io::ErrorKind::TimedOut.into()));
            }
            silent += AGAIN;
        }
        Ok(())
    }

    /// Says how far we came. Not before that, and not before it knows that the copy has
    /// arrived, does the server send what follows the copy.
    fn acknowledge(&mut self) -> Result<()> {
        let mut command = Vec::new();
        put(&mut command, &[b"REPLCONF", b"ACK", self.position.to_string().as_bytes()]);
        self.wire.send(&command)
    }

    /// Where the stream was read to.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The keys that others wrote to, as the server behind `ask` tells them.
    ///
    /// # Errors
    /// `Changed` when it was more than keys.
    pub fn written(&mut self, ask: &mut Wire) -> Result<&BTreeSet<Place>> {
        self.bytes = 0;
        for (database, command) in std::mem::take(&mut self.others) {
            let name = String::from_utf8_lossy(&command[0]).to_uppercase();
            if SWEEPING.contains(&&*name) {
                return Err(too_much(&format!("a client gave the command {name} meanwhile")));
            }
            if self.ours.contains(&database) {
                if self.has_expired(database, &name, &command, ask)? {
                    continue;
                }
                return Err(too_much(&format!(
                    "a client wrote to database {database}, which was empty ({name})"
                )));
            }
            let keys = match self.keys.get(&name) {
                Some(keys) => *keys,
                None => {
                    let keys = keys_of(ask, &name)?;
                    self.keys.insert(name, keys);
                    keys
                }
            };
            if keys == Keys::Moving {
                let mut question: Vec<&[u8]> = vec![b"COMMAND", b"GETKEYS"];
                question.extend(command.iter().map(Vec::as_slice));
                let Reply::List(found) = ask.ask(&question)? else { return Err(strange("no keys")) };
                for key in found {
                    let Reply::Bytes(key) = key else { return Err(strange("no key")) };
                    self.written.insert((database, key));
                }
            } else {
                self.written.extend(keys.of(&command).map(|key| (database, key.clone())));
            }
        }
        match self.written.len() {
            many if many > MANY.1 => Err(too_much("clients wrote to very many keys meanwhile")),
            _ => Ok(&self.written),
        }
    }

    /// Whether the server removed what we put into one of our databases, because its time was up.
    fn has_expired(&self, database: u64, name: &str, command: &[Vec<u8>], ask: &mut Wire) -> Result<bool> {
        if !matches!(name, "DEL" | "UNLINK") {
            return Ok(false);
        }
        let now = crate::scope::time(ask)?;
        let is_due = |key: &Vec<u8>| {
            self.expiring.get(&print(database, b"DEL", key)).is_some_and(|expires| *expires <= now)
        };
        Ok(command[1..].iter().all(is_due))
    }

    fn take_buffered(&mut self) {
        let buffered = self.wire.stream.held();
        self.pending.extend_from_slice(buffered);
        let len = buffered.len();
        self.wire.stream.consume(len);
    }

    /// Takes whole commands off what is pending.
    fn parse(&mut self) -> Result<()> {
        let (mut pending, mut done) = (std::mem::take(&mut self.pending), 0);
        while let Some((command, len)) = command(&pending[done..])? {
            done += len;
            self.position += len as u64;
            let Some(name) = command.first().map(|name| String::from_utf8_lossy(name).to_uppercase()) else {
                continue;
            };
            if name == "SELECT" {
                let number = command.get(1).and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
                self.database = number.ok_or_else(|| strange("SELECT without a number"))?;
            }
            if SILENT.contains(&&*name) || self.ours.contains(&self.database) && self.is_expected(&command) {
                continue;
            }
            let concerns = |database: &u64| self.ours.contains(database) || self.scope.has(*database);
            let wide = name == "FLUSHALL" || name == "SWAPDB";
            if wide || concerns(&self.database) || reaches(&name, &command).is_some_and(|at| concerns(&at)) {
                self.bytes += len;
                if self.bytes > MANY.0 {
                    return Err(too_much("clients write more than can be told apart"));
                }
                let command = command.into_iter().map(<[u8]>::to_vec).collect();
                self.others.push((self.database, command));
            }
        }
        pending.drain(..done);
        self.pending = pending;
        Ok(())
    }
}

/// Asks which words of the command `name` are keys.
fn keys_of(ask: &mut Wire, name: &str) -> Result<Keys> {
    let reply = ask.ask(&[b"COMMAND", b"INFO", name.as_bytes()])?;
    let Reply::List(list) = &reply else { return Err(strange("no list of commands")) };
    let Some(Reply::List(info)) = list.first() else {
        return Err(too_much(&format!("a client gave the command {name} meanwhile")));
    };
    let number = |at: usize| match info.get(at) {
        Some(Reply::Number(number)) => *number,
        _ => 0,
    };
    let moving = match info.get(2) {
        Some(Reply::List(flags)) => flags.contains(&Reply::Word("movablekeys".into())),
        _ => true,
    };
    match (moving, usize::try_from(number(3)), usize::try_from(number(5))) {
        (false, Ok(first), Ok(step)) if first > 0 => Ok(Keys::At(first, number(4), step)),
        _ => Ok(Keys::Moving),
    }
}

fn too_much(why: &str) -> Error {
    Error::new(ErrorKind::Changed, why).with_hint("stop the clients that write to Redis, then try again")
}

/// The database beside its own that a command reaches.
fn reaches(name: &str, words: &[&[u8]]) -> Option<u64> {
    let word = match name {
        "MOVE" => words.get(2),
        "COPY" => words.iter().skip(3).skip_while(|word| !word.eq_ignore_ascii_case(b"DB")).nth(1),
        _ => None,
    };
    std::str::from_utf8(word?).ok()?.parse().ok()
}

/// A command for a key, in short: which it is, not what it says.
fn print(database: u64, name: &[u8], key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (database, name.to_ascii_uppercase(), key).hash(&mut hasher);
    hasher.finish()
}

/// The command at the start of `bytes`, and how long it is; nothing when it is not whole.
fn command(bytes: &[u8]) -> Result<Option<Whole<'_>>> {
    let mut at = 0;
    // Between commands the server may send an empty line.
    while bytes.get(at) == Some(&b'\n') {
        at += 1;
    }
    let Some(count) = number(bytes, &mut at, b'*')? else { return Ok(None) };
    let mut words = Vec::new();
    for _ in 0..count {
        let Some(len) = number(bytes, &mut at, b'$')? else { return Ok(None) };
        let Some(word) = bytes.get(at..at.saturating_add(len)) else { return Ok(None) };
        words.push(word);
        at += len + 2;
    }
    Ok((at <= bytes.len()).then_some((words, at)))
}

fn number(bytes: &[u8], at: &mut usize, kind: u8) -> Result<Option<usize>> {
    let rest = bytes.get(*at..).unwrap_or_default();
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
    let digits = line.strip_prefix(&[kind]).and_then(|digits| std::str::from_utf8(digits).ok());
    let value = digits.and_then(|digits| digits.parse().ok());
    *at += end + 1;
    value.map(Some).ok_or_else(|| strange(&String::from_utf8_lossy(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_where_the_server_says() {
        let words: Vec<Vec<u8>> =
            ["MSET", "a", "1", "b", "2"].iter().map(|word| word.as_bytes().to_vec()).collect();
        let of = |keys: Keys| {
            keys.of(&words).map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(Keys::At(1, -1, 2)), ["a", "b"]);
        assert_eq!(of(Keys::At(1, 1, 1)), ["a"]);
        assert_eq!(of(Keys::At(1, -1, 1)), ["a", "1", "b", "2"]);
        assert_eq!(of(Keys::At(9, 9, 1)), [""; 0]);
    }

    #[test]
    fn a_command_may_reach_another_database() {
        let reached =
            |words: &[&str]| reaches(words[0], &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        assert_eq!(reached(&["MOVE", "k", "3"]), Some(3));
        assert_eq!(reached(&["COPY", "a", "b", "REPLACE", "db", "4"]), Some(4));
        assert_eq!(reached(&["COPY", "DB", "1"]), None);
        assert_eq!(reached(&["SET", "k", "3"]), None);
    }

    #[test]
    fn commands_are_cut_out_of_what_has_come() {
        let mut stream = Vec::new();
        put(&mut stream, &[b"SET", b"k\r\n", b"v"]);
        let len = stream.len();
        for cut in 0..len {
            assert_eq!(command(&stream[..cut]).unwrap(), None, "{cut}");
        }
        stream.push(b'*');
        assert_eq!(command(&stream).unwrap(), Some((vec![&b"SET"[..], b"k\r\n", b"v"], len)));
        assert!(command(b"+OK\r\n").is_err());
    }
}

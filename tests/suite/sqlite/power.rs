//! The machine dies while a database is put back: what SQLite had not synced is lost, all of it or
//! some, and the next command finishes the step or takes it back.
//!
//! Core's own tests cut the power at every operation of its disk; SQLite's own operations go past
//! that. So the real program is killed at one of its calls of the system, and strace has told all that
//! it did to the database, its journal and its log, with every byte: from this the files are made again
//! as a power cut may leave them. Each page that was written since the last sync may be there or not, and
//! so each name that came or went. The store is as it was at that call. SNAPBACK_CUTS sets the number of
//! cuts for each kind of restore, SNAPBACK_SEED where they are.

use super::*;
use crate::sandbox;
use snapback_tests::{Chance, say, times};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Cuts of each kind, unless SNAPBACK_CUTS says otherwise.
const CUTS: u64 = 12;
/// What a disk writes whole or not at all.
const SECTOR: usize = 512;
/// Calls that change a file or a name, or make a change last.
const CHANGES: [&str; 8] =
    ["pwrite64", "write", "ftruncate", "fsync", "fdatasync", "openat", "unlink", "unlinkat"];

/// One call of the system, as strace told it.
struct Call {
    thread: String,
    name: String,
    /// A string or the path of a descriptor as its bytes, all else as it was told.
    words: Vec<Vec<u8>>,
    returned: Option<i64>,
}

impl Call {
    fn number(&self, at: usize) -> usize {
        std::str::from_utf8(&self.words[at]).unwrap().parse().unwrap()
    }

    fn path(&self, at: usize) -> PathBuf {
        PathBuf::from(String::from_utf8(self.words[at].clone()).unwrap())
    }
}

/// A line of it; none where it is about something else.
fn call(line: &str) -> Option<Call> {
    let (thread, rest) = line.split_once(' ')?;
    let (name, rest) = rest.trim_start().split_once('(')?;
    let (inside, returned) = rest.rsplit_once(" = ")?;
    let inside = inside.trim_end().strip_suffix(')')?;
    let word = |word: &str| match (word.split_once('<'), word.strip_prefix('"')) {
        (_, Some(text)) => bytes(text.trim_end_matches('"')),
        // A file that was removed has no name that counts.
        (Some((_, path)), _) => path.strip_suffix('>').map(bytes).unwrap_or_default(),
        _ => word.as_bytes().to_vec(),
    };
    let returned = returned.split([' ', '<']).next().and_then(|number| number.parse().ok());
    let words = inside.split(", ").map(word).collect();
    Some(Call { thread: thread.into(), name: name.into(), words, returned })
}

/// What strace wrote as `\x2f\x74`.
fn bytes(text: &str) -> Vec<u8> {
    match text.strip_prefix("\\x") {
        Some(hex) => hex.split("\\x").map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect(),
        None => text.as_bytes().to_vec(),
    }
}

/// The calls of a trace; those that another thread's stand in the middle of are put together.
fn calls(trace: &str) -> Vec<Call> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut all = Vec::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        if let Some(begin) = line.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, begin);
        } else if rest.trim_start().starts_with("<... ") {
            let end = rest.split_once(" resumed>").map_or("", |(_, end)| end);
            all.extend(begun.remove(thread).and_then(|begin| call(&format!("{begin}{end}"))));
        } else {
            all.extend(call(line));
        }
    }
    all
}

/// A file as it is on the disk for sure, and what was written to it since.
#[derive(Clone, Default)]
struct File {
    now: Vec<u8>,
    durable: Vec<u8>,
    written: Vec<Write>,
}

/// What may be lost: bytes at a place, or a length.
#[derive(Clone)]
enum Write {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

impl Write {
    fn onto(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::Bytes(at, new) => {
                bytes.resize(bytes.len().max(at + new.len()), 0);
                bytes[*at..at + new.len()].copy_from_slice(new);
            }
        }
    }
}

impl File {
    fn write(&mut self, write: Write) {
        write.onto(&mut self.now);
        match write {
            Write::Bytes(at, bytes) => {
                let pieces = bytes.chunks(SECTOR).enumerate();
                self.written.extend(pieces.map(|(n, piece)| Write::Bytes(at + n * SECTOR, piece.to_vec())));
            }
            length => self.written.push(length),
        }
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.now);
        self.written.clear();
    }

    /// What a power cut leaves, where `keeps` says what of that which was not synced stays.
    fn left(&self, mut keeps: impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        self.written.iter().filter(|_| keeps()).for_each(|write| write.onto(&mut bytes));
        bytes
    }
}

/// The database and what lies beside it.
struct Machine {
    dir: PathBuf,
    files: Vec<File>,
    /// By name the file that is there for sure, and the one that is there now.
    names: BTreeMap<String, (Option<usize>, Option<usize>)>,
}

impl Machine {
    /// As all is in `dir`, on the disk for sure.
    fn new(dir: &Path) -> Self {
        let mut machine = Self { dir: dir.to_owned(), files: Vec::new(), names: BTreeMap::new() };
        for name in ["app.db", "app.db-journal", "app.db-wal"] {
            let file = std::fs::read(dir.join(name)).ok().map(|bytes| {
                machine.files.push(File { now: bytes.clone(), durable: bytes, written: Vec::new() });
                machine.files.len() - 1
            });
            machine.names.insert(name.to_owned(), (file, file));
        }
        machine
    }

    /// Does what `call` did.
    fn act(&mut self, call: &Call) {
        if call.returned.is_none_or(|returned| returned < 0) {
            return;
        }
        let path = match &call.name[..] {
            "openat" | "unlinkat" => call.path(0).join(call.path(1)),
            _ => call.path(0),
        };
        if path == self.dir && call.name == "fsync" {
            self.names.values_mut().for_each(|(sure, now)| *sure = *now);
        }
        let name = path.strip_prefix(&self.dir).ok().and_then(Path::to_str);
        let Some((_, now)) = name.and_then(|name| self.names.get_mut(name)) else { return };
        match (&call.name[..], *now) {
            ("openat", None) if call.words[2].windows(7).any(|flag| flag == b"O_CREAT") => {
                *now = Some(self.files.len());
                self.files.push(File::default());
            }
            ("unlink" | "unlinkat", _) => *now = None,
            ("pwrite64", Some(file)) => {
                self.files[file].write(Write::Bytes(call.number(3), call.words[1].clone()));
            }
            ("ftruncate", Some(file)) => self.files[file].write(Write::Length(call.number(1))),
            ("fsync" | "fdatasync", Some(file)) => self.files[file].sync(),
            ("openat", _) => {}
            (name, _) => panic!("{name} of {}", path.display()),
        }
    }

    /// Makes the files what a power cut leaves of them now.
    fn cut(&self, mut keeps: impl FnMut() -> bool) {
        for (name, (sure, now)) in &self.names {
            let path = self.dir.join(name);
            match if keeps() { now } else { sure } {
                Some(file) => std::fs::write(path, self.files[*file].left(&mut keeps)).unwrap(),
                None => drop(std::fs::remove_file(path)),
            }
        }
    }
}

/// Undoes under strace, killed at the call `at` (its name, and which one) if that is given.
fn undo(s: &Sandbox, at: Option<&(String, usize)>) -> Vec<Call> {
    let trace = s.dir().join("trace");
    let mut strace = s.command("strace");
    strace.args(["-f", "-y", "-xx", "-s", "1000000", "-o"]).arg(&trace);
    for name in ["", "app.db", "app.db-journal", "app.db-wal"] {
        strace.arg("-P").arg(if name.is_empty() { s.project() } else { s.project().join(name) });
    }
    strace.args(["-e", &format!("trace={}", CHANGES.join(","))]);
    if let Some((name, number)) = at {
        strace.args(["-e", &format!("inject={name}:signal=SIGKILL:when={number}")]);
    }
    let done = strace.arg(crate::PROGRAM).arg("undo").output().expect("strace can be started");
    assert_eq!(done.status.success(), at.is_none(), "{at:?}: {}", String::from_utf8_lossy(&done.stderr));
    calls(&std::fs::read_to_string(&trace).unwrap())
}

/// Where each call stands among those of its name in its thread.
fn places(calls: &[Call]) -> Vec<(String, usize)> {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    let place = |call: &Call| (call.name.clone(), 0);
    let mut all: Vec<_> = calls.iter().map(place).collect();
    for (at, call) in calls.iter().enumerate() {
        let count = counts.entry((&call.thread, &call.name)).or_default();
        *count += 1;
        all[at].1 = *count;
    }
    all
}

/// Kinds of restore: what the database was (its journal mode, bytes of a page), what it is, how an undo
/// writes it.
const KINDS: [(&str, u32, &str, u32); 5] = [
    ("delete", 4096, "delete", 4096),
    ("wal", 4096, "wal", 4096),
    ("delete", 1024, "delete", 4096),
    ("delete", 4096, "wal", 4096),
    ("wal", 4096, "delete", 4096),
];

#[test]
fn when_the_power_goes_while_a_database_is_put_back_the_step_is_finished_or_taken_back() {
    if !ready() || !have("strace") {
        return;
    }
    let mut chance = Chance::new("power cuts", 20_260_607);
    let (mut cuts, mut pending, mut half) = (0, 0, 0);
    for (was, was_size, is, is_size) in KINDS {
        let s = sandbox();
        let kind = format!("{was} {was_size} under {is} {is_size}");
        sql(&s, "app", &format!("PRAGMA page_size = {was_size}\nPRAGMA journal_mode = {was}"));
        make(&s, "app", was, 400);
        s.run(&format!(
            "rm app.db; python3 -c \"import sqlite3; c = sqlite3.connect('app.db'); \
             c.executescript('PRAGMA page_size = {is_size}; PRAGMA journal_mode = {is}; {MORE}'); c.close()\""
        ));
        let mut machine = Machine::new(&s.project());
        let calls = undo(&s, None);
        calls.iter().for_each(|call| machine.act(call));
        // What an undo said is done is done, whatever was not synced.
        machine.cut(|| false);
        assert_eq!(count(&s, "app"), "[(400,)]", "{kind}, after the undo");
        is_sound(&s, "app");
        let places = places(&calls);
        assert!(places.len() > 10, "{kind}: {} calls", places.len());
        for _ in 0..times("SNAPBACK_CUTS", CUTS) {
            s.ok(["redo"]);
            assert_eq!(count(&s, "app"), "[(90,)]", "{kind}");
            let at = chance.of(&places).clone();
            let mut machine = Machine::new(&s.project());
            undo(&s, Some(&at)).iter().for_each(|call| machine.act(call));
            let place = format!("{kind}, {} {} of {places:?}, SNAPBACK_SEED={}", at.0, at.1, chance.seed());
            let keep = chance.below(4);
            machine.cut(|| match keep {
                0 => false,
                1 => true,
                _ => chance.below(2) == 0,
            });
            cuts += 1;
            s.sh("mkdir -p ../look; rm -f ../look/*; cp app.db* ../look");
            let looks = sql(&s, "../look/app", "SELECT count(*) FROM t");
            assert!(["[(400,)]", "[(90,)]"].contains(&&looks[..]), "{place}: {looks}");
            is_sound(&s, "../look/app");
            half += u64::from(s.has("app.db-journal"));
            let is_pending = s.ok(["status", "--json"]).json()["pending"].is_object();
            pending += u64::from(is_pending);
            let words: &[&str] = match (is_pending, chance.below(4)) {
                (true, 0) => &["undo", "--take-back"],
                (true, 1) => &["snap"],
                (true, _) => &["undo", "--resume"],
                (false, _) => &["status"],
            };
            s.ok(words);
            let want = match is_pending {
                true if words.contains(&"--take-back") => "[(90,)]",
                true => "[(400,)]",
                false => &looks,
            };
            assert_eq!(count(&s, "app"), want, "{place}, {words:?}");
            is_sound(&s, "app");
            if want == "[(90,)]" {
                s.ok(["undo"]);
            }
            assert_eq!(count(&s, "app"), "[(400,)]", "{place}, {words:?}, undo");
        }
    }
    say(&format!(
        "{cuts} power cuts: {pending} left the step unfinished, {half} a journal beside the database"
    ));
    assert!(pending > cuts / 4 && half > 0, "{cuts} cuts: {pending} unfinished, {half} with a journal");
}

/// What the database is made of by the run.
const MORE: &str = "CREATE TABLE t(a INTEGER PRIMARY KEY, b); WITH RECURSIVE n(i) AS \
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90) INSERT INTO t SELECT i, hex(zeroblob(200)) FROM n";

//! Databases with other processes at work on them: Python with its own SQLite.

mod capture;
mod changed;
mod durable;
mod hostile;
mod left;
mod length;
mod locks;
mod log;
mod own;
mod restore;
mod table;

use super::Database;
use crate::testing::Scratch;
use snapback_core::backend::{Call, Cancel, Elsewhere, Hold, Target};
use snapback_core::database::{Database as Captured, Found};
use snapback_core::disk::Disk;
use snapback_core::error::Result;
use snapback_core::object::Key;
use snapback_core::report::Report;
use snapback_core::store::{Source, Store, content};
use snapback_core::tree::node::Node;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

/// What was told, one line each.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Report for Told {
    fn log(&self, _: &str, level: &str, message: &str) {
        self.0.lock().unwrap().push(format!("{level}: {message}"));
    }

    fn omitted(&self, _: &str, subject: &[u8], reason: &str) {
        self.0.lock().unwrap().push(format!("omitted: {}: {reason}", subject.escape_ascii()));
    }

    fn refused(&self, _: &str, _: &[u8], reason: &str) {
        self.0.lock().unwrap().push(format!("refused: {reason}"));
    }
}

/// A project with a database `app.db`, a store, and what was captured last.
struct World {
    scratch: Scratch,
    store: Arc<Store>,
    told: Arc<Told>,
    timeout: &'static str,
    last: Mutex<Option<Key>>,
    /// Names of databases that are captured and put back with this one.
    known: &'static [&'static str],
}

/// How SQLite begins a journal and a log.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const LOG: [u8; 8] = [0x37, 0x7f, 0x06, 0x82, 0, 0x2d, 0xe2, 0x18];

impl World {
    fn new() -> Self {
        let scratch = Scratch::new();
        let store = Store::create(&scratch.path().join(".store"), Disk::default().with_sync(false)).unwrap();
        Self { scratch, store, told: Arc::default(), timeout: "300ms", last: Mutex::default(), known: &[] }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn database(&self) -> Database {
        let options = [("busy-timeout".to_owned(), self.timeout.to_owned())];
        Database::open(self.scratch.path(), "path", "app.db", &options).unwrap()
    }

    fn call(&self, hold: Option<Arc<Hold>>) -> Call {
        let target = Target { name: "app".into(), backend: "sqlite".into(), settings: Default::default() };
        let root = self.scratch.path().to_owned();
        let known =
            self.known.iter().map(|name| Elsewhere { path: name.as_bytes().to_vec(), target: "db".into() });
        Call {
            hold,
            elsewhere: Arc::new(known.collect()),
            ..Call::about(root, target, Some(self.store.clone()), self.told.clone())
        }
    }

    fn try_capture_with(&self, hold: Option<Arc<Hold>>) -> Result<Option<Key>> {
        let writer = Arc::new(self.store.writer()?);
        let call = Call { writer: Some(writer.clone()), ..self.call(hold) };
        let mut last = self.last.lock().unwrap();
        let key = self.database().capture(&call, last.as_ref())?;
        writer.seal()?;
        *last = key;
        Ok(key)
    }

    fn try_capture(&self) -> Result<Option<Key>> {
        self.try_capture_with(None)
    }

    fn capture(&self) -> Key {
        self.try_capture().unwrap().expect("something is there")
    }

    fn restore(&self, stored: Option<Key>, current: Option<Key>) -> Result<()> {
        self.database().restore(&self.call(None), stored.as_ref(), current.as_ref())
    }

    /// Captures what is there, then puts `stored` back, as an undo does.
    fn undo(&self, stored: Option<Key>) -> Result<()> {
        let current = self.try_capture()?;
        self.restore(stored, current)
    }

    fn captured(&self, key: Key) -> Found {
        Captured::load(&*self.store, &key).unwrap().found
    }

    /// The stored bytes of the database itself.
    fn bytes(&self, key: Key) -> Vec<u8> {
        let captured = self.captured(key);
        let Node::File { content, size, .. } = captured.entries()[0].node else { panic!("{captured:?}") };
        content::read_all(&*self.store as &dyn Source, &content, size, u64::MAX).unwrap()
    }

    fn same_state(&self, a: Key, b: Key) -> bool {
        self.captured(a).same_state(&self.captured(b))
    }

    fn python(&self) -> Python {
        Python::start(self)
    }

    /// Runs statements, one a line, in a process that ends then.
    fn sql(&self, lines: &str) -> String {
        let mut python = self.python();
        python.say("c = sqlite3.connect('app.db', isolation_level=None)");
        let mut last = String::new();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            last = python.say(&format!("c.execute({line:?}).fetchall()"));
            assert!(!last.starts_with('!'), "{line}: {last}");
        }
        python.say("c.close()");
        last
    }

    /// A database with a table of `rows` rows of 100 bytes.
    fn make(&self, pragmas: &str, rows: u32) {
        self.sql(&format!(
            "{pragmas}
             CREATE TABLE t(a INTEGER PRIMARY KEY, b)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
             INSERT INTO t SELECT i, printf('row %d ', i) || hex(zeroblob(50)) FROM n"
        ));
    }

    fn count(&self) -> String {
        self.sql("SELECT count(*) FROM t")
    }

    fn is_sound(&self) {
        assert_eq!(self.sql("PRAGMA integrity_check"), "[('ok',)]");
    }

    /// All files of the project but the store's: name, inode, length, content.
    fn files(&self) -> Vec<(String, u64, Vec<u8>)> {
        use std::os::unix::fs::MetadataExt;
        let mut all = Vec::new();
        for entry in std::fs::read_dir(self.scratch.path()).unwrap().map(|entry| entry.unwrap()) {
            let name = entry.file_name().into_string().unwrap();
            if name != ".store" && name != "harness.py" {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                all.push((name, entry.metadata().unwrap().ino(), bytes));
            }
        }
        all.sort();
        all
    }

    fn names(&self) -> Vec<String> {
        self.files().into_iter().map(|(name, ..)| name).collect()
    }
}

/// A process that does what it is told, a line at a time; killed when it is dropped.
struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

const SERVER: &str = r"
import sys, sqlite3, os, time
names = {'sqlite3': sqlite3, 'os': os, 'time': time}
for line in sys.stdin:
    try:
        try: code = compile(line.strip(), 'line', 'eval')
        except SyntaxError: code = None
        if code: answer = eval(code, names)
        else: answer = exec(line.strip(), names)
        print(repr(answer), flush=True)
    except Exception as e:
        print('!' + type(e).__name__ + ': ' + str(e), flush=True)
";

impl Python {
    fn start(world: &World) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", SERVER])
            .current_dir(world.scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("these tests need python3");
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// Begins to do a line.
    fn begin(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// What came of the line that was begun.
    fn answer(&mut self) -> String {
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    fn say(&mut self, line: &str) -> String {
        self.begin(line);
        self.answer()
    }

    /// Opens the database as `c`, so that statements are committed one by one.
    fn open(&mut self) {
        assert_eq!(self.say("c = sqlite3.connect('app.db', isolation_level=None, timeout=5)"), "None");
    }

    fn sql(&mut self, sql: &str) -> String {
        self.say(&format!("c.execute({sql:?}).fetchall()"))
    }

    fn count(&mut self) -> String {
        self.sql("SELECT count(*) FROM t")
    }

    /// Ends it as `kill -9` does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

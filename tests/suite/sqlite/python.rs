//! A Python process that does what it is told, a line at a time.

use snapback_tests::Sandbox;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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

/// The process; killed when it is dropped.
pub struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Python {
    /// Starts one in the project, as its user.
    pub fn start(s: &Sandbox) -> Self {
        Self::run(s.command("python3"))
    }

    /// Starts one in the project, as root.
    pub fn start_as_root(s: &Sandbox) -> Self {
        let mut command = Command::new("python3");
        command.current_dir(s.project());
        Self::run(command)
    }

    /// Starts one in the project, as root, with a list of processes of its own as in a container;
    /// what is started is the one before it.
    pub fn start_apart(s: &Sandbox) -> Self {
        let mut command = s.command("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "python3"]);
        Self::run(command)
    }

    fn run(mut command: Command) -> Self {
        command.args(["-c", SERVER]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 can be started");
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// Begins to do a line.
    pub fn begin(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// What came of it.
    pub fn answer(&mut self) -> String {
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    /// Does a line.
    pub fn say(&mut self, line: &str) -> String {
        self.begin(line);
        self.answer()
    }

    /// Opens the database `name`.db as `c`; each statement is committed at once.
    pub fn open(&mut self, name: &str) {
        let line = format!("c = sqlite3.connect('{name}.db', isolation_level=None, timeout=10)");
        assert_eq!(self.say(&line), "None");
    }

    /// The rows of a statement.
    pub fn sql(&mut self, sql: &str) -> String {
        self.say(&format!("c.execute({sql:?}).fetchall()"))
    }

    /// How many rows there are.
    pub fn count(&mut self) -> String {
        self.sql("SELECT count(*) FROM t")
    }

    /// Commits rows, two tables in each commit, until it is killed.
    pub fn write_without_end(&mut self) {
        self.write_without_end_and("OFF");
    }

    /// The same, with so much care for what a power cut does.
    pub fn write_without_end_and(&mut self, synchronous: &str) {
        self.sql("CREATE TABLE IF NOT EXISTS u(a INTEGER PRIMARY KEY)");
        self.sql(&format!("PRAGMA synchronous = {synchronous}"));
        self.begin(
            "[c.executescript('BEGIN IMMEDIATE; INSERT INTO t(b) VALUES(1); INSERT INTO u VALUES(NULL); COMMIT') \
             for _ in range(10**9)]",
        );
    }

    /// Ends it as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

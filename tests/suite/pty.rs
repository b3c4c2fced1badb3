//! A pseudo-terminal that a test drives by Python: for moments that tmux is too slow for, and for
//! how a process ended.

use snapback_tests::{Output, Sandbox};

/// `Terminal(words)` starts a program in a terminal of its own; `until` waits for what it shows, and
/// `next` for what it shows then.
const PRELUDE: &str = r#"
import os, pty, signal, sys, time

signal.alarm(120)

class Terminal:
    def __init__(self, *words, before=lambda: None):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            before()
            os.execvp(words[0], words)

    def more(self):
        try: some = os.read(self.fd, 4096)
        except OSError: some = b""
        self.seen += some
        return some

    def until(self, text):
        while text not in self.seen: assert self.more(), self.seen

    def next(self, text):
        self.until(text)
        self.seen = self.seen.split(text, 1)[1]

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self):
        while self.more(): pass
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return status

"#;

/// Runs `script` of python3 in the project, with `words`; it must not fail.
#[track_caller]
pub fn python(s: &Sandbox, script: &str, words: &[&str]) -> Output {
    let output = s.finish(s.command("python3").args(["-c", &format!("{PRELUDE}{script}")]).args(words));
    output.exits(0);
    output
}

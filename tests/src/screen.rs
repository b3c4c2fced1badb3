//! A terminal that a program really runs in: tmux, driven by keys and read as a screen.

use crate::{PATIENCE, Sandbox};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often it is looked for what is to appear.
const LOOK: Duration = Duration::from_millis(20);

/// A terminal of a sandbox's user; its programs are killed when it is dropped.
pub struct Screen<'a> {
    sandbox: &'a Sandbox,
    socket: String,
}

impl<'a> Screen<'a> {
    /// Starts a shell in a terminal of this size; the project is its directory.
    ///
    /// # Panics
    /// When there is no tmux: ask for it with `have`.
    pub fn new(sandbox: &'a Sandbox, columns: u32, rows: u32) -> Self {
        let socket = sandbox.dir().join("tmux").to_string_lossy().into_owned();
        let screen = Self { sandbox, socket };
        let size = [columns.to_string(), rows.to_string()];
        let shell = "PS1='ready> ' exec bash --norc --noprofile -i";
        let words = ["-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1], shell];
        screen.tmux(&words);
        screen.until("ready>");
        screen
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.sandbox.command("tmux");
        // The sandbox's user may have none that starts anything.
        command.env("SHELL", "/bin/sh");
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command.args(["-u", "-S", &self.socket]).args(words);
        command
    }

    #[track_caller]
    fn tmux(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("tmux can be run");
        assert!(output.status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys, as tmux calls them: `C-c`, `Enter`, or a letter.
    #[track_caller]
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types `text`.
    #[track_caller]
    pub fn write(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Types a line and Enter.
    #[track_caller]
    pub fn line(&self, text: &str) {
        self.write(text);
        self.press(&["Enter"]);
    }

    /// What the terminal shows.
    #[track_caller]
    pub fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same with colours.
    #[track_caller]
    pub fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until it shows `text`; returns all that it shows.
    ///
    /// # Panics
    /// When it never does.
    #[track_caller]
    pub fn until(&self, text: &str) -> String {
        self.when(text, |shown| shown.contains(text))
    }

    /// Waits until what it shows is `as_wanted`, which is `what`.
    ///
    /// # Panics
    /// When it never is.
    #[track_caller]
    pub fn when(&self, what: &str, as_wanted: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let shown = self.text();
            if as_wanted(&shown) {
                return shown;
            }
            assert!(started.elapsed() < PATIENCE, "never saw {what:?} in\n{shown}");
            std::thread::sleep(LOOK);
        }
    }

    /// Forgets what was shown.
    #[track_caller]
    pub fn clear(&self) {
        self.press(&["C-l"]);
        self.when("a prompt alone", |shown| shown.trim_end() == "ready>");
    }

    /// Changes the size of the terminal.
    #[track_caller]
    pub fn resize(&self, columns: u32, rows: u32) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// Closes the terminal, as a window is closed.
    pub fn close(&self) {
        let _ = self.command(&["kill-server"]).stderr(Stdio::null()).status();
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

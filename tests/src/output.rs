//! What a run of the program gave, and what may be asserted about it.

use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What a finished program left behind.
#[derive(Debug, Clone)]
pub struct Output {
    /// The command line, for messages.
    pub line: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Data.
    pub stdout: Vec<u8>,
    /// Talk.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The exit code; 128+n for signal n, as a shell says it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(127))
    }

    /// Standard output as one JSON document.
    ///
    /// # Panics
    /// When it is not that.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("not JSON: {e}\n{self}"))
    }

    /// Asserts the exit code.
    ///
    /// # Panics
    /// When it is another.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code(), code, "the exit code\n{self}");
        self
    }

    /// Asserts that standard error holds `words`, in any case of letters.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn says(&self, words: &str) -> &Self {
        assert!(self.err().to_lowercase().contains(&words.to_lowercase()), "does not say {words:?}\n{self}");
        self
    }

    /// Asserts that standard error does not hold `words`.
    ///
    /// # Panics
    /// When it does.
    #[track_caller]
    pub fn never_says(&self, words: &str) -> &Self {
        assert!(!self.err().to_lowercase().contains(&words.to_lowercase()), "says {words:?}\n{self}");
        self
    }

    /// Asserts that standard output holds `words`.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn prints(&self, words: &str) -> &Self {
        assert!(self.out().contains(words), "does not print {words:?}\n{self}");
        self
    }

    /// Asserts a failure told as people need it: this exit code, nothing on standard
    /// output, one `snapback:` sentence that holds all of `words`, and a `hint:` line.
    ///
    /// # Panics
    /// When it is not that.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) -> &Self {
        self.exits(code);
        let err = self.err();
        // What is said before may be talk; the sentence is the line that the hint belongs to.
        let lines: Vec<&str> = err.lines().collect();
        let hint = lines.iter().position(|line| line.starts_with("hint: "));
        let error = lines[..hint.unwrap_or(0)].iter().rev().find_map(|line| line.strip_prefix("snapback: "));
        let error = error.unwrap_or_else(|| panic!("no `snapback:` line with a `hint:`\n{self}"));
        for word in words {
            assert!(
                error.to_lowercase().contains(&word.to_lowercase()),
                "no {word:?} in the sentence\n{self}"
            );
        }
        assert!(!error.ends_with('.'), "the sentence ends with a period\n{self}");
        let hint = err.lines().find_map(|line| line.strip_prefix("hint: "));
        assert!(hint.is_some_and(|hint| hint.len() > 10), "no `hint:` line\n{self}");
        for bare in ["os error", "panicked", "RUST_BACKTRACE", "errno", "Err("] {
            assert!(!err.contains(bare), "{bare:?} is not for people\n{self}");
        }
        assert!(self.stdout.is_empty(), "data although it failed\n{self}");
        self
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "$ {}\n[{}]\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            self.status,
            self.out(),
            self.err()
        )
    }
}

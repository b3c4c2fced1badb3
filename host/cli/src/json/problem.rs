//! An error for programs: `{"error": {...}}`, one line on standard error.
//!
//! Standard output stays empty, or holds the whole document of what could be told.

use crate::talk;
use serde::Serialize;
use snapback_core::error::{Error, Kind};

/// An error.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// In the words of the contract for backends.
    kind: &'static str,
    /// What failed, and why.
    message: String,
    /// What to do.
    hint: String,
}

/// The line.
#[derive(Serialize)]
struct Line {
    error: Problem,
}

impl Problem {
    /// That a command line makes no sense, in the words of its parser.
    pub fn usage(message: &str, hint: &str) -> Self {
        Self { kind: Kind::Invalid.word(), message: message.to_owned(), hint: hint.to_owned() }
    }

    /// As a line.
    pub fn line(self) -> String {
        serde_json::to_string(&Line { error: self }).expect("text can be written as JSON")
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let hint = talk::hint(error).to_owned();
        Self { kind: error.kind().word(), message: error.message().to_owned(), hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_all_that_people_are_told() {
        let error = Error::new(Kind::NoSpace, "the disk\nis \u{1b} full").hint("free some");
        let line = Problem::from(&error).line();
        assert_eq!(
            line,
            r#"{"error":{"kind":"no-space","message":"the disk\nis \u001b full","hint":"free some"}}"#
        );
        let bare: serde_json::Value =
            serde_json::from_str(&Problem::from(&Error::new(Kind::Busy, "it is locked")).line()).unwrap();
        assert_eq!(bare["error"]["hint"], "try again when it is no longer in use");
    }
}

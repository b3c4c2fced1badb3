//! Standard error: what is said to people, and never data.
//!
//! Invariant: each message begins with `snapback: `, lines that belong to it are
//! indented; for programs, which said so with `--json`, an error is a line of JSON instead.
//! Nothing that a name or a component contains reaches the terminal as a control character.
//! Writing never fails a command: there is nobody to tell.

use crate::json::Problem;
use crate::render::plan::refusals;
use snapback_core::error::{Error, Kind, escaped, shell_word};
use snapback_core::project::STORE;
use snapback_core::report::Report;
use snapback_core::session::Finished;
use std::fmt::Display;
use std::io::Write as _;

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Errors only.
    Quiet,
    /// One line before, one line after, and warnings.
    Normal,
    /// What is going on.
    More,
    /// All of it.
    Most,
}

/// Says things.
#[derive(Debug, Clone, Copy)]
pub struct Talk {
    level: Level,
    json: bool,
}

impl Talk {
    /// Says as much as `-q` and `-v` ask for; errors to programs, with `json`.
    pub fn new(quiet: bool, verbose: u8, json: bool) -> Self {
        let level = match (quiet, verbose) {
            (true, _) => Level::Quiet,
            (_, 0) => Level::Normal,
            (_, 1) => Level::More,
            _ => Level::Most,
        };
        Self { level, json }
    }

    /// Something to know; not with `-q`.
    pub fn say(&self, text: impl Display) {
        self.at(Level::Normal, text);
    }

    /// A line that belongs to what was said last; not with `-q`.
    pub fn detail(&self, text: impl Display) {
        if self.level >= Level::Normal {
            write_lines(&format!("  {}", clean(&text.to_string())));
        }
    }

    /// An error, and what can be done about it. Always.
    pub fn error(&self, error: &Error) {
        write_lines(&if self.json { Problem::from(error).line() } else { error_text(error) });
    }

    fn at(&self, level: Level, text: impl Display) {
        if self.level >= level {
            write_lines(&format!("snapback: {}", clean(&text.to_string())));
        }
    }
}

impl Report for Talk {
    fn log(&self, target: &str, level: &str, message: &str) {
        let level = match level {
            "warn" => Level::Normal,
            "info" => Level::More,
            _ => Level::Most,
        };
        match is_named(target, message) {
            true => self.at(level, message),
            false => self.at(level, format_args!("{target}: {message}")),
        }
    }

    fn moved(&self, root: &std::path::Path) {
        self.say(format_args!("the project is at {} now", snapback_core::error::show(root)));
    }

    fn regained(&self, root: &std::path::Path) {
        let root = snapback_core::error::show(root);
        self.say(format_args!("{root} could not be entered any more; you, its owner, can again"));
    }

    fn found_history(&self, place: &std::path::Path) {
        let place = snapback_core::error::show(place);
        self.say(format_args!("the project's history was missing, and is there again from {place}"));
    }

    fn set_aside(&self, place: &std::path::Path) {
        let store = place.with_file_name(STORE);
        let (aside, store) = (shell_word(place), shell_word(&store));
        self.detail(format_args!(
            "another history stood in its place, and is {aside} now; \
             `mv {store} {store}.own && mv {aside} {store}` goes on with that one"
        ));
    }

    fn other_history(&self, place: &std::path::Path) {
        let place = snapback_core::error::show(place);
        self.say(format_args!("another history stands here now; the one that was here is kept in {place}"));
    }

    fn omitted(&self, target: &str, subject: &[u8], reason: &str) {
        let subject = snapback_core::error::show_bytes(subject);
        self.at(Level::More, format_args!("{target}: {subject} is not in the snapshot: {reason}"));
    }

    // What is refused is listed at the end, whatever `-v` says.
    fn refused(&self, _target: &str, _subject: &[u8], _reason: &str) {}

    fn waiting(&self, why: &str) {
        self.say(format_args!("{why}; waiting for it"));
    }

    fn recovered(&self, finished: &Finished) {
        let (verb, to) = (finished.step.verb.word(), &finished.step.to);
        self.say(format_args!("finished the {verb} that was cut short: it went to snapshot {to}"));
        refusals(&finished.not_restored, "not restored").iter().for_each(|line| self.detail(line));
    }

    fn troubled(&self, doing: &str, error: &Error) {
        self.say(format_args!("{doing}: {error}"));
        error.hint_text().into_iter().for_each(|hint| self.detail(hint));
    }
}

/// Whether `message` says itself that it is about `target`.
fn is_named(target: &str, message: &str) -> bool {
    message.split(|c: char| c.is_whitespace() || ",;:`'\"()".contains(c)).any(|word| word == target)
}

/// An error as it is shown: what failed and why, and what to do.
pub fn error_text(error: &Error) -> String {
    format!("snapback: {}\nhint: {}", clean(error.message()), clean(hint(error)))
}

/// What can be done about `error`.
pub fn hint(error: &Error) -> &str {
    error.hint_text().unwrap_or_else(|| usual_hint(error.kind()))
}

/// What helps against an error of this kind, where nobody knew better.
fn usual_hint(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "`snapback status` and `snapback list` show what there is",
        Kind::Denied => "see who owns it and what its permissions are",
        Kind::Busy => "try again when it is no longer in use",
        Kind::Changed => "try again; something else is writing there",
        Kind::Incompatible => "a newer snapback may understand it",
        Kind::Corrupt => "`snapback verify` names all that is damaged, and who is concerned",
        Kind::Invalid => "correct it and try again; `--help` shows what is accepted",
        Kind::Cancelled => "run it again when you want it after all",
        Kind::NoSpace => "free some space; `snapback gc` drops old snapshots without needing any",
        Kind::TooLarge => "`--allow-huge` insists",
        Kind::Other => "`-v` says more about what is going on",
    }
}

/// `text` without control characters; further lines stay, indented alike.
fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        let line = if number == 0 { line } else { line.trim_start() };
        clean.push_str(if number == 0 { "" } else { "\n  " });
        clean.push_str(&escaped(line));
    }
    clean
}

fn write_lines(text: &str) {
    // In one write, so that lines of several processes do not mix.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_sentence_and_a_hint() {
        let error = Error::new(Kind::Other, "the disk is full").hint("`snapback gc` frees some");
        assert_eq!(error_text(&error), "snapback: the disk is full\nhint: `snapback gc` frees some");
        let bare = error_text(&Error::new(Kind::Busy, "it is locked"));
        assert_eq!(bare, "snapback: it is locked\nhint: try again when it is no longer in use");
    }

    #[test]
    fn no_control_character_reaches_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\rc\n     d"), "a\\u{1b}[2Jb\\rc\n  d");
    }

    #[test]
    fn a_target_is_named_once() {
        assert!(is_named("shop.db", "shop.db is not a SQLite database"));
        assert!(is_named("data", "could not open `data`: no such file"));
        assert!(!is_named("shop.db", "data/shop.db is locked") && !is_named("a", "a.db is locked"));
    }

    #[test]
    fn quiet_and_verbose_order_the_levels() {
        let level = |quiet, verbose| Talk::new(quiet, verbose, false).level;
        assert!(level(true, 0) < level(false, 0) && level(false, 0) < level(false, 1));
        assert!(level(false, 1) < level(false, 2));
    }
}

//! What went wrong, for a program (`Kind`) and for a person (a sentence and a hint).
//!
//! Invariant: `message` is one sentence, lower case, without a trailing period; it
//! says what failed and why in words, never a bare error number. `hint` says what
//! the user can do. The command line turns `Kind` into an exit code in one place.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it is; the same words as `error-kind` in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// What was asked for is not there.
    NotFound,
    /// Not permitted, by the system or because the user has not granted it.
    Denied,
    /// In use; worth a retry.
    Busy,
    /// What is there is not what was captured.
    Changed,
    /// What was stored does not fit what is there, or is of a newer version.
    Incompatible,
    /// What was read is not what was written.
    Corrupt,
    /// The user's input makes no sense.
    Invalid,
    /// The user asked to stop.
    Cancelled,
    /// The disk is full, or would be.
    NoSpace,
    /// More than is captured without being asked for.
    TooLarge,
    /// Anything else.
    Other,
}

impl Kind {
    /// In the words of the contract, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Denied => "denied",
            Self::Busy => "busy",
            Self::Changed => "changed",
            Self::Incompatible => "incompatible",
            Self::Corrupt => "corrupt",
            Self::Invalid => "invalid",
            Self::Cancelled => "cancelled",
            Self::NoSpace => "no-space",
            Self::TooLarge => "too-large",
            Self::Other => "other",
        }
    }
}

/// A failure: kind, sentence, hint.
#[derive(Debug, Clone)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
    os: Option<i32>,
}

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, os: None }
    }

    /// The same error with what the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error, said in a wider context: "`doing`: message".
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }

    /// A failed system call: `doing` is what was attempted ("could not read"), on `path`.
    pub fn io(error: impl Into<io::Error>, doing: &str, path: impl AsRef<Path>) -> Self {
        let error = error.into();
        let (kind, why) = explain(&error);
        let message = format!("{doing} {}: {why}", show(path.as_ref()));
        let told = Self { os: error.raw_os_error(), ..Self::new(kind, message) };
        match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => {
                told.hint("looking goes on; `mount` shows whether it was mounted so, or an error made it so")
            }
            io::ErrorKind::FileTooLarge => {
                told.hint("`ulimit -f` shows what this user may write; file systems have limits, too")
            }
            // A directory where a file was expected, or the other way round.
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => told.hint(odd_hint(path.as_ref())),
            _ => told,
        }
    }

    /// Why a system call failed, alone: "permission denied".
    pub fn reason(error: impl Into<io::Error>) -> String {
        explain(&error.into()).1
    }

    /// What is stored is damaged: `what` names it and says how.
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, what)
    }

    /// A thread that did `what` broke off: a fault of this program.
    pub fn panicked(what: &str) -> Self {
        Self::new(Kind::Other, format!("{what} broke off by a fault in snapback"))
            .hint("nothing was changed by it; please report what you did")
    }

    /// For programs.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// For programs: the system's number, when a system call failed. Never shown.
    pub fn os_error(&self) -> Option<i32> {
        self.os
    }

    /// Whether a system call failed with `errno`.
    pub(crate) fn is(&self, errno: rustix::io::Errno) -> bool {
        self.os == Some(errno.raw_os_error())
    }

    /// For people: the sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// For people: what to do, when there is something.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A path as it is shown to people: quoted and escaped only when it holds something
/// that a terminal would not show as it is.
pub fn show(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    show_bytes(path.as_os_str().as_bytes())
}

/// `word` as one word of a shell command, to be copied as it stands.
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    use std::os::unix::ffi::OsStrExt;
    let word = word.as_ref().as_bytes();
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%^".contains(c);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Ok(text) if escaped(text) == text => format!("'{}'", text.replace('\'', "'\\''")),
        _ => format!("$'{}'", word.escape_ascii()),
    }
}

/// Like [`show`], for a name that is bytes.
pub fn show_bytes(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text)
            if !text.is_empty()
                && text.chars().all(is_plain)
                && !text.starts_with(' ')
                && !text.ends_with(' ')
                && !text.contains(['"', '\\']) =>
        {
            text.to_owned()
        }
        _ => format!("\"{}\"", name.escape_ascii()),
    }
}

/// Whether a terminal shows `c` and does nothing else: no control character, and none that
/// changes the direction of the text around it.
fn is_plain(c: char) -> bool {
    let directs = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    !c.is_control() && !directs
}

/// `text` on one line, with everything escaped that a terminal would act on: what is
/// stored may come from a stranger.
pub fn escaped(text: &str) -> std::borrow::Cow<'_, str> {
    if text.chars().all(is_plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_plain(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    out.into()
}

/// What helps where something else stands at `path` than what belongs there.
pub(crate) fn odd_hint(path: &Path) -> String {
    format!("if that does not belong there, move it away: `mv {0} {0}.odd`", shell_word(path))
}

fn explain(error: &io::Error) -> (Kind, String) {
    use io::ErrorKind as E;
    let known = match error.kind() {
        E::NotFound => (Kind::NotFound, "no such file or directory"),
        E::PermissionDenied => (Kind::Denied, "permission denied"),
        E::StorageFull => (Kind::NoSpace, "no space left on the disk"),
        E::QuotaExceeded => (Kind::NoSpace, "the quota is used up"),
        E::FileTooLarge => (Kind::Other, "a file may not be as large as that"),
        E::ReadOnlyFilesystem => (Kind::Denied, "the file system is read-only"),
        E::NotADirectory => (Kind::Invalid, "not a directory"),
        E::IsADirectory => (Kind::Invalid, "it is a directory"),
        E::AlreadyExists => (Kind::Other, "it exists already"),
        E::DirectoryNotEmpty => (Kind::Other, "the directory is not empty"),
        E::ResourceBusy | E::ExecutableFileBusy => (Kind::Busy, "it is in use"),
        E::CrossesDevices => (Kind::Other, "it lies on another file system"),
        E::InvalidFilename => (Kind::Invalid, "the name is too long or not valid here"),
        E::StaleNetworkFileHandle => (Kind::Other, "the network file system no longer knows it"),
        E::Interrupted => (Kind::Cancelled, "interrupted"),
        E::UnexpectedEof => (Kind::Corrupt, "it ends too early"),
        _ => return (Kind::Other, words(error)),
    };
    (known.0, known.1.to_owned())
}

/// The system's own words, without the number that the standard library appends.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "unknown reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_is_a_sentence_without_a_number() {
        let error = Error::io(io::Error::from_raw_os_error(13), "could not read", "/etc/shadow");
        assert_eq!(error.to_string(), "could not read /etc/shadow: permission denied");
        assert_eq!(error.kind(), Kind::Denied);
        let odd = Error::io(io::Error::from_raw_os_error(5), "could not read", "disk");
        assert_eq!(odd.to_string(), "could not read disk: input/output error");
    }

    #[test]
    fn a_word_of_a_command_comes_out_of_the_shell_as_it_was() {
        use std::os::unix::ffi::OsStrExt;
        let names: [&[u8]; 9] = [
            b"/a/b.c",
            b"a b",
            b"c*",
            b"it's",
            b"q'x\ny",
            b"\xff\xfe",
            b"-n",
            b"$HOME `id` \"x\" \\",
            "\u{202e}\u{e4}".as_bytes(),
        ];
        for name in names {
            let word = shell_word(OsStr::from_bytes(name));
            let shell =
                std::process::Command::new("bash").args(["-c", &format!("printf %s {word}")]).output();
            let Ok(output) = shell else { return };
            assert_eq!(output.stdout, name, "{word}");
            assert!(!word.contains(|c: char| c.is_control()), "{word}");
        }
    }

    #[test]
    fn names_that_a_terminal_would_hide_are_escaped() {
        assert_eq!(show_bytes(b"src/main.rs"), "src/main.rs");
        assert_eq!(show_bytes("日本".as_bytes()), "日本");
        assert_eq!(show_bytes(b"a\nb"), "\"a\\nb\"");
        assert_eq!(show_bytes(b"\xfe"), "\"\\xfe\"");
        assert_eq!(show_bytes(b" x"), "\" x\"");
        assert_eq!(show_bytes("a\u{202e}b".as_bytes()), "\"a\\xe2\\x80\\xaeb\"");
        assert_eq!(escaped("日本 x"), "日本 x");
        assert_eq!(escaped("a\u{2028}b"), "a\\u{2028}b");
        assert_eq!(escaped("a\x1b[2J\u{9b}m\n\u{2066}"), "a\\u{1b}[2J\\u{9b}m\\n\\u{2066}");
    }
}

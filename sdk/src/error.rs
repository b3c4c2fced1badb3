//! Errors: a kind for programs, a sentence and a hint for people.

use crate::{Error, ErrorKind};

impl Error {
    /// An error of `kind`. `message` is one sentence, lower case, without a period.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// The same error with what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A setting that makes no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind as E;
        let kind = match error.kind() {
            E::NotFound => ErrorKind::NotFound,
            E::PermissionDenied => ErrorKind::Denied,
            E::InvalidData | E::UnexpectedEof => ErrorKind::Corrupt,
            E::StorageFull => ErrorKind::NoSpace,
            _ => ErrorKind::Other,
        };
        Self::new(kind, error.to_string())
    }
}

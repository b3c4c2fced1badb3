//! Errors across the border: kind, message and hint, both ways.

use super::bindings::snapback::plugin::types;
use crate::component::one_line;
use snapback_core::error::{Error, Kind};

/// Kinds of the host and of the contract, side by side.
const KINDS: [(Kind, types::ErrorKind); 11] = [
    (Kind::NotFound, types::ErrorKind::NotFound),
    (Kind::Denied, types::ErrorKind::Denied),
    (Kind::Busy, types::ErrorKind::Busy),
    (Kind::Changed, types::ErrorKind::Changed),
    (Kind::Incompatible, types::ErrorKind::Incompatible),
    (Kind::Corrupt, types::ErrorKind::Corrupt),
    (Kind::Invalid, types::ErrorKind::Invalid),
    (Kind::Cancelled, types::ErrorKind::Cancelled),
    (Kind::NoSpace, types::ErrorKind::NoSpace),
    (Kind::TooLarge, types::ErrorKind::TooLarge),
    (Kind::Other, types::ErrorKind::Other),
];

impl From<types::Error> for Error {
    fn from(error: types::Error) -> Self {
        let kind =
            KINDS.iter().find(|(_, theirs)| *theirs == error.kind).map_or(Kind::Other, |(ours, _)| *ours);
        let ours = Self::new(kind, one_line(&error.message));
        match error.hint {
            Some(hint) => ours.hint(one_line(&hint)),
            None => ours,
        }
    }
}

impl From<Error> for types::Error {
    fn from(error: Error) -> Self {
        let kind =
            KINDS.iter().find(|(ours, _)| *ours == error.kind()).map_or(types::ErrorKind::Other, |(_, k)| *k);
        Self { kind, message: error.message().to_owned(), hint: error.hint_text().map(str::to_owned) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_comes_back_as_it_went() {
        for (kind, _) in KINDS {
            let there: types::Error = Error::new(kind, "it is so").hint("do this").into();
            let back: Error = there.into();
            assert_eq!((back.kind(), back.message(), back.hint_text()), (kind, "it is so", Some("do this")));
        }
    }

    #[test]
    fn what_a_terminal_would_act_on_does_not_get_through() {
        let theirs =
            types::Error { kind: types::ErrorKind::Busy, message: "a\u{1b}[2J\nb".into(), hint: None };
        assert_eq!(Error::from(theirs).message(), "a [2J b");
    }
}

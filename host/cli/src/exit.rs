//! Exit codes: the one place that turns what happened into a number.

use crate::caught;
use snapback_core::error::{Error, Kind};
use std::process::ExitCode;

/// What the process ends with: a number, and the signal from the terminal that ended the wrapped
/// command and is to end this process, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u8, Option<i32>);

impl Code {
    /// All is done.
    pub const DONE: Self = Self(0, None);
    /// It failed.
    pub const FAILED: Self = Self(1, None);
    /// `diff --exit-code` found changes.
    pub const CHANGES: Self = Self(1, None);
    /// What was typed makes no sense; with `diff --exit-code`, any error.
    pub const USAGE: Self = Self(2, None);
    /// Done, but not with everything that was meant.
    pub const PARTLY: Self = Self(3, None);
    /// `run`: snapback failed, and the command was not started.
    pub const NOT_STARTED: Self = Self(125, None);
    /// `run`: the command cannot be executed.
    pub const NOT_EXECUTABLE: Self = Self(126, None);
    /// `run`: there is no such command.
    pub const NO_COMMAND: Self = Self(127, None);

    /// For a command that ended with `status` by itself.
    pub fn of_exit(status: i32) -> Self {
        // The system keeps eight bits of what a program ends with.
        Self(status.to_le_bytes()[0], None)
    }

    /// For a command that a signal ended.
    pub fn of_signal(signal: i32) -> Self {
        Self(128u8.saturating_add(u8::try_from(signal).unwrap_or(0)), None)
    }

    /// The same, of a command that shared its `death` with this process, if it did.
    pub fn shared(self, death: Option<i32>) -> Self {
        Self(self.0, death)
    }

    /// Ends with it, at the very end. What the terminal sent to all that run on it ends this
    /// as it ended the command: a shell sees by that that it is to leave the script, too.
    pub fn end(self) -> ExitCode {
        if let Some(signal) = self.1 {
            caught::die_of(signal);
        }
        ExitCode::from(self.0)
    }

    /// For an error of any command but `run`.
    pub fn of_error(error: &Error) -> Self {
        match error.kind() {
            Kind::Invalid => Self::USAGE,
            Kind::NotFound
            | Kind::Denied
            | Kind::Busy
            | Kind::Changed
            | Kind::Incompatible
            | Kind::Corrupt
            | Kind::Cancelled
            | Kind::NoSpace
            | Kind::TooLarge
            | Kind::Other => Self::FAILED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_shell() {
        assert_eq!(Code::of_exit(7), Code(7, None));
        assert_eq!(Code::of_exit(256 + 7), Code(7, None));
        assert_eq!(Code::of_signal(15), Code(143, None));
        assert_eq!(Code::of_signal(64), Code(192, None));
    }

    #[test]
    fn only_what_makes_no_sense_is_a_usage_error() {
        assert_eq!(Code::of_error(&Error::new(Kind::Invalid, "x")), Code::USAGE);
        assert_eq!(Code::of_error(&Error::new(Kind::NotFound, "x")), Code::FAILED);
        assert_eq!(Code::of_error(&Error::new(Kind::Corrupt, "x")), Code::FAILED);
    }
}

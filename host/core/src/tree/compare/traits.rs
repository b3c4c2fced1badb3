//! What most passes over changes ask of one: known without looking into its entries.

use super::Change;

/// What is known of a change at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits(u16);

const BEFORE: u16 = 1;
const AFTER: u16 = 1 << 1;
const WAS_DIR: u16 = 1 << 2;
const BECOMES_DIR: u16 = 1 << 3;
const PASSAGE: u16 = 1 << 4;
const SAME_CONTENT: u16 = 1 << 5;
const LINKED: u16 = 1 << 6;
const UNSHARED: u16 = 1 << 7;

impl Change {
    /// What is known of it at once.
    pub fn traits(&self) -> Traits {
        let linked =
            [&self.before, &self.after].map(|entry| entry.as_ref().is_some_and(|e| e.link.is_some()));
        let differs = self.aspects();
        let flags = [
            (self.before.is_some(), BEFORE),
            (self.after.is_some(), AFTER),
            (self.was_dir(), WAS_DIR),
            (self.becomes_dir(), BECOMES_DIR),
            (self.passage, PASSAGE),
            (!differs.kind && !differs.content, SAME_CONTENT),
            (linked.contains(&true), LINKED),
            (linked == [true, false] && self.after.is_some(), UNSHARED),
        ];
        Traits(flags.into_iter().map(|(is, flag)| if is { flag } else { 0 }).sum())
    }
}

impl Traits {
    pub(super) fn to_number(self) -> u64 {
        u64::from(self.0)
    }

    pub(super) fn from_number(number: u64) -> Self {
        Self(number as u16)
    }

    fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }

    /// Whether there is something before.
    pub fn before(self) -> bool {
        self.has(BEFORE)
    }

    /// Whether there is something after.
    pub fn after(self) -> bool {
        self.has(AFTER)
    }

    /// As [`Change::was_dir`].
    pub fn was_dir(self) -> bool {
        self.has(WAS_DIR)
    }

    /// As [`Change::becomes_dir`].
    pub fn becomes_dir(self) -> bool {
        self.has(BECOMES_DIR)
    }

    /// Whether there is a directory where nothing was.
    pub fn is_new_dir(self) -> bool {
        self.becomes_dir() && !self.before()
    }

    /// As [`Change::passage`].
    pub fn passage(self) -> bool {
        self.has(PASSAGE)
    }

    /// Whether both sides are there, of one kind, and hold the same.
    pub fn same_content(self) -> bool {
        self.has(SAME_CONTENT)
    }

    /// Whether one of the two sides has other names.
    pub fn linked(self) -> bool {
        self.has(LINKED)
    }

    /// Whether what had other names has none any more.
    pub fn unshared(self) -> bool {
        self.has(UNSHARED)
    }
}

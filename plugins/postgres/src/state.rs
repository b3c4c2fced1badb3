//! What a snapshot says about the database: where the copy of it is, or that there was
//! no database.

use crate::attributes::{ATTRIBUTES, escape, unescape};
use crate::auth::hex;
use crate::dump::DUMP;
use snapback_sdk::{Error, ErrorKind, Object, Part, Reader, Result, Writer, random, take_part};
use std::io::{Read, Write};

/// The part that says it.
pub const STATE: &str = "state";
/// What the names of our databases begin with.
pub const PREFIX: &str = "snapback_";
/// Hexadecimal digits behind it.
const DIGITS: usize = 16;
/// How many of them say which history it is of.
pub const OWN: usize = 8;

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Absent,
    /// It is as its copy on the server.
    Copied(Copied),
    /// It is as its dump in the store.
    Dumped(Dumped),
}

/// What a database is made with that a dump is loaded into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dumped {
    pub encoding: String,
    pub collate: String,
    pub ctype: String,
    /// What else it is made with, where that is not what most are: a key of [`MORE`] each.
    pub more: Vec<(String, String)>,
}

/// Keys of what else a database is made with: who collates (`icu`, `builtin`) and by which locale and
/// rules, where its files are.
pub const MORE: [&str; 4] = ["provider", "locale", "rules", "tablespace"];

/// What a snapshot holds.
pub struct Stored {
    pub state: State,
    /// What belongs to the database as a whole.
    pub facts: String,
    pub dump: Option<Object>,
}

impl Stored {
    /// What `parts` hold.
    ///
    /// # Errors
    /// When they are those of another version of this backend.
    pub fn of(parts: &mut Vec<Part>) -> Result<Self> {
        let state = State::of(parts)?;
        let facts = parts.iter().find(|part| part.name == ATTRIBUTES);
        let facts = facts.map(|part| read(&part.content)).transpose()?.unwrap_or_default();
        let at = parts.iter().position(|part| part.name == DUMP);
        let dump = at.map(|at| parts.swap_remove(at).content);
        if matches!(state, State::Dumped(_)) && dump.is_none() {
            return Err(take_part(Vec::new(), DUMP).unwrap_err());
        }
        Ok(Self { state, facts, dump })
    }
}

/// A copy that a server keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The server's own number, which no other has.
    pub system: String,
    /// The digits of the copy's name.
    pub digits: String,
    /// The digits of the history that it belongs to: another one on the same server may let
    /// go of its own copies at any time.
    pub owner: String,
}

impl Copied {
    /// The copy of what has these signs, which no two states of a server have. Its digits
    /// begin with those of its history: so it is known whose it is before it has a note.
    pub fn of(system: &str, owner: &str, signs: &[u8]) -> Self {
        let own = owner.chars().take(OWN);
        let digits = own.chain(hex(signs).chars()).take(DIGITS).collect();
        Self { system: system.to_owned(), digits, owner: owner.to_owned() }
    }

    /// The name of the copy.
    pub fn name(&self) -> String {
        format!("{PREFIX}{}", self.digits)
    }

    /// The name of a copy of the copy, which takes the database's place.
    pub fn next(&self) -> String {
        format!("{PREFIX}new_{}", self.digits)
    }
}

impl State {
    /// Stores it.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn store(&self) -> Result<Part> {
        let text = match self {
            Self::Absent => "absent\n".to_owned(),
            Self::Copied(Copied { system, digits, owner }) => format!("template {system} {digits} {owner}\n"),
            Self::Dumped(Dumped { encoding, collate, ctype, more }) => {
                let more: String =
                    more.iter().map(|(key, value)| format!("\t{key}\t{}", escape(Some(value)))).collect();
                format!("dump\t{encoding}\t{collate}\t{ctype}{more}\n")
            }
        };
        Ok(Part { name: STATE.into(), content: write(&text)? })
    }

    /// What `parts` say.
    ///
    /// # Errors
    /// When they are those of another version of this backend.
    pub fn of(parts: &[Part]) -> Result<Self> {
        let part = parts.iter().find(|part| part.name == STATE);
        let content =
            part.map(|part| &part.content).ok_or_else(|| take_part(Vec::new(), STATE).unwrap_err())?;
        Self::parse(&read(content)?).ok_or_else(|| {
            Error::new(ErrorKind::Incompatible, "the snapshot does not say where the copy of the database is")
                .with_hint("it was made by another version of this backend")
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.strip_suffix('\n')?;
        if let ["dump", encoding, collate, ctype, more @ ..] = &line.split('\t').collect::<Vec<_>>()[..] {
            let [encoding, collate, ctype] = [encoding, collate, ctype].map(|text| (*text).to_owned());
            let pair = |pair: &[&str]| match pair {
                [key, value] if MORE.contains(key) => Some(((*key).to_owned(), unescape(value)?)),
                _ => None,
            };
            let more = more.chunks(2).map(pair).collect::<Option<_>>()?;
            return Some(Self::Dumped(Dumped { encoding, collate, ctype, more }));
        }
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["absent"] => Some(Self::Absent),
            ["template", system, digits, owner] if is_name(digits) && is_name(owner) => {
                let [system, digits, owner] = [system, digits, owner].map(str::to_owned);
                Some(Self::Copied(Copied { system, digits, owner }))
            }
            _ => None,
        }
    }
}

/// Whether it is as many digits as names of ours have.
fn is_name(digits: &str) -> bool {
    digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The history that a snapshot with this state belongs to; a new one without any.
pub fn owner(state: Option<&State>) -> String {
    match state {
        Some(State::Copied(copied)) => copied.owner.clone(),
        _ => hex(&random::bytes(DIGITS / 2)),
    }
}

/// Stores a text.
///
/// # Errors
/// When it cannot be stored.
pub fn write(text: &str) -> Result<Object> {
    let mut writer = Writer::new()?;
    writer.write_all(text.as_bytes())?;
    writer.finish()
}

/// A stored text.
///
/// # Errors
/// When it cannot be read.
pub fn read(content: &Object) -> Result<String> {
    let mut text = String::new();
    Reader::new(content)?.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_copy_of_ours_is_named() {
        let copied = Copied::of("7", "0123456789abcdef", &[0xab; 32]);
        assert_eq!(copied.name(), "snapback_01234567abababab");
        assert_eq!(
            State::parse("template 7 01234567abababab 0123456789abcdef\n"),
            Some(State::Copied(copied))
        );
        assert_eq!(State::parse("absent\n"), Some(State::Absent));
        for other in
            ["", "absent", "template 7 app\n", "template 7 abababababababaB\n", "template 7 ab\"; DROP\n"]
        {
            assert_eq!(State::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_dump_says_what_its_database_was_made_with() {
        let of = |more: &[(&str, &str)]| {
            let [encoding, collate, ctype] = ["UTF8", "C", "C"].map(str::to_owned);
            let more = more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            Some(State::Dumped(Dumped { encoding, collate, ctype, more }))
        };
        assert_eq!(State::parse("dump\tUTF8\tC\tC\n"), of(&[]));
        assert_eq!(
            State::parse("dump\tUTF8\tC\tC\tprovider\ticu\tlocale\tde-DE\n"),
            of(&[("provider", "icu"), ("locale", "de-DE")])
        );
        for other in ["dump\tUTF8\tC\tC\tprovider\n", "dump\tUTF8\tC\tC\tOWNER\tx\n"] {
            assert_eq!(State::parse(other), None, "{other}");
        }
    }
}

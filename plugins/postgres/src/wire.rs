//! The connection: start-up, signing in, statements as text, rows as text.
//!
//! Version 3 of the protocol, in the clear. What the server refuses becomes a kind, a
//! sentence and a hint here, with its code beside it for those who know better.

use crate::auth::{Scram, md5};
use snapback_sdk::net::TcpStream;
use snapback_sdk::{Error, ErrorKind, Result, Target, env, random};
use std::io::{BufReader, Read, Write};
use std::time::Duration;

/// How long a statement may take: a large database is copied by one.
const PATIENCE: Duration = Duration::from_secs(3600);
/// The longest message that is read. Rows here are names and numbers.
const MAX_MESSAGE: u32 = 64 << 20;
/// The oldest version that is covered.
const OLDEST: u32 = 12;

/// Rows of fields; a field is text or NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// What went wrong.
#[derive(Debug)]
pub struct Fault {
    /// The server's code of five letters; empty when it is not the server that says it.
    pub code: String,
    pub error: Error,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { code: String::new(), error }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        fault.error
    }
}

/// A session.
pub struct Wire {
    stream: BufReader<TcpStream>,
    /// The server's major version.
    pub version: u32,
}

impl Wire {
    /// Begins a session in `database`.
    ///
    /// # Errors
    /// When the server is not there, does not let us in, or is too old.
    pub fn connect(target: &Target, database: &str) -> Result<Self, Fault> {
        let mut stream = TcpStream::connect(target, "address")?;
        stream.set_timeout(Some(PATIENCE));
        let mut wire = Self { stream: BufReader::with_capacity(64 * 1024, stream), version: 0 };
        let user = target.setting("user").unwrap_or_default();
        // Whatever the database or the user has set: text is read as we write it, names are
        // those of the system, and nothing stops a long copy.
        let parameters = [
            ("user", user.as_str()),
            ("database", database),
            ("application_name", "snapback"),
            ("client_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
            ("search_path", "pg_catalog"),
            ("statement_timeout", "0"),
            ("lock_timeout", "0"),
            ("idle_in_transaction_session_timeout", "0"),
            ("default_transaction_read_only", "off"),
        ];
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for (key, value) in parameters {
            body.extend_from_slice(key.as_bytes());
            body.push(0);
            body.extend_from_slice(value.as_bytes());
            body.push(0);
        }
        body.push(0);
        wire.send(None, &body)?;
        wire.sign_in(target, &user)?;
        Ok(wire)
    }

    fn sign_in(&mut self, target: &Target, user: &str) -> Result<(), Fault> {
        let password = || {
            env::var(target, "password").ok_or_else(|| match target.setting("password") {
                Some(name) => Error::new(ErrorKind::Denied, format!("the variable {name} is not set"))
                    .with_hint("it holds the password of the server"),
                None => Error::new(ErrorKind::Denied, "the server wants a password")
                    .with_hint("`password` names the variable that holds it"),
            })
        };
        let mut scram = None;
        loop {
            let (kind, body) = self.receive()?;
            match (kind, body.get(..4)) {
                (b'R', Some(what)) => match (u32::from_be_bytes(fixed(what)), &body[4..]) {
                    (0, _) => {}
                    (3, _) => self.send(Some(b'p'), &ended(&password()?))?,
                    (5, salt) if salt.len() == 4 => {
                        self.send(Some(b'p'), &ended(&md5(user, &password()?, fixed(salt))))?;
                    }
                    (10, ways) if ways.split(|byte| *byte == 0).any(|way| way == b"SCRAM-SHA-256") => {
                        let begun = Scram::new(&password()?, &random::bytes(18));
                        let first = begun.first();
                        let mut answer = ended("SCRAM-SHA-256");
                        answer.extend_from_slice(&(first.len() as u32).to_be_bytes());
                        answer.extend_from_slice(first.as_bytes());
                        scram = Some(begun);
                        self.send(Some(b'p'), &answer)?;
                    }
                    (11, said) => {
                        let scram = scram.as_mut().ok_or_else(|| strange("SCRAM out of order"))?;
                        let answer = scram.second(&String::from_utf8_lossy(said))?;
                        self.send(Some(b'p'), answer.as_bytes())?;
                    }
                    (12, said) => {
                        let scram = scram.as_ref().ok_or_else(|| strange("SCRAM out of order"))?;
                        scram.check(&String::from_utf8_lossy(said))?;
                    }
                    _ => {
                        let why = "the server wants to be signed in to in a way that is not known here";
                        let error = Error::new(ErrorKind::Denied, why);
                        return Err(error
                            .with_hint("scram-sha-256, md5, password and trust are, in its pg_hba.conf")
                            .into());
                    }
                },
                (b'S', _) => {
                    let mut words = body.split(|byte| *byte == 0).map(String::from_utf8_lossy);
                    if words.next().as_deref() == Some("server_version") {
                        let said = words.next().unwrap_or_default().into_owned();
                        self.version = version(&said)?;
                    }
                }
                (b'Z', _) if self.version > 0 => return Ok(()),
                (b'E', _) => return Err(refused(&body)),
                (b'K' | b'N', _) => {}
                _ => return Err(strange("an unexpected message").into()),
            }
        }
    }

    /// Runs statements, in one transaction unless they say otherwise; the rows of them all.
    ///
    /// # Errors
    /// When the connection fails, or the server refuses one; what came before it in the
    /// same text is taken back then.
    pub fn ask(&mut self, statements: &str) -> Result<Rows, Fault> {
        self.send(Some(b'Q'), &ended(statements))?;
        let (mut rows, mut failed) = (Vec::new(), None);
        loop {
            let (kind, body) = self.receive()?;
            match kind {
                b'D' => rows.push(row(&body).ok_or_else(|| strange("a row"))?),
                b'E' => failed = Some(refused(&body)),
                b'Z' => return failed.map_or(Ok(rows), Err),
                b'T' | b'C' | b'N' | b'S' | b'I' | b'A' => {}
                _ => return Err(strange("an unexpected message").into()),
            }
        }
    }

    /// The one field of the one row that a question has for an answer.
    ///
    /// # Errors
    /// As [`Self::ask`] has them.
    pub fn one(&mut self, question: &str) -> Result<Option<String>, Fault> {
        Ok(self.ask(question)?.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// Ends the session and waits until it is gone: while it lasts, its database counts as used.
    pub fn close(mut self) {
        if self.send(Some(b'X'), &[]).is_ok() {
            // Whatever still comes: what matters is that nothing more does.
            let _ = self.stream.read_to_end(&mut Vec::new());
        }
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> Result<(), Fault> {
        let mut message: Vec<u8> = kind.into_iter().collect();
        let len = u32::try_from(body.len() + 4).map_err(|_| strange("a statement that is too long"))?;
        message.extend_from_slice(&len.to_be_bytes());
        message.extend_from_slice(body);
        let stream = self.stream.get_mut();
        stream.write_all(&message)?;
        Ok(stream.flush()?)
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>), Fault> {
        let mut head = [0; 5];
        let lost = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::Other, "the server ended the session")
                .with_hint("its log says why; one that insists on TLS cannot be used"),
            _ => error.into(),
        };
        self.stream.read_exact(&mut head).map_err(lost)?;
        let len = u32::from_be_bytes(fixed(&head[1..]));
        if !(4..MAX_MESSAGE).contains(&len) {
            return Err(strange("a message without a length").into());
        }
        let mut body = vec![0; len as usize - 4];
        self.stream.read_exact(&mut body).map_err(lost)?;
        Ok((head[0], body))
    }
}

/// `name` as an identifier.
pub fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `text` as a string.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn version(said: &str) -> Result<u32> {
    let digits: String = said.chars().take_while(char::is_ascii_digit).collect();
    match digits.parse() {
        Ok(version) if version >= OLDEST => Ok(version),
        _ => Err(Error::new(
            ErrorKind::Incompatible,
            format!("the server is Postgres {said}, which is too old"),
        )
        .with_hint("Postgres 12 and later are covered")),
    }
}

fn row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut rest) = body.split_at_checked(2)?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(fixed(count)) {
        let (len, after) = rest.split_at_checked(4)?;
        rest = after;
        row.push(match usize::try_from(i32::from_be_bytes(fixed(len))) {
            Err(_) => None,
            Ok(len) => {
                let (field, after) = rest.split_at_checked(len)?;
                rest = after;
                Some(String::from_utf8_lossy(field).into_owned())
            }
        });
    }
    Some(row)
}

fn ended(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

fn strange(what: &str) -> Error {
    Error::new(ErrorKind::Incompatible, format!("the server does not answer as Postgres does: {what}"))
        .with_hint("is `address` that of a Postgres server?")
}

/// What the server refused, in our words.
fn refused(body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(body);
    let field = |name: char| text.split('\0').find_map(|field| field.strip_prefix(name)).unwrap_or_default();
    let (code, said) = (field('C').to_owned(), field('M'));
    let (kind, hint) = match code.as_str() {
        "28P01" => (ErrorKind::Denied, "is the password in the variable that `password` names right?"),
        "28000" if said.contains("no encryption") || said.contains("SSL off") => {
            (ErrorKind::Denied, "TLS is not spoken here: let pg_hba.conf allow this address without it")
        }
        "28000" => (ErrorKind::Denied, "is `user` right, and does pg_hba.conf let it in from here?"),
        "42501" if said.contains("create database") => {
            (ErrorKind::Denied, "the user needs CREATEDB: `ALTER ROLE name CREATEDB`")
        }
        "42501" => (
            ErrorKind::Denied,
            "the user must own the database, and needs CREATEDB; what a superuser made, only one can make again",
        ),
        "3D000" => (ErrorKind::NotFound, "are `database` and `maintenance-database` spelt right?"),
        "55006" => (ErrorKind::Busy, "end the sessions, or set `disconnect`"),
        "53300" | "57P03" => (ErrorKind::Busy, "the server takes no session now: try again"),
        "53100" | "53200" => (ErrorKind::NoSpace, "the server ran out of room"),
        "57P01" | "57014" => (ErrorKind::Cancelled, "somebody ended it on the server"),
        _ => (ErrorKind::Other, "the server's log may say more"),
    };
    let detail = field('D');
    let message = match detail {
        "" => format!("the server refused: {said}"),
        detail => format!("the server refused: {said} ({})", detail.trim_end_matches('.')),
    };
    Fault { code, error: Error::new(kind, message).with_hint(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted() {
        assert_eq!(ident("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("a'b\\"), "'a''b\\'");
    }

    #[test]
    fn rows_are_read() {
        let body = b"\0\x02\0\0\0\x01x\xff\xff\xff\xff";
        assert_eq!(row(body), Some(vec![Some("x".into()), None]));
        for cut in 0..body.len() {
            assert_eq!(row(&body[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn old_versions_are_refused() {
        assert_eq!(version("15.18 (Debian 15.18-0+deb12u1)").unwrap(), 15);
        assert_eq!(version("18beta1").unwrap(), 18);
        for old in ["11.22", "9.6.24", ""] {
            assert_eq!(version(old).unwrap_err().kind, ErrorKind::Incompatible, "{old}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let fault = refused(b"SFATAL\0C28P01\0Mpassword authentication failed for user \"x\"\0\0");
        assert_eq!((fault.code.as_str(), fault.error.kind), ("28P01", ErrorKind::Denied));
        assert!(fault.error.message.contains("password authentication failed"));
        let fault = refused(b"SERROR\0C55006\0Mdatabase is being accessed\0DThere is 1 other session.\0\0");
        assert!(fault.error.message.ends_with("(There is 1 other session)"));
    }
}

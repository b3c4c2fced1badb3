//! The connection: commands as arrays of byte strings, replies as values.
//!
//! Many commands may be sent before their replies are read. An error that the server
//! answers becomes a kind, a sentence and a hint here, and nowhere else.

use crate::window::Window;
use snapback_sdk::net::TcpStream;
use snapback_sdk::{Error, ErrorKind, Result, Target, env};
use std::io::{BufRead, Read, Write};
use std::time::Duration;

/// How long the server may be silent. It sends line ends while it prepares a copy.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The deepest reply that is read: replies nest, and what nests deeper is no reply of Redis.
const DEPTH: u32 = 8;
/// The longest byte string that Redis has, its default for `proto-max-bulk-len`.
const MAX_BULK: u64 = 512 << 20;

/// What a user that is not the default one has to be allowed.
const RIGHTS: &str = "the user needs: +psync +replconf +info +time +config|get +select +dbsize +type +get +set +del \
                      +restore +dump +pttl +flushdb +swapdb +eval +multi +discard +function +command, and all keys";

/// What the server answers.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// A word, such as `OK`.
    Word(String),
    Number(i64),
    Bytes(Vec<u8>),
    Nothing,
    List(Vec<Reply>),
    /// What it refused, and why.
    Failed(String),
}

/// A connection to the server, signed in.
pub struct Wire {
    pub stream: Window<TcpStream>,
}

impl Wire {
    /// Connects to the target's server.
    ///
    /// # Errors
    /// When it is not there, or does not let us in.
    pub fn connect(target: &Target) -> Result<Self> {
        let mut stream = TcpStream::connect(target, "address")?;
        stream.set_timeout(Some(PATIENCE));
        let mut wire = Self { stream: Window::new(stream) };
        let (user, password) = (target.setting("user"), env::var(target, "password"));
        if password.is_none()
            && let Some(name) = target.setting("password")
        {
            return Err(Error::new(ErrorKind::Denied, format!("the variable {name} is not set"))
                .with_hint("it holds the password of the server"));
        }
        match (user, password) {
            (Some(user), password) => {
                let password = password.unwrap_or_default();
                wire.ask(&[b"AUTH", user.as_bytes(), password.as_bytes()])?;
            }
            (None, Some(password)) => {
                wire.ask(&[b"AUTH", password.as_bytes()])?;
            }
            (None, None) => {}
        }
        Ok(wire)
    }

    /// Sends a command and reads its reply.
    ///
    /// # Errors
    /// When the connection fails, or the server refuses the command.
    pub fn ask(&mut self, command: &[&[u8]]) -> Result<Reply> {
        let mut out = Vec::new();
        put(&mut out, command);
        self.send(&out)?;
        self.reply()
    }

    /// Sends what [`put`] made.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn send(&mut self, commands: &[u8]) -> Result<()> {
        let stream = self.stream.input();
        stream.write_all(commands).and_then(|()| stream.flush()).map_err(lost)
    }

    /// Reads one reply.
    ///
    /// # Errors
    /// When the connection fails, or the reply is a refusal.
    pub fn reply(&mut self) -> Result<Reply> {
        match read(&mut self.stream, DEPTH)? {
            Reply::Failed(why) => Err(refused(&why)),
            reply => Ok(reply),
        }
    }

    /// Reads `count` replies, all of them whatever they say.
    ///
    /// # Errors
    /// When the connection fails, or one of them is a refusal.
    pub fn replies(&mut self, count: usize) -> Result<()> {
        let mut all = Ok(());
        for _ in 0..count {
            if let Reply::Failed(why) = read(&mut self.stream, DEPTH)? {
                all = all.and_then(|()| Err(refused(&why)));
            }
        }
        all
    }

    /// The value of a key, if it is a string.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.text(&[b"TYPE", key])? != "string" {
            return Ok(None);
        }
        match self.ask(&[b"GET", key])? {
            Reply::Bytes(value) => Ok(Some(value)),
            _ => Ok(None),
        }
    }

    /// Asks for text, of which a server always has some.
    ///
    /// # Errors
    /// As [`Self::ask`] has them.
    pub fn text(&mut self, command: &[&[u8]]) -> Result<String> {
        match self.ask(command)? {
            Reply::Bytes(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Reply::Word(word) => Ok(word),
            other => Err(strange(&format!("{other:?}"))),
        }
    }

    /// Waits for more to read, at most for `limit`; returns whether there is some.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn await_more(&mut self, limit: Duration) -> Result<bool> {
        self.stream.input().set_timeout(Some(limit));
        let more = match self.stream.fill_buf() {
            Ok([]) => Err(ended()),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(lost(error)),
        };
        self.stream.input().set_timeout(Some(PATIENCE));
        more
    }

    /// One line, without its end.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn line(&mut self) -> Result<String> {
        line(&mut self.stream)
    }
}

/// Appends a command in the form in which it is sent.
pub fn put(out: &mut Vec<u8>, command: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
    for word in command {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn line(from: &mut impl BufRead) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(64 * 1024).read_until(b'\n', &mut bytes).map_err(lost)?;
    if bytes.pop() != Some(b'\n') {
        return Err(ended());
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read(from: &mut impl BufRead, depth: u32) -> Result<Reply> {
    let line = line(from)?;
    let Some(kind) = line.chars().next() else { return Err(strange("an empty line")) };
    let rest = &line[kind.len_utf8()..];
    let number = || rest.parse::<i64>().map_err(|_| strange(&line));
    match kind {
        '+' => Ok(Reply::Word(rest.to_owned())),
        '-' => Ok(Reply::Failed(rest.to_owned())),
        ':' => Ok(Reply::Number(number()?)),
        '$' => match u64::try_from(number()?) {
            Err(_) => Ok(Reply::Nothing),
            Ok(len) if len > MAX_BULK => Err(strange(&line)),
            Ok(len) => {
                let mut bytes = Vec::new();
                from.take(len + 2).read_to_end(&mut bytes).map_err(lost)?;
                if bytes.len() as u64 != len + 2 {
                    return Err(strange("half a reply"));
                }
                bytes.truncate(bytes.len() - 2);
                Ok(Reply::Bytes(bytes))
            }
        },
        '*' => match u64::try_from(number()?) {
            Err(_) => Ok(Reply::Nothing),
            Ok(_) if depth == 0 => Err(strange("a reply that has no end")),
            Ok(len) => (0..len).map(|_| read(from, depth - 1)).collect::<Result<_>>().map(Reply::List),
        },
        _ => Err(strange(&line)),
    }
}

/// The other side closed it.
pub fn ended() -> Error {
    Error::new(ErrorKind::Other, "the server closed the connection")
        .with_hint("its log says why; `client-output-buffer-limit replica` may be too low")
}

/// A connection that broke, or over which nothing comes.
pub fn lost(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::TimedOut => Error::new(ErrorKind::Busy, "the server does not answer")
            .with_hint("is `address` that of a Redis server, and is that one at work on something?"),
        _ => error.into(),
    }
}

/// What is no answer of Redis.
pub fn strange(what: &str) -> Error {
    let what: String = what.chars().take(80).collect();
    Error::new(ErrorKind::Incompatible, format!("the server does not answer as Redis does: {what}"))
        .with_hint("is `address` that of a Redis server, without TLS?")
}

/// What the server refused, in our words.
pub fn refused(why: &str) -> Error {
    let code = why.split(' ').next().unwrap_or_default();
    let (kind, hint) = match code {
        "NOAUTH" => (ErrorKind::Denied, "it wants a password: `password` names the variable that holds it"),
        "WRONGPASS" => (ErrorKind::Denied, "is the password in the variable that `password` names right?"),
        "NOPERM" => (ErrorKind::Denied, RIGHTS),
        // A command of a script that the user may not give.
        _ if why.contains("can't run this command")
            || why.contains("can't access at least one of the keys") =>
        {
            (ErrorKind::Denied, RIGHTS)
        }
        "LOADING" | "MASTERDOWN" | "NOMASTERLINK" | "BUSY" => {
            (ErrorKind::Busy, "the server is not ready: try again")
        }
        _ if why.contains("unknown command") || why.contains("Unknown Redis command") => {
            (ErrorKind::Incompatible, "its configuration renames or switches off what a restore needs")
        }
        "READONLY" => (ErrorKind::Denied, "it is a replica: `address` should be that of its master"),
        "OOM" => (ErrorKind::NoSpace, "what is restored is loaded beside what is there: raise `maxmemory`"),
        "MISCONF" => (ErrorKind::NoSpace, "the server cannot save to its disk: its log says why"),
        _ if why.contains("AUTH") => (ErrorKind::Denied, "is a password set on the server at all?"),
        _ if why.contains("payload version") => (
            ErrorKind::Incompatible,
            "the snapshot was taken from a newer Redis: restore into one that is as new",
        ),
        _ => (ErrorKind::Other, "the server's log may say more"),
    };
    Error::new(kind, format!("the server refused: {why}")).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Reply> {
        read(&mut &bytes[..], DEPTH)
    }

    #[test]
    fn replies_are_read() {
        assert_eq!(parse(b"+OK\r\n").unwrap(), Reply::Word("OK".into()));
        assert_eq!(parse(b":-7\r\n").unwrap(), Reply::Number(-7));
        assert_eq!(parse(b"$2\r\n\r\n\r\n").unwrap(), Reply::Bytes(b"\r\n".to_vec()));
        assert_eq!(parse(b"$-1\r\n").unwrap(), Reply::Nothing);
        let list = parse(b"*2\r\n:1\r\n*1\r\n$0\r\n\r\n").unwrap();
        assert_eq!(list, Reply::List(vec![Reply::Number(1), Reply::List(vec![Reply::Bytes(vec![])])]));
        assert_eq!(parse(b"-ERR no\r\n").unwrap(), Reply::Failed("ERR no".into()));
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        let deep = b"*1\r\n".repeat(20);
        for bytes in
            [&b""[..], b"+OK", b"$5\r\nabc", b"$99999999999\r\n", b"HTTP/1.1 400\r\n", b":x\r\n", &deep]
        {
            assert!(parse(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for (why, kind, hint) in [
            ("NOAUTH Authentication required.", ErrorKind::Denied, "`password`"),
            ("WRONGPASS invalid username-password pair", ErrorKind::Denied, "right?"),
            ("LOADING Redis is loading", ErrorKind::Busy, "try again"),
            ("OOM command not allowed", ErrorKind::NoSpace, "maxmemory"),
            ("READONLY You can't write", ErrorKind::Denied, "master"),
            ("ERR unknown command 'SWAPDB', with args", ErrorKind::Incompatible, "renames"),
            ("NOPERM this user has no permissions", ErrorKind::Denied, "+swapdb"),
            (
                "ERR The user executing the script can't run this command or subcommand",
                ErrorKind::Denied,
                "+swapdb",
            ),
        ] {
            let error = refused(why);
            assert_eq!(error.kind, kind, "{why}");
            assert!(error.hint.is_some_and(|said| said.contains(hint)), "{why}");
        }
    }
}

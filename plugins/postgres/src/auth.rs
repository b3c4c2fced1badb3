//! Proving to the server that we know the password: md5, and SCRAM-SHA-256 (RFC 5802,
//! RFC 7677), in which the server also proves that it knows it.
//!
//! Passwords are taken as they are: what SASLprep would make of letters that can be
//! written in two ways is not done.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use md5::Md5;
use sha2::{Digest, Sha256};
use snapback_sdk::{Error, ErrorKind, Result};
use std::fmt::Write;

/// More rounds than this are a server that wants to keep us busy.
const MAX_ROUNDS: u32 = 10_000_000;

/// The answer to a demand for an md5 password.
pub fn md5(user: &str, password: &str, salt: [u8; 4]) -> String {
    let inner = hex(&Md5::digest([password, user].concat()));
    format!("md5{}", hex(&Md5::digest([inner.as_bytes(), &salt].concat())))
}

/// An exchange that has begun.
pub struct Scram {
    password: String,
    nonce: String,
    /// What both sides sign.
    signed: String,
    /// What the server has to prove.
    expected: Vec<u8>,
}

impl Scram {
    /// Begins one; `random` is what nobody can guess.
    pub fn new(password: &str, random: &[u8]) -> Self {
        let nonce = BASE64.encode(random);
        Self { password: password.to_owned(), nonce, signed: String::new(), expected: Vec::new() }
    }

    /// The first message: Postgres knows the user already.
    pub fn first(&self) -> String {
        format!("n,,n=,r={}", self.nonce)
    }

    /// The second one, in answer to what the server said.
    ///
    /// # Errors
    /// When that makes no sense.
    pub fn second(&mut self, said: &str) -> Result<String> {
        let (nonce, salt, rounds) = (field(said, 'r'), field(said, 's'), field(said, 'i'));
        let (Some(nonce), Some(salt), Some(rounds)) = (nonce, salt, rounds) else { return Err(strange()) };
        let salt = BASE64.decode(salt).map_err(|_| strange())?;
        let rounds = rounds.parse().ok().filter(|rounds| (1..=MAX_ROUNDS).contains(rounds));
        let rounds = rounds.ok_or_else(strange)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(strange());
        }
        let salted = stretch(self.password.as_bytes(), &salt, rounds);
        let bare = format!("c=biws,r={nonce}");
        self.signed = format!("n=,r={},{said},{bare}", self.nonce);
        let client = sign(&salted, b"Client Key");
        let signature = sign(&Sha256::digest(&client), self.signed.as_bytes());
        let proof: Vec<u8> = client.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        self.expected = sign(&sign(&salted, b"Server Key"), self.signed.as_bytes());
        Ok(format!("{bare},p={}", BASE64.encode(proof)))
    }

    /// Looks at the server's own proof.
    ///
    /// # Errors
    /// `Denied` when it is none.
    pub fn check(&self, said: &str) -> Result<()> {
        match field(said, 'v').and_then(|proof| BASE64.decode(proof).ok()) {
            Some(proof) if proof == self.expected && !proof.is_empty() => Ok(()),
            _ => Err(Error::new(ErrorKind::Denied, "the server does not know the password itself")
                .with_hint("is `address` that of your server?")),
        }
    }
}

/// The password, made slow to guess.
fn stretch(password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let mut last = sign(password, &[salt, &[0, 0, 0, 1]].concat());
    let mut all = last.clone();
    for _ in 1..rounds {
        last = sign(password, &last);
        all.iter_mut().zip(&last).for_each(|(all, last)| *all ^= last);
    }
    all
}

/// HMAC (RFC 2104) with SHA-256.
fn sign(key: &[u8], message: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let mut block = match key.len() {
        0..=BLOCK => key.to_vec(),
        _ => Sha256::digest(key).to_vec(),
    };
    block.resize(BLOCK, 0);
    let with = |pad: u8, rest: &[u8]| {
        let start: Vec<u8> = block.iter().map(|byte| byte ^ pad).collect();
        Sha256::digest([&start, rest].concat()).to_vec()
    };
    with(0x5c, &with(0x36, message))
}

fn field(said: &str, name: char) -> Option<&str> {
    said.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

/// Lower-case digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn strange() -> Error {
    Error::new(ErrorKind::Incompatible, "the server does not sign in as Postgres does")
        .with_hint("is `address` that of a Postgres server?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scram_is_as_in_its_example() {
        // RFC 7677, with the user left out as Postgres has it.
        let mut scram = Scram { nonce: "rOprNGfwEbeRWgbNEkqO".into(), ..Scram::new("pencil", b"") };
        assert_eq!(scram.first(), "n,,n=,r=rOprNGfwEbeRWgbNEkqO");
        let said = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let answer = scram.second(said).unwrap();
        assert!(answer.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p="));
        let key = stretch(b"pencil", &BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(), 4096);
        assert_eq!(hex(&key), "c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d");
        let proof = format!("v={}", BASE64.encode(&scram.expected));
        scram.check(&proof).unwrap();
        assert_eq!(scram.check("v=AAAA").unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(scram.check("e=other-error").unwrap_err().kind, ErrorKind::Denied);
    }

    #[test]
    fn a_server_that_makes_no_sense_is_refused() {
        for said in [
            "",
            "r=other,s=AAAA,i=4096",
            "r=ab,s=AAAA,i=4096",
            "r=abc,s=!,i=1",
            "r=abc,s=AAAA,i=0",
            "r=abc,s=AAAA,i=99999999",
        ] {
            let mut scram = Scram { nonce: "ab".into(), ..Scram::new("x", b"") };
            assert!(scram.second(said).is_err(), "{said}");
        }
    }

    #[test]
    fn signatures_are_as_in_their_examples() {
        // RFC 4231, cases 2 and 6.
        let short = hex(&sign(b"Jefe", b"what do ya want for nothing?"));
        assert_eq!(short, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let long = hex(&sign(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"));
        assert_eq!(long, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn md5_is_as_postgres_has_it() {
        let inner = hex(&Md5::digest("secretjoe"));
        assert_eq!(
            md5("joe", "secret", [1, 2, 3, 4]),
            format!("md5{}", hex(&Md5::digest([inner.as_bytes(), &[1, 2, 3, 4]].concat())))
        );
    }
}

//! All targets on what our encoders wrote, changed a little, always in the same way.
//! `SNAPBACK_FUZZ_RUNS` asks for more inputs of each, `SNAPBACK_FUZZ_SEED` for others.

use super::*;
use snapback_tests::say;
use std::collections::BTreeSet;
use std::path::Path;

/// Inputs of each target.
const RUNS: u64 = 20_000;
/// Inputs do not become longer than this, in bytes.
const LONGEST: usize = 8192;
/// Bytes that a decoder may have at once for each byte of its input, and in any case: an
/// entry of two bytes is some hundred in memory, and a vector has room for as many again.
const WORTH: u64 = 512;
const ANYWAY: u64 = 1 << 20;

/// Numbers at which lengths go wrong.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    1 << 48,
    i64::MAX as u64,
    u64::MAX,
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }

    /// A number as it may stand in a file: of one to eight bytes, or in as many as it needs.
    fn number(&mut self) -> Vec<u8> {
        use crate::object::codec::Put;
        let value = NUMBERS[self.roll(NUMBERS.len())];
        match self.roll(5) {
            0 => value.to_le_bytes()[..1].to_vec(),
            1 => value.to_le_bytes()[..4].to_vec(),
            2 => value.to_le_bytes().to_vec(),
            3 => value.to_string().into_bytes(),
            _ => {
                let mut out = Vec::new();
                out.put_uint(value);
                out
            }
        }
    }

    /// Changes one thing in `bytes`, at times with parts of `other`.
    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let (from, to) = (self.roll(bytes.len() + 1), self.roll(bytes.len() + 1));
        let (from, to) = (from.min(to), to.max(from));
        match self.roll(9) {
            0 if from < bytes.len() => bytes[from] ^= 1 << self.roll(8),
            1 if from < bytes.len() => bytes[from] = self.roll(256) as u8,
            2 => drop(bytes.drain(from..to.min(from + 16))),
            3 => {
                let again = bytes[from..to].to_vec();
                drop(bytes.splice(to..to, again));
            }
            4 => bytes.truncate(to),
            5 => {
                let number = self.number();
                drop(bytes.splice(from..from, number));
            }
            6 => {
                let number = self.number();
                let end = (from + number.len()).min(bytes.len());
                drop(bytes.splice(from..end, number));
            }
            7 => {
                let part = &other[self.roll(other.len() + 1)..];
                drop(bytes.splice(from..to, part[..self.roll(part.len() + 1)].iter().copied()));
            }
            _ => bytes.push(self.roll(256) as u8),
        }
        bytes.truncate(LONGEST);
    }
}

/// A number that the environment asks for.
fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_bytes_whatever_do_harm() {
    let mut tried = 0_u64;
    for target in TARGETS {
        let mut dice = Dice(asked("SNAPBACK_FUZZ_SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut pool = (target.seeds)();
        let seeds = pool.len();
        assert!(seeds > 0, "{} has seeds", target.name);
        for n in 0..asked("SNAPBACK_FUZZ_RUNS", RUNS) as usize {
            let mut input = pool[if n < seeds { n } else { dice.roll(pool.len()) }].clone();
            if n >= seeds {
                let other = pool[dice.roll(pool.len())].clone();
                (0..=dice.roll(4)).for_each(|_| dice.change(&mut input, &other));
            }
            let most = ANYWAY + WORTH * input.len() as u64;
            let run = || allocation_counter::measure(|| (target.run)(&input));
            let shown = || format!("{} with {}", target.name, input.escape_ascii());
            let used = std::panic::catch_unwind(run).unwrap_or_else(|_| panic!("{}", shown()));
            assert!(used.bytes_max <= most, "{} bytes at once: {}", used.bytes_max, shown());
            tried += 1;
            // Some of them are changed again.
            if n >= seeds && dice.roll(20) == 0 {
                let at = seeds + dice.roll(64);
                if at < pool.len() { pool[at] = input } else { pool.push(input) }
            }
        }
    }
    say(&format!("{tried} inputs for {} decoders", TARGETS.len()));
    assert!(tried >= 30 * 1000, "only {tried} inputs");
}

#[test]
fn every_target_can_be_run_by_name() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let files =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.collect();
    assert_eq!(files, TARGETS.iter().map(|target| format!("{}.rs", target.name)).collect());
    let built = std::fs::read_to_string(dir.join("../Cargo.toml")).unwrap();
    assert!(TARGETS.iter().all(|target| built.contains(&format!("name = \"{}\"", target.name))));
}

/// What a file has in it that turns bytes into values.
const DECODES: [&str; 6] =
    ["fn decode", "fn parse(", "sealed::open", "serde_json::from_", "const MAGIC", "T: DeserializeOwned"];
/// What the system says, and nobody else.
const OF_THE_SYSTEM: [&str; 1] = ["project/mounts.rs"];

#[test]
fn every_decoder_has_a_target() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut dirs, mut found) = (vec![top.clone()], BTreeSet::new());
    while let Some(dir) = dirs.pop() {
        for path in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                dirs.extend(Some(path.clone()).filter(|_| !["tests", "fuzz"].contains(&name)));
            } else if name != "tests.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
                let decodes = DECODES.iter().any(|word| code.contains(word));
                let path = path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
                found.extend(Some(path).filter(|path| decodes && !OF_THE_SYSTEM.contains(&&**path)));
            }
        }
    }
    let known: BTreeSet<String> =
        TARGETS.iter().flat_map(|target| target.of).map(|file| (*file).to_owned()).collect();
    let without: Vec<&String> = found.difference(&known).collect();
    assert!(without.is_empty(), "no target runs the decoders of {without:?}");
    assert!(known.iter().all(|file| top.join(file).is_file()), "each stands for a file that is there");
}

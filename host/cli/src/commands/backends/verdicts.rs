//! What the law said of components, the last time that each was tried: kept in the user's
//! state by what the component is, so that another one of its name has none of it.
//!
//! It is no more than a note: one that cannot be read is as good as none.

use serde::{Deserialize, Serialize};
use snapback_core::disk::{Dir, Disk};
use snapback_core::error::Result;
use snapback_runtime::laws::{Outcome, Verdict};
use std::path::Path;

/// Its name in the user's state.
const FILE: &[u8] = b"laws.json";
/// Components that are remembered, the newest first.
const MOST: usize = 100;
/// Bytes that the file has at most.
const MOST_BYTES: u64 = 4 << 20;

/// How one component was tried.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tried {
    /// SHA-256 of the component, in hexadecimal.
    digest: String,
    /// When, in milliseconds since 1970.
    pub tried: i64,
    /// What came of each law.
    pub verdicts: Vec<Item>,
}

/// A verdict, as JSON has it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Item {
    /// The law.
    pub law: String,
    /// kept, broken or unchecked.
    pub outcome: String,
    /// What was seen, or what was missing.
    pub why: Option<String>,
}

impl From<&Verdict> for Item {
    fn from(verdict: &Verdict) -> Self {
        let (outcome, why) = match &verdict.outcome {
            Outcome::Kept => ("kept", None),
            Outcome::Broken(how) => ("broken", Some(how.clone())),
            Outcome::Unchecked(why) => ("unchecked", Some(why.clone())),
        };
        Self { law: verdict.law.to_owned(), outcome: outcome.to_owned(), why }
    }
}

impl Tried {
    /// How many were kept, broken and not checked, in words.
    pub fn words(&self) -> String {
        let count = |outcome: &str| self.verdicts.iter().filter(|item| item.outcome == outcome).count();
        let all = ["kept", "broken", "unchecked"].map(|outcome| (count(outcome), outcome));
        let some = all.iter().filter(|(count, _)| *count > 0);
        some.map(|(count, outcome)| format!("{count} {outcome}")).collect::<Vec<_>>().join(", ")
    }
}

/// How the component with this digest was tried, if it was.
pub fn of(state: &Path, digest: &str) -> Option<Tried> {
    all(state).into_iter().find(|tried| tried.digest == digest)
}

/// Notes what came of trying the component with this digest at `now`.
///
/// # Errors
/// When it cannot be written.
pub fn note(state: &Path, digest: &str, now: i64, verdicts: &[Verdict]) -> Result<()> {
    let mut known = all(state);
    known.retain(|tried| tried.digest != digest);
    let verdicts = verdicts.iter().map(Item::from).collect();
    known.insert(0, Tried { digest: digest.to_owned(), tried: now, verdicts });
    known.truncate(MOST);
    let disk = Disk::default();
    let text = serde_json::to_vec(&known).expect("verdicts are JSON");
    disk.write_sealed(&disk.make_dirs(state)?, FILE, &text, 0o600)
}

fn all(state: &Path) -> Vec<Tried> {
    let bytes = Dir::open(state).and_then(|dir| dir.read(FILE, MOST_BYTES));
    bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_component_is_known_and_the_oldest_go() {
        let name = format!("snapback-verdicts-{}", std::process::id());
        let state = std::env::temp_dir().join(name);
        let verdicts = |outcome| [Verdict { law: "it does", outcome }];
        note(&state, "a", 1, &verdicts(Outcome::Kept)).unwrap();
        note(&state, "b", 2, &verdicts(Outcome::Unchecked("no".into()))).unwrap();
        note(&state, "a", 3, &verdicts(Outcome::Broken("so".into()))).unwrap();
        let a = of(&state, "a").unwrap();
        assert_eq!((a.tried, a.words().as_str(), a.verdicts[0].why.as_deref()), (3, "1 broken", Some("so")));
        assert_eq!(of(&state, "b").unwrap().words(), "1 unchecked");
        for number in 0..MOST {
            note(&state, &number.to_string(), 4, &verdicts(Outcome::Kept)).unwrap();
        }
        assert!(of(&state, "a").is_none() && of(&state, "0").is_some());
        std::fs::write(state.join("laws.json"), "no JSON").unwrap();
        assert!(of(&state, "0").is_none());
        std::fs::remove_dir_all(&state).unwrap();
    }
}

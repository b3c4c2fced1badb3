//! How containers are held, and what is written down about it: enough for anybody to let go.
//!
//! Refuses words that are none of the three.

use super::restart::Restart;
use serde::{Deserialize, Serialize};
use snapback_core::error::{Error, Kind, Result};
use std::collections::BTreeMap;

/// How containers are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// All their processes stand still.
    Pause,
    /// They are ended, and started again.
    Stop,
}

impl How {
    /// What a word asks for; none for not at all.
    ///
    /// # Errors
    /// `Invalid` for another word.
    pub fn parse(word: &str) -> Result<Option<Self>> {
        match word {
            "pause" => Ok(Some(Self::Pause)),
            "stop" => Ok(Some(Self::Stop)),
            "none" => Ok(None),
            _ => Err(Error::new(
                Kind::Invalid,
                format!("containers are held by pause, stop or none, not by `{word}`"),
            )),
        }
    }

    /// How often letting go is done again after a kill, a second between: a container has ten
    /// seconds to stop, and stops although nobody waits for it any more.
    pub fn lags(self) -> u32 {
        match self {
            Self::Pause => 2,
            Self::Stop => 15,
        }
    }

    /// What becomes of them when they are not let go of, in words.
    pub fn stays(self) -> &'static str {
        match self {
            Self::Pause => "stays paused",
            Self::Stop => "stays stopped",
        }
    }

    /// What is done to them, in a word.
    pub fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Stop => "stopped",
        }
    }
}

/// What is held, and how: enough to let go of it without knowing anything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// How.
    pub how: How,
    /// The containers, as the engine knows them, in the order in which they were held.
    pub held: Vec<String>,
    /// Whether files of the volume are about to be put back.
    #[serde(default)]
    pub restores: bool,
    /// When the engine starts which of them by itself, where it does so else.
    #[serde(default)]
    pub restarts: BTreeMap<String, Restart>,
    /// Those that are stopped in any case: who is about to be started again cannot be paused.
    #[serde(default)]
    pub stopped: Vec<String>,
}

impl Record {
    /// How one of them is held.
    pub fn how_of(&self, id: &str) -> How {
        if self.stopped.iter().any(|stopped| stopped == id) { How::Stop } else { self.how }
    }

    /// As text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a record can be written")
    }

    /// Reads what [`Self::text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

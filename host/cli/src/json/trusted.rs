//! What was trusted, in JSON: `trust --list`.

use super::HistoryItem;
use super::names::Named;
use serde::Serialize;
use snapback_core::project::consents::Consent;

/// All of it.
#[derive(Serialize)]
pub struct Trusted<'a> {
    /// Stores that came from elsewhere.
    pub stores: Vec<HistoryItem<'a>>,
    /// What targets may reach.
    pub consents: Vec<ConsentItem<'a>>,
}

/// One consent; only the key of one whose text cannot be read.
#[derive(Serialize)]
pub struct ConsentItem<'a> {
    key: &'a str,
    #[serde(flatten)]
    root: Option<Named<'a, 1>>,
    store: Option<&'a str>,
    target: Option<&'a str>,
    backend: Option<&'a str>,
    reaches: &'a [String],
    given: Option<String>,
}

impl<'a> ConsentItem<'a> {
    /// Of the consent `key`.
    pub fn new(key: &'a str, consent: Option<&'a Consent>) -> Self {
        Self {
            key,
            root: consent.map(|c| Named([("root", "root_b64", &c.root)])),
            store: consent.map(|c| &*c.store),
            target: consent.map(|c| &*c.target),
            backend: consent.map(|c| &*c.backend),
            reaches: consent.map_or(&[], |c| &c.reaches),
            given: consent.map(|c| c.given.to_string()),
        }
    }
}

//! Consent: whether the user agreed to what a target reaches outside the project.
//!
//! snapback.toml and snapshots may come from strangers. So whatever leads out of the
//! project, and every component that did not come inside the program, wants the user's
//! consent, looked up each time before the component is started. A consent is for one
//! store, one component, these settings, and what they lead to now; when one of them is
//! another, it is asked for again. A name, a comment or the order of settings is none of them.

mod question;

pub use question::{Asker, Question};

use snapback_core::error::{Error, Kind, Result};
use snapback_core::project::consents::Consents;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What the user agreed to.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    consents: Option<Consents>,
    digests: Vec<String>,
    components: Vec<String>,
    refused: Arc<Mutex<Vec<Question>>>,
}

impl Trust {
    /// The consents kept in `state`, which need not exist, and those that are given with
    /// `digests`: of questions, for as long as this lives.
    pub fn new(state: Option<PathBuf>, digests: Vec<String>) -> Self {
        Self { consents: state.map(|state| Consents::new(&state)), digests, ..Self::default() }
    }

    /// Agrees to whatever the component of this digest asks for, for as long as this
    /// lives: the user named its file.
    pub fn all_of(mut self, component: String) -> Self {
        self.components.push(component);
        self
    }

    /// Whether the user agreed to what `question` asks for; what reaches nothing needs no
    /// consent.
    pub fn agrees(&self, question: &Question) -> bool {
        question.is_nothing()
            || self.components.iter().any(|digest| question.is_of(digest))
            || self.digests.contains(&question.digest())
            || question.key().zip(self.consents.as_ref()).is_some_and(|(key, consents)| key.is_in(consents))
    }

    /// Refuses what the user did not agree to.
    ///
    /// # Errors
    /// `Denied`, with what to do.
    pub fn check(&self, question: &Question) -> Result<()> {
        if self.agrees(question) {
            return Ok(());
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !refused.iter().any(|known| known.target == question.target) {
            refused.push(question.clone());
        }
        let (target, reaches) = (&question.target, question.reaches().join("; "));
        let what = match question.only_looks() {
            true => format!("the backend `{target}`, which came with the project"),
            false => format!("what the target `{target}` reaches"),
        };
        let why = format!("you have not agreed to {what}: {reaches}");
        let digest = question.digest();
        Err(Error::new(Kind::Denied, why)
            .hint(format!("`snapback trust` asks for it; a script says `snapback trust --digest {digest}`")))
    }

    /// What was refused since this was asked last, to be asked of the user: by target, since
    /// those that are asked for side by side are refused in any order.
    pub fn take_refused(&self) -> Vec<Question> {
        let mut refused = std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner));
        refused.sort_by(|a, b| a.target.cmp(&b.target));
        refused
    }

    /// By what a consent to `question` is kept; that it is kept is the caller's work.
    ///
    /// # Errors
    /// `NotFound` without a store, which is what the project is known by.
    pub fn key(&self, question: &Question) -> Result<String> {
        question.key().map(|key| key.name()).ok_or_else(|| {
            let why = "a consent cannot be kept: there is no store yet";
            Error::new(Kind::NotFound, why).hint("`snapback snap` makes it")
        })
    }
}

#[cfg(test)]
mod tests;

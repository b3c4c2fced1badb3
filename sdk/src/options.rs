//! Building the options of a host call.

use crate::Target;

/// Pairs of key and value; a key may come more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(Vec<(String, String)>);

impl Options {
    /// No option.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value.
    pub fn push(&mut self, key: &str, value: impl Into<String>) {
        self.0.push((key.to_owned(), value.into()));
    }

    /// Adds each line of the target's setting `key` as a value of the option of the
    /// same name; blank lines are passed over.
    pub fn pass(&mut self, target: &Target, key: &str) {
        for value in target.setting(key).iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty())
        {
            self.push(key, value);
        }
    }

    /// For the call.
    pub fn as_slice(&self) -> &[(String, String)] {
        &self.0
    }
}

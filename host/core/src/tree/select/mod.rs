//! What of a directory is captured: options, rules, and the decision about one name.

mod options;
mod rule;

pub use options::{MAX_FILES_PER_DIR, Options, Strategy, Times};
pub use rule::{CACHEDIR_TAG, Name, Rule, When};

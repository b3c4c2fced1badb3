//! JSON for programs: one document, keys that never change.
//!
//! Invariant: a name that is UTF-8 stands under its key; any other stands in base64
//! under the key with `_b64` behind it, and the plain key is absent. So no name is
//! ever changed by being written down.

mod beyond;
mod histories;
mod list;
mod names;
mod problem;
mod report;
mod status;
mod survey;
mod trusted;
mod written;

pub use beyond::Beyond;
pub use histories::HistoryItem;
pub use list::{Lacks, ListItem, ShowItem};
pub use problem::Problem;
pub use report::{Change, FreedReport, Restored, RunReport};
pub use status::{HeldItem, Status, StatusStep, StoreItem, TargetItem, excluded, root};
pub use survey::SurveyItem;
pub use trusted::{ConsentItem, Trusted};
pub use written::Written;

use crate::output::Out;
use serde::Serialize;
use snapback_core::error::Result;

/// Writes `value` as the one document of a command.
///
/// # Errors
/// When standard output cannot be written.
pub fn write(out: &mut Out, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).expect("what is reported can be written as JSON");
    out.bytes(text.as_bytes())?;
    out.bytes(b"\n")?;
    out.flush()
}

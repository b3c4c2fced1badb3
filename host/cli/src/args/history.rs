//! What undo, redo and restore take.

use crate::complete::{ids, targets};
use clap::Args;
use std::path::PathBuf;

/// What `undo` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback undo                   take the last step back
  snapback undo -n                only say what that would do
  snapback undo --path src/db     only what is in src/db
  snapback undo -i                choose what goes back
  snapback undo --resume          finish a step that was cut short

Nothing is lost by it: `snapback redo` brings back what was there.")]
pub struct UndoArgs {
    /// Go one snapshot back, also within a run
    #[arg(long, conflicts_with_all = ["resume", "take_back", "abandon"])]
    pub step: bool,
    /// Only this path and what is in it
    #[arg(long = "path", value_name = "P", conflicts_with_all = ["resume", "take_back", "abandon"])]
    pub paths: Vec<PathBuf>,
    /// Only this target
    #[arg(long = "target", value_name = "NAME", add = targets(), conflicts_with_all = ["resume", "take_back", "abandon"])]
    pub targets: Vec<String>,
    /// Choose on a full screen what goes back
    #[arg(short, long, conflicts_with_all = ["step", "paths", "targets", "resume", "take_back", "abandon"])]
    pub interactive: bool,
    /// Only say what would be done
    #[arg(short = 'n', long = "dry-run", conflicts_with_all = ["resume", "take_back", "abandon"])]
    pub dry: bool,
    /// When one target fails, go on with the others
    #[arg(long)]
    pub partial: bool,
    /// Finish the step that was cut short
    #[arg(long, conflicts_with_all = ["take_back", "abandon"])]
    pub resume: bool,
    /// Go back to where the step that was cut short began
    #[arg(long, conflicts_with = "abandon")]
    pub take_back: bool,
    /// Finish the step that was cut short without this target
    #[arg(long, value_name = "TARGET", add = targets())]
    pub abandon: Option<String>,
}

/// What `redo` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback redo      do the step that was undone last again
  snapback redo -n   only say what that would do")]
pub struct RedoArgs {
    /// Only say what would be done
    #[arg(short = 'n', long = "dry-run")]
    pub dry: bool,
    /// When one target fails, go on with the others
    #[arg(long)]
    pub partial: bool,
}

/// What `restore` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback restore @0                    the newest snapshot's state
  snapback restore 7f3a --path src/main.rs   one file, as it was then
  snapback restore 20260102 -n           only say what that would do

It is a step of its own: `snapback undo` takes it back.")]
pub struct RestoreArgs {
    /// The snapshot: its ID, a unique beginning or ending of it, or @0, @1 ...
    #[arg(value_name = "ID", add = ids())]
    pub id: String,
    /// Only this path and what is in it
    #[arg(long = "path", value_name = "P")]
    pub paths: Vec<PathBuf>,
    /// Only this target
    #[arg(long = "target", value_name = "NAME", add = targets())]
    pub targets: Vec<String>,
    /// Choose on a full screen what goes back
    #[arg(short, long, conflicts_with_all = ["paths", "targets"])]
    pub interactive: bool,
    /// Only say what would be done
    #[arg(short = 'n', long = "dry-run")]
    pub dry: bool,
    /// When one target fails, go on with the others
    #[arg(long)]
    pub partial: bool,
}

/// What `review` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback review                               go through what changed since the last run
  snapback review --reject 'src/generated/'     put that back, leave all else as it is
  snapback review --reject '*' --accept '*.rs'  put back all but the sources

A pattern means what it means in .gitignore; the name of a volume's target means all of the
volume. What is put back is one step, and `snapback undo` takes that back.")]
pub struct ReviewArgs {
    /// Since this snapshot; without it: since where `undo` would go
    #[arg(value_name = "ID", add = ids())]
    pub id: Option<String>,
    /// Keep what is there now, whatever else is said of it
    #[arg(long, value_name = "GLOB")]
    pub accept: Vec<String>,
    /// Put back what the snapshot has
    #[arg(long, value_name = "GLOB")]
    pub reject: Vec<String>,
    /// Only say what would be done
    #[arg(short = 'n', long = "dry-run")]
    pub dry: bool,
    /// When one target fails, go on with the others
    #[arg(long)]
    pub partial: bool,
}

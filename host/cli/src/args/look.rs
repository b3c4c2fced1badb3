//! What the commands that only look take.

use crate::complete::{ids, paths};
use clap::Args;
use std::path::PathBuf;

/// What `list` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback list         all snapshots, newest first
  snapback list 7f3a    the snapshots that were taken inside that run
  snapback list --all   all projects that have a history, those that are gone too")]
pub struct ListArgs {
    /// Only the snapshots inside this run
    #[arg(value_name = "RUN", add = ids())]
    pub run: Option<String>,
    /// List all projects that have a history
    #[arg(long, conflicts_with = "run")]
    pub all: bool,
}

/// What `show` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback show @0     all about the newest snapshot
  snapback show 7f3a   all about the one whose ID ends so")]
pub struct ShowArgs {
    /// The snapshot: its ID, a unique beginning or ending of it, or @0, @1 ...
    #[arg(value_name = "ID", add = ids())]
    pub id: String,
}

/// What `diff` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback diff             from where `undo` would go to the present
  snapback diff @1          from the last snapshot but one to the present
  snapback diff @1 @0       from one snapshot to another
  snapback diff -p --path src   as a patch, only what is in src")]
pub struct DiffArgs {
    /// From this snapshot; without it: from where `undo` would go
    #[arg(value_name = "ID", add = ids())]
    pub from: Option<String>,
    /// To this snapshot; without it: to the present
    #[arg(value_name = "ID", add = ids())]
    pub to: Option<String>,
    /// Only this path and what is in it
    #[arg(long = "path", value_name = "P")]
    pub paths: Vec<PathBuf>,
    /// Show changed text as a patch
    #[arg(short, long, conflicts_with_all = ["stat", "names"])]
    pub patch: bool,
    /// Show counts only
    #[arg(long, conflicts_with = "names")]
    pub stat: bool,
    /// Show letters and paths only: not how much of a file changed, nor what differs in a
    /// database
    #[arg(long, visible_alias = "name-status")]
    pub names: bool,
    /// Exit with 1 when something changed, with 2 on an error
    #[arg(long)]
    pub exit_code: bool,
}

/// What `cat` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback cat @0 src/main.rs           the file as it was in the newest snapshot
  snapback cat 7f3a notes.txt > old.txt")]
pub struct CatArgs {
    /// The snapshot: its ID, a unique beginning or ending of it, or @0, @1 ...
    #[arg(value_name = "ID", add = ids())]
    pub id: String,
    /// The file
    #[arg(value_name = "PATH", add = paths())]
    pub path: PathBuf,
}

//! What the commands take that make snapshots and look after them.

use crate::complete::{backends, ids, targets};
use clap::{Args, Subcommand};
use snapback_core::Error;
use snapback_core::project::units;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What `run` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback run -- make deploy
  snapback run -m 'before the codemod' -- npx codemod src
  snapback run --undo-on-failure -- ./migrate.sh
  snapback run --every 30s -- claude   and a snapshot every 30 seconds, for `undo --step`

Exit code: the command's own, 128+n when signal n ended it, 126 when it cannot be
executed, 127 when there is none, 125 when snapback failed and it was not started.")]
pub struct RunArgs {
    /// Say what it is about
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Take a snapshot after each so much time as well, when something changed
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub every: Option<Duration>,
    /// Undo by itself when the command fails
    #[arg(long)]
    pub undo_on_failure: bool,
    /// Snapshot only this target
    #[arg(long, value_name = "NAME", add = targets())]
    pub only: Vec<String>,
    /// Snapshot all targets but this one
    #[arg(long, value_name = "NAME", add = targets())]
    pub skip: Vec<String>,
    /// Write a report of the run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Take a first snapshot of any size
    #[arg(long)]
    pub allow_huge: bool,
    /// The command, with its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// What `snap` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback snap -m 'it works'
  id=$(snapback snap -q)")]
pub struct SnapArgs {
    /// Say what it is about
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Snapshot only this target
    #[arg(long, value_name = "NAME", add = targets())]
    pub only: Vec<String>,
    /// Snapshot all targets but this one
    #[arg(long, value_name = "NAME", add = targets())]
    pub skip: Vec<String>,
    /// Keep it until `snapback forget`
    #[arg(long)]
    pub pin: bool,
    /// Take a first snapshot of any size
    #[arg(long)]
    pub allow_huge: bool,
}

/// What `gc` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback gc                    keep what the user's config.toml says
  snapback gc --keep 5           keep the five newest
  snapback gc --keep-within 7d   keep those of the last seven days
  snapback gc --keep 5 -n        only say what that would drop
  snapback gc --all              histories of removed projects as well

Never dropped: what the next undo and redo need, the newest run, pinned snapshots.")]
pub struct GcArgs {
    /// Keep this many snapshots
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Keep snapshots that are not older
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub keep_within: Option<Duration>,
    /// Keep the store below this size; what a server keeps for its snapshots is no part of it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// Drop also what is kept of projects that are gone, 30 days after their last use
    #[arg(long)]
    pub all: bool,
    /// Only say what would be dropped
    #[arg(short = 'n', long = "dry-run")]
    pub dry: bool,
}

/// What `trust` takes.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what"),
    after_help = "\
Examples:
  snapback trust           show what targets reach outside the project, and ask
  snapback trust --store   check the store in this project, and go on with it
  snapback trust --list    the stores that were trusted, and what targets may reach
  snapback trust --revoke  take all of that back for this project
  snapback trust --revoke --target db   only what the target `db` was allowed

A target that reaches out of the project (a path that leads out, a volume, an address, a
program, a variable) or is covered by a component that did not come with snapback does
nothing until you have agreed to that. Where nobody can be asked, `--digest` agrees to one
question, and the variable SNAPBACK_TRUST holds digests that are agreed to for once.

A store that was not made here (it came with an archive) is only read until it is trusted:
`list`, `show`, `cat`, `verify`, `status` and `diff ID ID` work. One that belongs to another
user is never written: it stays theirs until root gives it to you with `chown -R`."
)]
pub struct TrustArgs {
    /// Trust the store in this project
    #[arg(long, group = "what")]
    pub store: bool,
    /// List what was trusted
    #[arg(long, group = "what")]
    pub list: bool,
    /// Take back what was agreed to for this project, and that its store was trusted
    #[arg(long, group = "what")]
    pub revoke: bool,
    /// Take back only what this target was allowed
    #[arg(long, value_name = "NAME", requires = "revoke", add = targets())]
    pub target: Vec<String>,
    /// Agree to the one question with this digest, without being asked
    #[arg(long, value_name = "HEX", group = "what")]
    pub digest: Option<String>,
}

/// What `forget` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  snapback forget 7f3a   drop it, and remove from the disk what only it holds")]
pub struct ForgetArgs {
    /// The snapshot: its ID, a unique beginning or ending of it, or @0, @1 ...
    #[arg(value_name = "ID", add = ids())]
    pub id: String,
}

/// What `backends` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback backends             what can be captured here, and what each may reach
  snapback backends show tree   all about one, with its settings
  snapback backends add x.wasm  look at a component and keep it")]
pub struct BackendsArgs {
    /// What to do; nothing: list
    #[command(subcommand)]
    pub command: Option<BackendsCommand>,
}

/// What to do about backends.
#[derive(Debug, Subcommand)]
pub enum BackendsCommand {
    /// List them
    List,
    /// Show all about one: what it wants, and its settings
    Show {
        /// Its name
        #[arg(value_name = "N", add = backends())]
        name: String,
    },
    /// Put a component into your own folder of backends, after looking at it
    Add {
        /// A component, or a module that was built with the SDK
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove one from your own folder of backends
    Remove {
        /// Its name
        #[arg(value_name = "N", add = backends())]
        name: String,
    },
    /// Check a component against the law for backends
    Test {
        /// The component, or a module that was built with the SDK
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// TOML: `[target]` with settings, `[test]` with `setup`, `change` and `probe`
        #[arg(long, value_name = "F")]
        settings: Option<PathBuf>,
    },
    /// Make a project for a new one, with the contract and, for Rust, the library
    New {
        /// Its name, and that of the folder
        #[arg(value_name = "N")]
        name: String,
        /// What it is written in
        #[arg(long, value_name = "LANGUAGE")]
        lang: Language,
    },
}

/// What a backend can be begun in; any language that makes components will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// Rust, with the SDK.
    Rust,
    /// Python, through componentize-py.
    Python,
}

fn duration(text: &str) -> Result<Duration, String> {
    units::duration(text).map_err(in_one_line)
}

fn size(text: &str) -> Result<u64, String> {
    units::size(text).map_err(in_one_line)
}

fn in_one_line(error: Error) -> String {
    match error.hint_text() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

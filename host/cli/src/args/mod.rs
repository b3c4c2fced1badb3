//! The command line as it is typed: commands, flags, help with examples.
//!
//! Invariant: what is accepted here is documented in the help, and a misspelt word
//! is answered with the nearest right one. Refuses everything else with exit code 2.
//! Nothing is looked up here; words become values, no more.

mod global;
mod habits;
mod history;
mod look;
mod take;

pub use global::{Colour, Global};
pub use habits::{CompletionsArgs, ManArgs};
pub use history::{RedoArgs, RestoreArgs, ReviewArgs, UndoArgs};
pub use look::{CatArgs, DiffArgs, ListArgs, ShowArgs};
pub use take::{BackendsArgs, BackendsCommand, ForgetArgs, GcArgs, Language, RunArgs, SnapArgs, TrustArgs};

use clap::{Parser, Subcommand};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "snapback",
    version,
    about = "Undo for any command: snapshot before, put everything back after",
    after_help = EXAMPLES,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = false,
    max_term_width = 100
)]
pub struct Cli {
    /// What is accepted everywhere.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  snapback run -- npm run migrate   take a snapshot, then run the command
  snapback undo                     put everything back as it was before it
  snapback redo                     and forth again
  snapback list                     what is stored
  snapback diff                     what changed since";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take a snapshot, then run a command
    Run(RunArgs),
    /// Take a snapshot and print its ID
    Snap(SnapArgs),
    /// Take the last step back: a run, a restore, or edits since a snapshot
    Undo(UndoArgs),
    /// Do the step that was undone last again
    Redo(RedoArgs),
    /// Put the state of a snapshot back, all of it or some paths
    Restore(RestoreArgs),
    /// Go through what changed, and choose what goes back
    Review(ReviewArgs),
    /// List the snapshots, newest first
    List(ListArgs),
    /// Show all about one snapshot, also what is not in it
    Show(ShowArgs),
    /// Show what changed
    Diff(DiffArgs),
    /// Write a file of a snapshot to standard output
    Cat(CatArgs),
    /// Show the project, its store, and what undo and redo would do
    #[command(after_help = "\
Examples:
  snapback status          what a snapshot holds and leaves out, and what undo would do
  snapback status --json   the same for programs")]
    Status,
    /// Drop old snapshots and give their space back
    Gc(GcArgs),
    /// Drop one snapshot and remove what only it holds
    Forget(ForgetArgs),
    /// Read everything that is stored and check it
    #[command(after_help = "\
Examples:
  snapback verify && echo all is whole")]
    Verify,
    /// Go on with a history that came from elsewhere
    Trust(TrustArgs),
    /// List the backends: what can be captured
    Backends(BackendsArgs),
    /// Write a snapback.toml that says what was found here
    #[command(after_help = "\
Examples:
  snapback init && $EDITOR snapback.toml")]
    Init,
    /// Print the script that makes a shell complete commands, IDs, paths and names
    Completions(CompletionsArgs),
    /// Print the manual, or write all of its pages
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    fn parse(words: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("snapback").chain(words.iter().copied()))
    }

    fn command_of(words: &[&str]) -> Vec<OsString> {
        match parse(words).unwrap().command {
            Command::Run(run) => run.command,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_has_an_argument_by_the_name_of_one_that_all_have() {
        let whole = Cli::command();
        let everywhere: Vec<_> = whole.get_arguments().map(|argument| argument.get_id()).collect();
        let mut todo: Vec<_> = whole.get_subcommands().collect();
        while let Some(command) = todo.pop() {
            let own = command.get_arguments().find(|argument| everywhere.contains(&argument.get_id()));
            assert!(own.is_none(), "{}: {own:?}", command.get_name());
            todo.extend(command.get_subcommands());
        }
    }

    #[test]
    fn the_command_of_a_run_is_taken_word_by_word() {
        for (words, command) in [
            (&["run", "--", "ls", "-la"][..], &["ls", "-la"][..]),
            (&["run", "ls", "-q", "--json", "-C", "x"], &["ls", "-q", "--json", "-C", "x"]),
            (&["run", "-m", "why", "--", "x", "--", "-y"], &["x", "--", "-y"]),
            (&["run", "cargo", "test", "--", "--nocapture"], &["cargo", "test", "--", "--nocapture"]),
            (&["run", "--", "--odd"], &["--odd"]),
        ] {
            assert_eq!(command_of(words), command, "{words:?}");
        }
        let odd = OsString::from_vec(b"\xfe".to_vec());
        let cli = Cli::try_parse_from(["snapback".into(), "run".into(), "--".into(), odd.clone()]).unwrap();
        assert!(matches!(cli.command, Command::Run(run) if run.command == [odd]));
    }

    #[test]
    fn a_run_needs_a_command() {
        assert!(parse(&["run"]).is_err());
        assert!(parse(&["run", "--"]).is_err());
    }

    #[test]
    fn global_flags_stand_before_and_after_the_verb() {
        for words in [&["-C", "/x", "--json", "list"][..], &["list", "--json", "-C", "/x"]] {
            let cli = parse(words).unwrap();
            assert!(cli.global.json && cli.global.directory == Some("/x".into()), "{words:?}");
        }
    }

    #[test]
    fn a_misspelt_word_is_answered_with_the_right_one() {
        for (words, right) in [(&["unod"][..], "'undo'"), (&["undo", "--pth", "x"], "'--path'")] {
            let message = parse(words).unwrap_err().to_string();
            assert!(message.contains(right), "{message}");
        }
    }

    #[test]
    fn ways_to_end_a_pending_step_exclude_each_other() {
        assert!(parse(&["undo", "--resume", "--take-back"]).is_err());
        assert!(parse(&["undo", "--abandon"]).is_err());
        assert!(parse(&["undo", "--resume", "--path", "x"]).is_err());
        assert!(parse(&["undo", "--abandon", "tree"]).is_ok());
    }

    #[test]
    fn durations_and_sizes_are_checked_while_reading() {
        let message = parse(&["gc", "--keep-within", "soon"]).unwrap_err().to_string();
        assert!(message.contains("`soon` is not a duration") && message.contains("7d"), "{message}");
        assert!(parse(&["gc", "--max-size", "2GiB", "--keep", "3"]).is_ok());
    }
}

//! Words that people bring along from git, restic and the like, and what they mean here.
//!
//! Only a hint is made of them: a word that is no command stays none.

use crate::args::Cli;
use crate::places;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use snapback_core::error::shell_word;
use std::ffi::OsString;
use std::path::Path;

/// Commands of others, and what does that here.
const COMMANDS: [(&str, &str); 32] = [
    ("log", "`snapback list` shows the snapshots"),
    ("history", "`snapback list` shows the snapshots"),
    ("ls", "`snapback list` shows the snapshots, `snapback show ID` one of them"),
    ("snapshots", "`snapback list` shows the snapshots"),
    ("info", "`snapback show ID` shows all about a snapshot, `snapback status` about the project"),
    ("rollback", "`snapback undo` takes the last step back, `snapback restore ID` goes to any snapshot"),
    ("revert", "`snapback undo` takes the last step back, `snapback restore ID` goes to any snapshot"),
    ("reset", "`snapback undo` takes the last step back, `snapback restore ID` goes to any snapshot"),
    ("back", "`snapback undo` takes the last step back"),
    ("checkout", "`snapback restore ID` goes to a snapshot, `snapback restore ID --path P` for a path alone"),
    ("switch", "`snapback restore ID` goes to a snapshot"),
    ("goto", "`snapback restore ID` goes to a snapshot"),
    ("recover", "`snapback undo` takes the last step back, `snapback restore ID` goes to any snapshot"),
    ("rm", "`snapback forget ID` drops a snapshot"),
    ("delete", "`snapback forget ID` drops a snapshot"),
    ("remove", "`snapback forget ID` drops a snapshot"),
    ("drop", "`snapback forget ID` drops a snapshot"),
    ("prune", "`snapback gc` drops old snapshots and gives their space back"),
    ("clean", "`snapback gc` drops old snapshots and gives their space back"),
    ("stash", "`snapback snap` stores the present state, `snapback restore ID` goes back to it"),
    ("backup", "`snapback snap` takes a snapshot"),
    ("save", "`snapback snap` takes a snapshot"),
    ("commit", "`snapback snap -m TEXT` takes a snapshot"),
    ("snapshot", "`snapback snap` takes a snapshot"),
    ("create", "`snapback snap` takes a snapshot"),
    ("check", "`snapback verify` checks all that is stored"),
    ("fsck", "`snapback verify` checks all that is stored"),
    ("dump", "`snapback cat ID PATH` writes a file of a snapshot"),
    ("exec", "`snapback run -- COMMAND` takes a snapshot and runs a command"),
    ("plugins", "`snapback backends` lists what can be captured"),
    ("config", "`snapback init` writes a snapback.toml to begin with"),
    ("pick", "`snapback review` chooses what goes back"),
];

/// What helps someone who wrote `words`, which were refused with `error`.
pub fn hint(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let told = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => of_command(told(ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => of_path(told(ContextKind::InvalidArg)?, verb(words)?),
        ErrorKind::MissingRequiredArgument => {
            let is_id = |list: &[String]| list.iter().any(|missing| missing == "<ID>");
            let missing = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(list)) if is_id(list));
            missing.then(|| {
                "@0 is the newest snapshot, @1 the one before it; `snapback list` shows all".to_owned()
            })
        }
        _ => None,
    }
}

/// What does here what `word` does elsewhere.
fn of_command(word: &str) -> Option<String> {
    let found = COMMANDS.iter().find(|(theirs, _)| *theirs == word);
    found.map(|(_, ours)| (*ours).to_owned())
}

/// A path that was given to `verb` as it is to git.
fn of_path(word: &str, verb: &str) -> Option<String> {
    let takes = Cli::command().find_subcommand(verb)?.get_arguments().any(|arg| arg.get_id() == "paths");
    let path = shell_word(word);
    if matches!(verb, "undo" | "redo") && is_like_id(word) {
        return Some(format!("`snapback restore {path}` goes to a snapshot; `snapback {verb}` takes no ID"));
    }
    (takes && !word.starts_with('-')).then(|| format!("`snapback {verb} --path {path}` for that path alone"))
}

/// Whether `word` is meant for a snapshot: `@N`, a number, or a part of an ID.
fn is_like_id(word: &str) -> bool {
    let bare = word.strip_prefix('@').unwrap_or(word);
    let all = |is: fn(&char) -> bool| !bare.is_empty() && bare.chars().all(|c| is(&c));
    all(char::is_ascii_digit)
        || word.len() >= 4
            && all(|c| c.is_ascii_hexdigit() || *c == '-')
            && bare.contains(|c: char| c.is_ascii_digit())
}

/// The command among `words`.
fn verb(words: &[OsString]) -> Option<&str> {
    let known = Cli::command();
    words.iter().filter_map(|word| word.to_str()).find(|word| known.find_subcommand(word).is_some())
}

/// What helps someone who gave `text` where a snapshot is meant, seen from `here`: a path,
/// as git takes it; none where it is none. `verb` is the command so far.
pub fn path_for_id(verb: &str, text: &str, here: &Path) -> Option<String> {
    let is_path =
        text.contains(['/', '.']) || places::resolve(here, Path::new(text)).symlink_metadata().is_ok();
    let path = shell_word(text);
    is_path.then(|| match verb {
        "restore" => format!(
            "`snapback undo --path {path}` takes back what changed there, `snapback restore @0 --path {path}` \
             brings it back from the newest snapshot"
        ),
        _ => format!("`snapback {verb} --path {path}` for that path alone"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn of(words: &[&str]) -> Option<String> {
        let error =
            Cli::try_parse_from(std::iter::once("snapback").chain(words.iter().copied())).unwrap_err();
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        hint(&error, &words)
    }

    #[test]
    fn each_word_of_others_leads_to_a_command_that_there_is() {
        let known = Cli::command();
        for (theirs, ours) in COMMANDS {
            assert!(known.find_subcommand(theirs).is_none(), "{theirs} is a command");
            assert_eq!(of(&[theirs]).as_deref(), Some(ours), "{theirs}");
            let named = ours.split('`').skip(1).step_by(2);
            for line in named {
                let verb = line.split(' ').nth(1).unwrap();
                assert!(known.find_subcommand(verb).is_some(), "{line}");
            }
        }
        assert_eq!(of(&["unod"]), None, "the nearest word is found by others");
    }

    #[test]
    fn a_path_is_led_to_the_flag_for_it() {
        assert_eq!(of(&["undo", "src/a b"]).unwrap(), "`snapback undo --path 'src/a b'` for that path alone");
        assert_eq!(of(&["list", "a", "b"]), None);
        assert_eq!(of(&["undo", "--pth"]), None);
        let none = Path::new("/nonexistent");
        assert!(path_for_id("restore", "README.md", none).unwrap().contains("undo --path README.md`"));
        assert_eq!(
            path_for_id("diff", "src/a", none).unwrap(),
            "`snapback diff --path src/a` for that path alone"
        );
        assert_eq!(path_for_id("diff", "7f3a", none), None);
        assert!(path_for_id("diff", "etc", Path::new("/")).is_some(), "what is there");
    }

    #[test]
    fn a_missing_id_is_explained() {
        for words in [&["show"][..], &["restore", "--path", "x"], &["forget"]] {
            assert!(of(words).unwrap().contains("@0 is the newest"), "{words:?}");
        }
        assert_eq!(of(&["run"]), None);
    }
}

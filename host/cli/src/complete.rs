//! What the shell is told when somebody presses Tab: the shell calls this program with
//! the words so far.
//!
//! Invariant: nothing is changed and nothing is said; what cannot be read completes to
//! nothing. Only the variable of the generated scripts leads here, so that no variable of
//! anybody else's does.

use crate::args::{Cli, Colour, Global};
use crate::contents;
use crate::context::Context;
use crate::exit::Code;
use crate::places;
use crate::render::words;
use clap::CommandFactory;
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Shells, Zsh};
use clap_complete::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use snapback_core::backend::Backends;
use snapback_core::error::{Error, Result};
use snapback_core::history::{Id, Snapshot};
use snapback_core::session::Project;
use snapback_core::store::Source;
use snapback_core::tree::node::{Entry, Node, decode_tree};
use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Set by the generated scripts to the name of their shell.
const VARIABLE: &str = "SNAPBACK_COMPLETE";
const SHELLS: [&dyn EnvCompleter; 3] = [&Bash, &Zsh, &Fish];
/// What a script says of its own, by its shell: that the command of a run completes itself.
const OWN: [(&str, &str); 3] = [
    ("bash", include_str!("complete/after.bash")),
    ("zsh", include_str!("complete/after.zsh")),
    ("fish", include_str!("complete/whole.fish")),
];
/// Snapshots that are offered: the newest.
const OFFERED: usize = 100;

/// Answers the shell, if it is the shell that asks.
pub fn answered() -> Option<Code> {
    env::var_os(VARIABLE)?;
    let shells = Shells(&SHELLS);
    let asked = CompleteEnv::with_factory(Cli::command).var(VARIABLE).shells(shells);
    match asked.try_complete(env::args_os(), env::current_dir().ok().as_deref()) {
        Ok(answered) => answered.then_some(Code::DONE),
        Err(_) => Some(Code::FAILED),
    }
}

/// The script that makes `shell` ask.
///
/// # Errors
/// When there is none for it.
pub fn script(shell: &str) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    // Fish would ask both.
    if let Some(shell) = Shells(&SHELLS).completer(shell).filter(|shell| shell.name() != "fish") {
        let written = shell.write_registration(VARIABLE, "snapback", "snapback", "snapback", &mut text);
        written.map_err(|error| Error::io(error, "could not make", "the script"))?;
    }
    let own = OWN.iter().filter(|(name, _)| *name == shell);
    own.for_each(|(_, own)| text.extend_from_slice(own.as_bytes()));
    Ok(text)
}

/// Completes to the names of snapshots.
pub fn ids() -> ArgValueCandidates {
    ArgValueCandidates::new(|| quietly(all_ids))
}

/// Completes to the names of targets.
pub fn targets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| quietly(all_targets))
}

/// Completes to the names of backends.
pub fn backends() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        quietly(|asked| {
            let names = asked.context.backends(&asked.context.root()).names();
            Ok(names.into_iter().map(CompletionCandidate::new).collect())
        })
    })
}

/// Completes to the paths inside the snapshot that was named before.
pub fn paths() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| quietly(|asked| inside(asked, current)))
}

/// What the shell asks about.
struct Asked {
    context: Context,
    words: Vec<OsString>,
}

impl Asked {
    /// Where the words say to be.
    fn new() -> Self {
        let words: Vec<OsString> = env::args_os().skip_while(|word| word != "--").skip(2).collect();
        let value = |flag: &str| {
            let at = words.iter().position(|word| word == flag)?;
            words.get(at + 1).map(PathBuf::from)
        };
        let global = Global {
            directory: value("-C"),
            root: value("--root"),
            json: false,
            quiet: true,
            verbose: 0,
            color: Colour::Never,
            yes: false,
        };
        Self { context: Context::new(global), words }
    }

    fn project(&self) -> Result<Project> {
        self.context.look()
    }
}

fn quietly(answer: impl FnOnce(&Asked) -> Result<Vec<CompletionCandidate>>) -> Vec<CompletionCandidate> {
    answer(&Asked::new()).unwrap_or_default()
}

fn all_ids(asked: &Asked) -> Result<Vec<CompletionCandidate>> {
    let (project, now) = (asked.project()?, asked.context.now());
    let help = |id: &Id| {
        let snapshot = project.load(id).ok()?;
        let age = words::age(snapshot.created.0.as_millisecond(), now);
        Some(format!("{age}, {}", words::about(&snapshot)).into())
    };
    let offered = |(at, id): (usize, Id)| {
        let help = help(&id);
        CompletionCandidate::new(id.as_str()).help(help).display_order(Some(at))
    };
    Ok(project.ids()?.into_iter().take(OFFERED).enumerate().map(offered).collect())
}

fn all_targets(asked: &Asked) -> Result<Vec<CompletionCandidate>> {
    let project = asked.project()?;
    let configured = project.config().map_or(&[][..], |config| &config.targets);
    let mut names: BTreeSet<String> = configured.iter().map(|c| c.target.name.clone()).collect();
    if let Some(newest) = project.ids()?.first() {
        names.extend(project.load(newest)?.targets.into_iter().map(|captured| captured.target.name));
    }
    Ok(names.into_iter().map(CompletionCandidate::new).collect())
}

/// What lies in the directory that `current` names so far, in the snapshot that a word
/// before names.
fn inside(asked: &Asked, current: &OsStr) -> Result<Vec<CompletionCandidate>> {
    let project = asked.project()?;
    let named = asked.words.iter().filter_map(|word| project.find(word.to_str()?).ok()).next();
    let (Some(snapshot), Some(store)) = (named, project.store()) else { return Ok(Vec::new()) };
    let typed = current.as_bytes();
    let (dir, name) = typed.split_at(typed.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1));
    let at = Path::new(OsStr::from_bytes(if dir.is_empty() { b"." } else { dir }));
    let at = places::inside(project.root(), &asked.context.here, at)?;
    let mut entries = listed(project.root(), &**store, &snapshot, &at.0)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries.dedup_by(|a, b| a.name == b.name);
    let offered = entries.into_iter().filter(|entry| entry.name.starts_with(name)).map(|entry| {
        let slash = if matches!(entry.node, Node::Dir(_)) { &b"/"[..] } else { b"" };
        CompletionCandidate::new(OsString::from_vec([dir, &entry.name, slash].concat()))
    });
    Ok(offered.collect())
}

/// The entries of a directory of `snapshot`, and the databases of it that lie there.
fn listed(project: &Path, source: &dyn Source, snapshot: &Snapshot, dir: &[u8]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for captured in &snapshot.targets {
        for (base, root) in contents::placed(project, source, captured)? {
            let Some(inside) = contents::within(dir, &base) else { continue };
            if let Some(Entry { node: Node::Dir(key), .. }) = contents::find(source, &root, inside)? {
                entries.extend(decode_tree(&source.read(&key)?)?);
            }
        }
    }
    Ok(entries)
}

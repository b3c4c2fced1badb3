//! `snapback backends test`: a component against the law for backends.
//!
//! That the user names the file is the consent to what its settings open; its author's
//! commands are the user's own, and run in an empty directory.

use super::add::read;
use super::verdicts::{self, Item};
use crate::context::Context;
use crate::exit::Code;
use crate::json;
use crate::places;
use crate::signals::Signals;
use serde::Deserialize;
use snapback_core::backend::Cancel;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::project::config;
use snapback_runtime::digest_of;
use snapback_runtime::laws::{self, Outcome, Trial, Verdict, World};
use snapback_runtime::manifest::text_of;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    target: BTreeMap<String, toml::Value>,
    test: Option<Commands>,
}

/// The author's commands, each a line of shell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Commands {
    setup: String,
    change: Vec<String>,
    probe: String,
}

/// Does it.
///
/// # Errors
/// When the component is no backend, a setting is wrong, or a command fails.
pub fn run(context: &mut Context, file: &Path, settings: Option<&Path>) -> Result<Code> {
    let bytes = read(&places::resolve(&context.here, file))?;
    let File { target, test } = match settings {
        None => File::default(),
        Some(path) => parse(&places::resolve(&context.here, path))?,
    };
    let target = target.into_iter().map(|(key, value)| Ok((key.clone(), text(&key, &value)?)));
    let target = target.collect::<Result<BTreeMap<_, _>>>()?;
    let place = Place::new()?;
    let (root, store) = (place.0.join("project"), place.0.join("store"));
    fs::create_dir(&root).map_err(|error| Error::io(error, "could not make", &root))?;
    let trial = Trial::new(&bytes, &root, &store, target, context.surroundings(&root))?;
    let cancel = context.cancel.clone();
    let _signals = Signals::watch(cancel.clone())?;
    let mut author = test.map(|commands| Author { commands, root, cancel });
    let checked = laws::check(&trial, author.as_mut().map(|author| author as &mut dyn World));
    context.cancel.check()?;
    let verdicts = checked?;
    let noted = verdicts::note(&context.places.state, &digest_of(&bytes), context.now(), &verdicts);
    if let Err(error) = noted {
        context.talk.say(error.context("what came of it is not kept"));
    }
    report(context, &verdicts)?;
    let broken = verdicts.iter().any(|verdict| matches!(verdict.outcome, Outcome::Broken(_)));
    let unchecked = verdicts.iter().any(|verdict| matches!(verdict.outcome, Outcome::Unchecked(_)));
    Ok(match (broken, unchecked) {
        (true, _) => Code::FAILED,
        (false, true) => Code::PARTLY,
        (false, false) => Code::DONE,
    })
}

fn report(context: &mut Context, verdicts: &[Verdict]) -> Result<()> {
    let items: Vec<Item> = verdicts.iter().map(Item::from).collect();
    if context.global.json {
        return json::write(&mut context.out, &items);
    }
    for Item { law, outcome, why } in items {
        context.out.line(&format!("{outcome:<9}  {law}"))?;
        if let Some(why) = why {
            context.out.line(&format!("           {why}"))?;
        }
    }
    context.out.flush()
}

fn parse(path: &Path) -> Result<File> {
    let wrong = |why: String| {
        Error::new(Kind::Invalid, format!("{}: {why}", show(path)))
            .hint("it has `[target]` with settings, and `[test]` with `setup`, `change` (a list) and `probe`")
    };
    let text = config::read(path)?.ok_or_else(|| wrong("there is no such file".into()))?;
    toml::from_str(&text).map_err(|error| wrong(error.message().trim().replace('\n', ", ")))
}

/// A setting in its text form, as snapback.toml has it.
fn text(key: &str, value: &toml::Value) -> Result<String> {
    text_of(value).ok_or_else(|| {
        Error::new(Kind::Invalid, format!("`{key}` is text, a number, true, false or a list of these"))
            .hint("write it as in snapback.toml")
    })
}

/// The state, by its author's commands.
struct Author {
    commands: Commands,
    root: PathBuf,
    cancel: Cancel,
}

impl Author {
    /// Removes what is in the directory that the commands run in.
    fn empty(&self) -> Result<()> {
        let failed = |error| Error::io(error, "could not empty", &self.root);
        for entry in fs::read_dir(&self.root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_dir = entry.file_type().map_err(failed)?.is_dir();
            let path = entry.path();
            if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) }.map_err(failed)?;
        }
        Ok(())
    }

    fn shell(&self, command: &str) -> Result<String> {
        // Whoever wants to stop gets what was made removed.
        self.cancel.check()?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-ec", command]).current_dir(&self.root).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = shell.output().map_err(|error| Error::io(error, "could not run", "/bin/sh"))?;
        if !output.status.success() {
            let why = format!("the command `{command}` failed ({})", output.status);
            return Err(Error::new(Kind::Other, why).hint("it runs with `sh -e` in an empty directory"));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl World for Author {
    fn set_up(&mut self) -> Result<()> {
        self.empty()?;
        self.shell(&self.commands.setup).map(drop)
    }

    fn changes(&self) -> usize {
        self.commands.change.len()
    }

    fn change(&mut self, which: usize) -> Result<()> {
        let command = self.commands.change.get(which);
        let none =
            || Error::new(Kind::Invalid, "`change` names no command").hint("it is a list of two or more");
        self.shell(command.ok_or_else(none)?).map(drop)
    }

    fn probe(&mut self) -> Result<String> {
        self.shell(&self.commands.probe)
    }
}

/// A directory of its own, gone at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        let name = format!("snapback-backend-test-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|error| Error::io(error, "could not make", &path))?;
        let path = path.canonicalize().map_err(|error| Error::io(error, "could not find", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A leftover in the directory for such things does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

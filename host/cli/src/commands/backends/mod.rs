//! `snapback backends`: what can be captured, and by which component.
//!
//! Listing starts no engine: what a component says about itself is kept with its digest.
//! Nothing is ever fetched: a backend is a file that the user has.

mod add;
mod list;
mod new;
mod remove;
mod show;
mod test;
mod verdicts;

use crate::args::{BackendsArgs, BackendsCommand};
use crate::context::Context;
use crate::exit::Code;
use serde::Serialize;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::project::{config::Config, nearest};
use snapback_core::report::Report;
use snapback_core::session::Project;
use snapback_runtime::{Info, Registry};
use std::collections::BTreeMap;

/// A backend, as JSON has it.
#[derive(Serialize)]
struct Item<'a> {
    name: &'a str,
    version: Option<&'a str>,
    origin: &'a str,
    digest: Option<&'a str>,
    wants: &'a [String],
    /// What its targets reach outside the project with the user's consent, by target; what
    /// came inside the program was consented to with the program.
    granted: BTreeMap<&'a str, Vec<String>>,
    /// Those of its targets that the user did not agree to, or that cannot be asked about.
    #[serde(skip)]
    refused: Vec<&'a str>,
    targets: Vec<&'a str>,
    status: String,
}

/// Does it.
///
/// # Errors
/// When there is no such backend, or it is broken.
pub fn run(context: &mut Context, args: &BackendsArgs) -> Result<Code> {
    let command = args.command.as_ref().unwrap_or(&BackendsCommand::List);
    match command {
        BackendsCommand::Add { file } => return add::run(context, file),
        BackendsCommand::Remove { name } => return remove::run(context, name),
        BackendsCommand::Test { file, settings } => return test::run(context, file, settings.as_deref()),
        BackendsCommand::New { name, lang } => return new::run(context, name, *lang),
        BackendsCommand::List | BackendsCommand::Show { .. } => {}
    }
    let registry = context.backends(&context.root());
    // A project that cannot be opened, or asks for nonsense, has no targets to name.
    let project = context.environment().and_then(Project::open);
    let project = project.and_then(|project| Ok((project.config()?.clone(), project)));
    let doing = "what targets there are is not known";
    let project = project.map_err(|error| context.talk.troubled(doing, &error)).ok();
    let used = project.as_ref().map(|(config, project)| Used { config, project });
    match command {
        BackendsCommand::Show { name } => show::run(context, &registry, used.as_ref(), name),
        _ => list::run(context, &registry, used.as_ref()),
    }
}

/// The project that uses backends.
struct Used<'a> {
    config: &'a Config,
    project: &'a Project,
}

impl<'a> Item<'a> {
    fn new(info: &'a Info, registry: &Registry, used: Option<&'a Used<'a>>) -> Self {
        let targets = used.iter().flat_map(|used| &used.config.targets);
        let targets: Vec<_> = targets.filter(|c| c.target.backend == info.name).collect();
        let (mut granted, mut refused) = (BTreeMap::new(), Vec::new());
        for configured in &targets {
            let Some(used) = used else { continue };
            let store = used.project.store().and_then(|store| store.id().ok());
            // One that cannot be asked has nothing.
            let reaches = registry.granted(used.project.root(), store, &configured.target);
            let (name, reaches) = (&*configured.target.name, reaches.ok().flatten());
            refused.extend(reaches.is_none().then_some(name));
            granted.insert(name, reaches.unwrap_or_default());
        }
        Self {
            name: &info.name,
            version: info.version.as_deref(),
            origin: &info.origin,
            digest: info.digest.as_deref(),
            wants: &info.wants,
            granted,
            refused,
            targets: targets.iter().map(|c| &*c.target.name).collect(),
            status: info.status.words(),
        }
    }
}

impl Item<'_> {
    /// What each of its targets was granted, a line each.
    fn grants(&self) -> Vec<String> {
        let may = |name: &str, reaches: &[String]| match reaches.is_empty() {
            _ if self.refused.contains(&name) => {
                "nothing before you agree to it (`snapback trust`)".to_owned()
            }
            true => "what is inside the project".to_owned(),
            false => reaches.join("; "),
        };
        self.granted.iter().map(|(name, reaches)| format!("target {name}: {}", may(name, reaches))).collect()
    }
}

/// That there is no backend called `name` among `known`.
fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::new(Kind::NotFound, format!("there is no backend `{name}`"));
    match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("`snapback backends` lists them"),
    }
}

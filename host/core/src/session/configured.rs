//! snapback.toml against the backends that there are: each target has one, and gives it the
//! settings that it takes.
//!
//! Invariant: what is refused is named with its line, whoever refuses it. No backend is
//! started for it; whether what a setting names is there is seen when it is used.

use super::{Environment, Project};
use crate::backend::Target;
use crate::error::{Error, Kind, Result};
use crate::project::config::{self, Config, Configured};
use crate::project::nearest;
use std::borrow::Cow;

/// What the project asks for. Targets that are not `wanted` are not looked into: whatever is
/// wrong with their backends, they are passed over. Only for what is `taken` a backend is made
/// ready that was never used here: who only looks does not wait for it, or run any of it.
///
/// # Errors
/// When snapback.toml is wrong, or cannot be read.
pub(super) fn read(env: &Environment, wanted: impl Fn(&str) -> bool, taken: bool) -> Result<Config> {
    let path = env.root.join(config::FILE);
    let Some(text) = config::read(&path)? else { return Ok(Config::default()) };
    let config = Config::parse(&text)?;
    // The tree's keys were checked while reading; no backend is loaded for them.
    let others = config.targets.iter().filter(|configured| configured.target.name != config::TREE);
    others
        .filter(|configured| wanted(&configured.target.name))
        .try_for_each(|configured| check(env, configured, taken))?;
    Ok(config)
}

impl Project {
    /// `target`, which may be frozen in a snapshot, with those of today's settings that say
    /// only how the work is done. Where snapback.toml is wrong, or has no such target any
    /// more, it is as it was frozen.
    pub fn of_today<'t>(&self, target: &'t Target) -> Cow<'t, Target> {
        let is_it = |t: &&Target| t.name == target.name && t.backend == target.backend;
        let today = self.config().ok().and_then(|c| c.targets.iter().map(|c| &c.target).find(is_it));
        let keys = today.and_then(|_| self.env.backends.unfrozen(&target.backend).ok());
        let (Some(today), Some(keys)) = (today, keys) else { return Cow::Borrowed(target) };
        let mut target = Cow::Borrowed(target);
        for key in keys {
            let now = today.settings.get(&key);
            if target.settings.get(&key) != now {
                let settings = &mut target.to_mut().settings;
                match now {
                    Some(now) => settings.insert(key, now.clone()),
                    None => settings.remove(&key),
                };
            }
        }
        target
    }
}

fn check(env: &Environment, configured: &Configured, taken: bool) -> Result<()> {
    let target = &configured.target;
    let at = |key: &str, error: Error| {
        let line = configured.lines.get(key).unwrap_or(&configured.line);
        error.context(format_args!("{}, line {line}", config::FILE))
    };
    let names = env.backends.names();
    if !names.contains(&target.backend) {
        let error = Error::new(Kind::Invalid, format!("there is no backend `{}`", target.backend));
        let error = match nearest(&target.backend, names.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`snapback backends` lists them"),
        };
        return Err(at("backend", error));
    }
    if !taken && !env.backends.is_known(&target.backend) {
        return Ok(());
    }
    let settings = env.backends.settings(&target.backend)?;
    if let Some(key) = target.settings.keys().find(|key| !settings.contains(key)) {
        let known = settings.iter().map(String::as_str).chain(config::target_keys().iter().copied());
        let why = format!("the backend `{}` has no setting `{key}`", target.backend);
        let error = Error::new(Kind::Invalid, why);
        let error = match nearest(key, known) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("`snapback backends show {}` lists them", target.backend)),
        };
        return Err(at(key, error));
    }
    match env.backends.objection(target)? {
        Some((key, error)) => Err(at(&key, error)),
        None => Ok(()),
    }
}

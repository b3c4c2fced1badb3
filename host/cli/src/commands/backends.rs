//! `snapback backends`: what can be captured, and by which component.
//!
//! Listing starts no engine: what a component says about itself is kept with its digest.

use crate::args::{BackendsArgs, BackendsCommand};
use crate::context::Context;
use crate::exit::Code;
use crate::json;
use crate::render::table;
use serde::Serialize;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::project::{config::Config, nearest};
use snapback_core::session::Project;
use snapback_runtime::manifest::{Access, Setting};
use snapback_runtime::{Info, Registry};

/// A backend, as JSON has it.
#[derive(Serialize)]
struct Item<'a> {
    name: &'a str,
    version: Option<&'a str>,
    origin: &'a str,
    digest: Option<&'a str>,
    wants: &'a [String],
    granted: &'a [String],
    targets: Vec<&'a str>,
    status: String,
}

/// A backend and its settings, as JSON has them.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    item: Item<'a>,
    summary: &'a str,
    settings: Vec<SettingItem<'a>>,
}

/// One of its settings.
#[derive(Serialize)]
struct SettingItem<'a> {
    key: &'a str,
    kind: &'a str,
    access: Option<&'a str>,
    list: bool,
    required: bool,
    default: Option<&'a str>,
    help: &'a str,
}

/// Does it.
///
/// # Errors
/// When there is no such backend, or it is broken.
pub fn run(context: &mut Context, args: &BackendsArgs) -> Result<Code> {
    let registry = context.backends(&context.root());
    // A project that cannot be opened, or asks for nonsense, has no targets to name.
    let project = context.environment().and_then(Project::open);
    let project = project.and_then(|project| project.config().cloned());
    let config = project.map_err(|error| context.talk.say(error)).ok();
    match &args.command {
        None | Some(BackendsCommand::List) => list(context, &registry, config.as_ref()),
        Some(BackendsCommand::Show { name }) => show(context, &registry, config.as_ref(), name),
    }
}

fn list(context: &mut Context, registry: &Registry, config: Option<&Config>) -> Result<Code> {
    let backends = registry.list();
    let items: Vec<Item<'_>> = backends.iter().map(|info| item(info, config)).collect();
    if context.global.json {
        json::write(&mut context.out, &items)?;
        return Ok(Code::DONE);
    }
    let rows: Vec<[String; 5]> = items.iter().map(row).collect();
    let head = ["NAME", "VERSION", "STATUS", "TARGETS", "ORIGIN"];
    let lines = table::lay_out(head, &[], &rows, context.terminal.width);
    table::write(&mut context.out, &context.terminal, &lines)?;
    Ok(Code::DONE)
}

fn show(context: &mut Context, registry: &Registry, config: Option<&Config>, name: &str) -> Result<Code> {
    let backends = registry.list();
    let Some(info) = backends.iter().find(|info| info.name == name) else {
        let error = Error::new(Kind::NotFound, format!("there is no backend `{name}`"));
        return Err(match nearest(name, backends.iter().map(|info| &*info.name)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`snapback backends` lists them"),
        });
    };
    let manifest = registry.manifest(name)?;
    let item = item(info, config);
    if context.global.json {
        let settings = manifest.settings.iter().map(setting).collect();
        json::write(&mut context.out, &Whole { item, summary: &manifest.summary, settings })?;
        return Ok(Code::DONE);
    }
    let mut lines = vec![
        format!("backend   {} {}", item.name, manifest.version),
        format!("summary   {}", manifest.summary),
        format!("origin    {}", item.origin),
        format!("digest    {}", item.digest.unwrap_or("-")),
        format!("wants     {}", item.wants.join(", ")),
        format!("targets   {}", item.targets.join(", ")),
        format!("status    {}", item.status),
        "settings".to_owned(),
    ];
    for setting in manifest.settings.iter().map(setting) {
        let default = match (setting.default, setting.required) {
            (_, true) => ", required".to_owned(),
            (Some(""), _) | (None, _) => String::new(),
            (Some(default), _) => format!(", default {}", default.replace('\n', ", ")),
        };
        lines.push(format!("  {} ({}{default})  {}", setting.key, setting.kind, setting.help));
    }
    for line in lines {
        context.out.line(line.trim_end())?;
    }
    context.out.flush()?;
    Ok(Code::DONE)
}

fn item<'a>(info: &'a Info, config: Option<&'a Config>) -> Item<'a> {
    let targets = config.iter().flat_map(|config| &config.targets);
    let targets = targets.filter(|c| c.target.backend == info.name).map(|c| &*c.target.name).collect();
    // What comes inside the program was consented to with the program.
    let granted: &[String] = if info.origin == "built-in" { &info.wants } else { &[] };
    Item {
        name: &info.name,
        version: info.version.as_deref(),
        origin: &info.origin,
        digest: info.digest.as_deref(),
        wants: &info.wants,
        granted,
        targets,
        status: info.status.words(),
    }
}

fn setting(setting: &Setting) -> SettingItem<'_> {
    let access = match setting.access {
        Access::Read => "read",
        Access::Write => "write",
    };
    SettingItem {
        key: &setting.key,
        kind: setting.kind.word(),
        access: setting.kind.is_authority().then_some(access),
        list: setting.list,
        required: setting.required,
        default: setting.default.as_deref(),
        help: &setting.help,
    }
}

fn row(item: &Item<'_>) -> [String; 5] {
    [
        item.name.to_owned(),
        item.version.unwrap_or("?").to_owned(),
        item.status.clone(),
        if item.targets.is_empty() { "-".to_owned() } else { item.targets.join(", ") },
        item.origin.to_owned(),
    ]
}

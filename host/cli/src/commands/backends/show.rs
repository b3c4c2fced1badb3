//! `snapback backends show`: all about one.

use super::verdicts::{self, Tried};
use super::{Item, Used, unknown};
use crate::context::Context;
use crate::exit::Code;
use crate::json;
use crate::render::table;
use crate::render::words::age;
use serde::Serialize;
use snapback_core::error::Result;
use snapback_runtime::Registry;
use snapback_runtime::manifest::{Access, Setting};

/// A backend and its settings, as JSON has them.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    item: Item<'a>,
    summary: &'a str,
    limits: &'a [String],
    settings: Vec<SettingItem<'a>>,
    /// What the law said of this component, the last time that it was tried here.
    law: Option<&'a Tried>,
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
pub fn run(context: &mut Context, registry: &Registry, used: Option<&Used<'_>>, name: &str) -> Result<Code> {
    let backends = registry.list();
    let Some(info) = backends.iter().find(|info| info.name == name) else {
        return Err(unknown(name, backends.iter().map(|info| &*info.name)));
    };
    let manifest = registry.manifest(name)?;
    let item = Item::new(info, registry, used);
    let tried = item.digest.and_then(|digest| verdicts::of(&context.places.state, digest));
    if context.global.json {
        let settings = manifest.settings.iter().map(setting).collect();
        json::write(
            &mut context.out,
            &Whole {
                item,
                summary: &manifest.summary,
                limits: &manifest.limits,
                settings,
                law: tried.as_ref(),
            },
        )?;
        return Ok(Code::DONE);
    }
    let mut lines = vec![
        format!("backend   {} {}", item.name, manifest.version),
        format!("summary   {}", manifest.summary),
        format!("origin    {}", item.origin),
        format!("digest    {}", item.digest.unwrap_or("-")),
        format!("wants     {}", item.wants.join(", ")),
        format!("targets   {}", item.targets.join(", ")),
    ];
    lines.extend(item.grants().iter().map(|line| format!("  {line}")));
    lines.extend([format!("status    {}", item.status)]);
    match &tried {
        Some(tried) => {
            lines.push(format!("law       {}, {}", tried.words(), age(tried.tried, context.now())))
        }
        None => lines.push("law       not tried here; `snapback backends test FILE` does".to_owned()),
    }
    let others = tried.iter().flat_map(|tried| &tried.verdicts).filter(|item| item.why.is_some());
    lines.extend(others.map(|item| {
        let why = item.why.as_deref().unwrap_or_default();
        format!("  {}: {} ({why})", item.outcome, item.law)
    }));
    if !manifest.limits.is_empty() {
        lines.push("does not carry".to_owned());
        lines.extend(manifest.limits.iter().map(|limit| format!("  {limit}")));
    }
    lines.push("settings".to_owned());
    for setting in manifest.settings.iter().map(setting) {
        let default = match (setting.default, setting.required) {
            (_, true) => ", required".to_owned(),
            (Some(""), _) | (None, _) => String::new(),
            (Some(default), _) => format!(", default {}", default.replace('\n', ", ")),
        };
        lines.push(format!("  {} ({}{default})  {}", setting.key, setting.kind, setting.help));
    }
    let width = context.terminal.width;
    for line in lines.iter().flat_map(|line| table::wrap(line.trim_end(), "", width)) {
        context.out.line(&line)?;
    }
    context.out.flush()?;
    Ok(Code::DONE)
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

//! `snapback diff`: what changed, one change at a time as it is found.

use super::put_back::before_last_step;
use crate::args::DiffArgs;
use crate::consent;
use crate::contents::{self, Found as Held};
use crate::context::Context;
use crate::exit::Code;
use crate::json::Change;
use crate::output::Out;
use crate::render::amount::{self, Amount, Now};
use crate::render::words::{Counts, letter};
use crate::render::{database, patch, plan};
use crate::terminal::{Terminal, Tone};
use snapback_core::backend::Cancel;
use snapback_core::error::{Result, escaped, show_bytes};
use snapback_core::history::Id;
use snapback_core::history::snapshot::{Captured, Snapshot};
use snapback_core::session::{Difference, Present, What, scope};
use snapback_core::store::{Source, Store};
use snapback_core::text::Bytes;
use snapback_core::tree::compare::{self, ChangeKind};
use snapback_runtime::sqlite::{self, Comparison};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Rows of a table that a patch shows.
const ROWS: usize = 20;

/// Does it.
///
/// # Errors
/// When a side cannot be read.
pub fn run(context: &mut Context, args: &DiffArgs) -> Result<Code> {
    let project = context.look()?;
    let store = project.need_store()?.clone();
    let mut paths: Vec<Named> =
        context.inside(&project, &args.paths)?.into_iter().map(|path| (path, false)).collect();
    let from = match &args.from {
        Some(id) => context.find(&project, "diff", id)?,
        None => before_last_step(&project)?,
    };
    let to = args.to.as_ref().map(|id| context.find(&project, "diff", id)).transpose()?;
    let present: Option<Present> = match &to {
        Some(_) => None,
        None => Some(consent::present(context, &project, &from, args.patch)?),
    };
    let (source, after): (&dyn Source, &[Captured]) = match (&to, &present) {
        (Some(to), _) => (&*store, &to.targets),
        (None, Some(present)) => (&*present.source, &present.targets),
        (None, None) => unreachable!("one of the two is there"),
    };
    let base_of = |c| scope::base(project.root(), c);
    let bases: Vec<_> = from.targets.iter().map(|c| (&*c.target.name, base_of(c))).collect();
    context.page();
    let apart = to.is_none().then(|| project.apart(&from));
    let to = to.as_ref().map(|to| &to.id);
    let mut found = Found {
        out: &mut context.out,
        terminal: context.terminal,
        form: Form::of(args, context.global.json),
        source,
        store: &store,
        counts: BTreeMap::new(),
        begun: false,
        root: present.is_some().then(|| project.root()),
        bases: &bases,
    };
    found.begin(&from, to)?;
    let mut any = false;
    let writer = present.as_ref().map(|present| &present.source);
    project.differences(writer, &from.targets, after, &mut |mut change, entries| {
        let place = contents::place(&change, base(&change, &bases));
        if is_wanted(&place, &mut paths) {
            let now = entries.and_then(|entries| entries.after.as_ref());
            let now = change.known(source, now)?;
            change.by =
                apart.as_ref().and_then(|apart| apart.by(&change.target, &change.path, now.as_deref()));
            any = true;
            found.one(&change, entries)?;
        }
        Ok(())
    })?;
    found.end()?;
    for (path, _) in paths.iter().filter(|(_, has_changed)| !has_changed) {
        let there = |source: &dyn Source, targets: &[Captured]| {
            contents::look(project.root(), source, targets, &path.0)
        };
        let name = show_bytes(&path.0);
        match (there(&*store, &from.targets)?, there(source, after)?) {
            (Held::There(_), _) | (_, Held::There(_)) => {}
            (Held::LeftOut(why), _) | (_, Held::LeftOut(why)) => {
                context.talk.say(format_args!("{name} is not covered: {why}"));
            }
            (Held::Missing, Held::Missing) => {
                context.talk.say(format_args!("nothing was captured at {name}, on either side"));
            }
        }
    }
    Ok(if any && args.exit_code { Code::CHANGES } else { Code::DONE })
}

/// A path that was named, and whether something changed there.
type Named = (Bytes, bool);

/// Whether a change at `place` is at one of `paths` of the project, or lies in one; all do when
/// there are none.
fn is_wanted(place: &[u8], paths: &mut [Named]) -> bool {
    let mut wanted = paths.is_empty();
    for (path, has_changed) in paths {
        if contents::within(place, &path.0).is_some() {
            (wanted, *has_changed) = (true, true);
        }
    }
    wanted
}

/// A target, and where its directory lies in the project.
type Base<'a> = (&'a str, Option<Vec<u8>>);

/// Where the directory of the target of `change` lies in the project.
fn base<'a>(change: &Difference, bases: &'a [Base<'_>]) -> Option<&'a [u8]> {
    bases.iter().find(|(target, _)| **target == *change.target).and_then(|(_, base)| base.as_deref())
}

/// How changes are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A letter and a path.
    Names,
    /// How much of it changed as well.
    Short,
    /// As a patch.
    Patch,
    /// Numbers only.
    Stat,
    /// As JSON.
    Json,
}

impl Form {
    fn of(args: &DiffArgs, json: bool) -> Self {
        match args {
            _ if json => Self::Json,
            DiffArgs { patch: true, .. } => Self::Patch,
            DiffArgs { stat: true, .. } => Self::Stat,
            DiffArgs { names: true, .. } => Self::Names,
            _ => Self::Short,
        }
    }
}

/// Writes changes as they are found.
struct Found<'a> {
    out: &'a mut Out,
    terminal: Terminal,
    form: Form,
    source: &'a dyn Source,
    store: &'a Arc<Store>,
    counts: BTreeMap<String, Counts>,
    begun: bool,
    /// The project, where the present is one of the sides: its files are read where they lie.
    root: Option<&'a Path>,
    bases: &'a [Base<'a>],
}

impl Found<'_> {
    fn begin(&mut self, from: &Snapshot, to: Option<&Id>) -> Result<()> {
        if self.form != Form::Json {
            return Ok(());
        }
        let to = to.map_or_else(|| "null".to_owned(), |to| format!("\"{to}\""));
        self.out
            .bytes(format!("{{\n  \"from\": \"{}\",\n  \"to\": {to},\n  \"changes\": [", from.id).as_bytes())
    }

    fn one(&mut self, change: &Difference, entries: Option<&compare::Change>) -> Result<()> {
        match self.form {
            Form::Json => {
                let json = match self.inside(change, entries) {
                    Some(Ok(found)) => Change::from(change).with(found),
                    _ => Change::from(change),
                };
                let json = serde_json::to_string(&json).expect("a change is JSON");
                let comma = if self.begun { "," } else { "" };
                self.begun = true;
                self.out.bytes(format!("{comma}\n    {json}").as_bytes())
            }
            Form::Stat => {
                self.counts.entry(change.target.to_string()).or_default().add(change.kind);
                Ok(())
            }
            Form::Names => self.head(change, None),
            Form::Short => {
                let amount = entries.filter(|_| change.what == What::Entry);
                let amount = amount.and_then(|entries| self.amount(change, entries));
                self.head(change, amount.as_ref())?;
                self.rows(change, entries).map(drop)
            }
            Form::Patch => {
                self.head(change, None)?;
                if self.rows(change, entries)? {
                    return Ok(());
                }
                let out = &mut *self.out;
                match entries {
                    Some(entries) => {
                        patch::write(entries, self.source, &self.terminal, &mut |bytes| out.bytes(bytes))
                    }
                    None => {
                        let detail = change.detail.iter().flat_map(|detail| detail.lines());
                        detail.map(escaped).try_for_each(|line| out.line(&format!("  {line}")))
                    }
                }
            }
        }
    }

    /// What differs inside the databases that `change` is about; none when it is about none.
    fn inside(&self, change: &Difference, entries: Option<&compare::Change>) -> Option<Result<Comparison>> {
        let entries = entries.filter(|_| change.what == What::Database)?;
        let sides = (entries.before.as_ref(), entries.after.as_ref());
        sqlite::compare(self.store, self.source, sides, ROWS, &Cancel::default()).transpose()
    }

    /// Writes what differs inside; whether there was anything to write about.
    fn rows(&mut self, change: &Difference, entries: Option<&compare::Change>) -> Result<bool> {
        let lines = match self.inside(change, entries) {
            None => return Ok(false),
            Some(Ok(found)) => database::lines(&found, self.form == Form::Patch, &self.terminal),
            Some(Err(error)) => vec![format!("  ({})", escaped(&error.to_string()))],
        };
        lines.iter().try_for_each(|line| self.out.styled(line))?;
        Ok(true)
    }

    /// How much of a file changed.
    fn amount(&self, change: &Difference, entries: &compare::Change) -> Option<Amount> {
        let base = base(change, self.bases);
        let now = self.root.map(|root| {
            move |path: &[u8], limit: u64| contents::now(root, &[base?, path].join(&b'/'), limit)
        });
        amount::of(entries, self.source, now.as_ref().map(|now| now as Now<'_>))
    }

    fn head(&mut self, change: &Difference, amount: Option<&Amount>) -> Result<()> {
        let tone = match change.kind {
            ChangeKind::Added => Tone::Added,
            ChangeKind::Modified => Tone::Modified,
            ChangeKind::Deleted => Tone::Deleted,
        };
        let letter = self.terminal.paint(tone, letter(change.kind));
        let text = format!("{}{}", plan::place(change), plan::when(change));
        let amount = amount.map(|amount| amount.shown(&self.terminal)).filter(|text| !text.is_empty());
        let amount = amount.map(|text| format!("  {text}")).unwrap_or_default();
        self.out.styled(&format!("{letter} {}{amount}", escaped(&text)))
    }

    fn end(&mut self) -> Result<()> {
        match self.form {
            Form::Json => self.out.bytes(if self.begun { b"\n  ]\n}\n" } else { b"]\n}\n" })?,
            Form::Stat => {
                for (target, counts) in &self.counts {
                    self.out.line(&format!("{target}: {}", counts.as_happened()))?;
                }
            }
            Form::Names | Form::Short | Form::Patch => {}
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_covers_itself_and_what_lies_in_it() {
        let change = |target: &str, path: &str| Difference {
            target: target.into(),
            kind: ChangeKind::Added,
            path: path.as_bytes().to_vec(),
            what: What::Entry,
            by: None,
            detail: None,
        };
        let bases = [("tree", Some(Vec::new())), ("code", Some(b"src".to_vec())), ("far", None)];
        let is_wanted = |change: &Difference, paths: &mut [Named]| {
            is_wanted(&contents::place(change, base(change, &bases)), paths)
        };
        for (target, path, wanted) in [
            ("tree", "src", true),
            ("tree", "src/a", true),
            ("tree", "srcs", false),
            ("tree", "a/src", false),
            ("code", "a", true),
            ("far", "a", false),
        ] {
            let mut paths = [(Bytes(b"src".to_vec()), false), (Bytes(b"other".to_vec()), false)];
            assert_eq!(is_wanted(&change(target, path), &mut paths), wanted, "{target} {path}");
            assert_eq!((paths[0].1, paths[1].1), (wanted, false), "{target} {path}");
        }
        assert!(is_wanted(&change("tree", "x"), &mut []));
        assert!(is_wanted(&change("tree", "x"), &mut [(Bytes::default(), false)]));
    }
}

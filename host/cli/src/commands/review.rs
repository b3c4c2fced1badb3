//! `snapback review`: decide for each change whether it stays or goes back; what goes back
//! is one step, which undo takes back.

use super::put_back::{Part, Wish, before_last_change, put_back};
use crate::args::ReviewArgs;
use crate::consent;
use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, Restored};
use crate::render::words::{self, count};
use crate::render::{database, patch};
use crate::review::choice::{Choice, Item, Verdict};
use crate::review::review;
use crate::terminal::Terminal;
use snapback_core::backend::Cancel;
use snapback_core::error::{Error, Kind, Result, escaped};
use snapback_core::history::Snapshot;
use snapback_core::session::{Ask, Difference, Present, Project, What, scope};
use snapback_core::store::Store;
use snapback_core::tree::compare::Change;
use snapback_runtime::sqlite;
use std::io::IsTerminal;
use std::sync::Arc;

/// Lines of one change that are shown.
const LINES: usize = 2000;
/// Rows of a table that are shown.
const ROWS: usize = 20;

/// Does it.
///
/// # Errors
/// When there is nothing to compare with, nobody to ask, or it fails.
pub fn run(context: &mut Context, args: &ReviewArgs) -> Result<Code> {
    let project = context.open()?;
    let from = match &args.id {
        Some(id) => project.find(id)?,
        None => before_last_change(&project)?,
    };
    let globs =
        (!args.accept.is_empty() || !args.reject.is_empty()).then_some((&args.accept[..], &args.reject[..]));
    choose(context, project, from, globs, args.dry)
}

/// Lets the user choose what goes back to `from`: by globs, or on the terminal.
///
/// # Errors
/// As [`run`] has them.
pub fn choose(
    context: &mut Context,
    project: Project,
    from: Snapshot,
    globs: Option<(&[String], &[String])>,
    dry: bool,
) -> Result<Code> {
    if globs.is_none() && !(std::io::stdin().is_terminal() && context.terminal.err) {
        return Err(Error::new(Kind::Invalid, "a review needs a terminal")
            .hint("`snapback review --reject GLOB` and `--accept GLOB` do without one"));
    }
    let store = project.need_store()?.clone();
    let present = consent::with(context, &project, || project.present(&from, globs.is_none()))?;
    let (mut choice, changes) = changes(&project, &from, &present)?;
    let decided = match globs {
        Some((accept, reject)) => {
            let (_, rejected) = choice.by_globs(accept, reject);
            if rejected == 0 && !reject.is_empty() {
                return Err(Error::new(Kind::NotFound, "nothing that changed is meant by `--reject`").hint(
                    "`snapback diff` shows what changed; a pattern means what it means in .gitignore",
                ));
            }
            Some(choice)
        }
        None if choice.items.is_empty() => Some(choice),
        None => {
            let age = words::age(from.created.0.as_millisecond(), context.now());
            let head = format!("review: since {} ({age}, {})", from.id, words::about(&from));
            let detail = |number: usize| detail(&changes[number], &present, &store);
            review(choice, head, &detail)?
        }
    };
    drop(present);
    let Some(decided) = decided else {
        context.talk.say("left before the end: nothing was changed");
        return Ok(Code::DONE);
    };
    let narrow = decided.narrow();
    if !narrow.is_any() {
        let total = decided.items.len() as u64;
        context.talk.say(format_args!("all stays as it is ({})", count(total, "change")));
        if context.global.json {
            json::write(&mut context.out, &Restored::new(from.id.as_str(), None, &[], &[]))?;
        }
        return Ok(Code::DONE);
    }
    let back = decided.count(Verdict::Rejected);
    let stay = (decided.items.len() - back) as u64;
    context.talk.say(format_args!("{} put back, {stay} as they are now", count(back as u64, "change")));
    let wish = Wish { ask: Ask::Restore(from.id), part: Part::Chosen(&narrow), dry, partial: false };
    put_back(context, project, &wish)
}

/// A change, and what it is between where that can be shown.
type Shown = (Difference, Option<Change>);

fn changes(project: &Project, from: &Snapshot, present: &Present) -> Result<(Choice, Vec<Shown>)> {
    let (mut choice, mut changes) = (Choice::default(), Vec::new());
    let source = Some(&present.source);
    project.differences(source, &from.targets, &present.targets, &mut |difference, change| {
        let captured = from.target(&difference.target);
        let base = captured.and_then(|captured| scope::base(project.root(), captured));
        choice.items.push(Item::new(&difference, base.as_deref()));
        changes.push((difference, change.cloned()));
        Ok(())
    })?;
    Ok((choice, changes))
}

/// What differs in one change, line by line.
fn detail((difference, change): &Shown, present: &Present, store: &Arc<Store>) -> Vec<String> {
    let Some(change) = change else {
        let said = difference.detail.iter().flat_map(|detail| detail.lines());
        return said.map(|line| escaped(line).into_owned()).collect();
    };
    let source = &*present.source;
    let plain = Terminal { width: None, colour_out: false, err: false };
    if difference.what == What::Database {
        let sides = (change.before.as_ref(), change.after.as_ref());
        return match sqlite::compare(store, source, sides, ROWS, &Cancel::default()) {
            Ok(Some(found)) => database::lines(&found, true, &plain),
            Ok(None) => Vec::new(),
            Err(error) => vec![error.to_string()],
        };
    }
    let mut text = Vec::new();
    let written = patch::write(change, source, &plain, &mut |bytes| {
        text.extend_from_slice(bytes);
        Ok(())
    });
    let text = String::from_utf8_lossy(&text);
    let mut lines: Vec<String> =
        text.lines().take(LINES).map(|line| escaped(&line.replace('\t', "    ")).into_owned()).collect();
    lines.extend(written.err().map(|error| error.to_string()));
    lines
}

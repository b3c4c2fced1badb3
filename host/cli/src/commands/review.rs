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
use snapback_core::error::{Error, Kind, Result, escaped, shell_word};
use snapback_core::history::Snapshot;
use snapback_core::object::{Key, ObjectKind};
use snapback_core::session::{Ask, Difference, Present, Project, What, scope};
use snapback_core::store::Store;
use snapback_core::tree::compare::Change;
use snapback_core::tree::node::{Entry, Node};
use snapback_runtime::sqlite;
use std::borrow::Cow;
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
    choose(context, project, from, globs, (args.dry, args.partial))
}

/// Lets the user choose what goes back to `from`: by globs, or on the terminal. Perhaps it is only
/// said, and perhaps partly done where a target fails.
///
/// # Errors
/// As [`run`] has them.
pub fn choose(
    context: &mut Context,
    project: Project,
    from: Snapshot,
    globs: Option<(&[String], &[String])>,
    (dry, partial): (bool, bool),
) -> Result<Code> {
    if globs.is_none() && !(std::io::stdin().is_terminal() && context.terminal.err) {
        return Err(Error::new(Kind::Invalid, "a review needs a terminal")
            .hint("`snapback review --reject GLOB` and `--accept GLOB` do without one"));
    }
    let mut now = Now::look(context, &project, &from, globs.is_none())?;
    let decided = match globs {
        Some((accept, reject)) => Some(by_globs(context, now.choice, accept, reject)?),
        None if now.choice.items.is_empty() => Some(now.choice),
        None => {
            let store = project.need_store()?.clone();
            let age = words::age(from.created.0.as_millisecond(), context.now());
            let mut head = format!("review: since {} ({age}, {})", from.id, words::about(&from));
            loop {
                let choice = std::mem::take(&mut now.choice);
                let Some(decided) = review(choice, head, &|number| now.detail(number, &store))? else {
                    break None;
                };
                if !decided.narrow().is_any() {
                    break Some(decided);
                }
                // The user may have looked at it for hours.
                let mut then = std::mem::replace(&mut now, Now::look(context, &project, &from, true)?);
                then.choice = decided;
                if now.follow(&then)? {
                    break Some(then.choice);
                }
                head = "review: something changed meanwhile, look again".to_owned();
            }
        }
    };
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
    let wish = Wish { ask: Ask::Restore(from.id), part: Part::Chosen(&narrow), dry, partial };
    put_back(context, project, &wish)
}

/// Decides by globs. One that means nothing is said: it may be another name that was meant.
fn by_globs(context: &Context, mut choice: Choice, accept: &[String], reject: &[String]) -> Result<Choice> {
    let (_, rejected) = choice.by_globs(accept, reject);
    if rejected == 0 && !reject.is_empty() {
        return Err(Error::new(Kind::NotFound, "nothing that changed is meant by `--reject`")
            .hint("`snapback diff` shows what changed; a pattern means what it means in .gitignore"));
    }
    for (flag, globs) in [("--reject", reject), ("--accept", accept)] {
        for glob in choice.idle(globs) {
            context.talk.say(format_args!("nothing that changed is meant by `{flag} {}`", shell_word(glob)));
        }
    }
    Ok(choice)
}

/// What differs at one moment.
struct Now {
    present: Present,
    /// What there is to decide about.
    choice: Choice,
    /// Each change, and what it is between where that can be shown.
    changes: Vec<(Difference, Option<Change>)>,
}

impl Now {
    fn look(context: &Context, project: &Project, from: &Snapshot, content: bool) -> Result<Self> {
        let present = consent::present(context, project, from, content)?;
        let (mut choice, mut changes) = (Choice::default(), Vec::new());
        let source = Some(&present.source);
        project.differences(source, &from.targets, &present.targets, &mut |difference, change| {
            let captured = from.target(&difference.target);
            let base = captured.and_then(|captured| scope::base(project.root(), captured));
            choice.items.push(Item::new(&difference, base.as_deref()));
            changes.push((difference, change.cloned()));
            Ok(())
        })?;
        Ok(Self { present, choice, changes })
    }

    /// What is there in the change of this number; of a directory, without what lies in it.
    fn there(&self, number: usize) -> Result<(Option<Entry>, Option<&str>)> {
        let (difference, change) = &self.changes[number];
        let after = change.as_ref().and_then(|change| change.after.as_ref());
        let mut entry = difference.known(&*self.present.source, after)?.map(Cow::into_owned);
        if let Some(Entry { node: Node::Dir(key), .. }) = &mut entry {
            *key = Key::of(ObjectKind::Tree, b"");
        }
        Ok((entry, difference.detail.as_deref()))
    }

    /// Decides as was decided `then`, where it is as it was; whether that is so of all that
    /// goes back.
    fn follow(&mut self, then: &Self) -> Result<bool> {
        let mut choice = std::mem::take(&mut self.choice);
        let same = choice.follow(&then.choice, |now, before| Ok(self.there(now)? == then.there(before)?));
        self.choice = choice;
        same
    }

    /// What differs in the change of this number, line by line.
    fn detail(&self, number: usize, store: &Arc<Store>) -> Vec<String> {
        let (difference, change) = &self.changes[number];
        let Some(change) = change else {
            let said = difference.detail.iter().flat_map(|detail| detail.lines());
            return said.map(|line| escaped(line).into_owned()).collect();
        };
        let source = &*self.present.source;
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
        let shown = text.lines().take(LINES).map(|line| escaped(&line.replace('\t', "    ")).into_owned());
        shown.chain(written.err().map(|error| error.to_string())).collect()
    }
}

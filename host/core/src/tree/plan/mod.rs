//! What a restore is going to do, found without touching anything.
//!
//! A plan has counts, what is known to be impossible with the command that would mend
//! it, what will come back only in part, and the steps that lead there, in little space. It
//! is made by walking the two trees once.

mod check;
mod moved;
mod names;
mod plans;

pub use plans::Plans;

use crate::error::{Error, Result};
use crate::store::content;
use crate::tree::apply::{Refusal, Request};
use crate::tree::compare::{Aspects, Change, ChangeKind, Side, Step, Tape, Walk};
use crate::tree::node::Node;
use crate::tree::root::LeftOut;
use crate::tree::root::Why;

/// What a restore is going to do.
#[derive(Debug, Default)]
pub struct Plan {
    /// Entries that will be made again.
    pub added: u64,
    /// Entries that will be changed back.
    pub modified: u64,
    /// Entries that will be removed.
    pub deleted: u64,
    /// Entries of which the times alone will be set.
    pub touched: u64,
    /// Bytes of content that will be written.
    pub bytes: u64,
    /// What is known to be impossible.
    pub refusals: Vec<Refusal>,
    /// What will be left as it is, with all in it, since it cannot be done without losing
    /// something.
    pub left: Vec<Refusal>,
    /// What will come back only in part, or is left alone since only one side has it.
    pub notes: Vec<Refusal>,
    /// There is no room for it.
    pub no_space: Option<Error>,
    /// Whether the times of files count as changes.
    pub(super) times: bool,
    pub(super) links: crate::tree::apply::Links,
    /// The steps that lead there.
    pub(super) tape: Tape,
}

impl Plan {
    /// The plan of `request`.
    ///
    /// # Errors
    /// When a stored directory cannot be read.
    pub fn make(request: &Request<'_>) -> Result<Self> {
        let mut plan = Self::default();
        let mut check = check::Check::new(request)?;
        plan.walk(request, Some(&mut check))?;
        check.finish(&mut plan)?;
        Ok(plan)
    }

    /// The same without looking at the disk: it is tried and seen.
    pub(super) fn unchecked(request: &Request<'_>) -> Result<Self> {
        let mut plan = Self::default();
        plan.walk(request, None)?;
        Ok(plan)
    }

    /// Reads and checks all content that will be written.
    ///
    /// # Errors
    /// When some is missing or damaged; the error names the path.
    pub fn verify(&self, request: &Request<'_>) -> Result<()> {
        self.tape.each(|step| {
            if step.leaves || step.traits.passage() || step.traits.same_content() {
                return Ok(());
            }
            let change = step.change()?;
            let Some(Node::File { content, size, .. }) = change.after.as_ref().map(|entry| &entry.node)
            else {
                return Ok(());
            };
            content::load(request.source, content, *size, &mut |_, _| request.cancel.check())
                .map_err(|e| e.context(crate::error::show_bytes(&change.path)))
        })
    }

    fn walk(&mut self, request: &Request<'_>, mut check: Option<&mut check::Check<'_>>) -> Result<()> {
        let (before, after) = (request.current, request.stored);
        let mut walk = Walk::with_times(request.source, before, after, request.only)?;
        self.times = before.counts_times() && after.counts_times();
        // What was refused, with all in it: it is known, and nothing is done about it.
        let mut refused: Option<Vec<u8>> = None;
        while let Some(step) = walk.next() {
            let step = step?;
            self.tape.add(&step, walk.entered());
            let (Step::Change(Change { path, .. })
            | Step::Leave(Change { path, .. })
            | Step::NotComparable { left_out: LeftOut { path, .. }, .. }) = &step;
            if refused.as_ref().is_some_and(|refused| is_inside(path, refused)) {
                continue;
            }
            let change = match step {
                Step::Change(change) => change,
                Step::NotComparable { side, left_out } => {
                    self.not_comparable(side, &left_out);
                    continue;
                }
                Step::Leave(_) => continue,
            };
            if change.passage && change.becomes_dir() && change.before.is_some() && !change.was_dir() {
                let now = change.before.as_ref().map_or("nothing", |entry| entry.node.word());
                let shown = crate::error::show_bytes(&change.path);
                self.refusals.push(
                    Refusal::new(
                        &change.path,
                        format!("it is a {now} now, and what was selected lies in it"),
                    )
                    .hint(format!("--path {shown}")),
                );
                refused = Some(change.path);
                continue;
            }
            if change.was_dir()
                && change.after.is_some()
                && !change.becomes_dir()
                && let Some(inside) = first_inside(&before.left_out, &change.path)
            {
                let (shown, why) = (crate::error::show_bytes(&inside.path), inside.why.word());
                let reason = format!("it is a directory now, and {shown} in it was not recorded: {why}");
                self.left.push(Refusal::new(&change.path, reason));
                refused = Some(change.path);
                continue;
            }
            if let Some(check) = &mut check
                && let Some(left) = check.moved(&change)?
            {
                refused = Some(left.path.clone());
                self.left.push(left);
                continue;
            }
            self.count(&change);
            self.links.note(&change);
            if let Some(check) = &mut check
                && !check.change(&change, self)?
            {
                refused = Some(change.path);
            }
        }
        self.find_links(request)
    }

    /// Finds the inodes that changed names become links to.
    fn find_links(&mut self, request: &Request<'_>) -> Result<()> {
        let Request { source, stored, current, only, .. } = *request;
        if self.links.is_empty() {
            return Ok(());
        }
        if only.is_all() {
            return self.links.find_untouched(source, stored, current);
        }
        self.links.leave_out(source, stored, current, only)?;
        let links = &mut self.links;
        self.tape.each(|step| {
            if !step.leaves && step.traits.linked() {
                links.note(&step.change()?);
            }
            Ok(())
        })
    }

    fn count(&mut self, change: &Change) {
        if change.passage && !(change.becomes_dir() && change.before.is_none()) {
            return;
        }
        let differs: Aspects = change.aspects();
        match change.kind() {
            ChangeKind::Added => self.added += 1,
            ChangeKind::Deleted => self.deleted += 1,
            ChangeKind::Modified if differs.any_but_time() => self.modified += 1,
            ChangeKind::Modified => self.touched += 1,
        }
        if let Some(Node::File { size, sparse: false, .. }) = change.after.as_ref().map(|entry| &entry.node)
            && (change.before.is_none() || differs.kind || differs.content)
        {
            self.bytes = self.bytes.saturating_add(*size);
        }
    }

    fn not_comparable(&mut self, side: Side, left_out: &LeftOut) {
        let why = left_out.why.word();
        match side {
            // It is put back by the target that has it.
            _ if left_out.why == Why::Elsewhere => {}
            // What is there now was not captured: it must not be replaced.
            Side::Before => self.notes.push(Refusal::new(
                &left_out.path,
                format!("it is left as it is, since what is there now was not recorded: {why}"),
            )),
            // What a rule left out was never meant to come back.
            Side::After if !left_out.why.is_hole() => {}
            Side::After => self.notes.push(Refusal::new(
                &left_out.path,
                format!("it is left as it is, since the snapshot does not have it: {why}"),
            )),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps() == 0
    }

    /// How many entries are concerned.
    pub fn steps(&self) -> u64 {
        self.added + self.modified + self.deleted + self.touched
    }
}

/// The first of what was left out that lies in the directory at `path`.
fn first_inside<'a>(left_out: &'a [LeftOut], path: &[u8]) -> Option<&'a LeftOut> {
    // What another target has goes before the directory does.
    let is_there = |item: &&LeftOut| item.why != Why::Elsewhere && !item.is_apart();
    left_out.iter().filter(is_there).find(|item| is_inside(&item.path, path))
}

/// Whether `path` lies in the directory at `dir`.
fn is_inside(path: &[u8], dir: &[u8]) -> bool {
    match dir {
        b"" => !path.is_empty(),
        _ => path.starts_with(dir) && path.get(dir.len()) == Some(&b'/'),
    }
}

//! Two trees walked side by side, without recursion: a hostile depth costs memory
//! for its path, never the stack.

use super::change::Change;
use super::only::{Only, Place};
use crate::database::{bases, is_stored_side};
use crate::error::{Error, Result};
use crate::object::Key;
use crate::store::Source;
use crate::tree::node::{Entry, Node, Time, decode_times, decode_tree};
use crate::tree::root::{LeftOut, Root, Why};
use std::iter::Peekable;
use std::vec::IntoIter;

/// One of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    Before,
    /// The second.
    After,
}

/// What the walk comes to.
#[derive(Debug, Clone)]
pub enum Step {
    /// An entry that differs.
    Change(Change),
    /// A directory (of either side) in which something differed is done: both sides
    /// of it as they are, also when it is itself the same.
    Leave(Change),
    /// `side` left this out, and the other side has it.
    NotComparable {
        /// Who left it out.
        side: Side,
        /// What and why.
        left_out: LeftOut,
    },
}

/// The walk: an iterator of steps.
pub struct Walk<'a> {
    source: &'a dyn Source,
    only: Only,
    times: bool,
    left_out: [Vec<LeftOut>; 2],
    stack: Vec<Frame>,
    path: Vec<u8>,
    /// What to say before going on.
    first: Option<Step>,
    /// The last step opened a directory.
    entered: bool,
}

/// An entry with its times.
struct Item {
    entry: Entry,
    time: Time,
    inside: Option<Key>,
}

/// A directory on the way to the present place.
struct Frame {
    sides: [Peekable<IntoIter<Item>>; 2],
    /// The directory itself.
    itself: Change,
    place: Place,
}

impl<'a> Walk<'a> {
    /// A walk that ends with the first that is damaged. Without `with_times`, times
    /// are not read.
    pub fn new(source: &'a dyn Source, before: &Root, after: &Root, only: &Only) -> Result<Self> {
        Self::start(source, before, after, only, false)
    }

    /// A walk that also comes to entries of which the times alone differ.
    pub fn with_times(source: &'a dyn Source, before: &Root, after: &Root, only: &Only) -> Result<Self> {
        Self::start(source, before, after, only, true)
    }

    fn start(source: &'a dyn Source, before: &Root, after: &Root, only: &Only, times: bool) -> Result<Self> {
        let mut walk = Self {
            source,
            only: only.clone(),
            times,
            left_out: [sorted(&before.left_out), sorted(&after.left_out)],
            stack: Vec::new(),
            path: Vec::new(),
            first: None,
            entered: false,
        };
        let item = |root: &Root| Item { entry: root.top.clone(), time: root.mtime, inside: Some(root.times) };
        walk.first = walk.meet(Some(item(before)), Some(item(after)), only.top())?;
        Ok(walk)
    }

    /// Whether the step that was returned last opened a directory, which will be left.
    pub fn entered(&self) -> bool {
        self.entered
    }

    /// Does not go into the directory of the step that was returned last.
    pub fn skip_inside(&mut self) {
        if std::mem::take(&mut self.entered)
            && let Some(frame) = self.stack.pop()
        {
            self.leave_path(&frame.itself.path);
        }
    }

    /// Sets the path back to the directory that holds `path`.
    fn leave_path(&mut self, path: &[u8]) {
        let parent = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
        self.path.truncate(parent);
    }

    /// Comes to one name, of which `self.path` is the path: opens it if something in
    /// it may differ, and tells what is to be told.
    fn meet(&mut self, before: Option<Item>, after: Option<Item>, place: Place) -> Result<Option<Step>> {
        let inside = |item: &Option<Item>| match item {
            Some(Item { entry: Entry { node: Node::Dir(tree), .. }, inside, .. }) => Some((*tree, *inside)),
            _ => None,
        };
        let (in_before, in_after) = (inside(&before), inside(&after));
        let same_inside = match (in_before, in_after) {
            (Some((a, s)), Some((b, t))) => a == b && (!self.times || s == t),
            (None, None) => true,
            _ => false,
        };
        let (before_time, after_time) = (
            before.as_ref().map_or(Time::default(), |i| i.time),
            after.as_ref().map_or(Time::default(), |i| i.time),
        );
        let change = Change {
            path: self.path.clone(),
            before: before.map(|i| i.entry),
            before_time: if self.times { before_time } else { Time::default() },
            after: after.map(|i| i.entry),
            after_time: if self.times { after_time } else { Time::default() },
            common: match self.stack.last() {
                Some(Frame { itself, .. }) if itself.was_dir() && itself.becomes_dir() => itself.path.len(),
                Some(Frame { itself, .. }) => itself.common,
                None => 0,
            },
            passage: place == Place::Passage,
        };
        let aspects = change.aspects();
        let tell = match place {
            Place::Selected => aspects.any(),
            // On the way: only where there is none on the other side to go through.
            Place::Passage => aspects.kind,
            Place::Outside => false,
        };
        let step = tell.then(|| Step::Change(change.clone()));
        if !same_inside {
            let sides = [self.open(in_before)?, self.open(in_after)?];
            self.stack.push(Frame { sides, itself: change, place });
            self.entered = true;
        }
        Ok(step)
    }

    /// The entries of one side of a directory.
    fn open(&self, inside: Option<(Key, Option<Key>)>) -> Result<Peekable<IntoIter<Item>>> {
        let Some((tree, times)) = inside else {
            return Ok(Vec::new().into_iter().peekable());
        };
        let mut entries = Vec::new();
        self.source.view(&tree, &mut |bytes| {
            entries = decode_tree(bytes)?;
            Ok(())
        })?;
        let mut items: Vec<Item> =
            entries.into_iter().map(|entry| Item { entry, time: Time::default(), inside: None }).collect();
        if self.times {
            let key = times.ok_or_else(|| unfit(&self.path))?;
            let mut times = Vec::new();
            self.source.view(&key, &mut |bytes| {
                times = decode_times(bytes)?;
                Ok(())
            })?;
            if times.len() != items.len() {
                return Err(unfit(&self.path));
            }
            for (item, time) in items.iter_mut().zip(times) {
                if matches!(item.entry.node, Node::Dir(_)) != time.inside.is_some() {
                    return Err(unfit(&self.path));
                }
                (item.time, item.inside) = (time.mtime, time.inside);
            }
        }
        Ok(items.into_iter().peekable())
    }

    fn advance(&mut self) -> Result<Option<Step>> {
        if let Some(step) = self.first.take() {
            self.entered = self.stack.len() == 1;
            return Ok(Some(step));
        }
        loop {
            // Directories that are entered without being told are not the last step's.
            self.entered = false;
            let Some(frame) = self.stack.last_mut() else { return Ok(None) };
            let [before, after] = &mut frame.sides;
            let (take_before, take_after) = match (before.peek(), after.peek()) {
                (None, None) => {
                    let Some(frame) = self.stack.pop() else { return Ok(None) };
                    self.leave_path(&frame.itself.path);
                    return Ok(Some(Step::Leave(frame.itself)));
                }
                (Some(_), None) => (true, false),
                (None, Some(_)) => (false, true),
                (Some(b), Some(a)) => (b.entry.name <= a.entry.name, a.entry.name <= b.entry.name),
            };
            let before = if take_before { before.next() } else { None };
            let after = if take_after { after.next() } else { None };
            let parent = frame.place;
            let Some(name) = before.as_ref().or(after.as_ref()).map(|i| i.entry.name.as_slice()) else {
                continue;
            };
            let outside = self.path.len();
            if outside > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            let place = self.only.place(parent, &self.path);
            if place == Place::Outside {
                self.path.truncate(outside);
                continue;
            }
            let theirs = |side| if side == Side::Before { &after } else { &before };
            // A database that another target has is no more here than nothing: what is no file
            // comes into its place, and goes from there.
            if let Some((side, left_out)) = self.is_left_out()
                && !(left_out.why == Why::Elsewhere && self.is_trees(side, theirs(side).as_ref())?)
            {
                let other = theirs(side);
                let step = Step::NotComparable { side, left_out: left_out.clone() };
                let told = other.is_some();
                self.path.truncate(outside);
                if told {
                    return Ok(Some(step));
                }
                continue;
            }
            let same = matches!((&before, &after), (Some(b), Some(a))
                if b.entry == a.entry && (!self.times || (b.time == a.time && b.inside == a.inside)));
            let depth = self.stack.len();
            let step = if same { None } else { self.meet(before, after, place)? };
            if self.stack.len() == depth {
                self.path.truncate(outside);
            }
            if step.is_some() {
                return Ok(step);
            }
        }
    }

    /// Whether `item`, at a path that the other state left to a target of a database on `side`,
    /// is none of that target's: no file, or beside a database what SQLite did not make.
    fn is_trees(&self, side: Side, item: Option<&Item>) -> Result<bool> {
        let Some(item) = item else { return Ok(false) };
        let [before, after] = &self.left_out;
        let list = if side == Side::Before { before } else { after };
        let is_left = |base: &[u8]| {
            let at = list.binary_search_by(|item| item.path.as_slice().cmp(base));
            at.is_ok_and(|at| list[at].why == Why::Elsewhere)
        };
        let node = &item.entry.node;
        if !node.may_be_database() {
            return Ok(true);
        }
        match bases(&self.path).find(|(base, _)| is_left(base)) {
            Some((_, suffix)) => Ok(!is_stored_side(self.source, node, suffix)?),
            None => Ok(false),
        }
    }

    /// Who left out the present path. When both did, it is nobody's to compare; the
    /// answer is then the first.
    fn is_left_out(&self) -> Option<(Side, &LeftOut)> {
        let [before, after] = &self.left_out;
        let of = |list: &'_ [LeftOut]| list.binary_search_by(|l| l.path.as_slice().cmp(&self.path)).ok();
        match (of(before), of(after)) {
            (Some(at), _) => Some((Side::Before, &before[at])),
            (None, Some(at)) => Some((Side::After, &after[at])),
            (None, None) => None,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.advance();
        if step.is_err() {
            self.stack.clear();
        }
        step.transpose()
    }
}

/// What nothing is at says nothing of what the other state has there.
fn sorted(list: &[LeftOut]) -> Vec<LeftOut> {
    let mut list: Vec<LeftOut> = list.iter().filter(|item| !item.is_apart()).cloned().collect();
    list.sort_by(|a, b| a.path.cmp(&b.path));
    list
}

fn unfit(path: &[u8]) -> Error {
    let shown = crate::error::show_bytes(path);
    Error::corrupt(format!("the stored times of the directory {shown} do not fit it"))
}

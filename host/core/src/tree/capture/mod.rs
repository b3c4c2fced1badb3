//! Capturing a directory: everything that is selected goes into the store, and comes
//! back as the key of one `Root`.
//!
//! One job walks one directory; jobs run on all cores. A directory is finished by
//! whoever finishes the last thing in it, so nothing waits and nothing recurses: a
//! tree may be as deep as it likes. What the stat cache knows is not opened; a
//! directory of which nothing changed is neither encoded nor hashed.
//!
//! What cannot be read, or changes each time that it is read, becomes a hole: it is
//! recorded, told, and no part of it is in the tree. A failure to store ends the
//! capture.

pub(crate) mod clock;
mod finish;
pub(crate) mod git;
mod links;
mod node;
mod read;
mod scan;
mod special;

use super::directory::Directory;
use super::node::{Entry, Node as EntryNode};
use super::root::{Root, Why};
use super::scan::{Cover, Elsewhere, Scratch, Walk};
use super::statcache::{StatCache, Trust, Update, file_name};
use crate::backend::{Call, Cancel};
use crate::disk::size_text;
use crate::error::{Error, Kind, Result, show, show_bytes};
use crate::object::{Key, ObjectKind};
use crate::store::content::children;
use crate::store::{Lane, Writer};
use clock::Clock;
use node::{Done, Fresh};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stores all of `dir` that is selected; returns the key of its `Root`. `previous` is
/// the root of a snapshot that is known to be in the store: what did not change since
/// need not be looked for there. A call that only surveys stores nothing, and the key is
/// that of nothing.
///
/// # Errors
/// `Cancelled`; what kept the directory itself from being read; what kept the store
/// from being written.
pub fn capture(dir: &Directory, call: &Call, previous: Option<&Key>) -> Result<Key> {
    if let Some(surveys) = &call.survey {
        surveys.add(dir, call)?;
        return Ok(Key::of(ObjectKind::Root, b""));
    }
    Ok(capture_counted(dir, call, previous)?.0)
}

/// What a capture had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Regular files that were opened.
    pub opened: u64,
    /// Directories that were encoded, since something in them had changed.
    pub encoded: u64,
    /// Directories that were as the stat cache had them.
    pub unchanged: u64,
    /// Files of a repository that were opened to record where it stands.
    pub git: u64,
}

/// [`capture`], and what it had to do.
///
/// # Errors
/// As [`capture`] has them.
pub fn capture_counted(dir: &Directory, call: &Call, previous: Option<&Key>) -> Result<(Key, Counts)> {
    call.pace.work(|| counted(dir, call, previous))
}

fn counted(dir: &Directory, call: &Call, previous: Option<&Key>) -> Result<(Key, Counts)> {
    let writer = call.writer.as_deref();
    let writer =
        writer.ok_or_else(|| Error::new(Kind::Other, "there is nowhere to store what is captured"))?;
    if let Some(limit) = call.huge {
        super::measure::refuse_huge(dir, limit, &call.cancel)?;
    }
    let cover = cover(dir, call)?;
    let (target, store) = (call.target.name.as_str(), writer.store());
    let cache = StatCache::load(store.path(), target, &dir.cached_as()).unwrap_or_default();
    // Somebody may have removed the pack that it was in.
    let previous = match previous {
        Some(key) if store.contains(key)? => Some(key),
        _ => None,
    };
    let capture = Capture {
        walk: Walk::new(dir, cover, Elsewhere::new(dir, call)),
        call,
        writer,
        cache: &cache,
        trust: cache.trust(previous),
        clock: Clock::now(store, dir.id().0),
        workers: Mutex::default(),
        links: Mutex::default(),
        large: Mutex::default(),
        update: Mutex::new(Update::new(&cache, previous)),
        failure: Mutex::default(),
        stop: AtomicBool::new(false),
        top: Mutex::default(),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        opened: AtomicU64::new(0),
        encoded: AtomicU64::new(0),
        unchanged: AtomicU64::new(0),
        git: AtomicU64::new(0),
    };
    // So many as there were will be met again, about.
    let before = previous.and_then(|key| Root::decode(&store.read(key).ok()?).ok());
    let total = before.map(|root| root.files);
    call.report.begin(&format!("reading {}", show(dir.path())), total, "items");
    let done = capture.run();
    call.report.end();
    let (mut root, update) = done.map_err(|error| with_numbers(error, dir, &cache, writer, &call.cancel))?;
    let git = capture.record_git(&root.left_out, previous)?;
    root.git = git.as_ref().map(|git| git.record);
    let mut lane = capture.writer.lane();
    let key = lane.put(ObjectKind::Root, &root.encode())?;
    // Other targets may still be captured, but this one is looked at next.
    lane.publish()?;
    for item in root.left_out.iter().filter(|item| item.why.is_hole()) {
        let reason = match item.why {
            Why::Unreadable => item.detail.clone(),
            why => format!("{}: {}", why.word(), item.detail),
        };
        call.report.omitted(target, &item.path, reason.trim_end_matches(": "));
    }
    // What is only compared was said when it was captured.
    for path in capture.walk.missing().filter(|_| !writer.is_scratch()) {
        let text = format!("{} is among `paths` and is not there", show_bytes(&path));
        call.report.log(target, "warn", &text);
    }
    if let Some(git) = &git {
        capture.remember_git(git, &key, previous);
    }
    // What a scratch holds is gone when the next capture comes: that must read it again.
    if !writer.is_scratch()
        && let Some(bytes) = update.finish(&key)
    {
        // A cache that cannot be written costs time the next time, nothing else.
        let _ = clock::cache_dir(store).and_then(|dir| {
            store.disk().write_cache(
                &dir,
                file_name(target, &capture.walk.directory.cached_as()).as_bytes(),
                &bytes,
                0o600,
            )
        });
    }
    let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
    let counts = Counts {
        opened: count(&capture.opened),
        encoded: count(&capture.encoded),
        unchanged: count(&capture.unchanged),
        git: count(&capture.git),
    };
    Ok((key, counts))
}

/// What a full disk is told with: how much may be needed, and how much there is without
/// what was written so far.
fn with_numbers(error: Error, dir: &Directory, cache: &StatCache, writer: &Writer, cancel: &Cancel) -> Error {
    if error.kind() != Kind::NoSpace {
        return error;
    }
    let needed = super::measure::unknown_bytes(dir, cache, cancel);
    let (Ok(needed), Ok((free, floor))) = (needed, writer.space()) else { return error };
    let mut hint = format!("up to {} are needed, and {} are free", size_text(needed), size_text(free));
    if floor > 0 {
        hint.push_str(&format!(
            ", of which {} are to stay free (`min-free` of the user's config)",
            size_text(floor)
        ));
    }
    error.hint(format!("{hint}: move something large and new away, or let `snapback gc` drop old snapshots"))
}

/// The root that must be covered: of the same setting, in the parts that will be restored.
fn cover<'a>(dir: &Directory, call: &'a Call) -> Result<Option<Cover<'a>>> {
    for part in call.cover.iter().filter(|part| part.content.kind() == ObjectKind::Root) {
        let store = call.store()?;
        let root = Root::decode(&store.read(&part.content)?)?;
        if root.setting == dir.setting() {
            return Ok(Some(Cover { root, source: &**store, disk: store.disk() }));
        }
    }
    Ok(None)
}

/// One capture, shared by its threads.
struct Capture<'a> {
    walk: Walk<'a>,
    call: &'a Call,
    writer: &'a Writer,
    cache: &'a StatCache,
    trust: Trust,
    clock: Clock,
    workers: Mutex<Vec<Worker<'a>>>,
    links: Mutex<links::Links<'a>>,
    large: Mutex<Vec<(Arc<node::Node<'a>>, Vec<scan::Unread>)>>,
    update: Mutex<Update<'a>>,
    failure: Mutex<Option<Error>>,
    stop: AtomicBool,
    top: Mutex<Option<(Done, Fresh)>>,
    files: AtomicU64,
    bytes: AtomicU64,
    opened: AtomicU64,
    encoded: AtomicU64,
    unchanged: AtomicU64,
    git: AtomicU64,
}

/// What one thread uses and the next one goes on with.
struct Worker<'a> {
    writer: &'a Writer,
    lane: Option<Lane<'a>>,
    scratch: Scratch,
}

impl<'a> Worker<'a> {
    /// The way into the store: made when there is something to store.
    fn lane(&mut self) -> &mut Lane<'a> {
        self.lane.get_or_insert_with(|| self.writer.lane())
    }
}

impl<'a> Capture<'a> {
    fn run(&self) -> Result<(Root, Update<'a>)> {
        rayon::scope(|scope| scope.spawn(|scope| self.top(scope)));
        self.check()?;
        self.read_large()?;
        self.resolve_links()?;
        self.check()?;
        let workers = std::mem::take(&mut *lock(&self.workers));
        workers.into_iter().filter_map(|worker| worker.lane).try_for_each(Lane::flush)?;
        let Some((done, fresh)) = lock(&self.top).take() else {
            return Err(Error::new(Kind::Other, "the directory was not captured to its end"));
        };
        let root = Root {
            setting: self.walk.directory.setting().to_owned(),
            value: self.walk.directory.value().to_owned(),
            options: self.walk.directory.options().text.clone(),
            top: Entry { node: EntryNode::Dir(done.tree), ..fresh.entry },
            mtime: fresh.stat.mtime,
            times: done.times,
            left_out: self.walk.take_left_out(),
            ignored: self.walk.ignored(),
            ignored_stamps: self.walk.take_ignored_stamps(),
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            git: None,
        };
        let spent = Update::new(self.cache, None);
        Ok((root, std::mem::replace(&mut *lock(&self.update), spent)))
    }

    /// Stops everything because of `error`; the first one is told.
    fn fail(&self, error: Error) {
        lock(&self.failure).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        match lock(&self.failure).take() {
            Some(error) => Err(error),
            None => self.call.cancel.check(),
        }
    }

    /// Runs `job` with a worker, unless the capture is to end.
    fn work(&self, job: impl FnOnce(&mut Worker<'a>) -> Result<()>) {
        if self.stop.load(Ordering::Relaxed) {
            return;
        }
        let done = self.call.cancel.check().and_then(|()| job(&mut self.worker()));
        if let Err(error) = done {
            self.fail(error);
        }
    }

    fn worker(&self) -> Borrowed<'_, 'a> {
        let new = || Worker { writer: self.writer, lane: None, scratch: Scratch::default() };
        let worker = lock(&self.workers).pop().unwrap_or_else(new);
        Borrowed { capture: self, worker: Some(worker) }
    }

    /// Whether all that `key` leads to is stored.
    fn is_stored(&self, key: &Key) -> Result<bool> {
        if !self.writer.contains(key)? {
            return Ok(false);
        }
        if key.kind() != ObjectKind::List {
            return Ok(true);
        }
        // A list that was left over may outlive its blocks.
        let mut lists = vec![*key];
        while let Some(list) = lists.pop() {
            let Ok(bytes) = self.writer.read(&list) else { return Ok(false) };
            for child in children(&bytes)? {
                if !self.writer.contains(&child)? {
                    return Ok(false);
                }
                if child.kind() == ObjectKind::List {
                    lists.push(child);
                }
            }
        }
        Ok(true)
    }
}

/// A worker that goes back to the others when it is no longer used.
struct Borrowed<'c, 'a> {
    capture: &'c Capture<'a>,
    worker: Option<Worker<'a>>,
}

impl<'a> Deref for Borrowed<'_, 'a> {
    type Target = Worker<'a>;

    fn deref(&self) -> &Worker<'a> {
        self.worker.as_ref().expect("it is there until it is dropped")
    }
}

impl<'a> DerefMut for Borrowed<'_, 'a> {
    fn deref_mut(&mut self) -> &mut Worker<'a> {
        self.worker.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Borrowed<'_, '_> {
    fn drop(&mut self) {
        lock(&self.capture.workers).extend(self.worker.take());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

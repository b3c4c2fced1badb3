//! Taking a snapshot: capture all targets, commit, add the step to the timeline.

use super::beyond::Beyond;
use super::capture::{Job, holds_with_git};
use super::diff::Difference;
use super::{Project, Session};
use crate::backend::{Huge, Target};
use crate::database::of_setting;
use crate::disk::Handle;
use crate::error::{Error, Kind, Result};
use crate::history::Id;
use crate::history::changes::Changes;
use crate::history::clock::Moment;
use crate::history::snapshot::{Captured, RunEnd, Snapshot, SnapshotKind};
use crate::project::nearest;
use crate::store::Writer;
use crate::text::Bytes;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// A first snapshot of more than this is asked for.
pub(super) const HUGE: Huge = Huge { files: 500_000, bytes: 5 << 30 };

/// Where runs that go on are marked.
pub(super) const RUNNING: &[u8] = b"running";

/// Which targets are meant, and how much may be captured unasked.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only these; empty: all.
    pub only: Vec<String>,
    /// Not these.
    pub skip: Vec<String>,
    /// A huge first snapshot is wanted.
    pub allow_huge: bool,
}

/// What a snapshot is taken for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Why.
    pub kind: SnapshotKind,
    /// What the user says about it.
    pub message: Option<String>,
    /// The command of a run.
    pub command: Option<Vec<Bytes>>,
    /// Never to be dropped.
    pub pinned: bool,
    /// Which targets.
    pub selection: Selection,
}

/// A snapshot that was taken, or found to be there already.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Its record.
    pub snapshot: Snapshot,
    /// Whether it is new.
    pub new: bool,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// What it changed.
    pub changes: Vec<Difference>,
    /// What it changed beyond what is covered.
    pub beyond: Beyond,
}

impl Selection {
    pub(super) fn huge_limit(&self, first: bool) -> Option<Huge> {
        (first && !self.allow_huge).then_some(HUGE)
    }

    pub(super) fn takes(&self, name: &str) -> bool {
        (self.only.is_empty() || self.only.iter().any(|n| n == name)) && !self.skip.iter().any(|n| n == name)
    }

    /// Refuses what is neither one of the targets called `names`, nor `may_be` one.
    fn check(&self, names: &BTreeSet<String>, may_be: impl Fn(&str) -> bool) -> Result<()> {
        let unknown = |name: &&String| !names.contains(*name) && !may_be(name);
        if let Some(name) = self.only.iter().chain(&self.skip).find(unknown) {
            let error = Error::new(Kind::Invalid, format!("there is no target `{name}`"));
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(match nearest(name, known.iter().copied()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None if known.is_empty() => error.hint("no target is enabled in snapback.toml"),
                None => error.hint(format!("this project has: {}", known.join(", "))),
            });
        }
        Ok(())
    }
}

impl Session {
    /// Takes a snapshot of what the project asks for.
    ///
    /// A manual one of a state that the newest snapshot holds already is not taken
    /// again: that one is returned.
    ///
    /// # Errors
    /// When a target cannot be captured or the store cannot be written; nothing is
    /// kept then.
    pub fn take(&self, request: Request) -> Result<Taken> {
        let selection = &request.selection;
        let configured = &self.config_for(selection)?.targets;
        let mut names: BTreeSet<String> = configured.iter().map(|c| c.target.name.clone()).collect();
        let is_file = |name: &str| self.env().root.join(OsStr::from_bytes(&of_setting(name))).is_file();
        selection.check(&names, is_file)?;
        if request.kind == SnapshotKind::Run || request.kind == SnapshotKind::Manual {
            self.check_place(selection.allow_huge)?;
        }
        let (wanted, skipped): (Vec<_>, Vec<_>) =
            configured.iter().partition(|c| selection.takes(&c.target.name));
        // A database is a target by its path, whether or not a tree is captured that finds it.
        let named = selection.only.iter().filter(|name| !names.contains(*name));
        let named = named.filter_map(|name| self.found_at(name, &names).transpose());
        let named: Vec<Target> = named.collect::<Result<_>>()?;
        let targets = wanted.iter().map(|c| &c.target).chain(&named);
        let jobs = targets.map(Job::of).collect();
        let mut elsewhere = self.all_claims(wanted.iter().map(|c| &c.target).chain(&named))?;
        elsewhere.extend(skipped.iter().flat_map(|c| self.known_claims(&c.target).unwrap_or_default()));
        elsewhere.sort();
        let mut skipped: Vec<String> = skipped.iter().map(|c| c.target.name.clone()).collect();
        names.extend(named.iter().map(|target| target.name.clone()));
        let writer = self.writer()?;
        let targets = self.capture(jobs, elsewhere, &writer, selection, &mut |stray| {
            let target = stray.target;
            names.insert(target.name.clone());
            if selection.takes(&target.name) {
                return Ok(Some(Job::of(&target)));
            }
            skipped.push(target.name);
            Ok(None)
        })?;
        selection.check(&names, |_| false)?;
        let outer = self.outer_run();

        if request.kind == SnapshotKind::Manual && request.message.is_none() && !request.pinned {
            let newest = self.newest(|_| true)?;
            if let Some(newest) = newest.filter(|newest| newest.run == outer)
                && holds_with_git(&*writer, &newest, &targets)?
            {
                self.retain();
                return Ok(Taken { snapshot: newest, new: false });
            }
        }
        let snapshot = Snapshot {
            message: request.message,
            command: request.command,
            pinned: request.pinned,
            skipped,
            run: outer,
            ..self.record(request.kind, targets)
        };
        let snapshot = self.commit(snapshot, &writer)?;
        if let Some(record) = snapshot.step() {
            self.append(&record)?;
        }
        self.retain();
        self.mirror(None);
        self.collect_orphans();
        Ok(Taken { snapshot, new: true })
    }

    /// Where captured objects go: it leaves the user's share of the disk free.
    pub(super) fn writer(&self) -> Result<Arc<Writer>> {
        let writer = self.opened().writer()?;
        writer.keep_free(self.min_free());
        Ok(Arc::new(writer))
    }

    /// Makes the objects durable, then the record.
    pub(super) fn commit(&self, mut snapshot: Snapshot, writer: &Writer) -> Result<Snapshot> {
        let env = self.env();
        snapshot.bytes_added = writer.seal()?;
        snapshot.commit(&env.disk, &self.snapshots)?;
        Ok(snapshot)
    }

    /// Marks the run of `id` as going on: as long as the returned file is open.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn begin_run(&self, id: &Id) -> Result<Running> {
        let disk = &self.env().disk;
        if self.dir.stat(RUNNING)?.is_none() {
            disk.mkdir(&self.dir, RUNNING, 0o700)?;
        }
        let file = disk.open_or_create(&self.dir.child(RUNNING)?, id.as_str().as_bytes(), 0o600)?;
        let lock = file.file().try_lock();
        lock.map_err(|error| {
            Error::new(Kind::Busy, format!("could not mark run {id} as going on: {error}"))
        })?;
        Ok(Running { _file: file })
    }

    /// Records that the run of `id` has ended, and what it changed; returns that.
    ///
    /// # Errors
    /// When the disk refuses, or the present state cannot be looked at. That the run
    /// has ended is recorded also then.
    pub fn end_run(&self, id: &Id, exit_code: i32) -> Result<Ended> {
        let env = self.env();
        let end = RunEnd { ended: Moment::of(env.clock.now()), exit_code };
        end.record(&env.disk, &self.snapshots, id)?;
        // Only a mark: a stale one without a lock means nothing.
        if let Ok(dir) = self.dir.child(RUNNING) {
            let _ = env.disk.unlink(&dir, id.as_str().as_bytes());
        }
        self.mirror(Some(id));
        let start = self.load(id)?;
        let present = self.present(&start, false)?;
        let (mut changes, mut found) = (Changes::default(), Vec::new());
        let source = Some(&present.source);
        self.differences(source, &start.targets, &present.targets, &mut |difference, change| {
            let after = change.and_then(|change| change.after.as_ref());
            let after = difference.known(&*present.source, after)?;
            changes.add(&difference.target, &difference.path, after.as_deref());
            found.push(difference);
            Ok(())
        })?;
        changes.record(&env.disk, &self.snapshots, id)?;
        self.mirror(Some(id));
        let beyond = Beyond::between(&*present.source, &start.targets, &present.targets, (&env.root, &[]))?;
        Ok(Ended { changes: found, beyond })
    }

    /// The run that this command is called in, when that run is of this project and
    /// still going on.
    fn outer_run(&self) -> Option<Id> {
        let id = Id::parse(self.env().inside.as_deref()?)?;
        self.is_running(&id).then_some(id)
    }
}

impl Project {
    /// A record for the present, not yet committed.
    pub(super) fn record(&self, kind: SnapshotKind, targets: Vec<Captured>) -> Snapshot {
        let env = &self.env;
        Snapshot {
            format: Snapshot::FORMAT,
            id: self.new_id(),
            kind,
            run: None,
            created: Moment::of(env.clock.now()),
            message: None,
            command: None,
            root: Bytes::from(&*env.root),
            pinned: false,
            targets,
            skipped: Vec::new(),
            bytes_added: 0,
        }
    }

    fn new_id(&self) -> Id {
        // Who cannot read the names cannot commit a record either.
        let newest = self.ids().unwrap_or_default();
        Id::new(&*self.env.clock, newest.first())
    }
}

/// A run that is going on.
pub struct Running {
    _file: Handle,
}

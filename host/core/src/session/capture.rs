//! Capturing targets side by side.

use super::Project;
use super::absent::is_of;
use super::found::{EachFound, Stray};
use super::noted::Noted;
use super::records::Records;
use super::take::Selection;
use crate::backend::{Call, Elsewhere, Hold, Part, Target};
use crate::database::Database;
use crate::error::{Error, Kind, Result};
use crate::history::snapshot::{Captured, LeftOut, Snapshot};
use crate::object::{Key, ObjectKind};
use crate::store::{Source, Writer};
use crate::text::Bytes;
use crate::tree::compare::{Only, compare};
use crate::tree::root::{Root, Why};
use crate::tree::view::read_root;
use crate::volume::{Volume, directory_of};
use std::sync::{Arc, Mutex, PoisonError};

/// What could not be captured, and is gone on without: target, and why. Without such a list
/// nothing is kept when one target fails.
pub(super) type Uncaptured = Mutex<Vec<Away>>;

/// The name of a target, and why it cannot be captured.
pub(super) type Away = (String, Error);

/// What is to be captured: a target, and what a restore that follows will write.
pub(super) struct Job {
    pub target: Target,
    pub cover: Vec<Part>,
    /// Where its directory was then, when links led there.
    pub through: Option<Bytes>,
    /// Keeps it from changing until it is put back.
    pub hold: Option<Arc<Hold>>,
}

impl Job {
    /// `target`, for its own sake.
    pub fn of(target: &Target) -> Self {
        Self { target: target.clone(), cover: Vec::new(), through: None, hold: None }
    }
}

impl Project {
    /// Captures all `jobs` into `writer`: at the same time those that capture no files of
    /// `elsewhere`, then the others, then those of the databases that were found in trees
    /// for which `found` makes a job. Nothing is kept when one of them fails.
    pub(super) fn capture(
        &self,
        jobs: Vec<Job>,
        elsewhere: Vec<Elsewhere>,
        writer: &Arc<Writer>,
        selection: &Selection,
        found: EachFound<'_>,
    ) -> Result<Vec<Captured>> {
        self.capture_leaving(jobs, elsewhere, (writer, selection), found, None)
    }

    /// The same, and those that fail are `left` out where there is such a list.
    fn capture_leaving(
        &self,
        jobs: Vec<Job>,
        elsewhere: Vec<Elsewhere>,
        (writer, selection): (&Arc<Writer>, &Selection),
        found: EachFound<'_>,
        left: Option<&Uncaptured>,
    ) -> Result<Vec<Captured>> {
        let records = &self.records()?;
        let elsewhere = Arc::new(elsewhere);
        let context = Context { elsewhere, writer, selection, records, hurry: false, left };
        let claims = |job: &Job| context.elsewhere.iter().any(|other| other.target == job.target.name);
        let (last, first): (Vec<_>, Vec<_>) = jobs.iter().enumerate().partition(|(_, job)| claims(job));
        let mut captured = self.side_by_side(&first, &context)?;
        let names = jobs.iter().map(|job| job.target.name.clone()).collect();
        let trees: Vec<&Captured> = captured.iter().map(|(_, captured)| captured).collect();
        let mut more = Vec::new();
        for stray in self.found(&**writer, &trees, &names)? {
            more.extend(found(stray)?);
        }
        // A database may have several names: each is told of all that are captured.
        let mut known = context.elsewhere.to_vec();
        known.extend(self.all_claims(more.iter().map(|job| &job.target))?);
        let context = Context { elsewhere: Arc::new(known), ..context };
        // Each reads what it stored, which others of equal content may be about to store.
        let mut rest = last.into_iter().chain((jobs.len()..).zip(&more));
        while let Some((at, job)) = rest.next() {
            match self.capture_or_leave(job, &context) {
                Err(error) if error.kind() == Kind::Busy => {
                    let rest: Vec<&Job> = rest.map(|(_, job)| job).collect();
                    return Err(self.in_use(error, &rest, &context));
                }
                done => captured.extend(done?.map(|captured| (at, captured))),
            }
        }
        captured.sort_by_key(|(at, _)| *at);
        Ok(captured.into_iter().map(|(_, captured)| captured).collect())
    }

    fn side_by_side(&self, jobs: &[(usize, &Job)], context: &Context<'_>) -> Result<Vec<(usize, Captured)>> {
        if let [(at, job)] = jobs {
            let captured = self.capture_or_leave(job, context)?;
            return Ok(captured.map(|captured| (*at, captured)).into_iter().collect());
        }
        std::thread::scope(|scope| {
            let running: Vec<_> = jobs
                .iter()
                .map(|(at, job)| (*at, scope.spawn(|| self.capture_or_leave(job, context))))
                .collect();
            let results: Vec<_> = running
                .into_iter()
                .map(|(at, thread)| {
                    let done = thread.join().unwrap_or_else(|_| Err(Error::panicked("a capture")));
                    done.map(|captured| captured.map(|captured| (at, captured)))
                })
                .collect();
            results.into_iter().filter_map(Result::transpose).collect()
        })
    }

    /// What is captured; none when that fails and may be gone on without.
    fn capture_or_leave(&self, job: &Job, context: &Context<'_>) -> Result<Option<Captured>> {
        match (self.capture_one(job, context), context.left) {
            (Err(error), Some(left)) if error.kind() != Kind::Cancelled => {
                left.lock().unwrap_or_else(PoisonError::into_inner).push((job.target.name.clone(), error));
                Ok(None)
            }
            (done, _) => done.map(Some),
        }
    }

    /// Those of the targets of `like` whose backends are there, by name, and why the others' are
    /// not; no name at all means all of them.
    ///
    /// # Errors
    /// When there is none of any target.
    pub(super) fn usable(&self, like: &Snapshot) -> Result<(Vec<String>, Vec<Away>)> {
        let (mut names, mut away) = (Vec::new(), Vec::new());
        for Captured { target, .. } in &like.targets {
            match self.env.backends.get(&target.backend) {
                Ok(_) => names.push(target.name.clone()),
                Err(error) => away.push((target.name.clone(), error)),
            }
        }
        match away.first() {
            None => Ok((Vec::new(), away)),
            Some((_, error)) if names.is_empty() => Err(error.clone()),
            Some(_) => Ok((names, away)),
        }
    }

    /// Captures the targets of `like` (those in `names`; empty: all) with the settings
    /// frozen in it, and at least what it covers; then the databases at `wanted` paths that
    /// are no targets of it and that it knows about. What fails is `left` out where that is wanted.
    pub(super) fn capture_like(
        &self,
        like: &Snapshot,
        names: &[String],
        writer: &Arc<Writer>,
        wanted: &dyn Fn(&[u8]) -> bool,
        left: Option<&Uncaptured>,
    ) -> Result<Vec<Captured>> {
        let meant = |c: &&Captured| names.is_empty() || names.contains(&c.target.name);
        let (mut jobs, mut cut_off) = (Vec::new(), Vec::new());
        for Captured { target, parts, through, .. } in like.targets.iter().filter(meant) {
            match self.is_cut_off(like, target)? {
                true => cut_off.push(Captured::nothing(target.clone())),
                false => jobs.push(Job { cover: parts.clone(), through: through.clone(), ..Job::of(target) }),
            }
        }
        let mut elsewhere = self.all_claims(like.targets.iter().map(|c| &c.target))?;
        for (target, claim) in self.declared_since(like, &**writer)? {
            if wanted(&claim.path) {
                jobs.push(Job::of(&target));
            }
            elsewhere.push(claim);
        }
        let selection = Selection { allow_huge: true, ..Selection::default() };
        let mut found = |stray: Stray| match wanted(&stray.path) {
            true => self.found_for(like, &**writer, &stray),
            false => Ok(None),
        };
        let mut captured = self.capture_leaving(jobs, elsewhere, (writer, &selection), &mut found, left)?;
        captured.extend(cut_off);
        Ok(captured)
    }

    pub(super) fn capture_one(&self, job: &Job, context: &Context<'_>) -> Result<Captured> {
        let Context { elsewhere, writer, selection, records, hurry, .. } = context;
        let env = &self.env;
        let target = &job.target;
        if let Some(absent) = self.absent(job, writer)? {
            return Ok(absent);
        }
        let of = |error: Error| error.context(format_args!("could not capture `{}`", target.name));
        let backend = env.backends.get(&target.backend).map_err(of)?;
        let previous = records.newest(|snapshot| snapshot.target(&target.name).is_some());
        let previous = previous.as_ref().and_then(|s| s.target(&target.name));
        let parts_before = previous.map_or(&[][..], |captured| &captured.parts);
        let noted = Noted::new(&env.report, &self.late);
        let call = Call {
            writer: Some(Arc::clone(writer)),
            elsewhere: elsewhere.clone(),
            hold: job.hold.clone(),
            cover: Arc::new(job.cover.clone()),
            huge: selection.huge_limit(parts_before.is_empty()),
            report: noted.clone(),
            hurry: *hurry,
            ..Call::new(env, &self.of_today(target), Some(writer.store()))
        };
        let covered: Vec<Root> = roots(&***writer, &job.cover).collect::<Result<_>>()?;
        let lent = covered.first().filter(|root| is_of(target, root)).and_then(|root| self.lend(&root.value));
        let parts = backend.snapshot(&call, parts_before);
        self.late.tell(&*env.report);
        let mut parts = parts.map_err(of)?;
        let releases = backend.releases();
        if releases {
            self.unkept.note(env, target, writer, &backend, &parts);
        }
        if let Some(lent) = lent {
            own_mode(writer, &mut parts, lent.mode())?;
        }
        let roots: Vec<Root> = directories(&***writer, &parts).collect::<Result<_>>()?;
        let mut omitted = noted.take_omitted();
        for root in &roots {
            // What a captured directory records itself is not recorded twice.
            omitted.retain(|(path, _)| root.left_out.iter().all(|item| item.path != path.0));
        }
        let sum = |of: fn(&Root) -> u64| roots.iter().map(of).fold(0, u64::saturating_add);
        let (mut bytes, mut files) = (sum(|root| root.bytes), sum(|root| root.files));
        for part in parts.iter().filter(|part| part.content.kind() == ObjectKind::Database) {
            let database = Database::load(&***writer, &part.content)?;
            bytes = bytes.saturating_add(database.bytes());
            files = files.saturating_add(database.found.entries().len() as u64);
        }
        let left_out = left_out(&roots);
        let placed = roots.first().filter(|root| is_of(target, root) && root.value != ".");
        let through = placed.and_then(|root| self.through(&root.value));
        let carried = match previous {
            Some(previous) => self.carried(&***writer, previous, target, &parts)?,
            None => Vec::new(),
        };
        let target = target.clone();
        Ok(Captured { target, parts, omitted, bytes, files, left_out, releases, through, carried })
    }
}

/// Gives the captured directory among `parts` its own `mode`: it was lent more for the work.
fn own_mode(writer: &Writer, parts: &mut [Part], mode: u32) -> Result<()> {
    let mut lane = writer.lane();
    for part in parts.iter_mut().filter(|part| part.content.kind() == ObjectKind::Root) {
        let mut root = Root::decode(&writer.read(&part.content)?)?;
        root.top.mode = mode;
        part.content = lane.put(ObjectKind::Root, &root.encode())?;
    }
    lane.publish()
}

/// What the captures of one snapshot share.
pub(super) struct Context<'a> {
    pub elsewhere: Arc<Vec<Elsewhere>>,
    pub writer: &'a Arc<Writer>,
    pub selection: &'a Selection,
    pub records: &'a Records<'a>,
    /// Nothing need be captured.
    pub hurry: bool,
    /// Where those go that are gone on without.
    pub left: Option<&'a Uncaptured>,
}

/// Paths that a record names for each reason.
const NAMED: usize = 20;

/// What `roots` left out, by reason; what another target has is not left out of the snapshot.
fn left_out(roots: &[Root]) -> Vec<LeftOut> {
    let of = |why: Why| {
        let items = || roots.iter().flat_map(|root| &root.left_out).filter(move |item| item.why == why);
        let single = roots.iter().flat_map(|root| &root.ignored).map(|(_, files)| *files);
        let single = single.filter(|_| why == Why::Ignored);
        LeftOut {
            reason: why.word().to_owned(),
            count: items().count() as u64,
            files: items().filter_map(|item| item.files).chain(single).reduce(u64::saturating_add),
            paths: items().take(NAMED).map(|item| Bytes(item.path.clone())).collect(),
        }
    };
    let all = Why::ALL.into_iter().filter(|why| *why != Why::Elsewhere).map(of);
    all.filter(|left| left.count > 0 || left.files.is_some()).collect()
}

/// The captured directories among `parts`, which lie at a path.
pub(super) fn roots<'a>(
    source: &'a dyn Source,
    parts: &'a [Part],
) -> impl Iterator<Item = Result<Root>> + use<'a> {
    parts
        .iter()
        .filter(|part| part.content.kind() == ObjectKind::Root)
        .map(|part| Root::decode(&source.read(&part.content)?))
}

/// The directories among `parts`, and in volumes.
pub(super) fn directories<'a>(
    source: &'a dyn Source,
    parts: &'a [Part],
) -> impl Iterator<Item = Result<Root>> + use<'a> {
    parts.iter().filter_map(|part| match directory_of(source, &part.content) {
        Ok(key) => Some(read_root(source, &key?)),
        Err(error) => Some(Err(error)),
    })
}

/// Whether two captures hold the same state, times aside where they do not count; with `git`, also of the
/// repositories whose work trees they are.
fn same_state(source: &dyn Source, a: &Captured, b: &Captured, git: bool) -> Result<bool> {
    if a.parts.len() != b.parts.len() {
        return Ok(false);
    }
    for (a, b) in a.parts.iter().zip(&b.parts) {
        if a.name != b.name || !same_content(source, &a.content, &b.content, git)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether files of two captures of one state were touched, where that counts.
fn is_touched(source: &dyn Source, a: &Root, b: &Root) -> Result<bool> {
    let counts = a.times != b.times && a.counts_times() && b.counts_times();
    Ok(counts && compare(source, a, b, &Only::default())?.next().transpose()?.is_some())
}

/// Whether two objects are the same state; with `git`, also where repositories stand.
pub(super) fn same_content(source: &dyn Source, a: &Key, b: &Key, git: bool) -> Result<bool> {
    if a == b || a.kind() != b.kind() {
        return Ok(a == b);
    }
    Ok(match a.kind() {
        ObjectKind::Root => {
            let (a, b) = (Root::decode(&source.read(a)?)?, Root::decode(&source.read(b)?)?);
            a.same_state(&b) && (!git || a.git == b.git) && !is_touched(source, &a, &b)?
        }
        ObjectKind::Database => Database::load(source, a)?.same_state(&Database::load(source, b)?),
        ObjectKind::Volume => Volume::load(source, a)?.same_state(&Volume::load(source, b)?, source)?,
        _ => false,
    })
}

/// Whether `snapshot` holds the same state as `captured`, target by target, and the
/// repositories where they stand.
pub(super) fn holds_with_git(
    source: &dyn Source,
    snapshot: &Snapshot,
    captured: &[Captured],
) -> Result<bool> {
    Ok(snapshot.targets.len() == captured.len() && holds_its_own(source, snapshot, captured, true)?)
}

/// Whether everything that `snapshot` holds is the same in `other`, whatever else that
/// has; with `git`, the repositories stand where they stood, too.
pub(super) fn holds_its_own(
    source: &dyn Source,
    snapshot: &Snapshot,
    other: &[Captured],
    git: bool,
) -> Result<bool> {
    for own in &snapshot.targets {
        let Some(other) = other.iter().find(|other| other.target.name == own.target.name) else {
            return Ok(false);
        };
        if other.target != own.target || !same_state(source, own, other, git)? {
            return Ok(false);
        }
    }
    Ok(true)
}

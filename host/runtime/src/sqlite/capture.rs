//! Capturing: one consistent state of a database, without changing anything of it.

use super::astray::Astray;
use super::claim::Claim;
use super::image::Stored;
use super::lock::Locked;
use super::open::{Access, At, Opened};
use super::route::{self, INDEX_LOCKS, LOCKS, Route};
use super::stored::Image;
use super::system::System;
use super::{Database, copy, fault, holders, image, own};
use snapback_core::backend::{Call, Hold};
use snapback_core::database::{
    self, Database as Captured, Deed, Found, SIDES, Seen, capture_file, header, is_side, may_be_database,
    side, state,
};
use snapback_core::disk::Dir;
use snapback_core::error::{Error, Kind, Result, show_bytes};
use snapback_core::object::{Key, ObjectKind};
use snapback_core::store::{Lane, Writer, content};
use snapback_core::tree::node::Node;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// As long as it takes whoever opens a database to have its log as well, at most.
const BEGINS: Duration = Duration::from_millis(20);
/// How often a database that is replaced while it is read is tried.
const TRIES: usize = 5;
/// File systems that count whole seconds need the longest until nothing can go unseen.
pub const SETTLES: Duration = Duration::from_millis(2500);

/// Stores what is there; returns its key, none when nothing is.
pub fn run(database: &Database, call: &Call, previous: Option<&Key>) -> Result<Option<Key>> {
    let nowhere = || Error::new(Kind::Other, "there is nowhere to store what is captured");
    let writer = call.writer.clone().ok_or_else(nowhere)?;
    let Some(dir) = database.place.dir()? else { return Ok(None) };
    let seen = Seen::look(call.store()?, &dir, database.place.name())?;
    if call.hurry {
        let capture = Capture { database, call, dir: &dir, writer: &writer };
        return capture.is_free(&seen).map(|()| None);
    }
    tell_other(database, call, &seen);
    tell_astray(database, call, &dir, &seen)?;
    // What is remembered is known to be whole only if a snapshot has it.
    if call.hold.is_none()
        && let Some(known) = seen.recall(call, &database.setting)
        && previous == Some(&known)
        && call.store()?.contains(&known)?
    {
        return Ok(Some(known));
    }
    let Some((found, seen)) = Capture { database, call, dir: &dir, writer: &writer }.run()? else {
        return Ok(None);
    };
    tell_foreign(database, call, &found);
    let mut lane = writer.lane();
    let captured = Captured { path: database.place.path(), found };
    let key = lane.put(ObjectKind::Database, &captured.encode())?;
    lane.publish()?;
    if let Found::Image { file, .. } = &captured.found {
        if database.options.verify {
            Image::make(call, &*writer, file, &database.place)?.check()?;
        }
        seen.remember(call, &database.setting, &key);
    }
    Ok(Some(key))
}

/// Says that what is neither a file nor a link is no database; not before a restore, which is
/// to bring one where it is.
fn tell_other(database: &Database, call: &Call, seen: &Seen) {
    if call.cover.is_empty() && seen.database().is_some_and(|stat| !may_be_database(stat.kind())) {
        let shown = database.place.shown();
        let text = format!("{shown} is no file, and so no database: this target has nothing of it");
        call.report.log(&call.target.name, "warn", &text);
    }
}

/// Says what is not captured, since the database and its log came apart under somebody.
fn tell_astray(database: &Database, call: &Call, dir: &Dir, seen: &Seen) -> Result<()> {
    let Some(stat) = seen.database().filter(|stat| stat.is_file()) else { return Ok(()) };
    let _claim = Claim::of(stat.id());
    let (name, system) = (database.place.name(), System::recent(call));
    let index = dir.stat(&side(name, SIDES[2]))?;
    let is_used = |inode, bytes| !system.locking(dir, inode, bytes).is_empty();
    if !is_used(stat.id().1, LOCKS) && !index.is_some_and(|index| is_used(index.st_ino, INDEX_LOCKS)) {
        return Ok(());
    }
    let ahead = header::read(&dir.open_file(name)?).ok().flatten().is_some_and(|header| header.wal);
    if Astray::of(&system, dir, name, ahead).is_none() {
        return Ok(());
    }
    // Whoever begins has the database before the log.
    std::thread::sleep(BEGINS);
    let Astray { without_log, other_file } = Astray::of(&System::now(), dir, name, ahead);
    let log = side(&database.place.path(), SIDES[1]);
    let tell = |what: String| {
        call.report.omitted(&call.target.name, &log, &what);
        call.report.log(&call.target.name, "warn", &format!("{}: {what}", show_bytes(&log)));
    };
    if !without_log.is_empty() {
        let who = holders::list(&without_log);
        tell(format!("removed or moved away under {who}: what is in that log is not captured"));
    }
    if !other_file.is_empty() {
        let who = holders::list(&other_file);
        tell(format!("in use by {who} for a file that was replaced: what is in that is not captured"));
    }
    Ok(())
}

/// Says that what was declared as a database is none; not before a restore, which is to bring
/// one where it is.
fn tell_foreign(database: &Database, call: &Call, found: &Found) {
    if let Found::Files(entries) = found
        && call.cover.is_empty()
        && entries.iter().any(|entry| {
            entry.name == database.place.name() && matches!(entry.node, Node::File { size: 1.., .. })
        })
    {
        let shown = database.place.shown();
        let text = format!("{shown} is not a SQLite database: it is kept as a plain file");
        call.report.log(&call.target.name, "warn", &text);
    }
}

/// One capture, or one look at what is there now.
pub struct Capture<'a> {
    pub database: &'a Database,
    pub call: &'a Call,
    pub dir: &'a Dir,
    pub writer: &'a Arc<Writer>,
}

impl Capture<'_> {
    /// What is there, its content stored, and what it looked like.
    pub fn run(&self) -> Result<Option<(Found, Seen)>> {
        let mut same = true;
        for tried in 0..TRIES {
            self.call.cancel.check()?;
            let before = Seen::look(self.call.store()?, self.dir, self.database.place.name())?;
            let found = self.once(&before, tried > 0).map_err(|error| self.with_way(error))?;
            let Some(found) = found else { continue };
            let after = Seen::look(self.call.store()?, self.dir, self.database.place.name())?;
            let id = |seen: &Seen| seen.database().map(|stat| stat.id());
            if id(&before) == id(&after) {
                // What changed while it was read does not look like this again.
                return Ok(found.map(|found| (found, before)));
            }
            same = false;
        }
        if same {
            return Err(fault::busy(&self.database.place, self.dir));
        }
        let shown = self.database.place.shown();
        Err(Error::new(Kind::Busy, format!("{shown} is replaced again and again while it is read"))
            .hint("wait until that has ended"))
    }

    fn at(&self) -> At<'_> {
        At {
            place: &self.database.place,
            dir: self.dir,
            timeout: if self.call.hurry { Duration::ZERO } else { self.database.options.busy_timeout },
            cancel: &self.call.cancel,
        }
    }

    /// With the way to get at what may not be read.
    fn with_way(&self, error: Error) -> Error {
        match error.kind() {
            Kind::Denied if error.hint_text().is_none() => {
                error.hint(fault::access_hint(self.dir, self.database.place.name(), Deed::Read))
            }
            _ => error,
        }
    }

    /// Whether nobody keeps it from being read, or from being held if that is asked for.
    ///
    /// # Errors
    /// `Busy` when somebody does.
    fn is_free(&self, seen: &Seen) -> Result<()> {
        let (at, Some(stat)) = (self.at(), seen.database()) else { return Ok(()) };
        if route::of(at, seen)? != Route::Live || !own::has_own_sides(at)? {
            return Ok(());
        }
        let (access, begin) = match &self.call.hold {
            Some(_) if own::names(at)? == 1 => (Access::Write, "BEGIN IMMEDIATE"),
            _ => (Access::Read, "BEGIN; SELECT 1 FROM sqlite_schema"),
        };
        let opened = Opened::open(at, access, Claim::of(stat.id()))?;
        opened.connection.execute_batch(begin).map_err(at.told("could not lock"))
    }

    /// One try; none when it has to be tried again. `again`: somebody was at work on it the last time.
    fn once(&self, seen: &Seen, again: bool) -> Result<Option<Option<Found>>> {
        let claim = seen.database().map(|stat| Claim::of(stat.id()));
        let mut route = route::of(self.at(), seen)?;
        // Who opens and closes it again and again leaves no time in which nobody uses it.
        if again && matches!(route, Route::Still | Route::Left) && seen.journal().is_none() {
            route = Route::Live;
        }
        let own = own::has_own_sides(self.at())?;
        if route == Route::Live && !own {
            route = Route::Left;
        }
        // What is held is opened for writing: only what is the database's own, and nobody left.
        let may_hold = own && !matches!(route, Route::Left | Route::Apart) && own::names(self.at())? == 1;
        let hold = match &self.call.hold {
            Some(hold) if may_hold && !own::is_left(self.at(), self.call.store()?)? => Some(hold),
            _ => None,
        };
        let mut lane = self.writer.lane();
        let read = match (route, claim) {
            (Route::Empty, _) => Ok(content::store_bytes(&mut lane, &[][..], &self.call.cancel)),
            (Route::Files, _) | (_, None) => return self.files(lane).map(Some),
            (Route::Live, Some(claim)) => self.live(claim, hold, &mut lane)?,
            (_, Some(claim)) if hold.is_some() => self.live(claim, hold, &mut lane)?,
            (Route::Still, Some(_claim)) => match self.still(&mut lane)? {
                Some(stored) => Ok(Ok(stored)),
                None => return Ok(None),
            },
            (Route::Left | Route::Apart, Some(_claim)) => match self.left(&mut lane)? {
                Some(read) => read,
                None => return Ok(None),
            },
        };
        // A hot journal was found: it is rolled back in a copy.
        let read = match read {
            Err(error) if fault::is_hot(&error) => match self.left(&mut lane)? {
                Some(read) => read,
                None => return Ok(None),
            },
            read => read,
        };
        match read {
            Err(error) if fault::is_foreign(&error) => self.files(lane).map(Some),
            read => {
                let (key, size) = read.map_err(self.at().told("could not read"))??;
                lane.publish()?;
                self.image(key, size).map(|image| Some(Some(image)))
            }
        }
    }

    fn image(&self, key: Key, size: u64) -> Result<Found> {
        let mut file = database::file_entry(self.dir, self.database.place.name(), key, size)?;
        file.link = own::group(self.at(), self.call)?;
        Ok(Found::Image { file, state: state(&**self.writer, &key, size)? })
    }

    /// Through SQLite; what is to be held is locked for good.
    fn live(
        &self,
        claim: Claim,
        hold: Option<&Arc<Hold>>,
        lane: &mut Lane<'_>,
    ) -> Result<rusqlite::Result<Result<Stored>>> {
        let at = self.at();
        let Some(hold) = hold else {
            let opened = Opened::open(at, Access::Read, claim)?;
            return Ok(image::read(at, &opened.connection, &opened.file, lane));
        };
        let opened = Opened::open(at, Access::Write, claim)?;
        let locked = match Locked::new(opened) {
            Ok(locked) => locked,
            Err(error) => return Ok(Err(error)),
        };
        let read = image::read(at, &locked.opened.connection, &locked.opened.file, lane);
        if let Ok(Ok(_)) = &read {
            hold.keep(locked);
        }
        Ok(read)
    }

    /// The pages of the file as it is, which nobody uses.
    fn still(&self, lane: &mut Lane<'_>) -> Result<Option<Stored>> {
        let seen = self.settled()?;
        if route::of(self.at(), &seen)? != Route::Still {
            return Ok(None);
        }
        let file = self.dir.open_file(self.database.place.name())?;
        let header = header::read(&file).ok().flatten();
        let size = seen.database().and_then(|stat| header?.image(stat.size));
        let Some(size) = size else { return Ok(None) };
        let stored = content::store_file(lane, &file, size, false, &self.call.cancel)?;
        let after = Seen::look(self.call.store()?, self.dir, self.database.place.name())?;
        Ok((seen.still(&after) && stored.1 == size).then_some(stored))
    }

    /// What was left, recovered in a copy.
    fn left(&self, lane: &mut Lane<'_>) -> Result<Option<rusqlite::Result<Result<Stored>>>> {
        let seen = self.settled()?;
        // A journal that somebody writes who does not use this file is another one's.
        let system = System::recent(self.call);
        if seen.journal().is_some_and(|journal| !system.having(journal.id()).is_empty()) {
            return Ok(Some(Err(fault::foreign())));
        }
        let Some(copy) = copy::make(self.at(), self.call.store()?, &seen)? else { return Ok(None) };
        Ok(Some(copy::image_of(self.at(), &copy, lane)))
    }

    /// Waits until a change would be seen by the times of the files.
    fn settled(&self) -> Result<Seen> {
        let since = Instant::now();
        loop {
            self.call.cancel.check()?;
            let seen = Seen::look(self.call.store()?, self.dir, self.database.place.name())?;
            if seen.is_settled() || since.elapsed() > SETTLES {
                return Ok(seen);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// No database: the files as they are.
    fn files(&self, mut lane: Lane<'_>) -> Result<Option<Found>> {
        let name = self.database.place.name();
        let mut entries = Vec::new();
        for suffix in [&b""[..], SIDES[0], SIDES[1]] {
            if suffix.is_empty() || is_side(self.dir, name, suffix) == Some(true) {
                entries.extend(capture_file(&mut lane, self.dir, &side(name, suffix), &self.call.cancel)?);
            }
        }
        lane.publish()?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((!entries.is_empty()).then_some(Found::Files(entries)))
    }
}

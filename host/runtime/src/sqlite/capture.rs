//! Capturing: one consistent state of a database, without changing anything of it.

use super::claim::Claim;
use super::image::Stored;
use super::lock::Locked;
use super::open::{Access, At, Opened};
use super::route::{self, Route};
use super::stored::Image;
use super::{Database, copy, fault, image, own};
use snapback_core::backend::{Call, Hold};
use snapback_core::database::{
    self, Database as Captured, Found, SIDES, Seen, capture_file, header, is_side, may_be_database, side,
    state,
};
use snapback_core::disk::Dir;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::{Key, ObjectKind};
use snapback_core::store::{Lane, Writer, content};
use snapback_core::tree::node::Node;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    tell_other(database, call, &seen);
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
        for _ in 0..TRIES {
            self.call.cancel.check()?;
            let before = Seen::look(self.call.store()?, self.dir, self.database.place.name())?;
            let Some(found) = self.once(&before)? else { continue };
            let after = Seen::look(self.call.store()?, self.dir, self.database.place.name())?;
            let id = |seen: &Seen| seen.database().map(|stat| stat.id());
            if id(&before) == id(&after) {
                // What changed while it was read does not look like this again.
                return Ok(found.map(|found| (found, before)));
            }
        }
        let shown = self.database.place.shown();
        Err(Error::new(Kind::Busy, format!("{shown} is replaced again and again while it is read"))
            .hint("wait until that has ended"))
    }

    fn at(&self) -> At<'_> {
        At {
            place: &self.database.place,
            dir: self.dir,
            timeout: self.database.options.busy_timeout,
            cancel: &self.call.cancel,
        }
    }

    /// One try; none when it has to be tried again.
    fn once(&self, seen: &Seen) -> Result<Option<Option<Found>>> {
        let claim = seen.database().map(|stat| Claim::of(stat.id()));
        let mut route = route::of(self.at(), seen)?;
        let own = own::has_own_sides(self.at())?;
        if route == Route::Live && !own {
            route = Route::Left;
        }
        // What is held is opened for writing: only what is the database's own, and nobody left.
        let may_hold = own && route != Route::Left && own::names(self.at())? == 1;
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
            (Route::Left, Some(_claim)) => match self.left(&mut lane)? {
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

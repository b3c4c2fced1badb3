//! Putting a database back: which way, and only over what was captured.
//!
//! | there now | to come back | way |
//! |---|---|---|
//! | a database | a database of that page size | `pages`: in place, only what differs |
//! | a database | a database of another page size | `whole`: in place, all of it |
//! | a database that is damaged | a database | `whole` |
//! | a file that is no database | a database | `whole` |
//! | nothing, or a link | a database | `put`: made aside, moved there |
//! | what SQLite may not be let at, or makes no sense of with what was left beside it | anything | `put` |
//! | a database | a damaged one, or none, or nothing | `put`, under the exclusive lock |
//! | no database | no database, or nothing | `put` |
//!
//! In place is the same inode, and what others see at their next query. A second call
//! completes one that was cut short.

use super::astray::Astray;
use super::capture::Capture;
use super::claim::Claim;
use super::holders::{self, Holder};
use super::lock::Locked;
use super::open::At;
use super::stored::Image;
use super::system::System;
use super::{Database, own, pages, put, recover, whole};
use snapback_core::backend::Call;
use snapback_core::database::header::{self, Header};
use snapback_core::database::recover as recover_left;
use snapback_core::database::{
    Database as Captured, Found, SIDES, Seen, may_be_database, settle, side, state_like,
};
use snapback_core::disk::{Dir, Disk, Held};
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::Key;
use snapback_core::store::Source;
use snapback_core::store::content::read_begin;
use snapback_core::tree::node::{Entry, Node};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One restore.
pub struct Restore<'a> {
    pub database: &'a Database,
    pub call: &'a Call,
    pub dir: &'a Dir,
    /// What is to come back.
    pub stored: Option<Found>,
    /// What was captured just before, and under which key.
    pub current: Option<Found>,
    pub current_key: Option<Key>,
}

/// What is there, seen under a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// What is to come back: it was put back before.
    Stored,
    /// What was captured.
    Current,
}

/// Makes what is there the stored one.
pub fn run(database: &Database, call: &Call, stored: Option<&Key>, current_key: Option<&Key>) -> Result<()> {
    let load = |key: Option<&Key>| {
        key.map(|key| Captured::load(call.source()?, key).map(|captured| captured.found)).transpose()
    };
    let (mut stored, current) = (load(stored)?, load(current_key)?);
    let (place, disk) = (&database.place, call.store()?.disk());
    let dir = match place.dir()? {
        Some(dir) => dir,
        None if stored.is_none() && current.is_none() => return Ok(()),
        None => place.make_dir(disk)?,
    };
    recover_left(call, &dir, place.name())?;
    let key = current_key.copied();
    let _opened_up = OpenedUp::new(disk, &dir)?;
    let (timeout, cancel) = (database.options.busy_timeout, &call.cancel);
    let at = At { place, dir: &dir, timeout, cancel };
    let mut recovering = None;
    if let Some(files) = &stored
        && let Some((image, writer)) = recover::image_of(at, call, files)?
    {
        (stored, recovering) = (Some(image), Some(Call { writer: Some(writer), ..call.clone() }));
    }
    let call = recovering.as_ref().unwrap_or(call);
    let restore = Restore { database, call, dir: &dir, stored, current, current_key: key };
    restore.go()?;
    restore.tell_left_behind();
    Ok(())
}

/// A directory that its owner may not write to, and may while files come and go in it.
struct OpenedUp<'a>(&'a Disk, &'a Dir, Option<u32>);

impl<'a> OpenedUp<'a> {
    fn new(disk: &'a Disk, dir: &'a Dir) -> Result<Self> {
        let stat = dir.stat_self()?;
        let is_own = rustix::process::geteuid().as_raw() == stat.st_uid;
        let mode = stat.st_mode & 0o7777;
        if !is_own || mode & 0o300 == 0o300 {
            return Ok(Self(disk, dir, None));
        }
        disk.set_mode_of(dir, mode | 0o300)?;
        Ok(Self(disk, dir, Some(mode)))
    }
}

impl Drop for OpenedUp<'_> {
    fn drop(&mut self) {
        if let Some(mode) = self.2 {
            let _ = self.0.set_mode_of(self.1, mode);
        }
    }
}

/// Files beside a database that their owner may not write, and may while it is put back.
struct OpenedFiles<'a>(&'a Disk, Vec<(Held, u32)>);

impl Drop for OpenedFiles<'_> {
    fn drop(&mut self) {
        for (held, mode) in &self.1 {
            let _ = self.0.set_mode_held(held, *mode);
        }
    }
}

impl Restore<'_> {
    fn go(&self) -> Result<()> {
        self.put_back()?;
        // What is told as done lasts. SQLite does not wait for the disk when it removes a journal, and
        // one that a power cut brings back brings the old rows back with it.
        self.call.store()?.disk().sync_dir(self.dir)
    }

    fn put_back(&self) -> Result<()> {
        self.free()?;
        let held = self.call.hold.as_ref().and_then(|hold| hold.take::<Locked>());
        // What is held was looked at before: a second look would let go of the lock.
        let sqlite = held.is_some() || self.is_file()? && self.is_for_sqlite()?;
        if sqlite {
            self.wait_for_those_astray(held.is_some())?;
        }
        if let (Some(Found::Image { file, .. }), Some(Found::Image { file: now, .. })) =
            (&self.stored, &self.current)
            && sqlite
        {
            let image = self.checked(file)?;
            let _opened_up = self.open_up()?;
            let done = self.in_place(&image, held);
            // What was not put back is as it was, the mode included.
            let settled = self.settle(if done.is_ok() { file } else { now });
            return done.and(settled);
        }
        // No other way needs the lock that was kept.
        drop(held);
        let image = match &self.stored {
            Some(Found::Image { file, .. }) => Some((file, self.checked(file)?)),
            _ => None,
        };
        match (&image, sqlite) {
            (_, false) => put::aside(self)?,
            (_, true) if self.confirm()? == Now::Stored => {}
            (Some((_, image)), true) => self.whole(image, false)?,
            (None, true) => self.without()?,
        }
        image.map_or(Ok(()), |(file, _)| self.settle(file))
    }

    /// Gives what is there what `file` is beside its content.
    fn settle(&self, file: &Entry) -> Result<()> {
        settle(self.call, self.dir, file, &self.dir.join(&file.name))
    }

    /// Waits until nobody uses what is there without the log that lies beside it, or that log for
    /// another file: what is put back, and what others write by then, would be lost to it.
    fn wait_for_those_astray(&self, held: bool) -> Result<()> {
        let (at, since) = (self.at(), Instant::now());
        let Some(Found::Image { file, .. }) = &self.current else { return Ok(()) };
        let ahead = Header::parse(&self.begin_of(file)?).is_some_and(|header| header.wal);
        // Nothing is written: only through a log that is another file's it may look so.
        let ahead = ahead && !same_content(&self.stored, self.current.as_ref());
        let mut system = System::recent(self.call);
        // Whoever begins has the database before the log.
        loop {
            let astray = Astray::of(&system, self.dir, at.place.name(), ahead);
            if astray.is_none() && (held || !Astray::is_with_somebody(at, ahead)?) {
                return Ok(());
            }
            at.cancel.check()?;
            if since.elapsed() >= at.timeout {
                return Err(astray.fault(at));
            }
            std::thread::sleep(Duration::from_millis(10));
            system = Arc::new(System::now());
        }
    }

    /// Tells who goes on with a file that was removed from where the database is, or was.
    fn tell_left_behind(&self) {
        if self.stored.is_some() || self.current.is_some() {
            let system = System::recent(self.call);
            self.tell_removed(&holders::of_removed(&system, self.dir, self.database.place.name()));
        }
    }

    /// Tells that `holders` have the removed database open.
    pub fn tell_removed(&self, holders: &[Holder]) {
        if !holders.is_empty() {
            let (has, it, writes) = match holders.len() {
                1 => ("has", "it", "it writes"),
                _ => ("have", "them", "they write"),
            };
            let (who, shown) = (holders::list(holders), self.database.place.shown());
            let text =
                format!("{who} still {has} the removed {shown} open: restart {it}, what {writes} is lost");
            self.call.report.log(&self.call.target.name, "warn", &text);
        }
    }

    /// Whether SQLite may be let at what is there, and makes sense of it: all that it would write
    /// is the database's own, and nothing was left beside what is no database.
    fn is_for_sqlite(&self) -> Result<bool> {
        let at = self.at();
        let is_database = matches!(&self.current, Some(Found::Image { file, .. }) if content(file).1 > 0);
        if !own::has_own_sides(at)? || !is_database && own::has_sides(at)? {
            return Ok(false);
        }
        // What was left was recovered in a copy: SQLite would do that here, also to no avail.
        if own::is_left(at, self.call.store()?)? {
            return Ok(false);
        }
        let group = match &self.stored {
            Some(Found::Image { file, .. }) => file.link,
            _ => None,
        };
        Ok(own::names(at)? == 1 || group.is_some() && group == own::group(at, self.call)?)
    }

    /// What is stored is no database, or nothing.
    fn without(&self) -> Result<()> {
        match &self.current {
            Some(Found::Image { .. }) => match put::over_database(self) {
                Err(error) if is_beyond(&error) => put::aside(self),
                done => done,
            },
            _ => put::aside(self),
        }
    }

    fn in_place(&self, image: &Image<'_>, held: Option<Locked>) -> Result<()> {
        match pages::restore(self, image, held) {
            Ok(true) => Ok(()),
            Ok(false) => self.whole(image, false),
            // Too damaged to be written page by page.
            Err(error) if is_beyond(&error) => self.whole(image, true),
            // What may not be written may be as it is to be: then nothing is to be done, nor was.
            Err(error) if error.kind() == Kind::Denied => match self.confirm() {
                Ok(Now::Stored) => Ok(()),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// All of it, by SQLite; what is too damaged for that, by its bytes.
    fn whole(&self, image: &Image<'_>, damaged: bool) -> Result<()> {
        match whole::restore(self, image, damaged) {
            Err(error) if is_beyond(&error) => put::aside(self),
            done => done,
        }
    }

    /// The image of `file`. That it is damaged is told, and no reason to keep it back: its
    /// bytes are those that were captured, and so was the database.
    fn checked(&self, file: &Entry) -> Result<Image<'_>> {
        let image = Image::make(self.call, self.call.source()?, file, &self.database.place)?;
        match image.check() {
            Err(error) if error.kind() == Kind::Corrupt => {
                let text = format!("{error}; it comes back as it was");
                self.call.report.log(&self.call.target.name, "warn", &text);
            }
            done => done?,
        }
        Ok(image)
    }

    /// Refuses what is in the place of a database that is to come, and is neither a file nor
    /// a link: no target of a database has it, and the tree has left it.
    fn free(&self) -> Result<()> {
        let (place, kind) = (&self.database.place, |mode| rustix::fs::FileType::from_raw_mode(mode));
        match self.dir.stat(place.name())? {
            Some(stat) if self.comes() && !may_be_database(kind(stat.st_mode)) => {
                let text = format!("something that is no file stands in the place of {}", place.shown());
                Err(Error::new(Kind::Denied, text).hint("move it away, and try again"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a file is to come to where the database is, and not only beside it.
    fn comes(&self) -> bool {
        let entries = self.stored.as_ref().map_or(&[][..], Found::entries);
        entries.iter().any(|entry| entry.name == self.database.place.name())
    }

    /// How it is worked on.
    pub fn at(&self) -> At<'_> {
        At {
            place: &self.database.place,
            dir: self.dir,
            timeout: self.database.options.busy_timeout,
            cancel: &self.call.cancel,
        }
    }

    /// The file that is there, claimed.
    pub fn claim(&self) -> Result<Claim> {
        Ok(Claim::of(self.at().id()?))
    }

    /// Whether a file is there.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn is_file(&self) -> Result<bool> {
        let stat = self.dir.stat(self.database.place.name())?;
        let is_file = |mode| rustix::fs::FileType::from_raw_mode(mode) == rustix::fs::FileType::RegularFile;
        Ok(stat.is_some_and(|stat| is_file(stat.st_mode)))
    }

    /// What is there now, without a lock.
    ///
    /// # Errors
    /// `Changed` when it is neither what is to come back nor what was captured.
    pub fn confirm(&self) -> Result<Now> {
        let scratch = Arc::new(self.call.store()?.scratch(true));
        // Without what may be held: that would keep the claim that the restore waits for next.
        let call = Call { writer: Some(scratch.clone()), hold: None, ..self.call.clone() };
        let capture = Capture { database: self.database, call: &call, dir: self.dir, writer: &scratch };
        let found = capture.run()?.map(|(found, _)| found);
        match (self.compare(found.as_ref()), &found) {
            (Err(error), Some(Found::Image { file, .. })) if error.kind() == Kind::Changed => {
                let (key, size) = content(file);
                if self.is_without_log(&*scratch, &key, size)? { Ok(Now::Current) } else { Err(error) }
            }
            (done, _) => done,
        }
    }

    /// Whether the content `key` of `size` bytes is what was captured, or is to come back, but for the
    /// log that was left: a restore does that first, and may have been cut short then.
    ///
    /// # Errors
    /// When what is stored cannot be read.
    pub fn is_without_log(&self, source: &dyn Source, key: &Key, size: u64) -> Result<bool> {
        for known in [&self.current, &self.stored] {
            let Some(Found::Image { file, state }) = known else { continue };
            let begin = self.begin_of(file)?;
            let is_ahead = Header::parse(&begin).is_some_and(|header| header.wal);
            if is_ahead && state_like(source, key, size, &begin)? == *state {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Compares what was found with what is known.
    ///
    /// # Errors
    /// `Changed` when it is neither.
    pub fn compare(&self, found: Option<&Found>) -> Result<Now> {
        let same = |known: &Option<Found>| match (known, found) {
            (None, None) => true,
            (Some(known), Some(found)) => known.same_state(found),
            _ => false,
        };
        // Attributes are given back in any case.
        if same(&self.stored) || same_content(&self.stored, found) {
            Ok(Now::Stored)
        } else if same(&self.current) {
            Ok(Now::Current)
        } else {
            Err(self.changed())
        }
    }

    /// Whether nothing was written since the capture, as far as the files say: then it
    /// need not be read again.
    pub fn is_untouched(&self) -> Result<bool> {
        let seen = Seen::look(self.call.store()?, self.dir, self.database.place.name())?;
        let known = seen.recall(self.call, &self.database.setting);
        Ok(known.is_some() && known == self.current_key)
    }

    /// The first bytes of a captured image.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn begin_of(&self, file: &Entry) -> Result<Vec<u8>> {
        let (key, size) = content(file);
        read_begin(self.call.source()?, &key, size, header::LENGTH as u64)
    }

    /// Somebody wrote to it since it was captured.
    pub fn changed(&self) -> Error {
        let shown = self.database.place.shown();
        Error::new(Kind::Changed, format!("{shown} is not as it was when it was captured"))
            .hint("somebody writes to it; try again")
    }

    /// Lets the database and what lies beside it be written, when only their modes forbid that.
    fn open_up(&self) -> Result<OpenedFiles<'_>> {
        let disk = self.call.store()?.disk();
        let mut opened = OpenedFiles(disk, Vec::new());
        for suffix in [&b""[..]].into_iter().chain(SIDES) {
            let Some(held) = self.dir.hold(&side(self.database.place.name(), suffix))? else { continue };
            let stat = held.stat()?;
            let (own, mode) = (rustix::process::geteuid().as_raw() == stat.st_uid, stat.st_mode & 0o7777);
            if own && mode & 0o200 == 0 {
                disk.set_mode_held(&held, mode | 0o200)?;
                // That of the database is one of the things that are put back.
                if !suffix.is_empty() {
                    opened.1.push((held, mode));
                }
            }
        }
        Ok(opened)
    }
}

/// Whether SQLite makes no sense of what is there.
fn is_beyond(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Incompatible)
}

/// Whether both are the same image, whatever the attributes of their files are.
pub fn same_content(known: &Option<Found>, found: Option<&Found>) -> bool {
    match (known, found) {
        (Some(Found::Image { state, .. }), Some(Found::Image { state: other, .. })) => state == other,
        _ => false,
    }
}

/// The content of an image's file.
pub fn content(file: &Entry) -> (Key, u64) {
    match file.node {
        Node::File { content, size, .. } => (content, size),
        _ => unreachable!("an image is a file"),
    }
}

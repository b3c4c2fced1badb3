//! Holding the containers that use a volume, and letting go of them.
//!
//! Before the first is touched, a record of all stands on the engine, and a small process
//! watches over this one: it lets go at once when this one is gone. If it is gone as well,
//! the next command that talks to the engine finds the record. So nothing stays held but
//! where nobody asks again; and while files are half put back: what runs on these would make
//! it worse, so whoever goes on with that step lets go, and the engine starts none by itself.
//!
//! One that a target of the same step paused is stopped where another wants that. Refuses to
//! stop a container that goes when it is stopped, and to hold for one what another snapback is
//! putting back.

use super::daemon::Daemon;
use super::marker::{self, Marker, State};
use super::record::{How, Record};
use super::restart::{self, Restart};
use super::users::{self, User};
use super::watch::Watcher;
use super::{fault, let_go, memory, owner};
use bollard::errors::Error as Fault;
use bollard::query_parameters::StopContainerOptions;
use snapback_core::error::{Error, Kind, Result};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What helps where an engine without root's rights holds nobody.
const ROOTLESS: &str =
    "a rootless engine pauses containers only with version 2 of cgroups; `hold = \"stop\"` needs none";

/// Time between two looks at what others hold, and how often it is looked at: a minute for
/// one who works on the volume, and a moment for one who is about to let go.
const AGAIN: Duration = Duration::from_millis(100);
/// See [`AGAIN`].
const LOOKS: u32 = 600;
/// For one of this process, so many times that.
const MORE: u32 = 60;
/// See [`AGAIN`].
const MOMENT: u32 = 30;

/// What is to be held, and for what.
pub struct Wanted<'a> {
    /// How.
    pub how: How,
    /// The volume, as the engine calls it.
    pub volume: &'a str,
    /// The root of the project: what a killed process left half put back there is taken over.
    pub project: &'a str,
    /// Whether files are about to be put back.
    pub restores: bool,
    /// Whether its files are there only while a container runs with it.
    pub in_memory: bool,
}

/// Containers that are held until this is dropped.
pub struct Held {
    daemon: Daemon,
    marker: String,
    record: Record,
    watcher: Mutex<Option<Watcher>>,
    /// Files are being put back, or were left half put back.
    half: AtomicBool,
    /// What people call them.
    pub names: String,
    /// Whether they were held since files were left half put back.
    pub taken_over: bool,
    /// What is to be told when they cannot be let go of.
    tell: Tell,
    /// Gone after they are let go of.
    memory: Option<memory::Kept>,
}

/// Tells the user something.
pub type Tell = Box<dyn Fn(&str) + Send + Sync>;

impl Held {
    /// Holds those who use a volume; those that somebody paused stand still already, and stay
    /// so. None when there is nobody to hold. Another snapback that works on the volume is
    /// waited for.
    ///
    /// # Errors
    /// `Busy` when one of them cannot be stopped without losing it, when another snapback goes
    /// on putting files of the volume back, and when the engine refuses: then none is held.
    pub fn take(daemon: &Daemon, wanted: &Wanted<'_>, tell: impl Fn() -> Tell) -> Result<Option<Self>> {
        for _ in 0..MOMENT {
            if let Some(done) = Self::attempt(daemon, wanted, tell())? {
                return Ok(done);
            }
            std::thread::sleep(AGAIN);
        }
        let why = format!("a container that uses the volume `{}` starts again and again", wanted.volume);
        Err(Error::new(Kind::Busy, why).hint("stop it (`docker stop`), and try again"))
    }

    /// Takes them; nothing when one of them ended by itself before it could be paused.
    fn attempt(daemon: &Daemon, wanted: &Wanted<'_>, tell: Tell) -> Result<Option<Option<Self>>> {
        let (users, markers) = among_others(daemon, wanted)?;
        let known: HashSet<&str> = markers.iter().flat_map(|marker| marker.ids()).collect();
        let is_known = |user: &User| known.contains(&*user.id);
        if wanted.how == How::Stop {
            refuse(users.iter().filter(|user| !is_known(user) || user.running && user.fleeting))?;
        }
        let users: Vec<&User> = users.iter().filter(|user| !user.paused || is_known(user)).collect();
        if users.is_empty() {
            return Ok(Some(None));
        }
        let restarting = users.iter().filter(|user| user.restarting && wanted.how == How::Pause);
        let stopped: Vec<String> = restarting.map(|user| user.id.clone()).collect();
        let held = users.iter().map(|user| user.id.clone()).collect();
        let restarts = if wanted.restores { restarts(&users, &markers) } else { BTreeMap::new() };
        let record = Record { how: wanted.how, held, restores: wanted.restores, restarts, stopped };
        let marker = marker::note(daemon, wanted, &record)?;
        // From here on, whatever happens lets go.
        let mut held = Self {
            daemon: daemon.clone(),
            watcher: Mutex::new(Watcher::start(daemon, &marker, &record)),
            marker,
            record,
            half: AtomicBool::new(false),
            names: users::names(users.iter().copied()),
            taken_over: markers.iter().any(|marker| wanted.takes_over(marker)),
            tell,
            memory: None,
        };
        if wanted.in_memory && users.iter().any(|user| held.record.how_of(&user.id) == How::Stop) {
            held.memory = Some(memory::Kept::start(daemon, wanted.volume)?);
        }
        if held.taken_over {
            held.begin()?;
        }
        for left in markers.iter().filter(|marker| wanted.takes_over(marker)) {
            marker::remove(daemon, &left.id)?;
        }
        await_those_who_let_go(daemon, &held.record)?;
        for user in users {
            if !hold(daemon, held.record.how_of(&user.id), user)? {
                return Ok(None);
            }
        }
        Ok(Some(Some(held)))
    }

    /// What is done to them, in a word.
    pub fn done(&self) -> &'static str {
        if self.record.stopped.is_empty() { self.record.how.done() } else { "held" }
    }

    /// Files are about to be put back: from here on nobody lets go of the containers, whatever
    /// becomes of this process, until [`Self::is_whole`] or another process goes on with it.
    ///
    /// # Errors
    /// When the engine cannot note it.
    pub fn begin(&self) -> Result<()> {
        if self.half.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let begun = || {
            marker::rename(&self.daemon, &self.marker, State::Half)?;
            self.record.restarts.keys().try_for_each(|id| restart::switch_off(&self.daemon, id))?;
            self.tell(Watcher::half)
        };
        begun().inspect_err(|_| self.is_whole())
    }

    /// The files are put back, or none was touched.
    pub fn is_whole(&self) {
        self.half.store(false, Ordering::Relaxed);
        // Where that fails, they are let go of all the same when this is dropped.
        let _ = marker::rename(&self.daemon, &self.marker, State::Holding);
        let _ = self.tell(Watcher::whole);
    }

    fn tell(&self, what: fn(&mut Watcher) -> Result<()>) -> Result<()> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.as_mut().map_or(Ok(()), what)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let stays = self.half.load(Ordering::Relaxed);
        let done = if stays { Ok(()) } else { let_go::release(&self.daemon, &self.marker) };
        if stays && let Some(memory) = self.memory.take() {
            memory.leave();
        }
        if let Err(error) = &done {
            (self.tell)(&error.to_string());
        }
        // What failed is tried once more by the watcher, which sees that it was not dismissed.
        if done.is_ok()
            && let Some(watcher) = self.watcher.get_mut().unwrap_or_else(PoisonError::into_inner).take()
        {
            watcher.dismiss();
        }
    }
}

impl Wanted<'_> {
    /// Whether a process that is gone, or a call of this one, left this half put back in the
    /// same project.
    fn takes_over(&self, marker: &Marker) -> bool {
        marker.state == State::Half
            && marker.volume == self.volume
            && marker.project == self.project
            && (marker.owner == owner::me() || !marker.is_live())
    }

    /// Why it cannot be held beside what `marker` holds.
    fn is_kept_by(&self, marker: &Marker, users: &[User]) -> Option<Error> {
        let own = marker.owner == owner::me();
        if marker.volume == self.volume && marker.record.restores && !own && marker.holds() {
            return (!self.takes_over(marker)).then(|| busy(marker));
        }
        let shared = || users.iter().find(|user| marker.ids().any(|id| id == user.id));
        // What this step paused to put something back is stopped as well.
        let is_firm = self.how == How::Stop && !(own && marker.record.restores);
        if is_firm && marker.record.how == How::Pause && marker.holds() {
            return shared().map(|user| {
                let name = &user.name;
                let why =
                    format!("the container {name} is paused by a snapback, and would have to be stopped");
                Error::new(Kind::Busy, why).hint("wait until that one is done, and try again")
            });
        }
        None
    }
}

fn busy(marker: &Marker) -> Error {
    let Marker { volume, project, id, .. } = marker;
    if marker.is_live() {
        return Error::new(Kind::Busy, format!("another snapback puts the volume `{volume}` back")).hint(
            format!("wait until it is done; if there is none, `docker rm -f {}`", &id[..12.min(id.len())]),
        );
    }
    let why = format!("the volume `{volume}` is half put back: that was cut short in {project}");
    Error::new(Kind::Busy, why).hint(format!("`snapback -C {project} undo --resume` goes on with it"))
}

/// Those who use the volume, and what others hold, once nobody is in the way any more.
fn among_others(daemon: &Daemon, wanted: &Wanted<'_>) -> Result<(Vec<User>, Vec<Marker>)> {
    let mut looks = 0;
    loop {
        let mut markers = marker::all(daemon)?.0;
        markers.retain(Marker::holds);
        let known: HashSet<&str> = markers.iter().flat_map(|marker| marker.ids()).collect();
        let users = users::of(daemon, wanted.volume, &known)?;
        // Who was paused meanwhile has a record by now: it is not somebody's else to stand still.
        let unknown = |user: &&User| user.paused && !known.contains(&*user.id);
        if looks < MOMENT && users.iter().any(|user| unknown(&user)) && is_news(daemon, &users, &known)? {
            looks += 1;
            continue;
        }
        let kept = markers.iter().find_map(|marker| Some((marker, wanted.is_kept_by(marker, &users)?)));
        match kept {
            None => return Ok((users, markers)),
            // A capture of this process ends by itself, but may take long.
            Some((marker, _)) if marker.owner == owner::me() && looks < LOOKS * MORE => {}
            Some((marker, error)) if looks >= LOOKS || !marker.is_live() => return Err(error),
            Some(_) => {}
        }
        looks += 1;
        std::thread::sleep(AGAIN);
    }
}

/// Whether others hold some of `users` of whom that was not `known`, or have let them go.
fn is_news(daemon: &Daemon, users: &[User], known: &HashSet<&str>) -> Result<bool> {
    let markers = marker::all(daemon)?.0;
    let mut held = markers.iter().filter(|marker| marker.holds()).flat_map(Marker::ids);
    if held.any(|id| !known.contains(id) && users.iter().any(|user| user.id == id)) {
        return Ok(true);
    }
    let strange = users.iter().filter(|user| user.paused && !known.contains(&*user.id));
    for user in strange {
        if !users::look(daemon, &user.id)?.is_some_and(|now| now.paused) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// When the engine starts which of `users` by itself: as another noted it who switched that
/// off, else as it is.
fn restarts(users: &[&User], markers: &[Marker]) -> BTreeMap<String, Restart> {
    let noted = |id: &str| markers.iter().find_map(|marker| marker.record.restarts.get(id));
    let of = |user: &&User| Some((user.id.clone(), noted(&user.id).or(user.restart.as_ref())?.clone()));
    users.iter().filter_map(of).collect()
}

/// Waits until nobody is about to let go of what `record` says: whoever looks from now on
/// finds it held.
fn await_those_who_let_go(daemon: &Daemon, record: &Record) -> Result<()> {
    for _ in 0..MOMENT {
        let markers = marker::all(daemon)?.0;
        let mut going = markers.iter().filter(|marker| !marker.holds());
        if !going.any(|marker| marker.ids().any(|id| record.held.iter().any(|held| held == id))) {
            break;
        }
        std::thread::sleep(AGAIN);
    }
    Ok(())
}

/// Holds one container, if it is not held already; whether that could be done at all.
fn hold(daemon: &Daemon, how: How, user: &User) -> Result<bool> {
    let mut looks = 0;
    loop {
        let now = users::look(daemon, &user.id)?;
        if is_held(how, now.as_ref()) {
            return Ok(true);
        }
        let Err(answer) = ask_to_hold(daemon, how, now)? else { return Ok(true) };
        // It may have ended by itself meanwhile, or another has held it.
        let now = users::look(daemon, &user.id)?;
        if is_held(how, now.as_ref()) {
            return Ok(true);
        }
        if how == How::Pause && now.is_some_and(|now| now.restarting) {
            return Ok(false);
        }
        // While one ends, the engine calls it running for a moment, and cannot pause it.
        if looks >= MOMENT || !fault::is_over(&answer) {
            let error = daemon.explain(&format!("hold the container {}", user.name), &answer);
            // Docker says of itself that it is one; podman says it with what it refuses.
            let is_rootless = error.message().contains("rootless")
                || daemon.machine().is_ok_and(|machine| machine.is_rootless);
            return Err(if is_rootless && how == How::Pause { error.hint(ROOTLESS) } else { error });
        }
        looks += 1;
        std::thread::sleep(AGAIN);
    }
}

/// Whether there is nothing to do: it does not run, or stands still where that is all.
fn is_held(how: How, now: Option<&User>) -> bool {
    now.is_none_or(|now| how == How::Pause && now.paused)
}

/// Pauses or stops one that is there as `now` says.
fn ask_to_hold(daemon: &Daemon, how: How, now: Option<User>) -> Result<Result<(), Fault>> {
    let Some(now) = now else { return Ok(Ok(())) };
    daemon.try_ask(async |client| match how {
        How::Pause => client.pause_container(&now.id).await,
        How::Stop => {
            // It cannot end by itself while it stands still.
            if now.paused {
                client.unpause_container(&now.id).await?;
            }
            client.stop_container(&now.id, None::<StopContainerOptions>).await
        }
    })
}

/// Refuses to stop what would not be as it was afterwards.
fn refuse<'u>(users: impl Iterator<Item = &'u User> + Clone) -> Result<()> {
    let of = |pick: fn(&User) -> bool| users.clone().find(|user| pick(user));
    if let Some(user) = of(|user| user.fleeting) {
        let why = format!("the container {} was started with --rm: stopping it would remove it", user.name);
        return Err(Error::new(Kind::Busy, why)
            .hint("end it yourself and try again, or set `hold = \"pause\"` for this target"));
    }
    if let Some(user) = of(|user| user.paused) {
        let why = format!("the container {} is paused, and would not be afterwards", user.name);
        return Err(
            Error::new(Kind::Busy, why).hint(format!("`docker unpause {}`, and try again", user.name))
        );
    }
    Ok(())
}

//! `docker`: volumes, which `crate::docker` captures and restores.

use super::bindings::snapback::plugin::docker;
use super::{Object, Target, stale, to_write};
use crate::component::State;
use crate::docker as driver;
use crate::manifest::{Access, Kind};
use crate::reach::Found;
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind as ErrorKind, Result};
use snapback_core::object::ObjectKind;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use wasmtime::component::Resource;

/// A volume that was granted.
pub struct Volume {
    inner: Arc<driver::Volume>,
    access: Access,
    /// Those who are held because of it.
    held: Weak<driver::Held>,
    /// What is said once it is known that something will be put back.
    ahead: Option<String>,
    _counted: Arc<()>,
}

/// Containers that stand still.
pub struct Quiesced {
    held: Option<Arc<driver::Held>>,
}

impl docker::Host for State {}

impl docker::HostVolume for State {
    async fn open(&mut self, _: Resource<Target>, key: String) -> Result<Resource<Volume>> {
        let (value, access) = self.grants.open(&key, Kind::Volume)?;
        let (meant, lent) = (self.reach.meant(&key, value), self.reach.lent());
        let (agreed, counted) = (self.directories(), self.one_more_file()?);
        let (call, named) = (self.call()?.clone(), key.clone());
        // No step is unfinished where a snapshot is taken for its own sake.
        let plain = !self.restores() && call.hold.is_none() && !is_scratch(&call);
        let inner = self.bulk(move || {
            let daemon = driver::Daemon::connect(&lent)?;
            if plain {
                driver::give_up(&daemon, &call.root.to_string_lossy())?;
            }
            let swept = driver::sweep(&daemon)?;
            let warn = |text: String| call.report.log(&call.target.name, "warn", &text);
            if swept.freed > 0 {
                warn(format!("let go of {} containers that a killed snapback had held", swept.freed));
            }
            swept.failed.iter().for_each(|error| warn(error.to_string()));
            driver::Volume::open(daemon, &named, meant, agreed)
        });
        let inner = Arc::new(inner.await?);
        self.reach.is_volume(&key, inner.found().as_ref())?;
        let volume = Volume { inner, access, held: Weak::new(), ahead: None, _counted: counted };
        self.table.push(volume).map_err(stale)
    }

    async fn users(&mut self, volume: Resource<Volume>) -> Result<Vec<String>> {
        let (volume, ..) = self.volume(&volume)?;
        let users = self.bulk(move || volume.users()).await?;
        Ok(users.into_iter().map(|user| user.name).collect())
    }

    async fn quiesce(
        &mut self,
        volume: Resource<Volume>,
        snapshot: String,
        restore: String,
    ) -> Result<Resource<Quiesced>> {
        let (inner, _, call) = self.volume(&volume)?;
        let restores = self.restores();
        let (held, ahead) = self.bulk(move || quiesce(&inner, &call, restores, &snapshot, &restore)).await?;
        let volume = self.table.get_mut(&volume).map_err(stale)?;
        volume.held = held.as_ref().map_or_else(Weak::new, Arc::downgrade);
        volume.ahead = ahead;
        self.table.push(Quiesced { held }).map_err(stale)
    }

    async fn capture(
        &mut self,
        volume: Resource<Volume>,
        previous: Option<Resource<Object>>,
    ) -> Result<Resource<Object>> {
        let ahead = self.table.get_mut(&volume).map_err(stale)?.ahead.take();
        let (volume, _, call) = self.volume(&volume)?;
        let previous =
            previous.map(|object| self.captured(&object, ObjectKind::Volume, "volume")).transpose()?;
        let told = call.clone();
        let key = self.bulk(move || volume.capture(&call, previous.as_ref())).await?;
        // What is as it is to be is not put back.
        if let Some(ahead) = ahead.filter(|_| told.cover.iter().any(|part| part.content != key)) {
            told.report.log(&told.target.name, "warn", &ahead);
        }
        self.table.push(Object::new(key)).map_err(stale)
    }

    async fn restore(
        &mut self,
        volume: Resource<Volume>,
        stored: Resource<Object>,
        current: Resource<Object>,
    ) -> Result<()> {
        let held = self.table.get(&volume).map_err(stale)?.held.upgrade();
        let (volume, access, call) = self.volume(&volume)?;
        to_write(access, volume.setting())?;
        let (stored, current) = (
            self.captured(&stored, ObjectKind::Volume, "volume")?,
            self.captured(&current, ObjectKind::Volume, "volume")?,
        );
        self.bulk(move || volume.restore(&call, &stored, &current, held.as_deref())).await
    }

    fn drop(&mut self, volume: Resource<Volume>) -> wasmtime::Result<()> {
        self.table.delete(volume)?;
        Ok(())
    }
}

impl docker::HostQuiesced for State {
    fn drop(&mut self, quiesced: Resource<Quiesced>) -> wasmtime::Result<()> {
        let held = self.table.delete(quiesced)?.held;
        // What a restore follows, or what others may still be taken back for, stays held.
        match (held, self.call().ok().and_then(|call| call.hold.clone())) {
            (Some(held), Some(hold)) => hold.keep(held),
            (held, _) => drop(held),
        }
        Ok(())
    }
}

/// Those who are held, and what is said once it is known that something will be put back.
type Calm = (Option<Arc<driver::Held>>, Option<String>);

/// Holds those who use `volume`, as `snapshot` or `restore` says.
fn quiesce(
    volume: &driver::Volume,
    call: &Call,
    restores: bool,
    snapshot: &str,
    restore: &str,
) -> Result<Calm> {
    let (calm, firm) = (driver::How::parse(snapshot)?, driver::How::parse(restore)?);
    if let Some(held) = call.hold.as_ref().and_then(|hold| hold.take::<Arc<driver::Held>>()) {
        return Ok((Some(held), None));
    }
    let for_restore = restores || call.hold.is_some();
    let Some(how) = (if for_restore { firm } else { calm }) else { return Ok((None, None)) };
    // What is only looked at, and not kept, is no reason to stand still.
    if is_scratch(call) && !for_restore {
        return Ok((None, None));
    }
    let users = volume.users()?;
    let names = driver::names(users.iter());
    if restores && call.hold.is_none() && !users.is_empty() {
        // They may have written since: it is captured again first, with them held.
        let why = format!("containers run with the volume: {names}");
        return Err(Error::new(ErrorKind::Changed, why));
    }
    let say = |text: String| call.report.log(&call.target.name, "warn", &text);
    let is_ahead = !for_restore && !users.is_empty() && !call.cover.is_empty();
    let ahead = firm
        .filter(|_| is_ahead)
        .map(|firm| format!("{names} will be {} while the volume is put back", firm.done()));
    let project = call.root.to_string_lossy();
    let Some(name) = volume.name() else { return Ok((None, None)) };
    let in_memory = volume.is_in_memory();
    let wanted = driver::Wanted { how, volume: name, project: &project, restores: for_restore, in_memory };
    let tell = || -> driver::Tell {
        let (report, target) = (call.report.clone(), call.target.name.clone());
        Box::new(move |text| report.stays(&target, text))
    };
    let held = driver::Held::take(volume.daemon(), &wanted, tell)?;
    if let Some(held) = &held {
        say(match (held.taken_over, for_restore) {
            (true, _) => format!("{} stayed {} while the volume was half put back", held.names, held.done()),
            (false, true) => format!("{} {} while the volume is put back", held.names, held.done()),
            (false, false) => format!("{} {} while the volume is captured", held.names, held.done()),
        });
    }
    Ok((held.map(Arc::new), ahead))
}

/// Whether what is captured is only looked at.
fn is_scratch(call: &Call) -> bool {
    call.writer.as_ref().is_some_and(|writer| writer.is_scratch())
}

impl State {
    fn volume(&self, volume: &Resource<Volume>) -> Result<(Arc<driver::Volume>, Access, Call)> {
        let volume = self.table.get(volume).map_err(stale)?;
        Ok((volume.inner.clone(), volume.access, self.call()?.clone()))
    }

    /// The directories that the target was granted to write in.
    fn directories(&self) -> Vec<PathBuf> {
        let items = self.reach.items().iter().filter(|i| i.kind == Kind::Dir && i.access == Access::Write);
        let places = items.filter_map(|item| match &item.found {
            Found::Place(place) => Some(place.path.clone()),
            _ => None,
        });
        places.collect()
    }
}

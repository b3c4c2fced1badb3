//! `docker`: volumes, which `crate::docker` captures and restores.

use super::bindings::snapback::plugin::docker;
use super::{Object, Target, stale, to_write};
use crate::component::State;
use crate::docker as driver;
use crate::manifest::{Access, Kind};
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind as ErrorKind, Result};
use snapback_core::object::ObjectKind;
use std::sync::Arc;
use wasmtime::component::Resource;

/// A volume that was granted.
pub struct Volume {
    inner: Arc<driver::Volume>,
    access: Access,
}

/// Containers that stand still.
pub struct Quiesced {
    held: Option<driver::Held>,
}

impl docker::Host for State {}

impl docker::HostVolume for State {
    async fn open(&mut self, _: Resource<Target>, key: String) -> Result<Resource<Volume>> {
        let (value, access) = self.grants.open(&key, Kind::Volume)?;
        let (value, lent) = (value.to_owned(), self.reach.lent());
        let report = self.call()?.report.clone();
        let target = self.call()?.target.name.clone();
        let inner = self.bulk(move || {
            let daemon = driver::Daemon::connect(&lent)?;
            let freed = driver::sweep(&daemon)?;
            if freed > 0 {
                report.log(
                    &target,
                    "warn",
                    &format!("let go of {freed} containers that a killed snapback had held"),
                );
            }
            driver::Volume::open(daemon, &key, &value)
        });
        let volume = Volume { inner: Arc::new(inner.await?), access };
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
        let (volume, _, call) = self.volume(&volume)?;
        let restores = self.restores();
        let held = self.bulk(move || quiesce(&volume, &call, restores, &snapshot, &restore)).await?;
        self.table.push(Quiesced { held }).map_err(stale)
    }

    async fn capture(
        &mut self,
        volume: Resource<Volume>,
        previous: Option<Resource<Object>>,
    ) -> Result<Resource<Object>> {
        let (volume, _, call) = self.volume(&volume)?;
        let previous =
            previous.map(|object| self.captured(&object, ObjectKind::Volume, "volume")).transpose()?;
        let key = self.bulk(move || volume.capture(&call, previous.as_ref())).await?;
        self.table.push(Object::new(key)).map_err(stale)
    }

    async fn restore(
        &mut self,
        volume: Resource<Volume>,
        stored: Resource<Object>,
        current: Resource<Object>,
    ) -> Result<()> {
        let (volume, access, call) = self.volume(&volume)?;
        to_write(access, volume.setting())?;
        let (stored, current) = (
            self.captured(&stored, ObjectKind::Volume, "volume")?,
            self.captured(&current, ObjectKind::Volume, "volume")?,
        );
        self.bulk(move || volume.restore(&call, &stored, &current)).await
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

/// Holds those who use `volume`, as `snapshot` or `restore` says.
fn quiesce(
    volume: &driver::Volume,
    call: &Call,
    restores: bool,
    snapshot: &str,
    restore: &str,
) -> Result<Option<driver::Held>> {
    let (calm, firm) = (driver::How::parse(snapshot)?, driver::How::parse(restore)?);
    if let Some(held) = call.hold.as_ref().and_then(|hold| hold.take::<driver::Held>()) {
        return Ok(Some(held));
    }
    let for_restore = restores || call.hold.is_some();
    let Some(how) = (if for_restore { firm } else { calm }) else { return Ok(None) };
    // What is only looked at, and not kept, is no reason to stand still.
    if call.writer.as_ref().is_some_and(|writer| writer.is_scratch()) && !for_restore {
        return Ok(None);
    }
    let users = volume.users()?;
    if users.is_empty() {
        return Ok(None);
    }
    let names = driver::names(&users);
    if restores && call.hold.is_none() {
        // They may have written since: it is captured again first, with them held.
        let why = format!("containers run with the volume: {names}");
        return Err(Error::new(ErrorKind::Changed, why));
    }
    let say = |text: String| call.report.log(&call.target.name, "warn", &text);
    if !for_restore && let (Some(firm), false) = (firm, call.cover.is_empty()) {
        say(format!("{names} will be {} while the volume is put back", firm.done()));
    }
    let held = driver::Held::take(volume.daemon(), how, volume.name().unwrap_or_default(), &users)?;
    if let Some(held) = &held {
        let why = if for_restore { "put back" } else { "captured" };
        say(format!("{} {} while the volume is {why}", held.names, how.done()));
    }
    Ok(held)
}

impl State {
    fn volume(&self, volume: &Resource<Volume>) -> Result<(Arc<driver::Volume>, Access, Call)> {
        let volume = self.table.get(volume).map_err(stale)?;
        Ok((volume.inner.clone(), volume.access, self.call()?.clone()))
    }
}

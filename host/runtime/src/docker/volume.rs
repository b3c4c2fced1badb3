//! A volume that was granted: captured, and put back.
//!
//! Its description comes from the engine, its files from core, at the place where they
//! are. A volume that is gone is captured as that only when something is to be put back
//! over it; put back, it is made again as it was made before. What would then reach files of this
//! machine that lie elsewhere is made again only where the user agreed to that directory:
//! otherwise whoever wrote the record would have root's rights.

use super::daemon::Daemon;
use super::find;
use super::hold::Held;
use super::place::Place;
use super::users::{self, User};
use bollard::models::{Volume as Found, VolumeCreateRequest};
use bollard::query_parameters::RemoveVolumeOptions;
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::{Key, ObjectKind};
use snapback_core::volume::Volume as Stored;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// A volume that was granted: an engine, and a name.
#[derive(Clone)]
pub struct Volume {
    daemon: Daemon,
    setting: String,
    value: String,
    /// Directories that the user agreed to: a volume may be another name for one of them.
    agreed: Vec<PathBuf>,
    /// The volume that is meant, when it is there.
    found: Option<Found>,
}

impl Volume {
    /// The volume that `setting` names by `value`; directories beside it that were `agreed`
    /// to. What killed processes left on the engine
    /// is removed first, and what they held is let go.
    ///
    /// # Errors
    /// When the engine cannot be asked.
    pub fn open(daemon: Daemon, setting: &str, value: &str, agreed: Vec<PathBuf>) -> Result<Self> {
        let found = find::resolve(&daemon, value)?;
        Ok(Self { daemon, setting: setting.to_owned(), value: value.to_owned(), agreed, found })
    }

    /// The engine.
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// The setting that it was opened with.
    pub fn setting(&self) -> &str {
        &self.setting
    }

    /// What the engine calls it; none when it is not there.
    pub fn name(&self) -> Option<&str> {
        self.found.as_ref().map(|found| found.name.as_str())
    }

    /// The containers that run with it.
    ///
    /// # Errors
    /// When the engine cannot be asked.
    pub fn users(&self) -> Result<Vec<User>> {
        self.found
            .as_ref()
            .map_or(Ok(Vec::new()), |found| users::of(&self.daemon, &found.name, &HashSet::new()))
    }

    /// Stores what it holds, and what it is made with. `previous` is a captured volume that
    /// is known to be in the store.
    ///
    /// # Errors
    /// `NotFound` when it is not there and nothing is to be put back; what kept it from
    /// being read or stored.
    pub fn capture(&self, call: &Call, previous: Option<&Key>) -> Result<Key> {
        let writer = call.writer.as_deref();
        let writer =
            writer.ok_or_else(|| Error::new(Kind::Other, "there is nowhere to store what is captured"))?;
        let volume = match &self.found {
            Some(found) => {
                let previous = match previous {
                    Some(key) => Stored::load(call.source()?, key).ok().map(|previous| previous.root),
                    None => None,
                };
                let root = Place::of(&self.daemon, found, &self.setting)?.capture(call, previous.as_ref())?;
                describe(found, root)
            }
            None => {
                let mut lane = writer.lane();
                let name = self.gone(call)?;
                let absent = Stored::absent(&name, &self.setting, &mut lane)?;
                lane.publish()?;
                absent
            }
        };
        let mut lane = writer.lane();
        let key = lane.put(ObjectKind::Volume, &volume.encode())?;
        lane.publish()?;
        Ok(key)
    }

    /// What the volume was called that is gone and is to be put back.
    fn gone(&self, call: &Call) -> Result<String> {
        let part = call.cover.iter().find(|part| part.content.kind() == ObjectKind::Volume);
        match part {
            Some(part) => Ok(Stored::load(call.source()?, &part.content)?.name),
            None => Err(find::missing(&self.daemon, &self.value)?),
        }
    }

    /// Makes it the stored one, where it is as `current` says; what is not is left alone and
    /// reported. Those who are `held` stay so while that is done by half.
    ///
    /// # Errors
    /// When what is stored is of another volume or damaged, or it cannot be put back.
    pub fn restore(&self, call: &Call, stored: &Key, current: &Key, held: Option<&Held>) -> Result<()> {
        let source = call.source()?;
        let (stored, current) = (Stored::load(source, stored)?, Stored::load(source, current)?);
        self.refuse_other(&stored)?;
        let found = match &self.found {
            Some(found) => found.clone(),
            None if stored.present => self.make(&stored)?,
            None => return Ok(()),
        };
        let place = Place::of(&self.daemon, &found, &self.setting)?;
        held.map_or(Ok(()), Held::begin)?;
        let done = place.restore(call, &stored.root, &current.root);
        // After these nothing was touched.
        let is_whole =
            done.as_ref().map_or_else(|e| matches!(e.kind(), Kind::Busy | Kind::Changed), |_| true);
        if is_whole {
            held.into_iter().for_each(Held::is_whole);
        }
        let left = done?;
        if !stored.present && left == 0 {
            return self.remove(call, &found);
        }
        self.tell_others(call, &stored, &found);
        Ok(())
    }

    /// Refuses what was stored of a volume with another name: a name that means another
    /// one now is no reason to empty that.
    fn refuse_other(&self, stored: &Stored) -> Result<()> {
        match &self.found {
            Some(found) if stored.name != found.name => {
                let why = format!(
                    "`{}` was the volume `{}` then, and is `{}` now",
                    self.value, stored.name, found.name
                );
                Err(Error::new(Kind::Incompatible, why).hint("name the volume in full in snapback.toml"))
            }
            None if stored.present && !find::is_name(&stored.name) => {
                Err(Error::corrupt("the record of a volume has a name that no volume has"))
            }
            _ => Ok(()),
        }
    }

    /// Makes the volume that is gone.
    fn make(&self, stored: &Stored) -> Result<Found> {
        let name = &stored.name;
        let is_agreed = |path: &&str| self.agreed.iter().any(|agreed| agreed == Path::new(path));
        if let Some(path) = elsewhere(&stored.options).filter(|path| !is_agreed(path)) {
            let options: Vec<String> =
                stored.options.iter().map(|(key, value)| format!("--opt {key}={value}")).collect();
            let why =
                format!("the volume `{name}` is gone, and it lay elsewhere on the engine's machine ({path})");
            return Err(Error::new(Kind::Denied, why).hint(format!(
                "make it yourself and try again: docker volume create --driver {} {} {name} \
                 (for snapshots to come, `lies-in = \"{path}\"` in its target agrees to that)",
                stored.driver,
                options.join(" ")
            )));
        }
        // None at all is another thing to an engine than an empty list.
        let map = |pairs: &BTreeMap<String, String>| {
            (!pairs.is_empty()).then(|| pairs.clone().into_iter().collect())
        };
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            driver: Some(stored.driver.clone()).filter(|driver| !driver.is_empty()),
            driver_opts: map(&stored.options),
            labels: map(&stored.labels),
            cluster_volume_spec: None,
        };
        let doing = format!("make the volume `{name}` again");
        self.daemon.ask(&doing, async |client| client.create_volume(request).await)
    }

    /// Removes the volume, in which nothing is left; what keeps it is told.
    fn remove(&self, call: &Call, found: &Found) -> Result<()> {
        let name = &found.name;
        let done = self
            .daemon
            .try_ask(async |client| client.remove_volume(name, None::<RemoveVolumeOptions>).await)?;
        if let Err(answer) = done {
            let error = self.daemon.explain("remove it", &answer);
            let why =
                format!("the volume was not there then; it is empty now, and stays: {}", error.message());
            call.report.refused(&call.target.name, b"", &why);
        }
        Ok(())
    }

    /// Says what a volume that was made anew by somebody else has another way.
    fn tell_others(&self, call: &Call, stored: &Stored, found: &Found) {
        let now = describe(found, stored.root);
        for (what, differs) in [
            ("driver", now.driver != stored.driver),
            ("options", now.options != stored.options),
            ("labels", now.labels != stored.labels),
        ] {
            if stored.present && differs {
                let why = format!("its {what} are not as they were: a volume keeps what it was made with");
                call.report.refused(&call.target.name, b"", &why);
            }
        }
    }
}

/// What the engine says of a volume, with what it holds.
fn describe(found: &Found, root: Key) -> Stored {
    let sorted = |map: &std::collections::HashMap<String, String>| map.clone().into_iter().collect();
    Stored {
        name: found.name.clone(),
        present: true,
        driver: found.driver.clone(),
        options: sorted(&found.options),
        labels: sorted(&found.labels),
        root,
    }
}

/// The path on the engine's machine that a volume with these options is another name for.
fn elsewhere(options: &BTreeMap<String, String>) -> Option<&str> {
    let device = options.get("device").map(String::as_str)?;
    let kind = options.get("type").map_or("", String::as_str);
    let bound = options.get("o").is_some_and(|o| o.split(',').any(|o| matches!(o, "bind" | "rbind")));
    (bound || !matches!(kind, "tmpfs" | "nfs" | "nfs4" | "cifs")).then_some(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_elsewhere_is_told_from_what_is_the_volumes_own() {
        let of = |text: &str| {
            let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
            let options: BTreeMap<String, String> =
                pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            elsewhere(&options).map(str::to_owned)
        };
        for own in [
            "",
            "type=tmpfs device=tmpfs",
            "type=tmpfs device=tmpfs o=size=1m",
            "type=nfs device=:/x o=addr=h",
            "size=1g",
        ] {
            assert_eq!(of(own), None, "{own}");
        }
        for other in [
            "type=none device=/etc o=bind",
            "device=/etc o=ro,rbind",
            "type=ext4 device=/dev/sda1",
            "type=tmpfs device=/etc o=bind",
        ] {
            assert!(of(other).is_some(), "{other}");
        }
    }
}

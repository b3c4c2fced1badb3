//! A volume that was granted: captured, and put back.
//!
//! Its description comes from the engine, its files from core, at the place where they
//! are. A volume that is gone is captured as that only when something is to be put back
//! over it; put back, it is made again as it was made before. What would then reach files of this
//! machine that lie elsewhere is made again only where the user agreed to that directory:
//! otherwise whoever wrote the record would have root's rights.
//!
//! Files that outlive the volume (see `outlives`) are never taken for gone with it: those in a
//! directory that was agreed to are captured without it, others once it is made again.

use super::daemon::Daemon;
use super::find::{self, Meant};
use super::hold::Held;
use super::outlives::{self, outlives};
use super::place::Place;
use super::users::{self, User};
use crate::reach::volume as reach;
use bollard::models::{Volume as Found, VolumeCreateRequest};
use bollard::query_parameters::RemoveVolumeOptions;
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::{Key, ObjectKind};
use snapback_core::store::Writer;
use snapback_core::volume::Volume as Stored;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A volume that was granted: an engine, and a name.
#[derive(Clone)]
pub struct Volume {
    daemon: Daemon,
    setting: String,
    meant: Meant,
    /// Directories that the user agreed to: a volume may be another name for one of them.
    agreed: Vec<PathBuf>,
    /// The volume that is meant, when it is there.
    found: Option<Found>,
}

impl Volume {
    /// The volume that `setting` names, as it is `meant`; directories beside it that were `agreed`
    /// to. What killed processes left on the engine
    /// is removed first, and what they held is let go.
    ///
    /// # Errors
    /// When the engine cannot be asked.
    pub fn open(daemon: Daemon, setting: &str, meant: Meant, agreed: Vec<PathBuf>) -> Result<Self> {
        let found = find::resolve(&daemon, &meant)?;
        Ok(Self { daemon, setting: setting.to_owned(), meant, agreed, found })
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

    /// What is looked at before it is opened: what it is called, and what it was made with.
    pub fn found(&self) -> Option<reach::Volume> {
        self.found.as_ref().map(made_with)
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
                    Some(key) => Stored::load(call.source()?, key).ok(),
                    None => None,
                };
                previous.as_ref().map_or(Ok(()), |previous| self.refuse_moved(previous))?;
                let previous = previous.map(|previous| previous.root);
                let root = Place::of(&self.daemon, found, &self.setting)?.capture(call, previous.as_ref())?;
                describe(found, root)
            }
            None => self.capture_gone(call, writer)?,
        };
        let mut lane = writer.lane();
        let key = lane.put(ObjectKind::Volume, &volume.encode())?;
        lane.publish()?;
        Ok(key)
    }

    /// What there is of the volume that is gone and is to be put back: what lies in the
    /// directory that it was another name for, where that was agreed to; else nothing.
    fn capture_gone(&self, call: &Call, writer: &Writer) -> Result<Stored> {
        let part = call.cover.iter().find(|part| part.content.kind() == ObjectKind::Volume);
        let Some(part) = part else { return Err(find::missing(&self.daemon, &self.meant.value)?) };
        let known = Stored::load(call.source()?, &part.content)?;
        if !find::is_name(&known.name) {
            return Err(no_name());
        }
        if let Some(path) = outlives::directory(&known.options).filter(|path| self.is_agreed(path)) {
            let whole = outlives::is_recursive(&known.options);
            let place = Place::beside(&self.daemon, (&known.name, path, whole), &self.setting)?;
            let root = place.capture(call, Some(&known.root))?;
            return Ok(Stored { present: false, root, ..known });
        }
        let mut lane = writer.lane();
        let absent = Stored::absent(&known.name, &self.setting, &mut lane)?;
        lane.publish()?;
        Ok(absent)
    }

    fn is_agreed(&self, path: &str) -> bool {
        self.agreed.iter().any(|agreed| agreed == Path::new(path))
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
        self.refuse_moved(&stored)?;
        if held.is_none() && stored.root != current.root && self.would_vanish(&stored)? {
            if self.found.is_none() {
                self.make(&stored)?;
            }
            let why = "its files lie in memory, and no container runs with it that would keep them";
            call.report.refused(&call.target.name, b"", why);
            return Ok(());
        }
        let found = match &self.found {
            Some(found) => found.clone(),
            None if stored.present => {
                let made = self.make(&stored)?;
                if outlives(&made) && !knows_files(&current, &made) {
                    let why =
                        format!("the volume `{}` is there again, and nobody knows what it holds", made.name);
                    return Err(Error::new(Kind::Changed, why));
                }
                made
            }
            None => return Ok(()),
        };
        if !stored.present && outlives(&found) && !knows_files(&stored, &found) {
            return self.remove(call, &found);
        }
        let place = Place::of(&self.daemon, &found, &self.setting)?;
        if !stored.present && !outlives(&found) && place.can_only_go_whole(call, &current.root)? {
            return self.remove(call, &found);
        }
        held.map_or(Ok(()), Held::begin)?;
        let done = place.restore(call, &stored.root, &current.root);
        // After these nothing was touched.
        let is_whole =
            done.as_ref().map_or_else(|e| matches!(e.kind(), Kind::Busy | Kind::Changed), |_| true);
        if is_whole {
            held.into_iter().for_each(Held::is_whole);
        }
        let left = done?;
        if !stored.present && call.only.is_empty() && (left == 0 || outlives(&found)) {
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
                    self.meant.value, stored.name, found.name
                );
                Err(Error::new(Kind::Incompatible, why).hint("name the volume in full in snapback.toml"))
            }
            None if stored.present && !find::is_name(&stored.name) => Err(no_name()),
            _ => Ok(()),
        }
    }

    /// Refuses a volume that was not another name for files of the engine's machine when it was
    /// `known`, and is by now: root's rights to these were not what the user agreed to.
    fn refuse_moved(&self, known: &Stored) -> Result<()> {
        let Some(found) = &self.found else { return Ok(()) };
        let options = sorted(&found.options);
        let by_now = outlives::elsewhere(&options).filter(|path| !self.is_agreed(path));
        match by_now {
            Some(path) if known.present && outlives::elsewhere(&known.options) != Some(path) => {
                let name = &found.name;
                let why =
                    format!("the volume `{name}` is another name for {path} by now, and was not before");
                Err(Error::new(Kind::Denied, why).hint(format!(
                    "to go on with what lies there, add `lies-in = \"{path}\"` to its target; else make the \
                     volume as it was"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether the volume lies in memory.
    pub fn is_in_memory(&self) -> bool {
        self.found.as_ref().is_some_and(|found| outlives::is_memory(&sorted(&found.options)))
    }

    /// Whether what is `stored` would be gone as soon as it is put back.
    fn would_vanish(&self, stored: &Stored) -> Result<bool> {
        let in_memory = match &self.found {
            Some(_) => self.is_in_memory(),
            None => outlives::is_memory(&stored.options),
        };
        Ok(stored.present && in_memory && self.users()?.is_empty())
    }

    /// Makes the volume that is gone.
    fn make(&self, stored: &Stored) -> Result<Found> {
        let name = &stored.name;
        if let Some(path) = outlives::elsewhere(&stored.options).filter(|path| !self.is_agreed(path)) {
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

    /// Removes the volume, in which nothing of its own is left; what keeps it is told.
    fn remove(&self, call: &Call, found: &Found) -> Result<()> {
        let name = &found.name;
        let done = self
            .daemon
            .try_ask(async |client| client.remove_volume(name, None::<RemoveVolumeOptions>).await)?;
        if let Err(answer) = done {
            let error = self.daemon.explain("remove it", &answer);
            let now = if outlives(found) { "its files lie elsewhere" } else { "it is empty now" };
            let why = format!("the volume was not there then; {now}, and it stays: {}", error.message());
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

/// What makes the volume that was `found` another one than others.
pub fn made_with(found: &Found) -> reach::Volume {
    let Found { name, driver, options, .. } = found;
    reach::Volume { name: name.clone(), driver: driver.clone(), options: sorted(options) }
}

/// What the engine says of a volume, with what it holds.
fn describe(found: &Found, root: Key) -> Stored {
    Stored {
        name: found.name.clone(),
        present: true,
        driver: found.driver.clone(),
        options: sorted(&found.options),
        labels: sorted(&found.labels),
        root,
    }
}

/// Whether what is recorded of a volume that was not there says what lay in the directory
/// that the volume `found` is another name for.
fn knows_files(recorded: &Stored, found: &Found) -> bool {
    let directory = outlives::directory(&recorded.options);
    directory.is_some()
        && directory.map(str::to_owned) == outlives::directory(&sorted(&found.options)).map(str::to_owned)
}

fn no_name() -> Error {
    Error::corrupt("the record of a volume has a name that no volume has")
}

fn sorted(map: &HashMap<String, String>) -> BTreeMap<String, String> {
    map.clone().into_iter().collect()
}

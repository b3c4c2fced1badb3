//! One component that is tried: with a store of its own, and with everything that it asks
//! for. That the user named its file is the consent.

use crate::artifact::Cache;
use crate::component::{self, ComponentBackend, Cut, Standing, Stranger};
use crate::digest;
use crate::engine::Engine;
use crate::grant::{self, Limits};
use crate::manifest::Manifest;
use crate::reach::Surroundings;
use crate::trust::Trust;
use snapback_core::backend::{Backend, Call, Cancel, Part, Target};
use snapback_core::disk::Disk;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::report::Report;
use snapback_core::store::Store;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A component with a target to try it on.
pub struct Trial {
    backend: ComponentBackend,
    cut: Cut,
    /// What it says about itself, each time it was asked.
    pub(super) said: [String; 2],
    settings: BTreeMap<String, String>,
    root: PathBuf,
    store: Arc<Store>,
    refused: Arc<Refused>,
    /// All that it stored.
    made: Mutex<Vec<Part>>,
}

/// What was refused one by one.
#[derive(Default)]
struct Refused(Mutex<u64>);

impl Report for Refused {
    fn refused(&self, _: &str, _: &[u8], _: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
}

impl Trial {
    /// Makes the component ready. `root` is what its settings are relative to, `store` a
    /// place for a new store; `settings` are those of the target.
    ///
    /// # Errors
    /// When it is no backend that this program can run, or a setting is wrong.
    pub fn new(
        bytes: &[u8],
        root: &Path,
        store: &Path,
        settings: BTreeMap<String, String>,
        around: Surroundings,
    ) -> Result<Self> {
        let digest = digest::of(bytes);
        let engine = Engine::new()?;
        let (component, _) = Cache::new(None).load(&engine, &digest, bytes)?;
        let describe = || component::describe(&engine, "the component", &component);
        let said = [describe()?, describe()?];
        let manifest = Manifest::parse(&said[0])?;
        if let Some(key) = settings.keys().find(|key| manifest.setting(key).is_none()) {
            let known: Vec<&str> = manifest.settings.iter().map(|setting| &*setting.key).collect();
            let error = Error::new(Kind::Invalid, format!("`{}` has no setting `{key}`", manifest.name));
            return Err(error.hint(format!("it has: {}", known.join(", "))));
        }
        // That one is missing is told with each law that it is needed for.
        if let Some((key, error)) = grant::objection(&manifest, &settings)
            && settings.contains_key(&key)
        {
            return Err(error);
        }
        let interfaces = crate::abi::v0_1::asked(&component::imports(&engine, &component));
        let stranger = Stranger { origin: "a file".into(), digest: digest.clone(), interfaces };
        let trust = Trust::default().all_of(digest);
        let standing = Standing { stranger: Some(stranger), trust, around };
        let offered = crate::abi::v0_1::OFFERED;
        let backend =
            ComponentBackend::link(&engine, &component, manifest, offered, Limits::default(), standing)?;
        let cut = Cut::new(&engine);
        Ok(Self {
            backend: backend.cut_by(cut.clone()),
            cut,
            said,
            settings,
            root: root.to_owned(),
            store: Store::create(store, Disk::default().with_sync(false))?,
            refused: Arc::default(),
            made: Mutex::default(),
        })
    }

    /// What the component says about itself.
    pub fn manifest(&self) -> &Manifest {
        self.backend.manifest()
    }

    /// Which setting it cannot be tried without, if that was not given.
    pub(super) fn missing(&self) -> Option<String> {
        let (_, error) = grant::objection(self.manifest(), &self.settings)?;
        let what = error.hint_text().map(|hint| format!(" ({hint})")).unwrap_or_default();
        Some(format!("{error}{what}; `--settings F` gives it"))
    }

    /// Whether it may hold something outside the store.
    pub(super) fn releases(&self) -> bool {
        self.backend.releases()
    }

    /// The settings that carry authority and were given.
    pub(super) fn granted(&self) -> Vec<String> {
        let all = self.manifest().settings.iter();
        let granted = all.filter(|s| s.kind.is_authority() && self.settings.contains_key(&s.key));
        granted.map(|setting| setting.key.clone()).collect()
    }

    fn call(&self, cancel: &Cancel) -> Call {
        let name = self.manifest().name.clone();
        let target = Target { name: name.clone(), backend: name, settings: self.settings.clone() };
        let store = Some(self.store.clone());
        let about = Call::about(self.root.clone(), target, store, self.refused.clone());
        Call { cancel: cancel.clone(), ..about }
    }

    /// Takes a snapshot after `previous`.
    pub(super) fn snapshot(&self, previous: &[Part]) -> Result<Vec<Part>> {
        self.snapshot_of(self.call(&Cancel::default()), previous)
    }

    /// Takes one, as long as `cancel` lets it.
    pub(super) fn snapshot_until(&self, cancel: &Cancel) -> Result<Vec<Part>> {
        self.snapshot_of(self.call(cancel), &[])
    }

    /// Who ends its calls in their middle.
    pub(super) fn cut(&self) -> &Cut {
        &self.cut
    }

    /// Lets go of all that it stored; none when it holds nothing outside the store.
    pub(super) fn discard(&self) -> Option<Result<()>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.releases().then(|| self.backend.discard(&self.call(&Cancel::default()), &made))
    }

    /// Takes one without the setting `key`.
    pub(super) fn snapshot_without(&self, key: &str) -> Result<Vec<Part>> {
        let mut call = self.call(&Cancel::default());
        let mut target = (*call.target).clone();
        target.settings.remove(key);
        call.target = Arc::new(target);
        self.snapshot_of(call, &[])
    }

    fn snapshot_of(&self, mut call: Call, previous: &[Part]) -> Result<Vec<Part>> {
        let writer = Arc::new(self.store.writer()?);
        call.writer = Some(writer.clone());
        let parts = self.backend.snapshot(&call, previous)?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&parts);
        drop(call);
        match Arc::into_inner(writer) {
            Some(writer) => writer.seal()?,
            None => return Err(Error::new(Kind::Other, "the component kept its writer beyond the call")),
        };
        Ok(parts)
    }

    /// Restores `parts` over `current`; how many refusals there were.
    pub(super) fn restore(&self, parts: &[Part], current: &[Part], cancel: &Cancel) -> Result<u64> {
        *self.refused.0.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        self.backend.restore(&self.call(cancel), parts, current)?;
        Ok(*self.refused.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! All backends of this machine, found by name and made ready when they are asked for.
//!
//! Nothing is read, compiled or started before that. What a component says about itself
//! is kept with its digest, so listing needs no engine.

mod listed;

pub use listed::{Info, Status};

use crate::artifact::{Cache, Facts};
use crate::builtin;
use crate::component::{self, ComponentBackend, Standing, Stranger};
use crate::digest;
use crate::discover::{self, Found, Origin};
use crate::docker;
use crate::engine::Engine;
use crate::grant::{self, Limits};
use crate::manifest::{self, Manifest};
use crate::patience::{Patience, Slow};
use crate::reach::Surroundings;
use crate::trust::{Asker, Question, Trust};
use snapback_core::backend::{Adopter, Backend, Backends, Target};
use snapback_core::error::{Error, Kind, Result};
use snapback_core::project::nearest;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use wasmtime::component::Component;

/// Where things are; the environment is the caller's to read.
#[derive(Clone, Default)]
pub struct Setup {
    /// Where compiled components are kept: in the first of these that can be used.
    pub cache: Vec<PathBuf>,
    /// Directories with components, in the order in which they are looked through.
    pub folders: Vec<PathBuf>,
    /// The one of them that belongs to the project, and so may come from a stranger.
    pub shared: Option<PathBuf>,
    /// What the user agreed to.
    pub trust: Trust,
    /// What settings are looked up in.
    pub around: Surroundings,
    /// Told which backend is being compiled, when that takes its time.
    pub slow: Option<Slow>,
}

/// All backends of this machine.
pub struct Registry {
    folders: Vec<PathBuf>,
    shared: Option<PathBuf>,
    trust: Trust,
    around: Surroundings,
    slow: Option<Slow>,
    cache: Cache,
    engine: OnceLock<Result<Engine>>,
    ready: Mutex<HashMap<String, Slot>>,
    /// What backends said about themselves, by name: a large file is not read for each target.
    said: Mutex<HashMap<String, Manifest>>,
}

/// A backend that is being made ready, or is. Each has a lock of its own, so that a large
/// one keeps nobody waiting but those who want it.
type Slot = Arc<Mutex<Option<Arc<ComponentBackend>>>>;

/// What a component says about itself and asks for.
#[derive(Debug, Clone)]
pub struct Examined {
    /// What it says.
    pub manifest: Manifest,
    /// Interfaces, and settings of a kind that carries authority.
    pub wants: Vec<String>,
}

impl Registry {
    /// Touches nothing yet.
    pub fn new(setup: Setup) -> Self {
        Self {
            folders: setup.folders,
            shared: setup.shared,
            trust: setup.trust,
            around: setup.around,
            slow: setup.slow,
            cache: Cache::new(setup.cache),
            engine: OnceLock::new(),
            ready: Mutex::default(),
            said: Mutex::default(),
        }
    }

    /// Why compiled components are not kept, if they are not: each use compiles them again.
    pub fn trouble(&self) -> Option<Error> {
        self.cache.trouble()
    }

    /// What the backend called `name` says about itself. Starts an engine only for a
    /// component that was never used here.
    ///
    /// # Errors
    /// `NotFound` with the nearest name, or what is wrong with it.
    pub fn manifest(&self, name: &str) -> Result<Manifest> {
        let said = || self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(manifest) = said().get(name) {
            return Ok(manifest.clone());
        }
        let manifest = self.read_manifest(name)?;
        said().insert(name.to_owned(), manifest.clone());
        Ok(manifest)
    }

    fn read_manifest(&self, name: &str) -> Result<Manifest> {
        let found = self.find(name)?;
        let known = match &found.origin {
            Origin::Builtin(builtin) => Some(Manifest::parse(builtin.manifest)?),
            Origin::File(_) => self.noted(&digest::of(&found.origin.read()?)).map(|(manifest, _)| manifest),
        };
        match known {
            Some(manifest) => Ok(manifest),
            None => Ok(self.component(name)?.manifest().clone()),
        }
    }

    /// What the user was not asked yet before `target` can be captured or restored in the
    /// project at `root`, which has this `store`; none when nothing is to be asked.
    ///
    /// # Errors
    /// When the backend cannot be used, or the settings make no sense.
    pub fn question(&self, root: &Path, store: Option<String>, target: &Target) -> Result<Option<Question>> {
        let question = self.component(&target.backend)?.question(root, store, target)?;
        Ok((!self.trust.agrees(&question)).then_some(question))
    }

    /// What `target` reaches with the user's consent, a line each; none without.
    ///
    /// # Errors
    /// When the backend cannot be used, or the settings make no sense.
    pub fn granted(
        &self,
        root: &Path,
        store: Option<String>,
        target: &Target,
    ) -> Result<Option<Vec<String>>> {
        // One that was never used has nothing, and is not made ready to say so.
        if !self.is_known(&target.backend) {
            return Ok(None);
        }
        let question = self.component(&target.backend)?.question(root, store, target)?;
        Ok(self.trust.agrees(&question).then(|| question.reaches()))
    }

    /// What the component `bytes` says about itself and asks for, before it is anywhere.
    ///
    /// # Errors
    /// When it is no backend that this program can run.
    pub fn examine(&self, bytes: &[u8]) -> Result<Examined> {
        let (engine, digest) = (self.engine()?, digest::of(bytes));
        let (component, _) = self.cache.load(engine, &digest, bytes)?;
        let text = component::describe(engine, "the component", &component)?;
        let imports = component::imports(engine, &component);
        let manifest = Manifest::parse(&text)?;
        let interfaces = crate::abi::v0_1::asked(&imports);
        ComponentBackend::link(
            engine,
            &component,
            manifest.clone(),
            crate::abi::v0_1::OFFERED,
            Limits::default(),
            Standing { stranger: None, trust: Trust::default(), around: Surroundings::default() },
        )?;
        self.cache.note(&digest, &Facts { manifest: text, imports });
        Ok(Examined { wants: wants(&manifest, interfaces), manifest })
    }

    /// Containers that stay held, since files of a volume are half put back in the project at
    /// `root`; asked of the engine when a target in the care of one of `backends` has a volume.
    ///
    /// # Errors
    /// When the engine cannot be asked.
    pub fn kept_held(&self, root: &Path, backends: &[&str]) -> Result<Vec<docker::Kept>> {
        let has_volume = |name: &&str| {
            let manifest = self.manifest(name);
            manifest.is_ok_and(|manifest| manifest.settings.iter().any(|s| s.kind == manifest::Kind::Volume))
        };
        if !backends.iter().any(has_volume) {
            return Ok(Vec::new());
        }
        let lent = docker::Lent { variables: self.around.variables, ..docker::Lent::default() };
        docker::kept(&docker::Daemon::connect(&lent)?, &root.to_string_lossy())
    }

    /// What the user agreed to.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    pub(crate) fn find(&self, name: &str) -> Result<Found> {
        let all = discover::all(&self.folders);
        let known: Vec<String> = all.iter().filter(|f| f.problem.is_none()).map(|f| f.name.clone()).collect();
        let mut problem = None;
        for found in all {
            match found.problem {
                _ if found.name != name => {}
                None => return Ok(found),
                Some(why) => problem = problem.or(Some((found.origin, why))),
            }
        }
        if let Some((origin, why)) = problem {
            let message = format!("the backend `{name}` cannot be used: {why}");
            return Err(Error::new(Kind::Invalid, message).hint(format!("it is {}", origin.words())));
        }
        let error = Error::new(Kind::NotFound, format!("there is no backend `{name}`"));
        Err(match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`snapback backends` lists them, `snapback backends add FILE` puts one there"),
        })
    }

    /// What a component said when it was first used here: its manifest, and the interfaces
    /// that it asks for.
    fn noted(&self, digest: &str) -> Option<(Manifest, Vec<String>)> {
        let facts = self.cache.facts(digest)?;
        Some((Manifest::parse(&facts.manifest).ok()?, crate::abi::v0_1::asked(&facts.imports)))
    }

    /// A component, made ready to be linked.
    pub(crate) fn compiled(&self, bytes: &[u8]) -> Result<(&Engine, Component)> {
        let engine = self.engine()?;
        Ok((engine, self.cache.load(engine, &digest::of(bytes), bytes)?.0))
    }

    fn engine(&self) -> Result<&Engine> {
        self.engine.get_or_init(Engine::new).as_ref().map_err(Clone::clone)
    }

    /// The backend called `name`, made ready.
    fn component(&self, name: &str) -> Result<Arc<ComponentBackend>> {
        let slot = {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            ready.entry(name.to_owned()).or_default().clone()
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = &*slot {
            return Ok(backend.clone());
        }
        let found = self.find(name)?;
        let backend = self.make(&found).map_err(|e| {
            self.note_broken(&found, &e);
            e.context(format!("backend `{name}`"))
        })?;
        Ok(slot.insert(Arc::new(backend)).clone())
    }

    /// Refuses a component of the project's own folder that was never looked at, before the user
    /// agreed to that.
    fn may_look(&self, found: &Found, digest: &str) -> Result<()> {
        let is_shared = |path: &Path| self.shared.is_some() && path.parent() == self.shared.as_deref();
        match &found.origin {
            Origin::File(path) if is_shared(path) && self.cache.facts(digest).is_none() => {
                self.trust.check(&Question::of_component(Asker {
                    name: found.name.clone(),
                    version: String::new(),
                    origin: found.origin.words(),
                    digest: Some(digest.to_owned()),
                    interfaces: Vec::new(),
                }))
            }
            _ => Ok(()),
        }
    }

    /// Remembers why the file of a component is none that can be used.
    fn note_broken(&self, found: &Found, error: &Error) {
        let is_its_fault = !matches!(error.kind(), Kind::Cancelled | Kind::Denied | Kind::NoSpace);
        if let (true, Origin::File(_), Ok(bytes)) = (is_its_fault, &found.origin, found.origin.read()) {
            self.cache.note_broken(&digest::of(&bytes), error.message());
        }
    }

    fn make(&self, found: &Found) -> Result<ComponentBackend> {
        let bytes = found.origin.read()?;
        let digest = digest::of(&bytes);
        self.may_look(found, &digest)?;
        let engine = self.engine()?;
        let (component, _) = {
            let _patient = Patience::new(&found.name, self.slow.clone());
            self.cache.load(engine, &digest, &bytes)?
        };
        let (manifest, interfaces, stranger) = match &found.origin {
            Origin::Builtin(builtin) => (Manifest::parse(builtin.manifest)?, builtin.interfaces, None),
            Origin::File(_) => {
                let manifest = match self.noted(&digest) {
                    Some((manifest, _)) => manifest,
                    None => {
                        let text = component::describe(engine, &found.name, &component)?;
                        let manifest = Manifest::parse(&text)?;
                        let imports = component::imports(engine, &component);
                        self.cache.note(&digest, &Facts { manifest: text, imports });
                        manifest
                    }
                };
                let interfaces = crate::abi::v0_1::asked(&component::imports(engine, &component));
                let stranger = Stranger { origin: found.origin.words(), digest, interfaces };
                (manifest, crate::abi::v0_1::OFFERED, Some(stranger))
            }
        };
        named(&manifest, &found.name)?;
        let standing = Standing { stranger, trust: self.trust.clone(), around: self.around.clone() };
        ComponentBackend::link(engine, &component, manifest, interfaces, Limits::default(), standing)
    }
}

impl Backends for Registry {
    fn names(&self) -> Vec<String> {
        discover::all(&self.folders).into_iter().filter(|f| f.problem.is_none()).map(|f| f.name).collect()
    }

    fn is_known(&self, name: &str) -> bool {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).contains_key(name)
            || self.find(name).is_ok_and(|found| match &found.origin {
                Origin::Builtin(_) => true,
                Origin::File(_) => {
                    found.origin.read().is_ok_and(|bytes| self.cache.facts(&digest::of(&bytes)).is_some())
                }
            })
    }

    fn settings(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.manifest(name)?.settings.into_iter().map(|setting| setting.key).collect())
    }

    fn unfrozen(&self, name: &str) -> Result<Vec<String>> {
        let settings = self.manifest(name)?.settings.into_iter();
        Ok(settings.filter(|setting| !setting.frozen).map(|setting| setting.key).collect())
    }

    fn adopter(&self) -> Result<Adopter> {
        // Only what came inside the program is handed what nobody asked it to cover.
        for builtin in builtin::ALL {
            let Manifest { name, settings, .. } = Manifest::parse(builtin.manifest)?;
            let setting = settings.into_iter().find_map(|s| Some((s.key, s.found_as?)));
            if let Some((setting, part)) = setting {
                return Ok(Adopter { backend: name, setting, part });
            }
        }
        Err(Error::new(Kind::NotFound, "no backend covers databases that were found"))
    }

    fn objection(&self, target: &Target) -> Result<Option<(String, Error)>> {
        Ok(grant::objection(&self.manifest(&target.backend)?, &target.settings))
    }

    fn claims(&self, target: &Target) -> Result<Vec<String>> {
        let settings = self.manifest(&target.backend)?.settings.into_iter();
        let files = settings.filter(|setting| setting.kind == manifest::Kind::Database);
        Ok(files.filter_map(|s| target.settings.get(&s.key).cloned().or(s.default)).collect())
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Backend>> {
        Ok(self.component(name)?)
    }
}

/// What a component asks for: interfaces, then settings that carry authority.
fn wants(manifest: &Manifest, interfaces: Vec<String>) -> Vec<String> {
    let settings = manifest.settings.iter().filter(|setting| setting.kind.is_authority());
    let said = |interface: String| match interface.as_str() {
        "process" => "process (leaves the sandbox)".to_owned(),
        _ => interface,
    };
    interfaces
        .into_iter()
        .map(said)
        .chain(settings.map(|setting| format!("{} ({})", setting.key, setting.kind)))
        .collect()
}

/// Refuses a component whose own name is not that of its file.
fn named(manifest: &Manifest, name: &str) -> Result<()> {
    if manifest.name == name {
        return Ok(());
    }
    let message = format!("it calls itself `{}`, and its file is called `{name}.wasm`", manifest.name);
    Err(Error::new(Kind::Invalid, message).hint(format!("rename the file to `{}.wasm`", manifest.name)))
}

/// The components that come inside the program, by name.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    builtin::ALL.iter().map(|builtin| builtin.name)
}

#[cfg(test)]
mod tests;

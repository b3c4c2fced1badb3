//! What the settings of a target lead to, at this moment: places, addresses, programs,
//! variables.
//!
//! Grants say what a component asks for and was given; this looks where that leads, so
//! that consent can be asked for it and a component gets exactly that: the file that was
//! looked at, the addresses that a name had. Nothing here opens anything for a component.
//! snapback's own directories are refused, whoever asks.

pub mod address;
pub mod guarded;
pub mod place;
pub mod program;
pub mod volume;

use crate::docker::{Lent, Meant};
use crate::grant::Grants;
use crate::manifest::{Access, Kind};
use address::Resolver;
use guarded::Guarded;
use place::Place;
use program::Program;
use snapback_core::database::of_setting;
use snapback_core::error::{Error, Kind as ErrorKind, Result, show};
use snapback_core::tree::git::GitUser;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the caller lends to look with: the environment is not read here.
#[derive(Clone)]
pub struct Surroundings {
    /// The value of a variable of the environment.
    pub variables: fn(&str) -> Option<String>,
    /// Where programs are looked for, in the form of `PATH`.
    pub programs: OsString,
    /// Which addresses a name has.
    pub names: Resolver,
    /// Which volume a name means.
    pub volumes: volume::Resolver,
    /// Where a program gets an empty directory of its own.
    pub scratch: PathBuf,
    /// snapback's own directories; asked for only when something leads out of the project.
    pub own: Own,
    /// Those of them that no project captures, wherever they lie: what the user agreed to,
    /// the known projects, what can be made again.
    pub private: Vec<PathBuf>,
    /// Where the user's git has its settings.
    pub git: Arc<GitUser>,
    /// This program, to be started again where it is needed in another process.
    pub itself: Option<PathBuf>,
    /// A smaller one of the same build, for containers; asked for only when one is made.
    pub helper: fn() -> Option<PathBuf>,
}

/// Says where snapback's own directories are.
pub type Own = Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync>;

impl Default for Surroundings {
    fn default() -> Self {
        let (programs, scratch) = (OsString::new(), PathBuf::new());
        let (own, git, itself): (Own, _, _) = (Arc::new(Vec::new), Arc::default(), None);
        let (names, private) = (address::system(), Vec::new());
        let volumes = volume::system(|_| None);
        Self {
            variables: |_| None,
            programs,
            names,
            volumes,
            scratch,
            own,
            private,
            git,
            itself,
            helper: || None,
        }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("programs", &self.programs).finish_non_exhaustive()
    }
}

/// What the settings of one target lead to.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    items: Vec<Item>,
    root: PathBuf,
    /// From which volumes came what is to be put back, by setting.
    volumes: BTreeMap<String, String>,
    around: Surroundings,
}

/// What one setting of a kind that carries authority leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The setting.
    pub key: String,
    /// Its kind.
    pub kind: Kind,
    /// For places: what is done there.
    pub access: Access,
    /// Its value, as it was given.
    pub value: String,
    /// What it leads to.
    pub found: Found,
}

/// What a value leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A directory or file.
    Place(Place),
    /// A host and port: the addresses that the name has now.
    Address(Vec<SocketAddr>),
    /// A variable of the environment.
    Variable,
    /// A program.
    Program(Program),
    /// A volume of a container engine: the one that the name means now.
    Volume(volume::Looked),
}

impl Item {
    /// Whether it leads out of the project.
    pub fn is_outside(&self) -> bool {
        match &self.found {
            Found::Place(place) => place.leaves.is_some(),
            _ => true,
        }
    }

    /// What it leads to, for people and for the digest of a consent: nothing that is
    /// another on each machine.
    pub fn words(&self) -> String {
        match &self.found {
            Found::Place(place) => {
                let what = match self.access {
                    Access::Read => "reads",
                    Access::Write => "reads and writes",
                };
                let leads = place.leads_to.iter().map(|path| format!(", which is {}", show(path)));
                let way = place.leaves.iter().map(|way| format!(", outside the project {way}"));
                format!("{what} {}{}", self.value, leads.chain(way).collect::<String>())
            }
            Found::Address(all) => format!("connects to {} ({})", self.value, address::classes(all)),
            Found::Variable => format!("reads the variable {}", self.value),
            Found::Program(program) => format!("runs {}, which leaves the sandbox", program.words()),
            Found::Volume(looked) => self.named() + &looked.words(&self.value),
        }
    }
}

impl Item {
    /// The same without what its value leads to, where that may go and come again: a volume that a
    /// run removed is the one that an undo makes again.
    pub fn named(&self) -> String {
        match &self.found {
            Found::Volume(_) => format!("uses the volume {}", self.value),
            _ => self.words(),
        }
    }
}

impl Reach {
    /// Looks where `grants` lead; relative paths start at `root`. `volumes`: from which came
    /// what is to be put back, by setting.
    ///
    /// # Errors
    /// When a value makes no sense, or cannot be looked at.
    pub fn of(
        grants: &Grants,
        root: &Path,
        volumes: BTreeMap<String, String>,
        around: &Surroundings,
    ) -> Result<Self> {
        let mut reach = Self { items: Vec::new(), root: root.to_owned(), volumes, around: around.clone() };
        for (key, kind, access, value) in grants.authority() {
            let found = match kind {
                Kind::Dir => Found::Place(place::look(root, value)?),
                Kind::File => Found::Place(place::look_above(root, key, value)?),
                Kind::Database => {
                    let path = of_setting(value);
                    Found::Place(place::look_above(root, key, OsStr::from_bytes(&path))?)
                }
                Kind::Address => Found::Address(address::resolve(key, value, &around.names)?),
                Kind::Env => Found::Variable,
                Kind::Program => Found::Program(program::find(key, value, &around.programs)?),
                Kind::Volume => Found::Volume((around.volumes)(&reach.meant(key, value))?),
                Kind::Text | Kind::Number | Kind::Bool | Kind::Duration | Kind::Size => continue,
            };
            reach.items.push(Item { key: key.to_owned(), kind, access, value: value.to_owned(), found });
        }
        let places = || {
            reach.items.iter().filter_map(|item| match &item.found {
                Found::Place(place) => Some((&item.key, place)),
                _ => None,
            })
        };
        // A project may have them inside: their being there is no reason to reach them.
        if places().next().is_some() {
            let private = reach.private();
            places().try_for_each(|(key, place)| private.refuse_inside(key, place))?;
        }
        if places().any(|(_, place)| place.leaves.is_some()) {
            let (guarded, outside) = (reach.guarded(), places().filter(|(_, place)| place.leaves.is_some()));
            outside.into_iter().try_for_each(|(key, place)| guarded.refuse_inside(key, place))?;
        }
        Ok(reach)
    }

    /// What the `value` of the setting `key` says of a volume.
    pub fn meant(&self, key: &str, value: &str) -> Meant {
        let was = self.volumes.get(key).cloned();
        Meant { value: value.to_owned(), root: self.root.clone(), was }
    }

    /// What an engine of containers is talked to with.
    pub fn lent(&self) -> Lent {
        let own = self.private().ids().collect();
        let Surroundings { variables, helper, .. } = self.around;
        Lent { variables, program: self.around.itself.clone(), helper, own }
    }

    /// Those of snapback's own directories that no project captures, as they are now.
    pub fn private(&self) -> Guarded {
        Guarded::of(&self.around.private)
    }

    /// All of it, in the order of the manifest's keys.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// snapback's own directories, as they are now.
    pub fn guarded(&self) -> Guarded {
        Guarded::new(&self.root, &(self.around.own)())
    }

    /// Where the user's git has its settings.
    pub fn git(&self) -> &Arc<GitUser> {
        &self.around.git
    }

    /// The place that the setting `key` leads to.
    ///
    /// # Errors
    /// `Denied` when it leads to none.
    pub fn place(&self, key: &str) -> Result<(&Place, Access)> {
        let found = self.items.iter().find(|item| item.key == key);
        match found.map(|item| (&item.found, item.access)) {
            Some((Found::Place(place), access)) => Ok((place, access)),
            _ => Err(Error::new(ErrorKind::Denied, format!("the setting `{key}` leads to no place"))),
        }
    }

    /// Refuses a volume that is not the one that the setting `key` leads to.
    ///
    /// # Errors
    /// `Changed`.
    pub fn is_volume(&self, key: &str, opened: Option<&volume::Volume>) -> Result<()> {
        match self.items.iter().find(|item| item.key == key).map(|item| &item.found) {
            Some(Found::Volume(looked)) if looked.volume.as_ref() == opened => Ok(()),
            _ => Err(place::changed(key)),
        }
    }

    /// The program that the setting `key` leads to, and where it gets its directory.
    ///
    /// # Errors
    /// `Denied` when it leads to none.
    pub fn program(&self, key: &str) -> Result<(&Program, &Path)> {
        match self.items.iter().find(|item| item.key == key).map(|item| &item.found) {
            Some(Found::Program(program)) => Ok((program, &self.around.scratch)),
            _ => Err(Error::new(ErrorKind::Denied, format!("the setting `{key}` leads to no program"))),
        }
    }

    /// All addresses that may be connected to, with the name that each was given by.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, &[SocketAddr])> {
        self.items.iter().filter_map(|item| match &item.found {
            Found::Address(all) => Some((address::host(&item.value)?, &all[..])),
            _ => None,
        })
    }
}

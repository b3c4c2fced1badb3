//! What is asked of the user before a component may reach something.

use crate::digest::hex;
use crate::grant::Grants;
use crate::reach::{Found, Item, Reach};
use sha2::{Digest, Sha256};

/// The component that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The backend's name.
    pub name: String,
    /// Its version, as it says.
    pub version: String,
    /// Where it comes from, in words.
    pub origin: String,
    /// SHA-256 of the component, in hexadecimal; none for one that came inside the
    /// program, which is trusted like the program.
    pub digest: Option<String>,
    /// The interfaces that it asks for.
    pub interfaces: Vec<String>,
}

/// What one target would reach, and by which component.
#[derive(Debug, Clone)]
pub struct Question {
    /// The target's name.
    pub target: String,
    /// The component.
    pub asker: Asker,
    /// The project's store, whose identity the project has.
    store: Option<String>,
    settings: Vec<(String, String)>,
    items: Vec<Item>,
}

impl Question {
    /// What the target called `target` of the project with this `store` would reach.
    pub fn new(target: &str, asker: Asker, store: Option<String>, grants: &Grants, reach: &Reach) -> Self {
        let settings = grants.values().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self { target: target.to_owned(), asker, store, settings, items: reach.items().to_vec() }
    }

    /// The same question for the project with this store.
    pub(crate) fn of_store(mut self, store: Option<String>) -> Self {
        self.store = store;
        self
    }

    /// The store of the project that it is asked in.
    pub fn store(&self) -> Option<&str> {
        self.store.as_deref()
    }

    /// Whether nothing is asked for: a component of the program's own that stays inside
    /// the project.
    pub fn is_nothing(&self) -> bool {
        self.asker.digest.is_none() && !self.items.iter().any(Item::is_outside)
    }

    pub(super) fn is_of(&self, component: &str) -> bool {
        self.asker.digest.as_deref() == Some(component)
    }

    /// What it would reach, a line each: settings first, then the interfaces.
    pub fn reaches(&self) -> Vec<String> {
        let own = self.asker.digest.is_none();
        let items = self.items.iter().filter(|item| !own || item.is_outside());
        let mut lines: Vec<String> = items.map(|item| format!("{}: {}", item.key, item.words())).collect();
        if let Some(digest) = &self.asker.digest {
            let Asker { name, version, origin, interfaces, .. } = &self.asker;
            let asks = match interfaces.is_empty() {
                true => String::new(),
                false => format!(", asking for {}", interfaces.join(", ")),
            };
            lines
                .insert(0, format!("the component {name} {version} from {origin} ({}{asks})", &digest[..12]));
        }
        lines
    }

    /// What this question is, on every machine: 32 hexadecimal digits. The same for each
    /// project and place that it is asked in.
    pub fn digest(&self) -> String {
        self.hashed("question")
    }

    /// What a consent to it is kept by: that digest, the project, and what the settings
    /// lead to on this machine. None without a store, which is a project's identity.
    pub(super) fn key(&self) -> Option<String> {
        let mut hash = Hash::new("consent");
        hash.put(&self.digest());
        hash.put(self.store.as_ref()?);
        for item in self.items.iter().filter(|item| item.is_outside()) {
            hash.put(&item.key);
            if let Found::Place(place) = &item.found {
                let (device, inode) = place.id.unwrap_or_default();
                hash.put(&format!("{device}:{inode}"));
            }
        }
        Some(hash.finish())
    }

    fn hashed(&self, what: &str) -> String {
        let mut hash = Hash::new(what);
        hash.put(&self.asker.name);
        hash.put(self.asker.digest.as_deref().unwrap_or("built-in"));
        for (key, value) in &self.settings {
            hash.put(key);
            hash.put(value);
        }
        hash.put("reaches");
        for item in &self.items {
            hash.put(&item.key);
            hash.put(item.kind.word());
            hash.put(&item.words());
            if let Found::Program(program) = &item.found {
                hash.put(&program.digest);
            }
        }
        hash.finish()
    }
}

/// Texts under one hash, so that no two rows of texts are the same bytes.
struct Hash(Sha256);

impl Hash {
    fn new(what: &str) -> Self {
        let mut hash = Self(Sha256::new());
        hash.put("snapback 1");
        hash.put(what);
        hash
    }

    fn put(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
    }

    /// Half of the hash as text: as long as anybody can copy, and more than can be met by chance.
    fn finish(self) -> String {
        hex(&self.0.finalize()[..16])
    }
}

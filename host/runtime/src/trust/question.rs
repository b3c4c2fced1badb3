//! What is asked of the user before a component may reach something.

use crate::digest::hex;
use crate::grant::Grants;
use crate::reach::{Found, Item, Reach};
use sha2::{Digest, Sha256};
use snapback_core::error::show_bytes;
use snapback_core::project::consents::Consents;

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
    /// Those of them that open nothing and are not as they are anyway.
    chosen: Vec<(String, String)>,
    items: Vec<Item>,
    /// It is about the component alone, which was never looked at.
    looks: bool,
}

impl Question {
    /// Whether a component may be looked at that came with the project: compiled, and asked what it
    /// is. Before that nobody knows what it would reach, so it reaches nothing.
    pub fn of_component(asker: Asker) -> Self {
        let (settings, chosen, items) = (Vec::new(), Vec::new(), Vec::new());
        Self { target: asker.name.clone(), asker, store: None, settings, chosen, items, looks: true }
    }

    /// Whether it is only about looking at a component.
    pub fn only_looks(&self) -> bool {
        self.looks
    }

    /// What the target called `target` of the project with this `store` would reach.
    pub fn new(target: &str, asker: Asker, store: Option<String>, grants: &Grants, reach: &Reach) -> Self {
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let (settings, chosen) = (grants.values().map(owned).collect(), grants.chosen().map(owned).collect());
        Self {
            target: target.to_owned(),
            asker,
            store,
            settings,
            chosen,
            items: reach.items().to_vec(),
            looks: false,
        }
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
        self.asker.digest.is_none() && !self.is_outside()
    }

    pub(super) fn is_of(&self, component: &str) -> bool {
        self.asker.digest.as_deref() == Some(component)
    }

    /// Whether something of it lies outside the project.
    pub fn is_outside(&self) -> bool {
        self.items.iter().any(Item::is_outside)
    }

    /// What it would reach, a line each: the component, what its settings lead to, and what else
    /// was chosen for it, since with another choice it is another question.
    pub fn reaches(&self) -> Vec<String> {
        let own = self.asker.digest.is_none();
        let items = self.items.iter().filter(|item| !own || item.is_outside());
        let mut lines: Vec<String> = items.map(|item| format!("{}: {}", item.key, item.words())).collect();
        let each = |value: &str| value.split('\n').map(|one| show_bytes(one.as_bytes())).collect::<Vec<_>>();
        lines.extend(self.chosen.iter().map(|(key, value)| format!("{key}: is {}", each(value).join(", "))));
        if let (Some(digest), true) = (&self.asker.digest, self.looks) {
            let Asker { name, origin, .. } = &self.asker;
            lines.push(format!("the component {name} from {origin} ({}), to be looked at", &digest[..12]));
        } else if let Some(digest) = &self.asker.digest {
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
        self.hashed("question", Item::words)
    }

    /// What a consent to it is kept by: what is asked, the project, and what the settings
    /// lead to on this machine. None without a store, which is a project's identity.
    pub(super) fn key(&self) -> Option<Key> {
        let mut hash = Hash::new("consent");
        hash.put(&self.hashed("question", Item::named));
        // What a component is does not depend on who has it.
        if !self.looks {
            hash.put(self.store.as_ref()?);
        }
        let (mut volumes, mut is_gone) = (None, false);
        for item in self.items.iter().filter(|item| item.is_outside()) {
            hash.put(&item.key);
            match &item.found {
                Found::Place(place) => {
                    let (device, inode) = place.id.unwrap_or_default();
                    hash.put(&format!("{device}:{inode}"));
                }
                Found::Volume(looked) => {
                    let volumes = volumes.get_or_insert_with(|| Hash::new("volumes"));
                    volumes.put(&looked.engine);
                    volumes.put(&item.words());
                    is_gone |= looked.volume.is_none();
                }
                _ => {}
            }
        }
        Some(Key { base: hash.finish(), volumes: volumes.map(|hash| hash.finish()), is_gone })
    }

    fn hashed(&self, what: &str, words: impl Fn(&Item) -> String) -> String {
        let mut hash = Hash::new(if self.looks { "look" } else { what });
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
            hash.put(&words(item));
            if let Found::Program(program) = &item.found {
                hash.put(&program.digest);
            }
        }
        hash.finish()
    }
}

/// What a consent is kept by.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// All but the volumes.
    base: String,
    /// Which volumes are meant, where there are any.
    volumes: Option<String>,
    /// Whether one of them is not there. Who agreed to it agreed to its being made again: that is
    /// nothing that anybody else could have put in its place.
    is_gone: bool,
}

impl Key {
    /// The name of the consent.
    pub(super) fn name(&self) -> String {
        self.base.clone() + self.volumes.as_deref().unwrap_or_default()
    }

    /// Whether it is among `kept`.
    pub(super) fn is_in(&self, kept: &Consents) -> bool {
        kept.has(&self.name()) || self.is_gone && kept.has_one_like(&self.base)
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

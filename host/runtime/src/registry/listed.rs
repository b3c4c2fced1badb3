//! What is known about backends without starting them: what each said when it was first used, and
//! of one that never was, what can be seen from outside.
//!
//! Invariant: listing runs nothing, compiles nothing and asks nobody; what is broken is listed with
//! the reason and disturbs nobody else.

use super::{Registry, named, wants};
use crate::builtin::Builtin;
use crate::digest;
use crate::discover::{self, Found, Origin};
use crate::inspect;
use crate::manifest::{Manifest, shorten};

/// What is known about a backend without starting it.
#[derive(Debug, Clone)]
pub struct Info {
    /// Its name.
    pub name: String,
    /// Its version, once it was read.
    pub version: Option<String>,
    /// What it covers, once it was read.
    pub summary: Option<String>,
    /// "built-in", or its file.
    pub origin: String,
    /// SHA-256 of the component, in hexadecimal; none when it cannot be read.
    pub digest: Option<String>,
    /// What it asks for: interfaces, and settings of a kind that carries authority.
    pub wants: Vec<String>,
    /// Whether it can be used.
    pub status: Status,
}

/// Whether a backend can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Yes.
    Ready,
    /// It was never used here: what it says about itself is not known yet.
    New,
    /// No, for this reason.
    Broken(String),
}

impl Status {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Self::Ready => "ready".into(),
            Self::New => "not used yet".into(),
            Self::Broken(why) => format!("broken: {why}"),
        }
    }
}

impl Registry {
    /// All backends, those that cannot be used among them, in the order in which they are
    /// looked for.
    pub fn list(&self) -> Vec<Info> {
        discover::all(&self.folders).into_iter().map(|found| self.info(found)).collect()
    }

    fn info(&self, found: Found) -> Info {
        let Found { name, origin, problem } = found;
        let mut info = Info {
            name: shorten(&name),
            version: None,
            summary: None,
            origin: origin.words(),
            digest: None,
            wants: Vec::new(),
            status: Status::New,
        };
        // What has a problem is not read: it may be anything.
        let read = match problem {
            Some(why) => Err(why),
            None => origin.read().map_err(|e| e.message().to_owned()),
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(why) => {
                info.status = Status::Broken(why);
                return info;
            }
        };
        let digest = digest::of(&bytes);
        let known = match &origin {
            Origin::Builtin(Builtin { manifest, interfaces, .. }) => {
                let manifest = Manifest::parse(manifest).ok();
                manifest.map(|manifest| (manifest, interfaces.iter().map(|&i| i.to_owned()).collect()))
            }
            Origin::File(_) => self.noted(&digest),
        };
        if known.is_none() {
            // Never used here, or in vain.
            let seen = inspect::asked(&bytes).map_err(|error| error.message().to_owned());
            match seen.and_then(|asked| self.cache.broken(&digest).map_or(Ok(asked), Err)) {
                Ok(asked) => info.wants = asked,
                Err(why) => info.status = Status::Broken(why),
            }
        }
        if let Some((manifest, interfaces)) = known {
            info.wants = wants(&manifest, interfaces);
            info.status = match named(&manifest, &name) {
                Ok(()) => Status::Ready,
                Err(e) => Status::Broken(e.message().to_owned()),
            };
            info.version = Some(manifest.version);
            info.summary = Some(manifest.summary);
        }
        info.digest = Some(digest);
        info
    }
}

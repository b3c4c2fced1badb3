//! Volumes: what a name means to the engine at this moment.
//!
//! A name may be the one that compose has for a volume, and a volume may be another name for a
//! directory of the engine's machine, or lie with a driver that knows where. So what is agreed
//! to is the volume, and what it is made with; not when it was made, for an undo makes one again
//! that was removed.

use crate::docker;
use snapback_core::error::{Result, show};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Says which volume is meant; none when there is none, or several.
pub type Resolver = Arc<dyn Fn(&docker::Meant) -> Result<Looked> + Send + Sync>;

/// What was found of a volume, and at which engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// Where the engine listens.
    pub engine: String,
    /// The volume; none when the name means none.
    pub volume: Option<Volume>,
}

/// A volume, by what makes it another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// What the engine calls it.
    pub name: String,
    /// What it lies with.
    pub driver: String,
    /// What that was told.
    pub options: BTreeMap<String, String>,
}

impl Looked {
    /// What it is where its name, `value`, does not say that already, for people and for the digest
    /// of a consent: the same on every machine.
    pub fn words(&self, value: &str) -> String {
        let Some(Volume { name, driver, options }) = &self.volume else { return String::new() };
        let mut words = String::new();
        if name != value {
            words.push_str(&format!(", which is {}", show(Path::new(name))));
        }
        if driver != docker::LOCAL {
            words.push_str(&format!(", with the driver {}", show(Path::new(driver))));
        }
        match (docker::elsewhere(options), options.is_empty()) {
            (_, true) => {}
            (Some(path), _) => words.push_str(&format!(
                ", which is another name for {} on the engine's machine ({})",
                show(Path::new(path)),
                given(options)
            )),
            (None, _) => words.push_str(&format!(", made with {}", given(options))),
        }
        words
    }
}

/// Options on one line, without what a terminal would act on.
fn given(options: &BTreeMap<String, String>) -> String {
    let each: Vec<String> = options.iter().map(|(key, value)| format!("{key}={value}")).collect();
    show(Path::new(&each.join(", ")))
}

/// The engine that the user's environment names by `variables`, asked.
pub fn system(variables: fn(&str) -> Option<String>) -> Resolver {
    Arc::new(move |meant| {
        let daemon = docker::Daemon::connect(&docker::Lent { variables, ..docker::Lent::default() })?;
        let found = docker::resolve(&daemon, meant)?;
        Ok(Looked { engine: daemon.endpoint().text(), volume: found.map(|found| docker::made_with(&found)) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_does_not_say_is_said() {
        let of = |name: &str, driver: &str, options: &[(&str, &str)]| {
            let options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let volume = Volume { name: name.into(), driver: driver.into(), options };
            Looked { engine: "unix:///e".into(), volume: Some(volume) }.words("data")
        };
        assert_eq!(Looked::default().words("data"), "");
        assert_eq!(of("data", "local", &[]), "");
        assert_eq!(of("shop_data", "local", &[]), ", which is shop_data");
        assert_eq!(of("data", "far", &[("a", "b")]), ", with the driver far, made with a=b");
        let bind = [("type", "none"), ("o", "bind"), ("device", "/victim")];
        assert_eq!(
            of("data", "local", &bind),
            ", which is another name for /victim on the engine's machine (device=/victim, o=bind, type=none)"
        );
        assert!(!of("data", "local", &[("a", "\u{1b}[2J")]).contains('\u{1b}'));
    }
}

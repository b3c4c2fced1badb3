//! Restores of what the real capture stored, with its stat cache as the witness.

use super::world::World;
use crate::backend::{Call, Part, Target};
use crate::error::Result;
use crate::object::Key;
use crate::report::Report;
use crate::tree::apply::Outcome;
use crate::tree::plan::Plan;
use crate::tree::{Directory, Options};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Remembers what was refused.
#[derive(Default)]
pub struct Told(pub Mutex<Vec<(String, String)>>);

impl Report for Told {
    fn refused(&self, _: &str, subject: &[u8], reason: &str) {
        let subject = String::from_utf8_lossy(subject).into_owned();
        self.0.lock().unwrap().push((subject, reason.to_owned()));
    }
}

/// Options of a directory, in text.
pub type Pairs<'a> = &'a [(&'a str, &'a str)];

impl World {
    fn directory(&self, options: Pairs<'_>) -> Directory {
        Directory::open(&self.base, "path", "tree", &Options::parse(options).unwrap()).unwrap()
    }

    fn call(&self, only: &[&str], report: Arc<dyn Report>) -> Call {
        let target = Target { name: "tree".into(), backend: "tree".into(), settings: BTreeMap::new() };
        Call {
            only: Arc::new(only.iter().map(|path| path.as_bytes().to_vec()).collect()),
            partial: self.options.partial,
            ..Call::about(self.base.clone(), target, Some(self.store.clone()), report)
        }
    }

    /// Captures the project; whatever `cover` has is captured as well.
    pub fn capture(&self, options: Pairs<'_>, cover: Option<Key>) -> Key {
        let writer = Arc::new(self.store.writer().unwrap());
        let mut call = self.call(&[], Arc::new(crate::report::Silent));
        call.writer = Some(writer.clone());
        call.cover =
            Arc::new(cover.into_iter().map(|content| Part { name: "tree".into(), content }).collect());
        let key = crate::tree::capture(&self.directory(options), &call, None).unwrap();
        drop(call);
        writer.seal().unwrap();
        key
    }

    /// Restores it; also what was reported.
    pub fn put_back(
        &self,
        options: Pairs<'_>,
        stored: &Key,
        current: &Key,
        only: &[&str],
    ) -> Result<(Outcome, Vec<(String, String)>)> {
        let told = Arc::new(Told::default());
        let call = self.call(only, told.clone());
        let outcome = crate::tree::restore(&self.directory(options), &call, stored, current)?;
        let told = std::mem::take(&mut *told.0.lock().unwrap());
        Ok((outcome, told))
    }
}

#[test]
fn a_plan_that_was_made_is_carried_out_and_only_once() {
    let world = World::new("planned");
    world.write("f", "one");
    let stored = world.capture(&[], None);
    world.write("f", "three");
    let current = world.capture(&[], None);
    let (directory, call) = (world.directory(&[]), world.call(&[], Arc::new(crate::report::Silent)));
    // By these there is nothing to do.
    call.plans.keep(&stored, &current, Plan::default());
    call.plans.keep(&stored, &stored, Plan::default());
    for content in ["three", "one"] {
        crate::tree::restore(&directory, &call, &stored, &current).unwrap();
        assert_eq!(std::fs::read_to_string(world.path("f")).unwrap(), content);
    }
}

//! What is known to be impossible before anything is touched.
//!
//! The host looks at what it captured itself; other backends say it when they are called.

use super::plan::is_within;
use super::scope::{base, inside, is_volume};
use super::{NotRestored, Project};
use crate::backend::Call;
use crate::error::{Error, Kind, Result, show};
use crate::history::snapshot::Captured;
use crate::object::ObjectKind;
use crate::store::Writer;
use crate::text::Bytes;
use crate::tree::apply::{Refusal, preflight};
use crate::tree::root::Root;
use crate::tree::{Directory, Plans};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// What was found out about a restore.
#[derive(Default)]
pub(super) struct Preflight {
    /// What cannot be done: without `partial` nothing is begun.
    pub blocked: Vec<NotRestored>,
    /// What will be left as it is, with all in it.
    pub left: Vec<NotRestored>,
    /// What will not come back, or only in part.
    pub notes: Vec<NotRestored>,
    /// How directories are put back.
    pub plans: Plans,
    /// Paths of the project that a target was asked for and did not know, and those of
    /// which another one knew something.
    unknown: HashSet<Bytes>,
    known: HashSet<Bytes>,
}

impl Preflight {
    /// Refuses a path that none of those knew which were asked for it: it is misspelt.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn all_known(&self, paths: &[Bytes]) -> Result<()> {
        let unknown = |path: &&Bytes| self.unknown.contains(path) && !self.known.contains(path);
        match paths.iter().find(unknown) {
            None => Ok(()),
            Some(path) => {
                let why = format!("neither the snapshot nor the present has {path}");
                Err(Error::new(Kind::NotFound, why)
                    .hint("paths are those of the project, as `snapback diff` shows them"))
            }
        }
    }
}

impl Project {
    /// Looks at what putting `stored` back over `current` meets; `writer` holds what
    /// was captured just now.
    pub(super) fn preflight(
        &self,
        stored: &Captured,
        current: &Captured,
        only: &[Bytes],
        writer: &Arc<Writer>,
        found: &mut Preflight,
    ) -> Result<()> {
        let mut call = Call::new(&self.env, &stored.target, Some(writer.store()));
        call.writer = Some(writer.clone());
        let inside = inside(&self.env.root, stored, only).unwrap_or_default();
        call.only = Arc::new(inside.iter().map(|path| path.0.clone()).collect());
        // What a volume has at a path, nobody looks at before it is opened.
        if let Some(base) = base(&self.env.root, stored).filter(|_| is_volume(stored)) {
            let base = [Bytes(base)];
            found.known.extend(only.iter().filter(|path| is_within(&path.0, &base)).cloned());
        }
        for part in stored.parts.iter().filter(|part| part.content.kind() == ObjectKind::Root) {
            let Some(now) = current.parts.iter().find(|now| now.name == part.name) else { continue };
            let root = Root::decode(&writer.read(&part.content)?)?;
            let present = Root::decode(&writer.read(&now.content)?)?;
            // The backend opened the one that is there now, by what the user allows; a record
            // that was tampered with must not lead this look anywhere else.
            if (&root.setting, &root.value) != (&present.setting, &present.value) {
                let (target, at) = (&stored.target.name, show(Path::new(&root.value)));
                let why = format!("the record of `{target}` is damaged: it names another directory, {at}");
                return Err(Error::corrupt(why));
            }
            if self.is_gone(&root.value)? {
                self.can_make(&root.value, stored, found);
                continue;
            }
            let directory = Directory::reopen(&self.env.root, &root)?;
            let plan = preflight(&directory, &call, &part.content, &now.content, false)?;
            if let Some(error) = &plan.no_space {
                return Err(error.clone());
            }
            let of = |refusal: &Refusal| NotRestored {
                target: stored.target.name.clone(),
                reason: match &refusal.hint {
                    Some(hint) => format!("{} (mend it: {hint})", refusal.reason),
                    None => refusal.reason.clone(),
                },
                path: Bytes(refusal.path.clone()),
            };
            found.blocked.extend(plan.refusals.iter().map(of));
            found.left.extend(plan.left.iter().map(of));
            found.notes.extend(plan.notes.iter().map(of));
            let base = base(&self.env.root, stored).unwrap_or_default();
            found
                .known
                .extend(only.iter().filter(|path| is_within(&base, std::slice::from_ref(path))).cloned());
            for path in &inside {
                let of = [&base[..], &path.0].into_iter().filter(|part| !part.is_empty());
                let of = Bytes(of.collect::<Vec<_>>().join(&b'/'));
                let list = if plan.unknown.contains(&path.0) { &mut found.unknown } else { &mut found.known };
                list.insert(of);
            }
            found.plans.keep(&part.content, &now.content, plan);
        }
        Ok(())
    }
}

//! What is known to be impossible before anything is touched.
//!
//! The host looks at what it captured itself; other backends say it when they are called.

use super::scope::inside;
use super::{NotRestored, Project};
use crate::backend::Call;
use crate::error::{Error, Result, show};
use crate::history::Id;
use crate::history::snapshot::Captured;
use crate::object::ObjectKind;
use crate::store::Writer;
use crate::text::Bytes;
use crate::tree::apply::{Refusal, preflight};
use crate::tree::root::Root;
use crate::tree::{Directory, Plans};
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
}

impl Project {
    /// Looks at what putting `stored`, which the snapshot `id` has, back over `current` meets;
    /// `writer` holds what was captured just now.
    pub(super) fn preflight(
        &self,
        (id, stored): (&Id, &Captured),
        current: &Captured,
        only: &[Bytes],
        writer: &Arc<Writer>,
        found: &mut Preflight,
    ) -> Result<()> {
        self.may_write(stored, current, &**writer, found)?;
        let mut call = Call::new(&self.env, &stored.target, Some(writer.store()));
        call.writer = Some(writer.clone());
        call.carried = Arc::new(self.carried_since(id, stored));
        let inside = inside(&self.env.root, stored, only).unwrap_or_default();
        call.only = Arc::new(inside.iter().map(|path| path.0.clone()).collect());
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
            // What stands there is looked at with the target that has it.
            if self.displaced(&root.value, stored.through.as_ref())?.is_some() {
                continue;
            }
            let _lent = self.lend(&root.value);
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
                in_part: refusal.in_part,
            };
            found.blocked.extend(plan.refusals.iter().map(of));
            found.left.extend(plan.left.iter().map(of));
            found.notes.extend(plan.notes.iter().map(of));
            found.plans.keep(&part.content, &now.content, plan);
        }
        Ok(())
    }
}

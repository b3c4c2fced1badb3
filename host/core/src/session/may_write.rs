//! Whether a database that is to be put back may be written: known before anything is touched.
//!
//! One that is there, and comes back, is written in place; what is no database is moved. Only looked
//! at here is what lies in the project, and is reached without a link.

use super::preflight::Preflight;
use super::{NotRestored, Project};
use crate::database::{Database, Deed, Found, SIDES, barred, is_side};
use crate::disk::Dir;
use crate::error::Result;
use crate::history::snapshot::Captured;
use crate::object::ObjectKind;
use crate::store::Source;
use crate::text::Bytes;
use crate::tree::scan::stat_in;

impl Project {
    /// Looks whether the database of `stored`, which is as in `current` now, may be put back.
    pub(super) fn may_write(
        &self,
        stored: &Captured,
        current: &Captured,
        source: &dyn Source,
        found: &mut Preflight,
    ) -> Result<()> {
        let load = |captured: &Captured| -> Result<Option<Found>> {
            let part = captured.parts.iter().find(|part| part.content.kind() == ObjectKind::Database);
            let database = part.map(|part| Database::load(source, &part.content)).transpose()?;
            Ok(database.map(|database| database.found))
        };
        let is_image = |found: &Option<Found>| matches!(found, Some(Found::Image { .. }));
        let (then, now) = (load(stored)?, load(current)?);
        if then.is_none() && now.is_none() || then.as_ref().zip(now.as_ref()).is_some_and(is_same) {
            return Ok(());
        }
        for claim in self.claims(&stored.target)? {
            let is_moved = !is_image(&then) && !is_image(&now);
            if let Some(reason) = self.why_not_written(&claim.path, is_moved)? {
                let (target, path) = (stored.target.name.clone(), Bytes(claim.path));
                found.blocked.push(NotRestored { target, path, reason, in_part: false });
            }
        }
        Ok(())
    }

    /// Why what is at `path` in the project may not be written, or moved, by this user, and what
    /// would mend that.
    fn why_not_written(&self, path: &[u8], is_moved: bool) -> Result<Option<String>> {
        let mut names: Vec<&[u8]> = path.split(|&b| b == b'/').collect();
        let (Some(name), Ok(mut dir)) = (names.pop(), Dir::open(&self.env.root)) else { return Ok(None) };
        for name in names {
            match dir.child(name) {
                Ok(child) => dir = child,
                Err(_) => return Ok(None),
            }
        }
        // What SQLite is not let at is moved out of the way instead.
        let is_moved = is_moved
            || stat_in(&dir, name)?.is_none_or(|stat| !stat.is_file() || stat.nlink > 1)
            || SIDES.iter().any(|suffix| is_side(&dir, name, suffix) == Some(false));
        let deed = if is_moved { Deed::Move } else { Deed::Write };
        Ok(barred(&dir, name, deed)?.map(|barred| match barred.mend {
            Some(mend) => format!("{} (mend it: {mend})", barred.why),
            None => barred.why,
        }))
    }
}

/// Whether nothing has to be written for the one to become the other.
fn is_same((then, now): (&Found, &Found)) -> bool {
    match (then, now) {
        (Found::Image { state, .. }, Found::Image { state: other, .. }) => state == other,
        _ => then.same_state(now),
    }
}

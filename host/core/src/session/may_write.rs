//! Whether a database that is to be put back may be written: known before anything is touched.
//!
//! One that is there, and comes back, is written in place: so its own mode decides, and not that
//! of its directory. What its owner took from itself is given back for the work. Only looked at
//! here is what lies in the project, and is reached without a link.

use super::preflight::Preflight;
use super::{NotRestored, Project};
use crate::database::{Database, Found, SIDES, is_side};
use crate::disk::Dir;
use crate::error::{Result, shell_word};
use crate::history::snapshot::Captured;
use crate::object::ObjectKind;
use crate::store::Source;
use crate::text::Bytes;
use crate::tree::scan::stat_in;
use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

impl Project {
    /// Looks whether the database of `stored`, which is as in `current` now, may be written.
    pub(super) fn may_write(
        &self,
        stored: &Captured,
        current: &Captured,
        source: &dyn Source,
        found: &mut Preflight,
    ) -> Result<()> {
        let state = |captured: &Captured| -> Result<Option<[u8; 32]>> {
            let part = captured.parts.iter().find(|part| part.content.kind() == ObjectKind::Database);
            let database = part.map(|part| Database::load(source, &part.content)).transpose()?;
            Ok(match database.map(|database| database.found) {
                Some(Found::Image { state, .. }) => Some(state),
                _ => None,
            })
        };
        let (Some(then), Some(now)) = (state(stored)?, state(current)?) else { return Ok(()) };
        if then == now {
            return Ok(());
        }
        for claim in self.claims(&stored.target)? {
            if let Some(reason) = self.why_not_written(&claim.path)? {
                let (target, path) = (stored.target.name.clone(), Bytes(claim.path));
                found.blocked.push(NotRestored { target, path, reason, in_part: false });
            }
        }
        Ok(())
    }

    /// Why the file at `path` in the project may not be written by this user, and what would
    /// mend that.
    fn why_not_written(&self, path: &[u8]) -> Result<Option<String>> {
        let mut names: Vec<&[u8]> = path.split(|&b| b == b'/').collect();
        let (Some(name), Ok(mut dir)) = (names.pop(), Dir::open(&self.env.root)) else { return Ok(None) };
        for name in names {
            match dir.child(name) {
                Ok(child) => dir = child,
                Err(_) => return Ok(None),
            }
        }
        let Some(stat) = stat_in(&dir, name)? else { return Ok(None) };
        // What SQLite is not let at is moved out of the way instead.
        let is_moved = !stat.is_file()
            || stat.nlink > 1
            || SIDES.iter().any(|suffix| is_side(&dir, name, suffix) == Some(false));
        if is_moved {
            return Ok(None);
        }
        let shown = shell_word(self.env.root.join(OsStr::from_bytes(path)));
        if let Some((word, flag)) = stat.fixed() {
            return Ok(Some(format!("it is {word} (mend it: sudo chattr -{flag} {shown})")));
        }
        let uid = rustix::process::geteuid().as_raw();
        Ok(match rustix::fs::accessat(&dir, OsStr::from_bytes(name), Access::WRITE_OK, AtFlags::EACCESS) {
            Err(Errno::ROFS) => Some("its file system is read-only".to_owned()),
            Err(Errno::ACCESS | Errno::PERM) if stat.uid != uid => Some(format!(
                "it belongs to somebody else, and may not be written by this user (mend it: sudo chown {uid} {shown})"
            )),
            _ => None,
        })
    }
}

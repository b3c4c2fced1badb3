//! What other targets capture, as seen from the directory that is walked: databases,
//! with the files that lie beside them.

use crate::backend::Call;
use crate::database::{SIDES, side};
use crate::tree::Directory;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// What is left to other targets.
#[derive(Default)]
pub struct Elsewhere {
    /// Names, by the path of the directory that holds them.
    named: HashMap<Vec<u8>, Vec<Left>>,
    /// Whether databases that are met are left to targets of their own.
    pub(in crate::tree) finds: bool,
}

/// A name, the database that it is or lies beside, and the target that it is left to.
type Left = (Vec<u8>, Arc<[u8]>, Arc<str>);

impl Elsewhere {
    /// What of the paths that `call` names lies in `directory`.
    pub fn new(directory: &Directory, call: &Call) -> Self {
        let mut all = Self::default();
        if call.elsewhere.is_empty() && !directory.options().sqlite {
            return all;
        }
        let root = call.root.canonicalize().unwrap_or_else(|_| call.root.clone());
        let Ok(base) = directory.path().strip_prefix(root) else { return all };
        // Targets can be made only for what is in the project.
        all.finds = directory.options().sqlite;
        let base = base.as_os_str().as_bytes();
        for other in call.elsewhere.iter() {
            let inside = match base {
                [] => Some(&other.path[..]),
                _ => other.path.strip_prefix(base).and_then(|rest| rest.strip_prefix(b"/")),
            };
            let Some(inside) = inside else { continue };
            let cut = inside.iter().rposition(|&b| b == b'/');
            let (dir, name) = cut.map_or((&b""[..], inside), |at| (&inside[..at], &inside[at + 1..]));
            let names = all.named.entry(dir.to_vec()).or_default();
            let (base, target): (Arc<[u8]>, Arc<str>) = (name.into(), other.target.as_str().into());
            for suffix in [&b""[..]].into_iter().chain(SIDES) {
                names.push((side(name, suffix), base.clone(), target.clone()));
            }
        }
        all
    }

    /// The names in the directory at `path`, which is asked for only if there are any.
    pub(super) fn inside(&self, path: impl FnOnce() -> Vec<u8>) -> &[Left] {
        if self.named.is_empty() {
            return &[];
        }
        self.named.get(&path()).map_or(&[], Vec::as_slice)
    }
}

//! Runs that go on: each is marked by a file that its snapback has open, and locked.

use super::take::RUNNING;
use super::twin::is_withdrawn;
use crate::history::Id;
use crate::project::STORE;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the system adds to the path of an open file that was removed: the run goes on.
const REMOVED: &str = " (deleted)";

/// The run whose mark lies at `path`; none when it is no mark of a run.
pub fn of(path: &Path) -> Option<Id> {
    let dir = path.parent()?;
    let store = dir.parent()?;
    let is_store = store.file_name()?.as_bytes() == STORE.as_bytes() || is_withdrawn(store);
    let is_running = dir.file_name()?.as_bytes() == RUNNING && is_store;
    let name = path.file_name()?.to_str()?;
    is_running.then(|| Id::parse(name.strip_suffix(REMOVED).unwrap_or(name)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_told_by_where_it_lies() {
        let of = |path: &str| of(Path::new(path)).map(|id| id.to_string());
        let id = "20260102-030405-7f3a";
        for more in ["", " (deleted)"] {
            assert_eq!(of(&format!("/p/.snapback/running/{id}{more}")).as_deref(), Some(id));
        }
        let withdrawn = format!("/s/0123/withdrawn/running/{id}");
        assert_eq!(of(&withdrawn).as_deref(), Some(id), "its store stands aside while it goes on");
        for other in ["/p/.snapback/running/x", "/p/.snapback/running", "/", "socket:[1]"] {
            assert_eq!(of(other), None, "{other}");
        }
        for dir in ["/p/running", "/p/.snapback/snapshots"] {
            assert_eq!(of(&format!("{dir}/{id}")), None);
        }
    }
}

//! Helpers for this crate's tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed with its value.
pub struct TempDir(PathBuf);

impl TempDir {
    /// A new, empty one.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("snapback-test-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Nobody, and its group.
const NOBODY: u32 = 65534;

/// Makes `path` and all in it nobody's, where this user may do that.
pub fn give_to_nobody(path: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| give_to_nobody(&entry.unwrap().path()));
    }
}

/// Runs `f` on threads of their own as nobody, where this user may do that; else as this
/// user.
pub fn as_nobody<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    if !rustix::process::geteuid().is_root() {
        return f();
    }
    let become_nobody = |_| {
        let (uid, gid) = (rustix::fs::Uid::from_raw(NOBODY), rustix::fs::Gid::from_raw(NOBODY));
        rustix::thread::set_thread_groups(&[]).unwrap();
        rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).start_handler(become_nobody).build().unwrap();
    pool.install(f)
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

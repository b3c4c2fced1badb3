//! What this process may read and give: owners, groups, and what follows from them.

use crate::tree::scan::Stat;

/// The user and groups that this process acts as.
#[derive(Debug, Clone)]
pub struct Rights {
    /// The effective user.
    pub uid: u32,
    /// The effective and the supplementary groups.
    pub gids: Vec<u32>,
}

impl Rights {
    /// Of this process.
    pub fn of_process() -> Self {
        let mut gids = vec![rustix::process::getegid().as_raw()];
        // Without the list, fewer groups can be given back; that is then said.
        gids.extend(rustix::process::getgroups().unwrap_or_default().iter().map(|gid| gid.as_raw()));
        Self { uid: rustix::process::geteuid().as_raw(), gids }
    }

    /// Whether this is root, who may (almost always) do everything.
    pub fn root(&self) -> bool {
        self.uid == 0
    }

    /// Whether a file of this process can get this owner and group.
    pub fn can_give(&self, uid: u32, gid: u32) -> bool {
        self.root() || (uid == self.uid && self.gids.contains(&gid))
    }

    /// Whether `stat` is a file of this user's own that it may not read.
    pub fn lacks_read(&self, stat: &Stat) -> bool {
        const OWNER_READS: u32 = 0o400;
        !self.root() && stat.is_file() && stat.uid == self.uid && stat.permissions() & OWNER_READS == 0
    }

    /// Whether attributes of what `uid` owns may be changed.
    pub fn can_change(&self, uid: u32) -> bool {
        self.root() || uid == self.uid
    }
}

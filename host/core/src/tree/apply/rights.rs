//! What this process may give: owners, groups, and what follows from them.

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

    /// Whether attributes of what `uid` owns may be changed.
    pub fn can_change(&self, uid: u32) -> bool {
        self.root() || uid == self.uid
    }
}

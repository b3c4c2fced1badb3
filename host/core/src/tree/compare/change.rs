//! One change: what an entry was, what it is, and in what the two differ.

use crate::tree::node::{Entry, Node, Time};

/// One entry that is not the same in two captured directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path from the captured directory, `/` between names; empty for itself.
    pub path: Vec<u8>,
    /// What was there, with its time where times were asked for.
    pub before: Option<Entry>,
    /// When `before` was last modified.
    pub before_time: Time,
    /// What is there now.
    pub after: Option<Entry>,
    /// When `after` was last modified.
    pub after_time: Time,
    /// How many bytes of `path` name the nearest directory above it that is a directory
    /// on both sides; 0 for the captured directory.
    pub common: usize,
    /// Not itself selected, only on the way to something that is: a directory that
    /// one side lacks.
    pub passage: bool,
}

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is not as it was.
    Modified,
    /// It is gone.
    Deleted,
}

impl ChangeKind {
    /// The word that `diff --json` has for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// In what two entries of one name differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Aspects {
    /// A file became a directory, a link a file, and so on.
    pub kind: bool,
    /// A file's bytes or holes, where a link points, which device it is.
    pub content: bool,
    /// The mode.
    pub mode: bool,
    /// Owner or group.
    pub owner: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// Which other names are the same inode.
    pub link: bool,
    /// When it was last modified.
    pub time: bool,
}

impl Aspects {
    /// In what `a` and `b` differ, times aside.
    pub fn of(a: &Entry, b: &Entry) -> Self {
        let kind = std::mem::discriminant(&a.node) != std::mem::discriminant(&b.node);
        let content = match (&a.node, &b.node) {
            (Node::Dir(_), Node::Dir(_)) => false,
            (a, b) => a != b,
        };
        // A symbolic link has no mode of its own.
        let mode = a.mode != b.mode && !matches!((&a.node, &b.node), (Node::Symlink(_), Node::Symlink(_)));
        Self {
            kind,
            content,
            mode,
            owner: (a.uid, a.gid) != (b.uid, b.gid),
            xattrs: a.xattrs != b.xattrs,
            link: a.link != b.link,
            time: false,
        }
    }

    /// Whether they differ in anything.
    pub fn any(self) -> bool {
        self.any_but_time() || self.time
    }

    /// Whether they differ in anything that counts as a change.
    pub fn any_but_time(self) -> bool {
        self.kind || self.content || self.link || self.metadata()
    }

    /// Whether mode, owner or attributes differ.
    pub fn metadata(self) -> bool {
        self.mode || self.owner || self.xattrs
    }
}

impl Change {
    /// Of the file at `path`, which nothing else has to do with.
    pub fn of_file(path: Vec<u8>, before: Option<Entry>, after: Option<Entry>) -> Self {
        let (before_time, after_time) = (Time::default(), Time::default());
        Self { path, before, before_time, after, after_time, common: 0, passage: false }
    }

    /// What happened.
    pub fn kind(&self) -> ChangeKind {
        match (&self.before, &self.after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        }
    }

    /// In what the two sides differ; everything, when one is missing.
    pub fn aspects(&self) -> Aspects {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                Aspects { time: self.before_time != self.after_time, ..Aspects::of(before, after) }
            }
            _ => Aspects {
                kind: true,
                content: true,
                mode: true,
                owner: true,
                xattrs: true,
                link: true,
                time: true,
            },
        }
    }

    /// Whether it is a change to tell of and to take back. With `times`, a file that was only
    /// touched is one; a directory, whose time goes with what is in it, never.
    pub fn is_told(&self, times: bool) -> bool {
        let aspects = self.aspects();
        aspects.any_but_time() || times && aspects.time && !self.becomes_dir()
    }

    /// Whether `before` is a directory.
    pub fn was_dir(&self) -> bool {
        is_dir(self.before.as_ref())
    }

    /// Whether `after` is a directory.
    pub fn becomes_dir(&self) -> bool {
        is_dir(self.after.as_ref())
    }
}

fn is_dir(entry: Option<&Entry>) -> bool {
    matches!(entry, Some(Entry { node: Node::Dir(_), .. }))
}

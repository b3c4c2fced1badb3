//! What is mounted where, and what of it a path lies on.
//!
//! Told by the kernel's own list alone: a file system that does not answer any more is
//! never touched by asking. So a project that is gone can be told from one whose file
//! system is only not there.

use crate::text::Bytes;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// File systems on this machine's own devices or in its memory: they answer at once, and
/// what is not there is gone.
const LOCAL: [&str; 16] = [
    "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "msdos", "nilfs2", "ntfs3",
    "overlay", "reiserfs", "vfat", "xfs", "zfs",
];

/// File systems that are gone for good with their mount.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// File systems that other machines have as well, as the kernel and the programs behind
/// `fuse` call them.
const OVER_NETWORK: [&str; 24] = [
    "9p",
    "afs",
    "ceph",
    "cifs",
    "coda",
    "fuse.ceph-fuse",
    "fuse.curlftpfs",
    "fuse.davfs2",
    "fuse.glusterfs",
    "fuse.gvfsd-fuse",
    "fuse.juicefs",
    "fuse.moosefs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.seaweedfs",
    "fuse.smbnetfs",
    "fuse.sshfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "orangefs",
    "smb3",
    "vboxsf",
];

/// The file system that something lies on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Mounted {
    /// Where it is mounted.
    pub at: Bytes,
    /// Its kind, as the kernel calls it.
    pub kind: String,
    /// Which one of its kind it is, as far as it says.
    pub id: u64,
}

/// Whether asking a file system of this kind returns at once.
pub fn answers(kind: &str) -> bool {
    LOCAL.contains(&kind) || is_in_memory(kind)
}

/// Whether other machines may have a file system of this kind as well: what is locked on one
/// of them may not be on the others.
pub fn is_over_network(kind: &str) -> bool {
    OVER_NETWORK.contains(&kind)
}

/// Whether a file system of this kind is gone for good with its mount.
pub fn is_in_memory(kind: &str) -> bool {
    IN_MEMORY.contains(&kind)
}

/// What is mounted.
#[derive(Debug, Clone, Default)]
pub struct Mounts(Vec<(PathBuf, String)>);

impl Mounts {
    /// All that is mounted now; nothing where the kernel does not say.
    pub fn now() -> Self {
        Self::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(list: &[u8]) -> Self {
        let line = |line: &[u8]| {
            let fields: Vec<&[u8]> = line.split(|&b| b == b' ').collect();
            let kind = fields.iter().position(|field| *field == b"-")? + 1;
            let at = PathBuf::from(OsString::from_vec(unescaped(fields.get(4)?)));
            Some((at, String::from_utf8_lossy(fields.get(kind)?).into_owned()))
        };
        Self(list.split(|&b| b == b'\n').filter_map(line).collect())
    }

    /// Where the file system is mounted that `path` lies on, or would, and its kind.
    pub fn of(&self, path: &Path) -> Option<(&Path, &str)> {
        let holds = self.0.iter().filter(|(at, _)| path.starts_with(at));
        // Of several mounts on one place the last is seen.
        let nearest = holds.max_by_key(|(at, _)| at.components().count());
        nearest.map(|(at, kind)| (at.as_path(), kind.as_str()))
    }

    /// The file system that `path` lies on. It is asked which one it is.
    pub fn on(&self, path: &Path) -> Option<Mounted> {
        let (at, kind) = self.of(path)?;
        let id = rustix::fs::statvfs(at).map_or(0, |fs| fs.f_fsid);
        Some(Mounted { at: Bytes::from(at), kind: kind.to_owned(), id })
    }
}

/// A path of the list: blanks, newlines and backslashes stand as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| first == b'\\') {
            Some(byte) => {
                out.push(byte);
                rest = &after[3..];
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_on_the_nearest_mount_above_it() {
        let mounts = Mounts::parse(
            b"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
              30 22 0:25 / /mnt/a\\040b rw shared:1 - tmpfs tmpfs rw\n\
              31 22 0:26 / /mnt rw - nfs4 host:/x rw\nnonsense\n",
        );
        for (path, at, kind) in [
            ("/home/p", "/", "ext4"),
            ("/mnt/a b/p", "/mnt/a b", "tmpfs"),
            ("/mnt/a bc", "/mnt", "nfs4"),
            ("/", "/", "ext4"),
        ] {
            assert_eq!(mounts.of(Path::new(path)), Some((Path::new(at), kind)), "{path}");
        }
        assert_eq!(Mounts::default().of(Path::new("/x")), None);
    }

    #[test]
    fn what_lies_here_lies_somewhere() {
        let here = std::env::temp_dir();
        let on = Mounts::now().on(&here).unwrap();
        assert!(here.starts_with(on.at.path()) && !on.kind.is_empty());
        assert_eq!(Mounts::now().on(&here), Some(on));
    }
}

//! What the system tells of all processes: the locks that they hold, the files that they have open.
//!
//! One look at it serves all databases of a command, since it costs more than most of them do:
//! what it says may be a moment old, and is looked at once more where that matters.

use rustix::fs::AtFlags;
use snapback_core::backend::Call;
use snapback_core::disk::Dir;
use snapback_core::tree::scan::Stat;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};

/// What the system adds to the path of a file that was removed.
const GONE: &[u8] = b" (deleted)";

/// What the system tells at one moment.
pub struct System {
    locks: BTreeSet<Lock>,
    open: OnceLock<Open>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Lock {
    pid: u32,
    device: Device,
    inode: u64,
    /// The first byte and the last.
    bytes: (u64, u64),
}

/// Its two numbers.
type Device = (u32, u32);

/// Who has what open: by what it is called or was, by what is gone, by device and inode.
#[derive(Default)]
struct Open {
    called: HashMap<Vec<u8>, BTreeSet<u32>>,
    gone: HashMap<Vec<u8>, BTreeSet<u32>>,
    files: HashMap<(u64, u64), BTreeSet<u32>>,
    /// Those that may not be looked into.
    closed: BTreeSet<u32>,
}

/// A file that a process has open.
pub struct OpenFile {
    /// The path that it had last.
    pub path: Vec<u8>,
    /// Whether it was removed.
    pub is_gone: bool,
    /// Device and inode.
    pub id: (u64, u64),
}

impl System {
    /// What it tells now.
    pub fn now() -> Self {
        let locks = (0..LOOKS).flat_map(|_| locks(&list())).collect();
        Self { locks, open: OnceLock::new() }
    }

    /// What it told a moment ago, for another database of the same command, or tells now.
    pub fn recent(call: &Call) -> Arc<Self> {
        call.recent.get(Self::now)
    }

    /// The processes, this one aside, that hold locks on these `bytes` (the first, and how many) of
    /// the file with this `inode` in `dir`.
    pub fn locking(&self, dir: &Dir, inode: u64, (first, length): (u64, u64)) -> BTreeSet<u32> {
        let meets = |lock: &&Lock| lock.bytes.0 < first + length && lock.bytes.1 >= first;
        let on_it = self.locks.iter().filter(|lock| lock.inode == inode);
        let mut locks = on_it.filter(meets).peekable();
        if locks.peek().is_none() {
            return BTreeSet::new();
        }
        let devices = devices(dir);
        locks.filter(|lock| devices.contains(&lock.device)).map(|lock| lock.pid).collect()
    }

    /// The processes that have a file open which is called, or was, `path`.
    pub fn having_called(&self, path: &[u8]) -> BTreeSet<u32> {
        self.open().called.get(path).cloned().unwrap_or_default()
    }

    /// The processes that have a file open which was called `path`, and was removed.
    pub fn having_removed(&self, path: &[u8]) -> BTreeSet<u32> {
        self.open().gone.get(path).cloned().unwrap_or_default()
    }

    /// Whether it is known what the process `pid` has open.
    pub fn knows(&self, pid: u32) -> bool {
        !self.open().closed.contains(&pid)
    }

    /// The processes that have the file with this device and inode open.
    pub fn having(&self, id: (u64, u64)) -> BTreeSet<u32> {
        self.open().files.get(&id).cloned().unwrap_or_default()
    }

    fn open(&self) -> &Open {
        self.open.get_or_init(|| {
            let mut open = Open::default();
            for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
                let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
                    continue;
                };
                let Some(files) = open_by(pid) else {
                    open.closed.insert(pid);
                    continue;
                };
                for file in files {
                    if file.is_gone {
                        open.gone.entry(file.path.clone()).or_default().insert(pid);
                    }
                    open.called.entry(file.path).or_default().insert(pid);
                    open.files.entry(file.id).or_default().insert(pid);
                }
            }
            open
        })
    }
}

/// What the process `pid` has open, pipes and the like aside; none when it may not be looked into.
pub fn open_by(pid: u32) -> Option<Vec<OpenFile>> {
    let fds = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(fds) => fds,
        // It has ended.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Some(Vec::new()),
        Err(_) => return None,
    };
    let mut open = Vec::new();
    for fd in fds.flatten() {
        let fd = fd.path();
        let Ok(path) = fs::read_link(&fd) else { continue };
        let path = path.as_os_str().as_bytes();
        if !path.starts_with(b"/") {
            continue;
        }
        let Ok(stat) = rustix::fs::statat(rustix::fs::CWD, &fd, AtFlags::empty()) else { continue };
        let path = path.strip_suffix(GONE).filter(|_| stat.st_nlink == 0).unwrap_or(path).to_vec();
        open.push(OpenFile { path, is_gone: stat.st_nlink == 0, id: (stat.st_dev, stat.st_ino) });
    }
    Some(open)
}

/// The list is not told at one moment: what comes and goes meanwhile hides other lines. What is
/// there all the time is in one of so many.
const LOOKS: u32 = 3;
/// Bytes that are asked for at once.
const LIST: usize = 1 << 18;

/// The system's own list of locks, in as few pieces as it gives it.
fn list() -> String {
    let (mut text, mut piece) = (Vec::new(), vec![0; LIST]);
    if let Ok(mut list) = fs::File::open("/proc/locks") {
        while let Ok(length @ 1..) = list.read(&mut piece) {
            text.extend_from_slice(&piece[..length]);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The locks of all processes but this one that SQLite sees as well: not those of `flock`.
fn locks(text: &str) -> Vec<Lock> {
    let lock = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().filter(|field| *field != "->").collect();
        if fields.get(1) != Some(&"POSIX") {
            return None;
        }
        let end = fields.get(7)?.parse().unwrap_or(u64::MAX);
        let bytes = (fields.get(6)?.parse().ok()?, end);
        let pid = fields.get(4)?.parse().ok()?;
        let mut numbers = fields.get(5)?.split(':');
        let mut hex = || u32::from_str_radix(numbers.next()?, 16).ok();
        let device = (hex()?, hex()?);
        Some(Lock { pid, device, inode: numbers.next()?.parse().ok()?, bytes })
    };
    text.lines().filter_map(lock).filter(|lock| lock.pid != std::process::id()).collect()
}

/// What the file system of `dir` is called: some have one number for locks and another for all else,
/// the first is in the list of what is mounted.
fn devices(dir: &Dir) -> Vec<Device> {
    let Ok(stat) = Stat::of_open(dir) else { return Vec::new() };
    let mut devices = vec![(rustix::fs::major(stat.dev), rustix::fs::minor(stat.dev))];
    let mount = stat.mount.to_string();
    for line in fs::read_to_string("/proc/self/mountinfo").unwrap_or_default().lines() {
        let mut fields = line.split_ascii_whitespace();
        if fields.next() != Some(&mount) {
            continue;
        }
        let device = fields.nth(1).and_then(|device| device.split_once(':'));
        devices.extend(device.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?))));
    }
    devices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_found_by_device_and_inode() {
        let scratch = crate::testing::Scratch::new();
        let dir = Dir::open(scratch.path()).unwrap();
        let (major, minor) = devices(&dir)[0];
        let at = |inode: u32| format!("{major:02x}:{minor:02x}:{inode}");
        let text = format!(
            "1: POSIX  ADVISORY  WRITE 4711 {} 1073741824 1073742335\n\
             1: -> POSIX  ADVISORY  WRITE 4712 {} 0 EOF\n\
             2: FLOCK  ADVISORY  WRITE 4713 {} 0 EOF\n\
             2: POSIX  ADVISORY  WRITE 4714 7f:7f:99 0 EOF\n\
             3: POSIX  ADVISORY  WRITE {} {} 0 EOF\n\
             3: POSIX  ADVISORY  WRITE 4715 {} 0 1073741823\n\
             3: FLOCK  ADVISORY  WRITE 4716 {} 0 EOF\n\
             3: OFDLCK ADVISORY  READ -1 {} 0 EOF\nnonsense\n",
            at(99),
            at(99),
            at(98),
            std::process::id(),
            at(99),
            at(99),
            at(99),
            at(99),
        );
        let system = System { locks: locks(&text).into_iter().collect(), open: OnceLock::new() };
        let bytes = (0x4000_0000, 512);
        assert_eq!(system.locking(&dir, 99, bytes), BTreeSet::from([4711, 4712]));
        assert_eq!(system.locking(&dir, 97, bytes), BTreeSet::new());
    }

    #[test]
    fn a_look_serves_for_a_moment() {
        let target = snapback_core::backend::Target {
            name: "a".into(),
            backend: "b".into(),
            settings: Default::default(),
        };
        let call = Call::about("/".into(), target, None, Arc::new(snapback_core::report::Silent));
        let again = call.clone();
        assert!(Arc::ptr_eq(&System::recent(&call), &System::recent(&again)));
    }
}

//! The least that work over a whole tree can cost: what captures are measured against.
//!
//! `floor scan DIR [THREADS]` opens and lists all directories and asks for the attributes
//! of every entry, relative to handles. `floor hash DIR` also reads every regular file and
//! takes its SHA-256 with the CPU's instructions. `floor append DIR FILE` also appends all
//! content to FILE, which is made. Two threads. Prints entries, files and bytes; nothing
//! is kept, compared or compressed. Refuses a tree that changes meanwhile.

#![allow(clippy::print_stdout)]

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use sha2::{Digest, Sha256};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex};

/// Directories waiting to be walked are shared by this many threads.
const THREADS: usize = 2;
/// Bytes read or appended at once: what stays in a core's own cache.
const CHUNK: usize = 256 << 10;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn main() {
    let mut args = std::env::args().skip(1);
    let (work, dir) = (args.next(), args.next());
    let (Some(work), Some(dir)) = (work.as_deref(), dir) else {
        panic!("floor scan|hash|append DIR [FILE]");
    };
    let reads = match work {
        "scan" => false,
        "hash" | "append" => true,
        other => panic!("`{other}` is none of scan, hash, append"),
    };
    let out = (work == "append")
        .then(|| Mutex::new(File::create_new(args.next().expect("a file to make")).expect("a new file")));
    let top = rustix::fs::open(dir, DIRECTORY, Mode::empty()).expect("a directory");
    let queue = Queue::new(top);
    let total = std::thread::scope(|scope| {
        let walkers: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| Walker::new(reads, out.as_ref()).walk(&queue))).collect();
        walkers.into_iter().map(|walker| walker.join().expect("a walker ends")).fold([0; 3], add)
    });
    println!("{} entries, {} files, {} bytes", total[0], total[1], total[2]);
}

fn add(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// A directory that is to be walked: its name in an open one.
type Place = (Arc<OwnedFd>, CString);

/// What is still to be walked, and how many walkers may yet add to it.
struct Queue {
    state: Mutex<(Vec<Place>, usize)>,
    more: Condvar,
}

impl Queue {
    fn new(top: OwnedFd) -> Self {
        Self { state: Mutex::new((vec![(Arc::new(top), c".".to_owned())], THREADS)), more: Condvar::new() }
    }

    fn push(&self, places: Vec<Place>) {
        if !places.is_empty() {
            self.state.lock().expect("no walker failed").0.extend(places);
            self.more.notify_all();
        }
    }

    /// The next directory; none once nothing waits and nobody can add any more.
    fn pop(&self) -> Option<Place> {
        let mut state = self.state.lock().expect("no walker failed");
        loop {
            if let Some(place) = state.0.pop() {
                return Some(place);
            }
            state.1 -= 1;
            if state.1 == 0 {
                self.more.notify_all();
                return None;
            }
            state = self.more.wait(state).expect("no walker failed");
            if state.1 == 0 {
                return None;
            }
            state.1 += 1;
        }
    }
}

/// One thread's buffers and counts.
struct Walker<'a> {
    reads: bool,
    out: Option<&'a Mutex<File>>,
    buffer: Vec<u8>,
    waiting: Vec<u8>,
    count: [u64; 3],
}

impl<'a> Walker<'a> {
    fn new(reads: bool, out: Option<&'a Mutex<File>>) -> Self {
        let buffer = if reads { vec![0; CHUNK] } else { Vec::new() };
        Self { reads, out, buffer, waiting: Vec::new(), count: [0; 3] }
    }

    fn walk(mut self, queue: &Queue) -> [u64; 3] {
        let mut names = vec![MaybeUninit::uninit(); 32 << 10];
        while let Some((parent, name)) = queue.pop() {
            let dir = rustix::fs::openat(&*parent, &*name, DIRECTORY, Mode::empty());
            let dir = Arc::new(dir.expect("a directory that can be opened"));
            let mut below = Vec::new();
            let mut entries = RawDir::new(&*dir, &mut names);
            while let Some(entry) = entries.next() {
                let entry = entry.expect("an entry");
                let name = entry.file_name();
                if !matches!(name.to_bytes(), b"." | b"..") && self.look(&dir, name) {
                    below.push((dir.clone(), name.to_owned()));
                }
            }
            queue.push(below);
        }
        self.append();
        self.count
    }

    /// Looks at one entry; whether it is a directory.
    fn look(&mut self, dir: &OwnedFd, name: &CStr) -> bool {
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).expect("attributes");
        let kind = FileType::from_raw_mode(stat.st_mode);
        self.count[0] += 1;
        if kind == FileType::RegularFile {
            self.count[1] += 1;
            if self.reads {
                let file = rustix::fs::openat(dir, name, FILE, Mode::empty()).expect("a file");
                self.read(File::from(file), u64::try_from(stat.st_size).expect("a size"));
            }
        }
        kind == FileType::Directory
    }

    fn read(&mut self, mut file: File, size: u64) {
        let mut hash = Sha256::new();
        let mut left = size;
        while left > 0 {
            let read = file.read(&mut self.buffer).expect("content");
            assert!(read > 0, "the tree changes while it is read");
            left = left.saturating_sub(read as u64);
            self.count[2] += read as u64;
            hash.update(&self.buffer[..read]);
            if let Some(out) = self.out {
                if self.waiting.len() + read > CHUNK {
                    self.append();
                }
                match read < CHUNK / 4 {
                    true => self.waiting.extend_from_slice(&self.buffer[..read]),
                    false => write(out, &self.buffer[..read]),
                }
            }
        }
        std::hint::black_box(hash.finalize());
    }

    fn append(&mut self) {
        if let Some(out) = self.out.filter(|_| !self.waiting.is_empty()) {
            write(out, &self.waiting);
            self.waiting.clear();
        }
    }
}

fn write(out: &Mutex<File>, bytes: &[u8]) {
    out.lock().expect("no walker failed").write_all(bytes).expect("room");
}

//! What an unchanged capture costs over the floor, which is reading all directories
//! and asking for the attributes of all entries.
//!
//! `cargo run --release -p snapback-core --example unchanged [DIR [ROUNDS]]`: without
//! DIR, a tree of 24,000 files in 3,000 directories is made in the directory for
//! temporary files. Prints medians of the processor time of the whole process.

#![allow(clippy::print_stdout)]

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, StatxFlags};
use rustix::time::{ClockId, clock_gettime};
use snapback_core::Result;
use snapback_core::backend::{Call, Target};
use snapback_core::disk::Disk;
use snapback_core::object::Key;
use snapback_core::report::Silent;
use snapback_core::store::Store;
use snapback_core::tree::capture::{Counts, capture_counted};
use snapback_core::tree::{Directory, Options};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let temp = std::env::temp_dir().join(format!("snapback-unchanged-{}", std::process::id()));
    let tree = match args.next() {
        Some(dir) => PathBuf::from(dir),
        None => make(&temp.join("tree")),
    };
    let rounds: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(21);
    std::fs::create_dir_all(&temp).expect("a directory for the store");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let store = Store::create(&temp.join("store"), Disk::default().with_sync(false))?;

    let (first, counts, cpu, wall) = timed(|| capture(&tree, &store, None))?;
    println!("first: cpu {cpu:.1} ms, wall {wall:.1} ms, {counts:?}");
    let (mut floors, mut captures) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (_, entries, cpu, wall) = timed(|| Ok((first, floor(&tree))))?;
        floors.push((cpu, wall));
        let (key, counts, cpu, wall) = timed(|| capture(&tree, &store, Some(&first)))?;
        captures.push((cpu, wall));
        assert_eq!(key, first, "nothing changed");
        if round == 0 {
            println!("{entries} entries; {counts:?}");
        }
    }
    let (floor, capture) = (median(&mut floors), median(&mut captures));
    println!("floor: cpu {:.1} ms, wall {:.1} ms (one thread)", floor.0, floor.1);
    println!("unchanged: cpu {:.1} ms, wall {:.1} ms", capture.0, capture.1);
    println!("ratio of cpu: {:.2}", capture.0 / floor.0);
    let _ = std::fs::remove_dir_all(&temp);
    Ok(())
}

fn make(at: &Path) -> PathBuf {
    for dir in 0..3000 {
        let path = at.join(format!("{}/package-{}/lib-{}", dir % 40, dir % 200, dir));
        std::fs::create_dir_all(&path).expect("a directory");
        for file in 0..8 {
            let text = format!("export const value_{file} = {dir};\n").repeat(file * 40);
            std::fs::write(path.join(format!("module-{file}.js")), text).expect("a file");
        }
    }
    at.to_owned()
}

/// Opens, lists and looks at everything, and does nothing with it.
fn floor(tree: &Path) -> u64 {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |dir: std::os::fd::BorrowedFd<'_>, name: &std::ffi::CStr| {
        rustix::fs::openat(dir, name, flags, Mode::empty()).expect("a directory that can be opened")
    };
    fn walk(
        dir: &OwnedFd,
        open: &dyn Fn(std::os::fd::BorrowedFd<'_>, &std::ffi::CStr) -> OwnedFd,
        buffers: &mut Vec<Vec<MaybeUninit<u8>>>,
    ) -> u64 {
        let mut buffer = buffers.pop().unwrap_or_else(|| vec![MaybeUninit::uninit(); 32 << 10]);
        let mut count = 0;
        let mut entries = RawDir::new(dir, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.expect("an entry");
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)
                .expect("attributes");
            count += 1;
            if entry.file_type() == FileType::Directory {
                count += walk(&open(dir.as_fd(), name), open, buffers);
            }
        }
        buffers.push(buffer);
        count
    }
    let top = rustix::fs::open(tree, flags, Mode::empty()).expect("a directory");
    walk(&top, &open, &mut Vec::new())
}

fn capture(tree: &Path, store: &Arc<Store>, previous: Option<&Key>) -> Result<(Key, Counts)> {
    let writer = Arc::new(store.writer()?);
    let rules = "node_modules\n* holding CACHEDIR.TAG\n.venv holding pyvenv.cfg".to_owned();
    let names = ["target", "dist", "build", "out", ".cache", ".next", ".nuxt", ".turbo", ".gradle", ".tox"];
    let rules =
        names.iter().fold(rules, |rules, name| rules + "\n" + name + " ignored else beside package.json");
    let directory = Directory::open(tree, "path", ".", &Options::parse(&[("regenerable", rules)])?)?;
    let target = Target { name: "tree".into(), backend: "tree".into(), settings: Default::default() };
    let call = Call {
        writer: Some(writer.clone()),
        ..Call::about(tree.to_owned(), target, Some(store.clone()), Arc::new(Silent))
    };
    let done = capture_counted(&directory, &call, previous)?;
    drop(call);
    writer.seal()?;
    Ok(done)
}

/// Runs `f`; with what it returns, milliseconds of processor time and of real time.
fn timed<T>(f: impl FnOnce() -> Result<(Key, T)>) -> Result<(Key, T, f64, f64)> {
    let cpu = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let (before, start) = (cpu(), Instant::now());
    let (key, value) = f()?;
    Ok((key, value, cpu() - before, start.elapsed().as_secs_f64() * 1e3))
}

fn median(all: &mut [(f64, f64)]) -> (f64, f64) {
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let cpu = all[all.len() / 2].0;
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    (cpu, all[all.len() / 2].1)
}

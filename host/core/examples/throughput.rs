//! How fast content goes into a store: `throughput DIR [THREADS]` reads every file under
//! DIR and stores it, then reads all of it back. Prints CPU time of the process for each
//! step, and before them the same for what cannot be done with less: reading, hashing and
//! appending to one file.
#![allow(clippy::print_stdout, missing_docs)]

use snapback_core::backend::Cancel;
use snapback_core::disk::Disk;
use snapback_core::object::{Key, ObjectKind};
use snapback_core::store::content::{load, store_file};
use snapback_core::store::{BLOCK, Source, Store};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: Vec<f64> =
        text.rsplit(')').next().unwrap_or_default().split(' ').filter_map(|n| n.parse().ok()).collect();
    // After the state: utime and stime are the 11th and 12th numbers.
    (ticks[10] + ticks[11]) / 100.0
}

fn files(dir: PathBuf, out: &mut Vec<(PathBuf, u64)>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let meta = entry.metadata().unwrap();
        if meta.is_dir() {
            files(entry.path(), out);
        } else if meta.is_file() {
            out.push((entry.path(), meta.len()));
        }
    }
}

fn step<T>(name: &str, bytes: u64, act: impl FnOnce() -> T) -> T {
    let (wall, before) = (Instant::now(), cpu());
    let out = act();
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu() - before);
    println!(
        "{name:24} cpu {cpu:6.2} s  wall {wall:6.3} s  {:7.0} MB/s of cpu",
        bytes as f64 / 1e6 / cpu.max(0.005)
    );
    out
}

fn shares<T>(all: &[T], threads: usize) -> std::slice::Chunks<'_, T> {
    all.chunks(all.len().div_ceil(threads).max(1))
}

/// Reads all content in blocks and hands them to `act`.
fn each_block(all: &[(PathBuf, u64)], threads: usize, act: &(dyn Fn(&[u8]) + Sync)) {
    std::thread::scope(|s| {
        for share in shares(all, threads) {
            s.spawn(move || {
                let mut block = vec![0; BLOCK];
                for (path, _) in share {
                    let mut file = File::open(path).unwrap();
                    loop {
                        match file.read(&mut block).unwrap() {
                            0 => break,
                            n => act(&block[..n]),
                        }
                    }
                }
            });
        }
    });
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().expect("a directory"));
    let threads: usize = args.next().map_or(2, |n| n.parse().expect("a number"));
    let at = std::env::temp_dir().join(format!("snapback-throughput-{}", std::process::id()));
    let mut all = Vec::new();
    files(dir, &mut all);
    let bytes: u64 = all.iter().map(|f| f.1).sum();
    println!("{} files, {:.1} MB, {threads} threads", all.len(), bytes as f64 / 1e6);
    step("read", bytes, || each_block(&all, threads, &|_| {}));
    step("read, hash", bytes, || {
        each_block(&all, threads, &|block| {
            std::hint::black_box(Key::of(ObjectKind::Blob, block));
        });
    });
    let pack = at.with_extension("pack");
    let (file, end) = (File::create(&pack).unwrap(), AtomicU64::new(0));
    step("read, hash, append", bytes, || {
        each_block(&all, threads, &|block| {
            std::hint::black_box(Key::of(ObjectKind::Blob, block));
            let place = end.fetch_add(block.len() as u64, Ordering::Relaxed);
            file.write_all_at(block, place).unwrap();
        });
    });
    std::fs::remove_file(&pack).unwrap();
    let store = Store::create(&at, Disk::default().with_sync(false)).unwrap();
    let writer = store.writer().unwrap();
    let keys: Vec<(Key, u64)> = step("store", bytes, || {
        std::thread::scope(|s| {
            let jobs: Vec<_> = shares(&all, threads)
                .map(|share| {
                    let writer = &writer;
                    s.spawn(move || {
                        let mut lane = writer.lane();
                        let keys: Vec<(Key, u64)> = share
                            .iter()
                            .map(|(path, size)| {
                                let file = File::open(path).unwrap();
                                store_file(&mut lane, &file, *size, false, &Cancel::default()).unwrap()
                            })
                            .collect();
                        lane.flush().unwrap();
                        keys
                    })
                })
                .collect();
            jobs.into_iter().flat_map(|job| job.join().unwrap()).collect()
        })
    });
    let added = step("seal", bytes, || writer.seal().unwrap());
    println!("{:.1} MB on disk, {:.3} of it", added as f64 / 1e6, added as f64 / bytes as f64);
    drop(writer);
    let store = Store::open(&at, Disk::default().with_sync(false)).unwrap();
    step("contains, from cold", bytes, || {
        keys.iter().filter(|(key, _)| store.contains(key).unwrap()).count()
    });
    step("contains, again", bytes, || keys.iter().filter(|(key, _)| store.contains(key).unwrap()).count());
    step("read back", bytes, || {
        std::thread::scope(|s| {
            for share in shares(&keys, threads) {
                let store = &store;
                s.spawn(move || {
                    for (key, size) in share {
                        load(&**store, key, *size, &mut |_, _| Ok(())).unwrap();
                    }
                });
            }
        });
    });
    step("unchanged, stored again", bytes, || {
        let writer = store.writer().unwrap();
        let mut lane = writer.lane();
        for (path, size) in &all {
            store_file(&mut lane, &File::open(path).unwrap(), *size, false, &Cancel::default()).unwrap();
        }
        lane.flush().unwrap();
        assert_eq!(writer.seal().unwrap(), 0);
    });
    let small = keys[0];
    let fresh = Store::open(&at, Disk::default()).unwrap();
    step("one object, from cold", small.1, || fresh.view(&small.0, &mut |_| Ok(())).unwrap());
    std::fs::remove_dir_all(&at).unwrap();
}

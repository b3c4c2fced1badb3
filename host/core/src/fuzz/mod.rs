//! Every decoder with what must hold for it, whatever bytes it is given: it neither panics
//! nor hangs, it takes no more memory than the bytes are worth, what it refuses it refuses
//! with an error, and what it takes is, written again, the same bytes where there is one
//! form only, else the same value.
//!
//! Compiled for tests and with the feature `fuzz` alone. The targets in `fuzz/` run one
//! each with libFuzzer; the test here runs all of them on what our encoders wrote, changed
//! a little, always in the same way. Checksums are made right by the harness where a
//! decoder asks for them, since no mutation would.

mod caches;
mod history;
mod objects;
mod packs;
mod project;
mod samples;
#[cfg(test)]
mod tests;

/// One decoder.
pub struct Target {
    /// Its name, as in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Panics when the decoder does not do what it must with these bytes.
    pub run: fn(&[u8]),
    /// Bytes that it takes, made by our encoders.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All decoders.
pub const TARGETS: &[Target] = &[
    Target { name: "tree", run: objects::tree, seeds: samples::trees },
    Target { name: "times", run: objects::times, seeds: samples::times },
    Target { name: "list", run: objects::list, seeds: samples::lists },
    Target { name: "root", run: objects::root, seeds: samples::roots },
    Target { name: "opaque", run: objects::opaque, seeds: samples::opaques },
    Target { name: "database", run: objects::database, seeds: samples::databases },
    Target { name: "volume", run: objects::volume, seeds: samples::volumes },
    Target { name: "archive", run: objects::archive, seeds: samples::archives },
    Target { name: "key", run: objects::key, seeds: samples::keys },
    Target { name: "table", run: packs::table, seeds: samples::tables },
    Target { name: "pack", run: packs::pack, seeds: samples::packs },
    Target { name: "frame", run: packs::frame, seeds: samples::frames },
    Target { name: "index", run: caches::index, seeds: samples::indexes },
    Target { name: "statcache", run: caches::statcache, seeds: samples::statcaches },
    Target { name: "meta", run: history::meta, seeds: samples::metas },
    Target { name: "end", run: history::end, seeds: samples::ends },
    Target { name: "journal", run: history::journal, seeds: samples::journals },
    Target { name: "timeline", run: history::timeline, seeds: samples::timelines },
    Target { name: "changes", run: history::changes, seeds: samples::changes },
    Target { name: "config", run: project::config, seeds: samples::configs },
    Target { name: "user", run: project::user, seeds: samples::users },
    Target { name: "known", run: project::known, seeds: samples::knowns },
    Target { name: "patterns", run: project::patterns, seeds: samples::patterns },
    Target { name: "git", run: project::git, seeds: samples::git },
    Target { name: "options", run: project::options, seeds: samples::options },
];

/// Runs the target called `name` on `bytes`.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of this name");
    (target.run)(bytes);
}

/// A file in memory that holds `bytes`.
fn file(bytes: &[u8]) -> std::fs::File {
    use std::os::unix::fs::FileExt;
    let fd = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::CLOEXEC).expect("a file in memory");
    let file = std::fs::File::from(fd);
    file.write_all_at(bytes, 0).expect("it can be written");
    file
}

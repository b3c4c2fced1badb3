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

/// One decoder, or several that belong together.
pub struct Target {
    /// Its name, as in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// The files whose decoders it runs.
    pub of: &'static [&'static str],
    /// Panics when the decoder does not do what it must with these bytes.
    pub run: fn(&[u8]),
    /// Bytes that it takes, made by our encoders.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All decoders.
pub const TARGETS: &[Target] = &[
    Target { name: "tree", of: &["tree/node.rs"], run: objects::tree, seeds: samples::trees },
    Target { name: "times", of: &["tree/node.rs"], run: objects::times, seeds: samples::times },
    Target { name: "list", of: &["store/content/list.rs"], run: objects::list, seeds: samples::lists },
    Target { name: "root", of: &["tree/root.rs"], run: objects::root, seeds: samples::roots },
    Target { name: "opaque", of: &["store/opaque.rs"], run: objects::opaque, seeds: samples::opaques },
    Target {
        name: "database",
        of: &["database/mod.rs", "database/header.rs"],
        run: objects::database,
        seeds: samples::databases,
    },
    Target { name: "volume", of: &["volume.rs"], run: objects::volume, seeds: samples::volumes },
    Target {
        name: "archive",
        of: &["tree/archive/read.rs"],
        run: objects::archive,
        seeds: samples::archives,
    },
    Target { name: "key", of: &["object/key.rs"], run: objects::key, seeds: samples::keys },
    Target { name: "table", of: &["store/pack.rs"], run: packs::table, seeds: samples::tables },
    Target { name: "pack", of: &["store/pack.rs"], run: packs::pack, seeds: samples::packs },
    Target { name: "frame", of: &["store/pack.rs"], run: packs::frame, seeds: samples::frames },
    Target { name: "index", of: &["store/index.rs"], run: caches::index, seeds: samples::indexes },
    Target {
        name: "statcache",
        of: &["tree/statcache/file.rs"],
        run: caches::statcache,
        seeds: samples::statcaches,
    },
    Target {
        name: "meta",
        of: &["history/snapshot.rs", "history/sealed.rs", "history/id.rs"],
        run: history::meta,
        seeds: samples::metas,
    },
    Target { name: "end", of: &["history/snapshot.rs"], run: history::end, seeds: samples::ends },
    Target { name: "journal", of: &["history/journal.rs"], run: history::journal, seeds: samples::journals },
    Target {
        name: "timeline",
        of: &["history/timeline.rs"],
        run: history::timeline,
        seeds: samples::timelines,
    },
    Target { name: "changes", of: &["history/changes.rs"], run: history::changes, seeds: samples::changes },
    Target { name: "config", of: &["project/config.rs"], run: project::config, seeds: samples::configs },
    Target { name: "user", of: &["project/user.rs"], run: project::user, seeds: samples::users },
    Target { name: "known", of: &["project/registry.rs"], run: project::known, seeds: samples::knowns },
    Target {
        name: "patterns",
        of: &["tree/ignore/mod.rs"],
        run: project::patterns,
        seeds: samples::patterns,
    },
    Target { name: "git", of: &["tree/git/position.rs"], run: project::git, seeds: samples::git },
    Target { name: "options", of: &["tree/select/rule.rs"], run: project::options, seeds: samples::options },
    Target {
        name: "releases",
        of: &["session/release.rs"],
        run: history::releases,
        seeds: samples::releases,
    },
    Target { name: "twins", of: &["session/twin/dropped.rs"], run: history::twins, seeds: samples::twins },
    Target { name: "seen", of: &["database/seen.rs"], run: caches::seen, seeds: samples::seens },
    Target { name: "memo", of: &["tree/capture/git/memo.rs"], run: caches::memo, seeds: samples::memos },
    Target { name: "consent", of: &["project/consents.rs"], run: project::consent, seeds: samples::consents },
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

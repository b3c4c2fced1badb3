//! What a backend costs: finding, loading and calling the tree's component on an empty
//! directory, in one process. `cargo run --release -p snapback-runtime --example start -- DIR`,
//! where DIR may be written to; the second run shows the cost once it is compiled.

#![allow(clippy::print_stdout, reason = "it is there to print")]

use snapback_core::backend::{Backends, Call, Target};
use snapback_core::disk::Disk;
use snapback_core::report::Silent;
use snapback_core::store::Store;
use snapback_runtime::{Registry, Setup};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(std::env::args_os().nth(1).ok_or("which directory?")?);
    let root = dir.join("project");
    std::fs::create_dir_all(&root)?;
    let path = dir.join(format!("store-{}", std::process::id()));
    let store = Store::create(&path, Disk::default().with_sync(false))?;
    let target = Target { name: "tree".into(), backend: "tree".into(), settings: Default::default() };
    let call = Call {
        writer: Some(Arc::new(store.writer()?)),
        ..Call::about(root.canonicalize()?, target, Some(store), Arc::new(Silent))
    };

    let begin = Instant::now();
    let registry = Registry::new(Setup {
        cache: vec![dir.join("components")],
        folders: vec![dir.join("plugins")],
        ..Setup::default()
    });
    registry.manifest("tree")?;
    let known = begin.elapsed();
    let tree = registry.get("tree")?;
    let ready = begin.elapsed();
    let parts = tree.snapshot(&call, &[])?;
    let first = begin.elapsed() - ready;
    let again = Instant::now();
    tree.snapshot(&call, &parts)?;
    println!(
        "known {known:.1?}, made ready {ready:.1?}, first call {first:.1?}, second call {:.1?}",
        again.elapsed()
    );
    std::fs::remove_dir_all(path)?;
    Ok(())
}

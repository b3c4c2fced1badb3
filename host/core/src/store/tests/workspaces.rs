//! Directories in `tmp/`: they go with their value, and what a killed process left of
//! one goes with the next writer.

use super::*;

#[test]
fn a_workspace_goes_when_it_is_no_longer_used() {
    let scratch = Scratch::new("workspace");
    let store = scratch.store();
    let used = store.workspace().unwrap();
    std::fs::write(used.dir().path().join("file"), "x").unwrap();
    // As a killed process leaves it.
    std::fs::create_dir(scratch.0.join("store/tmp/left")).unwrap();
    std::fs::write(scratch.0.join("store/tmp/left/file"), "x").unwrap();
    std::fs::write(scratch.0.join("store/tmp/pack"), "x").unwrap();
    drop(store.writer().unwrap());
    assert_eq!(scratch.names("tmp").len(), 1, "{:?}", scratch.names("tmp"));
    assert_eq!(std::fs::read(used.dir().path().join("file")).unwrap(), b"x");
    drop(used);
    assert!(scratch.names("tmp").is_empty());
}

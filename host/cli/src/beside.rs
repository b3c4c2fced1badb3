//! The program beside this one that works in containers: small, since it does nothing else.
//!
//! One of another build keeps another form of what is stored, so it is not taken: then, and where
//! there is none, this program itself goes into the container.

use std::path::{Path, PathBuf};

/// Its name.
const NAME: &str = "snapback-volumes";
/// What stands in the file of each program of this build.
const BUILD: &str = env!("SNAPBACK_BUILD");
/// It is far smaller; something larger is no such program, in bytes.
const MOST: u64 = 64 << 20;

/// Where it is.
pub fn helper() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let file = own.with_file_name(NAME);
    is_of(&file, BUILD).then_some(file)
}

/// Whether the file of a program has the mark `build` in it.
fn is_of(file: &Path, build: &str) -> bool {
    let is_small = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MOST);
    let (build, first) = (build.as_bytes(), build.as_bytes()[0]);
    let has = |bytes: Vec<u8>| bytes.windows(build.len()).any(|part| part[0] == first && part == build);
    is_small && std::fs::read(file).is_ok_and(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_another_build_is_none() {
        let own = std::env::current_exe().unwrap();
        assert!(is_of(&own, BUILD), "this one has it in it");
        let other: String = BUILD.chars().rev().collect();
        assert!(!is_of(&own, &other));
        assert!(!is_of(Path::new("/"), BUILD) && !is_of(Path::new("/no-such"), BUILD));
    }
}

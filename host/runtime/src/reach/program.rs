//! Programs: the file that a name stands for, and what is in it.
//!
//! What is agreed to is the file's path and its content, so that another one of the same
//! name is asked for again. What a program itself starts or loads is beyond this.

use crate::digest::hex;
use sha2::{Digest, Sha256};
use snapback_core::error::{Error, Kind, Result, show};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// SHA-256 of its content, in hexadecimal.
    pub digest: String,
}

/// The program that `value` names: a full path, or a name that is looked for in
/// `folders`, which has the form of `PATH`. A relative path is none: it would be the project's.
///
/// # Errors
/// `Invalid` for a relative path, `NotFound` when there is none.
pub fn find(key: &str, value: &str, folders: &OsStr) -> Result<Program> {
    let given = Path::new(value);
    if given.is_absolute() {
        return read(given);
    }
    if value.contains('/') {
        let why = format!("the setting `{key}` names a program, by its full path or a name, not `{value}`");
        return Err(Error::new(Kind::Invalid, why).hint("write it from the root: \"/usr/bin/...\""));
    }
    let mut candidates =
        std::env::split_paths(folders).filter(|folder| folder.is_absolute()).map(|folder| folder.join(given));
    match candidates.find(|path| is_program(path)) {
        Some(path) => read(&path),
        None => {
            let why = format!("there is no program `{value}` (setting `{key}`)");
            Err(Error::new(Kind::NotFound, why).hint("is it installed, and in a directory of PATH?"))
        }
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn read(path: &Path) -> Result<Program> {
    let failed = |e| Error::io(e, "could not read the program", path);
    let path = path.canonicalize().map_err(failed)?;
    if !is_program(&path) {
        let why = format!("{} is not a program", show(&path));
        return Err(Error::new(Kind::Invalid, why).hint("it must be a file that may be executed"));
    }
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 64 * 1024]);
    let mut file = File::open(&path).map_err(failed)?;
    loop {
        match file.read(&mut chunk).map_err(failed)? {
            0 => break,
            len => hash.update(&chunk[..len]),
        }
    }
    let digest = hex(&hash.finalize());
    Ok(Program { path, digest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::fs;

    #[test]
    fn a_program_is_a_file_and_its_content() {
        let scratch = Scratch::new();
        let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
        for (folder, mode) in [(&one, 0o644), (&two, 0o755)] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("tool"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(folder.join("tool"), fs::Permissions::from_mode(mode)).unwrap();
        }
        let folders = std::env::join_paths([Path::new("relative"), &one, &two]).unwrap();
        let found = find("program", "tool", &folders).unwrap();
        assert_eq!(found.path, two.join("tool"));
        assert_eq!(find("program", two.join("tool").to_str().unwrap(), OsStr::new("")).unwrap(), found);
        fs::write(two.join("tool"), "#!/bin/sh\nother").unwrap();
        assert_ne!(find("program", "tool", &folders).unwrap().digest, found.digest);
        for (value, kind) in [
            ("missing", Kind::NotFound),
            ("./tool", Kind::Invalid),
            ("two/tool", Kind::Invalid),
            (one.join("tool").to_str().unwrap(), Kind::Invalid),
            (two.to_str().unwrap(), Kind::Invalid),
        ] {
            assert_eq!(find("program", value, &folders).unwrap_err().kind(), kind, "{value}");
        }
    }
}

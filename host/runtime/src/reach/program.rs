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
    /// Its file, by the name that it was found by: a program may go by its name.
    pub path: PathBuf,
    /// Where that name leads through links, when it does.
    pub leads_to: Option<PathBuf>,
    /// SHA-256 of its content, in hexadecimal.
    pub digest: String,
}

impl Program {
    /// Its path and the beginning of its digest, for people.
    pub fn words(&self) -> String {
        let way = self.leads_to.iter().map(|path| format!("which is {}, ", show(path))).collect::<String>();
        format!("{} ({way}sha256 {})", show(&self.path), &self.digest[..12])
    }

    /// Its file, open, when it is still the same; and whether it is one that another
    /// program reads.
    ///
    /// # Errors
    /// `Changed`; when it cannot be read.
    pub fn open(&self) -> Result<(File, bool)> {
        let (file, digest, is_script) = look(&self.path)?;
        if digest == self.digest {
            return Ok((file, is_script));
        }
        let why = format!("the program {} changed while it was to be run", show(&self.path));
        Err(Error::new(Kind::Changed, why).hint("try again; `snapback trust` asks for what it is now"))
    }
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
    let (_, digest, _) = look(path)?;
    let real = path.canonicalize().map_err(|e| Error::io(e, "could not find", path))?;
    Ok(Program { path: path.to_owned(), leads_to: (real != path).then_some(real), digest })
}

/// The file at `path`, the digest of its content, and whether it begins like a script.
fn look(path: &Path) -> Result<(File, String, bool)> {
    let failed = |e| Error::io(e, "could not read the program", path);
    if path.exists() && !is_program(path) {
        let why = format!("{} is not a program", show(path));
        return Err(Error::new(Kind::Invalid, why).hint("it must be a file that may be executed"));
    }
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 64 * 1024]);
    let mut file = File::open(path).map_err(failed)?;
    let mut start: Vec<u8> = Vec::new();
    loop {
        match file.read(&mut chunk).map_err(failed)? {
            0 => break,
            len => {
                start.extend(chunk[..len].iter().take(2 - start.len()));
                hash.update(&chunk[..len]);
            }
        }
    }
    Ok((file, hex(&hash.finalize()), start == b"#!"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::fs;
    use std::os::unix::fs::symlink;

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
        assert_eq!(found.open().unwrap_err().kind(), Kind::Changed);
        symlink("tool", two.join("name")).unwrap();
        let named = find("program", "name", &folders).unwrap();
        assert_eq!((named.path.clone(), named.leads_to.clone()), (two.join("name"), Some(two.join("tool"))));
        assert!(named.words().contains(&format!(
            "which is {}/tool, sha256 {}",
            two.display(),
            &named.digest[..12]
        )));
        assert!(named.open().unwrap().1, "a script is told by its first bytes");
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

//! Directories that settings of kind dir were given, file by file.
//!
//! A directory is opened by its setting and everything in it by a path beneath it; the
//! host refuses what leads out, and writing where the manifest asks for reading only.
//! Whole trees are captured faster and more exactly by the host: see [`crate::tree`].

use crate::bindings::wasi::filesystem::preopens::get_directories;
use crate::bindings::wasi::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags,
};
use crate::{Error, ErrorKind};
use crate::{Reader, Result};
use std::io::{self, Read};

/// Bytes written at once.
const CHUNK: usize = 4096;

/// A directory that was granted.
pub struct Dir(Descriptor);

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// Anything else.
    Other,
}

impl Dir {
    /// Opens the directory that the setting `key` names.
    ///
    /// # Errors
    /// `NotFound` when there is none, or it was not granted.
    pub fn open(key: &str) -> Result<Self> {
        let name = format!("/{key}");
        let found = get_directories().into_iter().find(|(_, path)| *path == name);
        found.map(|(dir, _)| Self(dir)).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no directory where `{key}` leads"))
        })
    }

    /// The names in the directory `path` and what they are, in no order. Names that are
    /// not UTF-8 cannot be had this way.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn entries(&self, path: &str) -> Result<Vec<(String, Kind)>> {
        let dir = self.descriptor(path, OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
        let stream = dir.read_directory().map_err(|code| failed(code, path))?;
        let mut entries = Vec::new();
        while let Some(entry) = stream.read_directory_entry().map_err(|code| failed(code, path))? {
            let kind = match entry.type_ {
                DescriptorType::RegularFile => Kind::File,
                DescriptorType::Directory => Kind::Dir,
                DescriptorType::SymbolicLink => Kind::Link,
                _ => Kind::Other,
            };
            entries.push((entry.name, kind));
        }
        Ok(entries)
    }

    /// Reads the file `path` from its start.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn reader(&self, path: &str) -> Result<Reader> {
        let file = self.descriptor(path, OpenFlags::empty(), DescriptorFlags::READ)?;
        Ok(file.read_via_stream(0).map_err(|code| failed(code, path))?.into())
    }

    /// All bytes of the file `path`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes all that `content` has into the file `path`, which is made, or emptied first.
    ///
    /// # Errors
    /// When it cannot be written, or `content` fails.
    pub fn write(&self, path: &str, content: &mut impl Read) -> Result<()> {
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE;
        let file = self.descriptor(path, flags, DescriptorFlags::WRITE)?;
        let stream = file.write_via_stream(0).map_err(|code| failed(code, path))?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let len = match content.read(&mut chunk) {
                Ok(0) => break,
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            stream
                .blocking_write_and_flush(&chunk[..len])
                .map_err(|_| Error::new(ErrorKind::Other, format!("could not write {path}")))?;
        }
        drop(stream);
        file.sync().map_err(|code| failed(code, path))
    }

    /// Makes the directory `path`.
    ///
    /// # Errors
    /// When it is there, or cannot be made.
    pub fn create_dir(&self, path: &str) -> Result<()> {
        self.0.create_directory_at(path).map_err(|code| failed(code, path))
    }

    /// Gives the entry `from` the name `to`, in place of what was there.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.0.rename_at(from, &self.0, to).map_err(|code| failed(code, from))
    }

    /// Removes the file `path`.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_file(&self, path: &str) -> Result<()> {
        self.0.unlink_file_at(path).map_err(|code| failed(code, path))
    }

    /// Removes the empty directory `path`.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_dir(&self, path: &str) -> Result<()> {
        self.0.remove_directory_at(path).map_err(|code| failed(code, path))
    }

    fn descriptor(&self, path: &str, open: OpenFlags, flags: DescriptorFlags) -> Result<Descriptor> {
        let path = if path.is_empty() { "." } else { path };
        self.0.open_at(PathFlags::empty(), path, open, flags).map_err(|code| failed(code, path))
    }
}

fn failed(code: ErrorCode, path: &str) -> Error {
    let (kind, why) = match code {
        ErrorCode::NoEntry => (ErrorKind::NotFound, "there is no such file or directory".to_owned()),
        ErrorCode::Access | ErrorCode::NotPermitted | ErrorCode::ReadOnly => {
            (ErrorKind::Denied, "it is not allowed".to_owned())
        }
        ErrorCode::InsufficientSpace | ErrorCode::Quota => {
            (ErrorKind::NoSpace, "the disk is full".to_owned())
        }
        other => (ErrorKind::Other, other.message().to_owned()),
    };
    Error::new(kind, format!("{path}: {why}"))
}

//! The file that the report of a run goes to, which may be a fifo or a device.
//!
//! Invariant: what cannot be written is refused before the command starts. Nobody is waited for
//! who does not read: a fifo without a reader is refused as well; while one is held open, its
//! reader sees no end of it. What the standard streams write is not cut off by it: a report into
//! the same file, as `/dev/stdout` may be one, follows after that.

use rustix::fs::{Access, FileType, OFlags, access, fcntl_getfl, fcntl_setfl};
use snapback_core::error::{Error, Kind, Result, show};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Looks whether `file` can be written, which is left as it is. Holds it open if it is a fifo.
///
/// # Errors
/// When it is a directory or may be written by nobody here, when it is not there and may not be
/// made, or a fifo that nobody reads.
pub fn ready(file: &Path) -> Result<Option<File>> {
    let failed =
        |error, place, hint| Err(Error::io(error, "could not write the report into", place).hint(hint));
    match fs::metadata(file) {
        Ok(meta) if meta.file_type().is_fifo() => fifo(file).map(Some),
        Ok(meta) if meta.is_dir() => {
            let why = format!("{} is a directory: no report can be written into it", show(file));
            Err(Error::new(Kind::Invalid, why).hint("`--report` takes the name of a file"))
        }
        Ok(_) => match access(file, Access::WRITE_OK) {
            Ok(()) => Ok(None),
            Err(error) => {
                failed(error, file, "name another file, or make this one writable with `chmod u+w`")
            }
        },
        Err(_) => {
            let folder = file.parent().unwrap_or(Path::new("/"));
            match access(folder, Access::WRITE_OK) {
                Ok(()) => Ok(None),
                Err(error) => failed(
                    error,
                    folder,
                    "`--report` takes a file in a directory that is there and can be written",
                ),
            }
        }
    }
}

fn fifo(file: &Path) -> Result<File> {
    open(file).map_err(|error| match error.raw_os_error() {
        Some(no_reader) if no_reader == rustix::io::Errno::NXIO.raw_os_error() => {
            let why = format!("nobody reads the fifo {}, which the report is to go to", show(file));
            Error::new(Kind::Busy, why).hint("start what reads it first, or name a file")
        }
        _ => Error::io(error, "could not write the report into", file),
    })
}

/// Writes the report.
///
/// # Errors
/// When it cannot be, or nobody reads the fifo that it goes to any more.
pub fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(mut stream) = stream(file) {
        return stream.write_all(text);
    }
    let mut open = open(file)?;
    // Its reader may take its time.
    fcntl_setfl(&open, fcntl_getfl(&open)?.difference(OFlags::NONBLOCK))?;
    open.write_all(text)
}

/// The standard stream that writes into `file`, which is no device or fifo.
fn stream(file: &Path) -> Option<File> {
    let wanted =
        rustix::fs::stat(file).ok().filter(|stat| FileType::from_raw_mode(stat.st_mode).is_file())?;
    let is_it = |stream: BorrowedFd<'_>| {
        let stat = rustix::fs::fstat(stream).ok();
        stat.is_some_and(|stat| (stat.st_dev, stat.st_ino) == (wanted.st_dev, wanted.st_ino))
    };
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let mut streams = [stdout.as_fd(), stderr.as_fd()].into_iter();
    streams.find(|stream| is_it(*stream)).and_then(|stream| stream.try_clone_to_owned().ok()).map(File::from)
}

fn open(file: &Path) -> io::Result<File> {
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    File::options().write(true).create(true).truncate(true).custom_flags(at_once).open(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_fifo_is_written_to_whoever_reads_it_and_refused_without() {
        let dir = std::env::temp_dir().join(format!("snapback-cli-reported-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (plain, pipe) = (dir.join("plain"), dir.join("pipe"));
        assert!(ready(&plain).unwrap().is_none() && !plain.exists());
        write(&plain, b"longer than it").unwrap();
        write(&plain, b"this").unwrap();
        assert!(ready(&plain).unwrap().is_none());
        assert_eq!(fs::read(&plain).unwrap(), b"this");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(ready(&dir).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(ready(&pipe).unwrap_err().kind(), Kind::Busy);
        assert_eq!(write(&pipe, b"x").unwrap_err().raw_os_error(), Some(6));
        // As a reader has it that waits for a writer, which here is its own.
        let reader = File::options().read(true).write(true).open(&pipe).unwrap();
        assert!(ready(&pipe).unwrap().is_some());
        write(&pipe, b"report").unwrap();
        let mut seen = [0; 6];
        io::Read::read_exact(&mut &reader, &mut seen).unwrap();
        assert_eq!(&seen, b"report");
        fs::remove_dir_all(&dir).unwrap();
    }
}

//! A volume's files reached by archives alone, where the engine's machine runs no programs of
//! this one's kind: a container that has the volume and nothing in it, and is never started.
//!
//! The engine packs what is there and unpacks what is sent; it deletes only what another kind
//! of entry takes the place of. What it packs goes into the store as it comes, so memory does
//! not grow with what the files hold.

use super::daemon::Daemon;
use super::{fault, image, marker, mount};
use bollard::models::{ContainerCreateBody, HostConfig, Mount};
use bollard::query_parameters::{
    ContainerArchiveInfoOptions, DownloadFromContainerOptions, UploadToContainerOptions,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::Key;
use snapback_core::tree::Options;
use snapback_core::tree::archive::{self, Far, Give, Of, Seen, Take};
use std::io::{BufWriter, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// Pieces that are on their way at once.
const PIECES: usize = 8;
/// Bytes of one that is sent.
const PIECE: usize = 256 * 1024;
/// How long the engine may take to unpack an archive: far more than any needs, so that one
/// that hangs is not waited for until the end of time.
const UNPACKING: Duration = Duration::from_secs(24 * 60 * 60);
/// Kinds of entries in the engine's numbers.
const DIR: u32 = 1 << 31;
const SYMLINK: u32 = 1 << 27;
const ODD: u32 = 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19;

/// A volume that is reached by archives.
pub struct Archive {
    daemon: Daemon,
    name: String,
    setting: String,
    mount: Mount,
}

impl Archive {
    /// The volume `name`, which `setting` names and `mount` brings.
    pub fn new(daemon: &Daemon, name: &str, setting: &str, mount: Mount) -> Self {
        Self { daemon: daemon.clone(), name: name.to_owned(), setting: setting.to_owned(), mount }
    }

    /// Stores its files, which are captured as `options` says.
    ///
    /// # Errors
    /// As core's capture has them, and when the engine refuses.
    pub fn capture(&self, call: &Call, options: &Options) -> Result<Key> {
        let is_first = call.cover.is_empty() && !call.writer.as_ref().is_some_and(|w| w.is_scratch());
        if is_first {
            let why = format!(
                "the volume `{}` is reached by archives alone, since the engine runs no programs of this \
                 machine's kind: an undo will not delete what is added to it",
                self.name
            );
            call.report.log(&call.target.name, "warn", &why);
        }
        let container = Container::make(self)?;
        let of = Of { setting: &self.setting, above: 1, options };
        let mut key = None;
        container.fetch(b"", &mut |input| {
            key = Some(archive::capture(input, &of, call)?);
            Ok(())
        })?;
        key.ok_or_else(|| Error::corrupt("the engine sent no archive"))
    }

    /// Puts them back; how many were left as they are.
    ///
    /// # Errors
    /// As core's restore has them, and when the engine refuses.
    pub fn restore(&self, call: &Call, stored: &Key, current: &Key) -> Result<usize> {
        archive::restore(&Container::make(self)?, &self.name, call, stored, current)
    }

    /// Whether it holds nothing but what was captured as `current`.
    ///
    /// # Errors
    /// When the engine does not tell.
    pub fn holds_nothing_new(&self, call: &Call, current: &Key) -> Result<bool> {
        archive::holds_nothing_new(&Container::make(self)?, call, current)
    }
}

/// A container of our own that is never started, gone with this value.
struct Container<'a> {
    of: &'a Archive,
    id: String,
}

impl<'a> Container<'a> {
    fn make(of: &'a Archive) -> Result<Self> {
        let body = ContainerCreateBody {
            image: Some(image::empty(&of.daemon)?),
            cmd: Some(vec![marker::NOTHING.into()]),
            labels: Some(marker::labels(&of.name)),
            network_disabled: Some(true),
            host_config: Some(HostConfig {
                mounts: Some(vec![of.mount.clone()]),
                network_mode: Some("none".into()),
                ..Default::default()
            }),
            ..Default::default()
        };
        Ok(Self { of, id: marker::create(&of.daemon, body)? })
    }

    /// Where `path`, which is UTF-8, is in it.
    fn at(&self, path: &[u8]) -> Result<String> {
        let path =
            std::str::from_utf8(path).map_err(|_| Error::corrupt("a path that no question can have"))?;
        let place = mount::place(&self.of.name);
        Ok(if path.is_empty() { place } else { format!("{place}/{path}") })
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        // What stays is removed by the next command.
        let _ = marker::remove(&self.of.daemon, &self.id);
    }
}

impl Far for Container<'_> {
    fn look(&self, path: &[u8]) -> Result<Option<Seen>> {
        let options = ContainerArchiveInfoOptions { path: self.at(path)? };
        let (daemon, id) = (&self.of.daemon, &self.id);
        let doing = format!("look into the volume `{}`", self.of.name);
        let told =
            daemon.try_ask(async |client| client.get_container_archive_info(id, Some(options)).await)?;
        let told = match told {
            Ok(told) => told,
            Err(answer) if fault::is_missing(&answer) => return Ok(None),
            Err(answer) => return Err(daemon.explain(&doing, &answer)),
        };
        let odd =
            || Error::new(Kind::Other, format!("could not {doing}: what the engine says makes no sense"));
        Ok(Some(match told.file_mode {
            mode if mode & DIR != 0 => Seen::Dir,
            mode if mode & SYMLINK != 0 => Seen::Symlink(None),
            mode if mode & ODD != 0 => Seen::Other,
            _ => {
                let when = told.modification_time.unwrap_or_default();
                u64::try_from(told.size).ok().and_then(|size| Seen::file(size, &when)).ok_or_else(odd)?
            }
        }))
    }

    fn fetch(&self, path: &[u8], take: Take<'_>) -> Result<()> {
        let options = DownloadFromContainerOptions { path: self.at(path)? };
        let (sends, pieces) = sync_channel(PIECES);
        let doing = format!("read the files of the volume `{}`", self.of.name);
        std::thread::scope(|scope| {
            let taking = scope.spawn(move || take(&mut Pieces { pieces, piece: Bytes::new() }));
            let done = self.of.daemon.ask(&doing, async |client| {
                let mut packed = std::pin::pin!(client.download_from_container(&self.id, Some(options)));
                while let Some(piece) = packed.next().await {
                    // Who has enough is told of no more.
                    if sends.send(piece?).is_err() {
                        break;
                    }
                }
                drop(sends);
                Ok(())
            });
            let taken = taking.join().unwrap_or_else(|_| Err(Error::panicked("reading an archive")));
            done.and(taken)
        })
    }

    fn send(&self, give: Give<'_>) -> Result<()> {
        let options = UploadToContainerOptions { path: mount::VOLUMES.to_owned(), ..Default::default() };
        let (sends, mut pieces) = tokio::sync::mpsc::channel::<Bytes>(PIECES);
        let body = bollard::body_stream(stream::poll_fn(move |context| pieces.poll_recv(context)));
        let doing = format!("put the files of the volume `{}` back", self.of.name);
        let is_gone = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let giving =
                scope.spawn(move || give(&mut BufWriter::with_capacity(PIECE, Sink { sends, is_gone })));
            let done = self.of.daemon.ask(&doing, async |client| {
                let client = client.clone().with_timeout(UNPACKING);
                client.upload_to_container(&self.id, Some(options), body).await
            });
            let given = giving.join().unwrap_or_else(|_| Err(Error::panicked("writing an archive")));
            // Who ended first says why.
            if is_gone.load(Ordering::Relaxed) { done.and(given) } else { given.and(done) }
        })
    }
}

/// An archive as it comes from the engine.
struct Pieces {
    pieces: Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.recv() {
                Ok(piece) => self.piece = piece,
                Err(_) => return Ok(0),
            }
        }
        let n = buffer.len().min(self.piece.len());
        buffer[..n].copy_from_slice(&self.piece.split_to(n));
        Ok(n)
    }
}

/// An archive as it goes to the engine.
struct Sink<'a> {
    sends: Sender<Bytes>,
    /// Whether the engine took no more.
    is_gone: &'a AtomicBool,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.sends.blocking_send(Bytes::copy_from_slice(bytes)).is_err() {
            self.is_gone.store(true, Ordering::Relaxed);
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

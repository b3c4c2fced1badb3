//! Talking to an engine: one connection for each question, every wait with an end.
//!
//! The engine's client is asynchronous and everything around it is not: a thread of its
//! own runs each conversation to its end, wherever it is asked from.

use super::endpoint::Endpoint;
use super::fault;
use bollard::{ClientVersion, Docker};
use snapback_core::error::{Error, Kind, Result};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Seconds that an engine has for an answer: a container may take its time to stop.
const PATIENCE: u64 = 300;
/// How long an engine has to say that it is there.
const GREETING: Duration = Duration::from_secs(15);
/// How often an engine that is away is asked again, and how long it is waited for between.
pub const TRIES: u32 = 120;
/// See [`TRIES`].
pub const BETWEEN: Duration = Duration::from_millis(500);
/// How long is waited until what passes at an engine may have passed.
const SETTLING: Duration = Duration::from_millis(100);
/// How an engine begins to say that it runs without root's rights.
const ROOTLESS: &str = "name=rootless";
/// The newest version of the interface that is asked for; an older engine has its own.
const NEWEST: ClientVersion = ClientVersion { major_version: 1, minor_version: 43 };

/// What the caller lends.
#[derive(Clone)]
pub struct Lent {
    /// The value of a variable of the environment.
    pub variables: fn(&str) -> Option<String>,
    /// This program, to be started again as a watcher or in a container: with the word
    /// that `watch` and `inside` have for it.
    pub program: Option<PathBuf>,
    /// A smaller program of the same build for containers, where there is one.
    pub helper: fn() -> Option<PathBuf>,
    /// Directories of this machine that are in no capture, by device and inode.
    pub own: Arc<[(u64, u64)]>,
}

impl Default for Lent {
    fn default() -> Self {
        Self { variables: |_| None, program: None, helper: || None, own: Arc::default() }
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("program", &self.program).finish_non_exhaustive()
    }
}

/// The machine of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// What it is called.
    pub name: String,
    /// Its system: linux.
    pub system: String,
    /// Its architecture.
    pub architecture: String,
    /// Whether the engine runs without root's rights there.
    pub is_rootless: bool,
}

impl Machine {
    /// Whether what runs here runs there.
    pub fn runs_programs_of_ours(&self) -> bool {
        let own = std::env::consts::ARCH;
        let names = match own {
            "x86_64" => &[own, "amd64"][..],
            "aarch64" => &[own, "arm64"],
            _ => &[own],
        };
        self.system == "linux" && names.contains(&&*self.architecture)
    }
}

/// An engine that answered. Cheap to clone.
#[derive(Clone)]
pub struct Daemon {
    inner: Arc<Inner>,
}

struct Inner {
    endpoint: Endpoint,
    client: Docker,
    lent: Lent,
}

impl Daemon {
    /// Finds the engine and asks whether it is there.
    ///
    /// # Errors
    /// `NotFound` when there is none, `Denied` when this user may not ask it.
    pub fn connect(lent: &Lent) -> Result<Self> {
        Self::at(Endpoint::find(lent)?, lent)
    }

    /// The engine at `endpoint`, waited for while it is away: it may be starting again.
    ///
    /// # Errors
    /// As [`Self::connect`] has them.
    pub fn patiently(endpoint: Endpoint, lent: &Lent) -> Result<Self> {
        for _ in 0..TRIES {
            match Self::at(endpoint.clone(), lent) {
                Err(error) if error.kind() != Kind::Denied => std::thread::sleep(BETWEEN),
                done => return done,
            }
        }
        Self::at(endpoint, lent)
    }

    /// The engine at `endpoint`.
    ///
    /// # Errors
    /// As [`Self::connect`] has them.
    pub fn at(endpoint: Endpoint, lent: &Lent) -> Result<Self> {
        let doing = "look at volumes";
        let client = match &endpoint {
            Endpoint::Socket(path) => Docker::connect_with_unix(&path.to_string_lossy(), PATIENCE, &NEWEST),
            Endpoint::Tcp(host) => Docker::connect_with_http(host, PATIENCE, &NEWEST),
        };
        let client = client.map_err(|e| fault::explain(doing, &endpoint, &e))?;
        let greeted = block(async || tokio::time::timeout(GREETING, client.negotiate_version()).await)?;
        let client = greeted
            .unwrap_or(Err(bollard::errors::Error::RequestTimeoutError))
            .map_err(|e| fault::explain(doing, &endpoint, &e))?;
        Ok(Self { inner: Arc::new(Inner { endpoint, client, lent: lent.clone() }) })
    }

    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.inner.endpoint
    }

    /// What it runs on.
    ///
    /// # Errors
    /// When it does not say.
    pub fn machine(&self) -> Result<Machine> {
        let info = self.ask("look at the engine", async |client| client.info().await)?;
        Ok(Machine {
            name: info.name.unwrap_or_default(),
            system: info.os_type.unwrap_or_default(),
            architecture: info.architecture.unwrap_or_default(),
            is_rootless: info.security_options.iter().flatten().any(|option| option.starts_with(ROOTLESS)),
        })
    }

    /// Whether it runs on this machine: its socket may be another's, or that of the one around
    /// this container.
    ///
    /// # Errors
    /// When it does not say.
    pub fn is_here(&self) -> Result<bool> {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Ok(matches!(self.endpoint(), Endpoint::Socket(_)) && name.trim() == self.machine()?.name)
    }

    /// Whether it is podman, whose interface is docker's but for what is said where it
    /// matters; one that does not say is none.
    pub fn is_podman(&self) -> bool {
        let Ok(Ok(version)) = self.try_ask(async |client| client.version().await) else { return false };
        let mut components = version.components.iter().flatten();
        components.any(|component| component.name.to_lowercase().contains("podman"))
    }

    /// What was lent.
    pub fn lent(&self) -> &Lent {
        &self.inner.lent
    }

    /// Has a conversation with it, `doing` something.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn ask<R: Send>(
        &self,
        doing: &str,
        talk: impl AsyncFnOnce(&Docker) -> Result<R, bollard::errors::Error> + Send,
    ) -> Result<R> {
        self.try_ask(talk)?.map_err(|e| fault::explain(doing, &self.inner.endpoint, &e))
    }

    /// The same, with what the engine answered as it is.
    ///
    /// # Errors
    /// When no conversation can be had at all.
    pub fn try_ask<R: Send>(
        &self,
        talk: impl AsyncFnOnce(&Docker) -> Result<R, bollard::errors::Error> + Send,
    ) -> Result<Result<R, bollard::errors::Error>> {
        block(async || talk(&self.inner.client).await)
    }

    /// What `ask` comes to once the engine has words for it that docker has as well.
    ///
    /// # Errors
    /// As `ask` has them.
    pub fn once_settled<R>(
        &self,
        ask: impl Fn() -> Result<Result<R, bollard::errors::Error>>,
    ) -> Result<Result<R, bollard::errors::Error>> {
        for _ in 0..TRIES {
            match ask()? {
                Err(answer) if fault::is_unreadable(&answer) => std::thread::sleep(SETTLING),
                done => return Ok(done),
            }
        }
        ask()
    }

    /// The error for what the engine answered while something was `doing`.
    pub fn explain(&self, doing: &str, fault: &bollard::errors::Error) -> Error {
        fault::explain(doing, &self.inner.endpoint, fault)
    }
}

/// Runs `talk` to its end on a thread of its own: the one that asks may be one that must
/// not wait.
fn block<R: Send>(talk: impl AsyncFnOnce() -> R + Send) -> Result<R> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|e| Error::new(Kind::Other, format!("could not start to talk to an engine: {e}")))?;
        Ok(runtime.block_on(talk()))
    };
    std::thread::scope(|scope| {
        scope.spawn(run).join().unwrap_or_else(|_| Err(Error::panicked("talking to an engine")))
    })
}

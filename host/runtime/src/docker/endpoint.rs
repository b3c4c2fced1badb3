//! Which engine is meant: `DOCKER_HOST`, else docker's current context, else the socket
//! that is there.
//!
//! Refuses what needs TLS or a remote shell: this program brings neither.

use super::daemon::Lent;
use crate::digest;
use serde::Deserialize;
use snapback_core::error::{Error, Kind, Result, show};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the engine is when nothing says anything.
const DEFAULT: &str = "/var/run/docker.sock";
/// The longest file of docker's own configuration that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Where an engine listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// At a socket of this machine.
    Socket(PathBuf),
    /// At a host and port, in the clear.
    Tcp(String),
}

impl Endpoint {
    /// The one that `lent` leads to.
    ///
    /// # Errors
    /// `Invalid` when it makes no sense, `Incompatible` when it needs what is not here.
    pub fn find(lent: &Lent) -> Result<Self> {
        let var = |name: &str| (lent.variables)(name).filter(|value| !value.is_empty());
        if let Some(host) = var("DOCKER_HOST") {
            return Self::parse(&host, "DOCKER_HOST");
        }
        let folder = var("DOCKER_CONFIG").map(PathBuf::from);
        let folder = folder.or_else(|| Some(PathBuf::from(var("HOME")?).join(".docker")));
        if let Some(folder) = folder
            && let Some(name) = var("DOCKER_CONTEXT").or_else(|| current(&folder))
            && name != "default"
        {
            return of_context(&folder, &name);
        }
        let runtime = var("XDG_RUNTIME_DIR").map(PathBuf::from);
        let own = runtime.iter().flat_map(|dir| [dir.join("docker.sock"), dir.join("podman/podman.sock")]);
        let others = [PathBuf::from(DEFAULT)].into_iter().chain(own);
        let others = others.chain([PathBuf::from("/run/podman/podman.sock")]);
        Ok(Self::Socket(others.into_iter().find(|path| path.exists()).unwrap_or_else(|| DEFAULT.into())))
    }

    /// The engine at `host`, which `source` names.
    ///
    /// # Errors
    /// As [`Self::find`] has them.
    pub fn parse(host: &str, source: &str) -> Result<Self> {
        if let Some(path) = host.strip_prefix("unix://") {
            return Ok(Self::Socket(path.into()));
        }
        let needs = |what: &str| {
            let why =
                format!("{source} names an engine that is reached by {what} ({host}), and snapback has none");
            Err(Error::new(Kind::Incompatible, why)
                .hint("forward its socket (`ssh -L /tmp/docker.sock:/var/run/docker.sock HOST`) and set DOCKER_HOST=unix:///tmp/docker.sock"))
        };
        match host.split_once("://") {
            Some(("tcp" | "http", rest)) => Ok(Self::Tcp(rest.to_owned())),
            Some(("ssh", _)) => needs("ssh"),
            Some(("https", _)) => needs("TLS"),
            _ => {
                let why = format!("{source} is no address of an engine: `{host}`");
                Err(Error::new(Kind::Invalid, why)
                    .hint("write unix:///var/run/docker.sock or tcp://HOST:PORT"))
            }
        }
    }

    /// As `DOCKER_HOST` has it.
    pub fn text(&self) -> String {
        match self {
            Self::Socket(path) => format!("unix://{}", path.display()),
            Self::Tcp(host) => format!("tcp://{host}"),
        }
    }
}

#[derive(Deserialize)]
struct Config {
    #[serde(default, rename = "currentContext")]
    current: String,
}

/// The context that docker's configuration names, when it names one.
fn current(folder: &Path) -> Option<String> {
    let config: Config = serde_json::from_slice(&read(&folder.join("config.json"))?).ok()?;
    Some(config.current).filter(|name| !name.is_empty())
}

#[derive(Deserialize)]
struct Context {
    #[serde(rename = "Endpoints")]
    endpoints: BTreeMap<String, Place>,
}

#[derive(Deserialize)]
struct Place {
    #[serde(default, rename = "Host")]
    host: String,
}

fn of_context(folder: &Path, name: &str) -> Result<Endpoint> {
    let file = folder.join("contexts/meta").join(digest::of(name.as_bytes())).join("meta.json");
    let context = read(&file).and_then(|bytes| serde_json::from_slice::<Context>(&bytes).ok());
    let host = context.as_ref().and_then(|context| context.endpoints.get("docker"));
    match host {
        Some(place) => Endpoint::parse(&place.host, &format!("docker's context `{name}`")),
        None => {
            let why = format!("docker's context `{name}` names no engine ({})", show(&file));
            Err(Error::new(Kind::NotFound, why).hint("`docker context ls` lists those that there are"))
        }
    }
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let meta = std::fs::metadata(file).ok()?;
    (meta.is_file() && meta.len() <= LONGEST).then(|| std::fs::read(file).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn what_is_named_is_understood_or_refused_in_words() {
        let parse = |host: &str| Endpoint::parse(host, "DOCKER_HOST");
        assert_eq!(parse("unix:///a/b.sock").unwrap(), Endpoint::Socket("/a/b.sock".into()));
        assert_eq!(parse("tcp://h:2375").unwrap(), Endpoint::Tcp("h:2375".into()));
        assert_eq!(parse("tcp://h:2375").unwrap().text(), "tcp://h:2375");
        for host in ["ssh://me@h", "https://h:2376"] {
            assert_eq!(parse(host).unwrap_err().kind(), Kind::Incompatible, "{host}");
        }
        for host in ["", "h:2375", "npipe:////./pipe/docker"] {
            assert_eq!(parse(host).unwrap_err().kind(), Kind::Invalid, "{host}");
        }
    }

    #[test]
    fn a_context_is_found_where_docker_keeps_it() {
        let scratch = Scratch::new();
        let folder = scratch.path();
        assert_eq!(current(folder), None);
        std::fs::write(folder.join("config.json"), r#"{"auths": {}, "currentContext": "box"}"#).unwrap();
        assert_eq!(current(folder).as_deref(), Some("box"));
        assert_eq!(of_context(folder, "box").unwrap_err().kind(), Kind::NotFound);
        let meta = folder.join("contexts/meta").join(digest::of(b"box"));
        std::fs::create_dir_all(&meta).unwrap();
        let text =
            r#"{"Name": "box", "Endpoints": {"docker": {"Host": "unix:///x.sock", "SkipTLSVerify": false}}}"#;
        std::fs::write(meta.join("meta.json"), text).unwrap();
        assert_eq!(of_context(folder, "box").unwrap(), Endpoint::Socket("/x.sock".into()));
    }
}

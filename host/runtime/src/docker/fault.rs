//! What an engine answers, as a sentence and a hint.

use super::endpoint::Endpoint;
use bollard::errors::Error as Fault;
use snapback_core::error::{Error, Kind, show};
use std::error::Error as _;
use std::io;

/// The error for a `fault` of the engine at `endpoint` while something was `doing`.
pub fn explain(doing: &str, endpoint: &Endpoint, fault: &Fault) -> Error {
    let Fault::DockerResponseServerError { status_code, message } = fault else {
        return unreached(doing, endpoint, fault);
    };
    let message = crate::component::one_line(message);
    let kind = match status_code {
        404 => Kind::NotFound,
        401 | 403 => Kind::Denied,
        409 => Kind::Busy,
        400 => Kind::Invalid,
        _ => Kind::Other,
    };
    let error = Error::new(kind, format!("could not {doing}: the engine says: {message}"));
    match kind {
        Kind::Other if message.contains("no space left") => {
            Error::new(Kind::NoSpace, error.message()).hint("free space where the engine keeps its data")
        }
        Kind::Busy => error.hint("wait for what is using it, or stop that, and try again"),
        Kind::NotFound => error.hint("`docker volume ls` and `docker ps -a` list what there is"),
        _ => error.hint("the engine's log says more (`journalctl -u docker`)"),
    }
}

/// Whether nothing is there at the engine.
pub fn is_missing(fault: &Fault) -> bool {
    matches!(fault, Fault::DockerResponseServerError { status_code: 404, .. })
}

/// Whether it is so already.
pub fn is_already_so(fault: &Fault) -> bool {
    let Fault::DockerResponseServerError { status_code, message } = fault else { return false };
    *status_code == 409 || *status_code == 400 && message.contains("same name")
}

/// Whether a container could not be paused or let go of because it does not run: docker says so
/// with its runtime's words, and as an error of its own.
pub fn is_over(fault: &Fault) -> bool {
    says(fault, "not running")
}

/// Whether a container could not be let go of because it is not paused.
pub fn is_not_paused(fault: &Fault) -> bool {
    says(fault, "not paused")
}

fn says(fault: &Fault, words: &str) -> bool {
    matches!(fault, Fault::DockerResponseServerError { status_code: 409 | 500, message } if message.contains(words))
}

/// Whether it answered with a word that docker has not: podman has some for what passes, such as
/// `stopped` for a container that has just ended.
pub fn is_unreadable(fault: &Fault) -> bool {
    matches!(fault, Fault::JsonDataError { .. } | Fault::JsonSerdeError { .. })
}

/// Whether the engine did not answer at all.
pub fn is_away(fault: &Fault) -> bool {
    !matches!(fault, Fault::DockerResponseServerError { .. }) && !is_unreadable(fault)
}

fn unreached(doing: &str, endpoint: &Endpoint, fault: &Fault) -> Error {
    let at = match endpoint {
        Endpoint::Socket(path) => show(path),
        Endpoint::Tcp(host) => host.clone(),
    };
    let away = "is it running? `docker info` tells; DOCKER_HOST or `docker context use` name another";
    match (fault, reason(fault)) {
        (_, Some(io::ErrorKind::PermissionDenied)) => {
            Error::new(Kind::Denied, format!("could not {doing}: this user may not talk to the engine at {at}"))
                .hint("whoever is in the group of the socket may (`sudo usermod -aG docker $USER`), and then is as powerful as root")
        }
        (Fault::SocketNotFoundError(_), _) => {
            Error::new(Kind::NotFound, format!("could not {doing}: there is no engine at {at}")).hint(away)
        }
        (Fault::RequestTimeoutError, _) => {
            Error::new(Kind::Busy, format!("could not {doing}: the engine at {at} does not answer")).hint(away)
        }
        (_, Some(io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)) => {
            Error::new(Kind::NotFound, format!("could not {doing}: no engine listens at {at}")).hint(away)
        }
        _ => {
            let why = crate::component::one_line(&innermost(fault));
            Error::new(Kind::Other, format!("could not {doing} with the engine at {at}: {why}")).hint(away)
        }
    }
}

/// What the system said, when it said something.
fn reason(fault: &Fault) -> Option<io::ErrorKind> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(fault);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        next = error.source();
    }
    None
}

fn innermost(fault: &Fault) -> String {
    let mut text = fault.to_string();
    let mut next = fault.source();
    while let Some(error) = next {
        text = error.to_string();
        next = error.source();
    }
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

//! What went wrong in a component, as an error that names it.

use super::state::{MAX_OPEN, State};
use super::told::one_line;
use super::watch::Silent;
use snapback_core::error::{Error, Kind};
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

/// The hint of what is a component's own fault.
pub(crate) const FAULT: &str = "this is a fault of the backend; other targets are not concerned";

/// The error for a call of the backend `name` that did not return.
pub(super) fn explain(name: &str, state: &State, error: &wasmtime::Error) -> Error {
    // What the host itself raised, such as that the user asked to stop.
    if let Some(ours) = error.downcast_ref::<Error>() {
        return ours.clone();
    }
    if !state.started && !state.memory.refused && !error.is::<Trap>() {
        let why = format!("{error:#}");
        let why = why.split(" (os error").next().unwrap_or_default();
        return Error::new(Kind::Other, format!("the backend `{name}` could not be started: {why}"))
            .hint("it needs memory: is there a limit, such as one set with `ulimit -v`?");
    }
    let how = if let Some(silent) = error.downcast_ref::<Silent>() {
        silent.to_string()
    } else if state.memory.refused {
        format!("needs more than the {} of memory that it may have", state.memory.limit())
    } else {
        match (error.downcast_ref::<Trap>(), state.told.last_words()) {
            (_, Some(words)) => format!("gave up: {words}"),
            _ if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) => {
                format!("has {MAX_OPEN} things open, and wants another")
            }
            (Some(Trap::StackOverflow), _) => "ran out of stack".into(),
            (Some(Trap::UnreachableCodeReached), _) => "gave up".into(),
            (Some(trap), _) => format!("failed: {}", trap.to_string().trim_start_matches("wasm trap: ")),
            // Where in its code that was is no help to a user.
            (None, _) => format!("failed: {}", one_line(&error.root_cause().to_string())),
        }
    };
    Error::new(Kind::Other, format!("the backend `{name}` {how}")).hint(FAULT)
}

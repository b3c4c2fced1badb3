//! `types`: the target that a call is about.

use super::bindings::snapback::plugin::types;
use crate::component::State;
use snapback_core::backend::Call;
use snapback_core::error::Error;
use wasmtime::component::Resource;

/// The target of the call at hand. What it is, the call knows.
pub struct Target;

impl types::Host for State {
    fn convert_error(&mut self, error: Error) -> wasmtime::Result<types::Error> {
        Ok(error.into())
    }
}

impl types::HostTarget for State {
    fn name(&mut self, _: Resource<Target>) -> wasmtime::Result<String> {
        Ok(self.call()?.target.name.clone())
    }

    fn setting(&mut self, _: Resource<Target>, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.grants.value(&key).map(str::to_owned))
    }

    fn only(&mut self, _: Resource<Target>) -> wasmtime::Result<Vec<Vec<u8>>> {
        Ok(self.call()?.only.to_vec())
    }

    fn occasion(&mut self, _: Resource<Target>) -> wasmtime::Result<String> {
        Ok(occasion(self.call()?).to_owned())
    }

    fn drop(&mut self, target: Resource<Target>) -> wasmtime::Result<()> {
        self.table.delete(target)?;
        Ok(())
    }
}

/// The word for why a call is made.
fn occasion(call: &Call) -> &'static str {
    let kept = call.writer.as_ref().is_some_and(|writer| !writer.is_scratch());
    match (&call.hold, call.cover.is_empty(), kept) {
        (Some(_), ..) => "again",
        (None, true, _) => "",
        (None, false, true) => "restore",
        (None, false, false) => "look",
    }
}

//! `types`: the target that a call is about.

use super::bindings::snapback::plugin::types;
use crate::component::State;
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

    fn drop(&mut self, target: Resource<Target>) -> wasmtime::Result<()> {
        self.table.delete(target)?;
        Ok(())
    }
}

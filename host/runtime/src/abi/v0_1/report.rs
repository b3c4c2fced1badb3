//! `report`: what a component tells the user.

use super::bindings::snapback::plugin::report;
use crate::component::State;
use wasmtime::component::Resource;

/// Work that is going on.
pub struct Task;

impl report::Host for State {
    fn log(&mut self, level: String, message: String) -> wasmtime::Result<()> {
        self.told.log(&level, &message);
        Ok(())
    }

    fn omitted(&mut self, subject: Vec<u8>, reason: String) -> wasmtime::Result<()> {
        self.told.omitted(&subject, &reason);
        Ok(())
    }

    fn refused(&mut self, subject: Vec<u8>, reason: String) -> wasmtime::Result<()> {
        self.told.refused(&subject, &reason);
        Ok(())
    }
}

impl report::HostTask for State {
    fn new(&mut self, title: String, total: Option<u64>, unit: String) -> wasmtime::Result<Resource<Task>> {
        let task = self.table.push(Task)?;
        self.told.begin(&title, total, &unit);
        Ok(task)
    }

    fn advance(&mut self, _: Resource<Task>, by: u64) -> wasmtime::Result<()> {
        self.told.advance(by);
        Ok(())
    }

    fn cancelled(&mut self, _: Resource<Task>) -> wasmtime::Result<bool> {
        Ok(self.call()?.cancel.is_cancelled())
    }

    fn drop(&mut self, task: Resource<Task>) -> wasmtime::Result<()> {
        self.table.delete(task)?;
        self.told.end();
        Ok(())
    }
}

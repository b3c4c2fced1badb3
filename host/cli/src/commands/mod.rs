//! The commands, one file each.
//!
//! Each takes the context and its own arguments and returns an exit code or an error;
//! `main` turns the error into text and a code. `run` alone chooses its code itself.

pub mod backends;
pub mod cat;
pub mod completions;
pub mod diff;
pub mod forget;
pub mod gc;
mod histories;
pub mod init;
pub mod inside;
pub mod list;
mod put_back;
pub mod redo;
pub mod restore;
pub mod review;
pub mod run;
pub mod show;
pub mod snap;
pub mod status;
mod take;
pub mod trust;
pub mod undo;
pub mod verify;

//! Directories: what an entry is, how they are captured, compared and put back.

pub mod compare;
pub mod node;
pub mod root;
#[cfg(test)]
mod sample;

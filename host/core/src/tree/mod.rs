//! Directories: what an entry is, how they are captured, compared and put back.

pub mod compare;
mod directory;
mod ignore;
pub mod node;
pub mod root;
#[cfg(test)]
mod sample;
pub mod scan;
pub mod select;
pub mod statcache;

pub use directory::Directory;
pub use select::Options;

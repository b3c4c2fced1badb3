//! Directories: what an entry is, how they are captured, compared and put back.

pub mod apply;
pub mod archive;
pub mod capture;
pub mod census;
pub mod compare;
mod directory;
pub mod git;
pub(crate) mod ignore;
mod left_out;
mod measure;
pub mod node;
pub mod plan;
pub mod root;
#[cfg(test)]
mod sample;
pub mod scan;
pub mod select;
pub mod statcache;
mod survey;
pub mod view;
pub mod xattr;

pub use apply::{preflight, restore};
pub use capture::capture;
pub use directory::Directory;
pub use ignore::Patterns;
pub use measure::{Measure, measure};
pub use plan::Plans;
pub use select::Options;
pub use survey::{Precious, Survey, Surveys};

//! Content of any length as objects: one blob, or a tree of lists over blocks.
//!
//! Content of at most `BLOCK` bytes is one `Blob`. Longer content is cut into blocks
//! of exactly `BLOCK` bytes (the last one shorter), each a `Blob`; a `List` of level
//! 1 names up to 128 blocks, one of level n up to 128 lists of level n - 1. The shape
//! depends on the length alone, so equal content has equal keys, a small change makes
//! one block and a path of small lists new, and lists that are wholly zero are known
//! without reading.
//!
//! Invariant: memory is constant in the length of the content. What a list says is
//! checked against what its place asks for: lengths and levels in a stored list are
//! not trusted.

mod build;
mod compare;
mod file;
mod first;
pub(crate) mod holes;
mod list;
mod load;
pub(super) mod zeros;

pub use build::store_bytes;
pub use compare::{EachRange, differing};
pub use file::{name_file, store_file, store_still};
pub use first::with_first_block;
pub use list::{List, children};
pub use load::{
    EachPiece, Leaf, Piece, begins_shared, load, load_range, pieces, read_all, read_begin, spread, view,
};

/// Content of more bytes than this is large: all threads together read and write it, and
/// where file systems share blocks between files, it is shared.
pub const LARGE: u64 = 8 << 20;

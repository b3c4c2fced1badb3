//! Decoded frames that were read last: neighbours are read together.
//!
//! One lock, held for a look at a short list; decoding happens outside it, and two
//! threads that want the same frame decode it once. Bounded in bytes.

use super::pack::Frame;
use crate::error::{Error, Result};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of decoded frames that are kept.
const LIMIT: usize = 8 << 20;
/// Frames larger than this are not kept.
const LARGE: usize = 2 << 20;

/// What names a frame: its pack, and all that is said of its place there. Of two that
/// begin at one offset, one is an index's lie.
pub type FrameId = ([u8; 16], Frame);
type Cell = Arc<OnceLock<Result<Vec<u8>, Error>>>;

struct Slot {
    id: FrameId,
    bytes: usize,
    cell: Cell,
}

/// The frames that were read last.
#[derive(Default)]
pub struct Frames(Mutex<Vec<Slot>>);

/// A decoded frame.
pub struct Decoded(Cell);

impl Decoded {
    /// Its bytes.
    pub fn bytes(&self) -> Result<&[u8]> {
        match self.0.get() {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(e)) => Err(e.clone()),
            None => Ok(&[]),
        }
    }
}

impl Frames {
    /// The frame `id` of `bytes` decoded bytes; `load` fills a buffer with it when it is not kept.
    pub fn get(
        &self,
        id: FrameId,
        bytes: usize,
        load: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Decoded> {
        let mut reuse = None;
        let cell = {
            let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = slots.iter().rposition(|slot| slot.id == id) {
                let slot = slots.remove(at);
                let cell = slot.cell.clone();
                slots.push(slot);
                cell
            } else {
                let cell = Cell::default();
                // An empty frame shares its offset with the next one.
                if (1..=LARGE).contains(&bytes) {
                    let mut total: usize = bytes + slots.iter().map(|slot| slot.bytes).sum::<usize>();
                    while total > LIMIT && !slots.is_empty() {
                        let old = slots.remove(0);
                        total -= old.bytes;
                        reuse = reuse.or_else(|| Arc::into_inner(old.cell));
                    }
                    slots.push(Slot { id, bytes, cell: cell.clone() });
                }
                cell
            }
        };
        let reuse = reuse.and_then(OnceLock::into_inner);
        let made = cell.get_or_init(|| {
            let mut buffer = reuse.and_then(Result::ok).unwrap_or_default();
            load(&mut buffer).map(|()| buffer)
        });
        if made.is_err() {
            // A failure is not kept: the next reader tries again.
            self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|slot| slot.id != id);
        }
        Ok(Decoded(cell))
    }
}

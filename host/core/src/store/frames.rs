//! Decoded frames that were read last: neighbours are read together.
//!
//! One lock, held for a look at a short list; decoding happens outside it, and two
//! threads that want the same frame decode it once. Bounded in bytes, of the memory that
//! they take.

use super::pack::Frame;
use crate::error::{Error, Result};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of decoded frames that are kept of what is stored, and of what is being stored:
/// that is read in the order in which it was written, about.
const STORED: usize = 8 << 20;
const BEING_STORED: usize = 2 << 20;
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
pub struct Frames {
    slots: Mutex<Vec<Slot>>,
    limit: usize,
}

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
    /// Of a store's packs.
    pub fn of_store() -> Self {
        Self { slots: Mutex::default(), limit: STORED }
    }

    /// Of packs that are being written.
    pub fn of_writer() -> Self {
        Self { slots: Mutex::default(), limit: BEING_STORED }
    }

    /// The frame `id` of `bytes` decoded bytes; `load` fills a buffer with it when it is not kept.
    pub fn get(
        &self,
        id: FrameId,
        bytes: usize,
        load: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Decoded> {
        let mut reuse: Option<Vec<u8>> = None;
        let cell = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
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
                    // A buffer that is much too large would take room that nobody counts.
                    let fits = |buffer: &Vec<u8>| (bytes..=bytes + bytes / 4).contains(&buffer.capacity());
                    while total > self.limit && !slots.is_empty() {
                        let old = slots.remove(0);
                        total -= old.bytes;
                        reuse = reuse.or_else(|| {
                            Arc::into_inner(old.cell)?.into_inner()?.ok().filter(|buffer| fits(buffer))
                        });
                    }
                    slots.push(Slot { id, bytes, cell: cell.clone() });
                }
                cell
            }
        };
        let made = cell.get_or_init(|| {
            let mut buffer = reuse.unwrap_or_default();
            load(&mut buffer).map(|()| buffer)
        });
        if made.is_err() {
            // A failure is not kept: the next reader tries again.
            self.slots.lock().unwrap_or_else(PoisonError::into_inner).retain(|slot| slot.id != id);
        }
        Ok(Decoded(cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::pack::Encoding;

    #[test]
    fn what_is_kept_takes_no_more_memory_than_is_counted() {
        let frames = Frames::of_writer();
        // The large ones come first: the small ones must not go on with their buffers.
        let sizes = std::iter::repeat_n(1 << 20, 4).chain(std::iter::repeat_n(1 << 10, 4000));
        for (at, bytes) in sizes.enumerate() {
            let frame = Frame { offset: at as u32, stored: 1, raw: bytes as u32, encoding: Encoding::Raw };
            let load = |out: &mut Vec<u8>| {
                out.clear();
                out.reserve_exact(bytes);
                out.resize(bytes, 7);
                Ok(())
            };
            let decoded = frames.get(([0; 16], frame), bytes, load).unwrap();
            assert_eq!(decoded.bytes().unwrap(), vec![7; bytes]);
        }
        let slots = frames.slots.lock().unwrap();
        let held: usize =
            slots.iter().map(|slot| slot.cell.get().unwrap().as_ref().unwrap().capacity()).sum();
        assert!(slots.len() > 1000 && held <= BEING_STORED / 4 * 5, "{held} bytes in {} frames", slots.len());
    }
}

//! The stat cache: what every captured entry looked like to the file system, and
//! under which key it was stored, so that an unchanged one is not read again.
//!
//! One file for a target and setting, in the store's `cache/`; it can be thrown away
//! at any time. Directories are found by device and inode, so a renamed parent costs
//! nothing. The file is read whole but not parsed: a table at its end leads to the
//! record of a directory, and a record is believed only if its checksum holds. So
//! damage costs time, never truth.
//!
//! An entry is believed only if everything that `stat` says is as it was, the inode's
//! change time included, and that time was clearly past when the capture began: an
//! entry that might change again within the same tick of the clock is marked, and
//! never matches.

pub mod carry;
mod compact;
mod file;
mod record;
mod save;

pub use file::StatCache;
pub(super) use file::Trust;
pub(crate) use record::identity;
pub use record::{CachedEntry, DirRecord};
pub(crate) use record::{RecordBuilder, Remembered};
pub(crate) use save::Update;

/// Where the cache of `target` and `setting` lies in the store's `cache/`.
pub(super) fn file_name(target: &str, setting: &str) -> String {
    cache_name(target, setting, "stat")
}

/// The name of a cache about `target` and `setting` in the store's `cache/`.
pub(crate) fn cache_name(target: &str, setting: &str, what: &str) -> String {
    let safe = |text: &str| -> String {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_.".contains(b);
        text.bytes()
            .map(|b| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02x}") })
            .collect()
    };
    let name = format!("{}-{}.{what}", safe(target), safe(setting));
    // A name that no file system takes is shortened to its hash.
    if name.len() <= 200 {
        return name;
    }
    let key = crate::object::Key::of(crate::object::ObjectKind::Opaque, name.as_bytes());
    format!("{}.{what}", key.to_string().trim_start_matches("opaque:"))
}

/// Takes fixed fields from bytes that may hold anything.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests;

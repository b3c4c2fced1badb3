//! How much memory a server may take, and whether what is loaded beside what it has fits in.
//!
//! A server that evicts would make room for what we load by removing keys of its users: on
//! such a one nothing is loaded that could reach its limit. One that does not evict refuses
//! by itself, and loses nothing.

use crate::scope::field;
use crate::wire::Wire;
use snapback_sdk::{Error, ErrorKind, Result};

/// What a server says about its memory, in bytes.
pub struct Memory {
    /// The most that it takes; 0 where nothing limits it.
    limit: u64,
    used: u64,
    /// Whether it removes keys to stay below the limit.
    pub evicts: bool,
}

impl Memory {
    /// What `info`, an answer to `INFO`, says.
    pub fn of(info: &str) -> Self {
        let bytes = |name| field(info, name).and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        let limit = bytes("maxmemory");
        let evicts = limit > 0 && field(info, "maxmemory_policy") != Some("noeviction");
        Self { limit, used: bytes("used_memory"), evicts }
    }

    /// Asks for it.
    ///
    /// # Errors
    /// When the server does not say.
    pub fn ask(wire: &mut Wire) -> Result<Self> {
        Ok(Self::of(&wire.text(&[b"INFO", b"memory"])?))
    }

    /// How much of `room` bytes does not fit in; nothing when it does.
    pub fn lacks(&self, room: u64) -> Option<u64> {
        let most = self.used.saturating_add(room);
        (self.limit > 0 && most > self.limit).then(|| most - self.limit)
    }

    /// Looks whether `room` bytes may be loaded.
    ///
    /// # Errors
    /// `NoSpace` when keys would be evicted for them.
    pub fn admit(&self, room: u64) -> Result<()> {
        match self.lacks(room).filter(|_| self.evicts) {
            None => Ok(()),
            Some(lacking) => {
                let why = "the server would evict keys to make room for what is restored";
                Err(Error::new(ErrorKind::NoSpace, why).with_hint(remedy(lacking)))
            }
        }
    }
}

/// What to do about as many bytes.
pub fn remedy(lacking: u64) -> String {
    let mebibytes = lacking.div_ceil(1 << 20);
    format!("what is restored is loaded beside what is there: raise `maxmemory` by {mebibytes} MiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(policy: &str, limit: u64) -> Memory {
        Memory::of(&format!("used_memory:100\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n"))
    }

    #[test]
    fn only_what_could_evict_is_refused() {
        let evicting = memory("allkeys-lru", 150);
        assert!(evicting.admit(50).is_ok());
        let error = evicting.admit(51).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoSpace);
        assert!(error.hint.unwrap().contains("raise `maxmemory` by 1 MiB"));
        // It refuses by itself, and its user is told before.
        assert!(memory("noeviction", 150).admit(51).is_ok());
        assert_eq!(memory("noeviction", 150).lacks(51), Some(1));
        // Without a limit there is room.
        assert!(memory("allkeys-lru", 0).admit(u64::MAX).is_ok());
        assert_eq!(memory("noeviction", 0).lacks(u64::MAX), None);
    }
}

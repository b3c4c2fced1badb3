//! SHA-256 of what is run, in hexadecimal: what components and programs are known by.

use sha2::{Digest, Sha256};

/// Of `bytes`.
pub fn of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The bytes of a hash as text.
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

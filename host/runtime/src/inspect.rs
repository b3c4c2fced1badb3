//! What can be seen of a component without compiling it or running any of it: that it is one,
//! and what it imports and exports.

use crate::abi::{self, v0_1};
use snapback_core::error::{Error, Kind, Result};
use wit_component::DecodedWasm;

/// What every WebAssembly file begins with.
const MAGIC: &[u8] = b"\0asm";

/// What a module begins with, which is no component yet.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// The interfaces that the component `bytes` asks for.
///
/// # Errors
/// `Invalid` when it is none, or no backend; `Incompatible` when it was built for another version
/// of the contract.
pub fn asked(bytes: &[u8]) -> Result<Vec<String>> {
    is_wasm(bytes)?;
    let no_component = |why: &str| {
        let why = crate::manifest::shorten(why);
        Error::new(Kind::Invalid, format!("it is not a component that can be read: {why}"))
    };
    if bytes.starts_with(MODULE) {
        return Err(no_component("it is a module"));
    }
    let decoded = wit_component::decode(bytes).map_err(|e| no_component(&format!("{e:#}")))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(no_component("it only describes interfaces"));
    };
    let world = &resolve.worlds[world];
    let imports: Vec<String> = world.imports.keys().map(|key| resolve.name_world_key(key)).collect();
    let exports: Vec<String> = world.exports.keys().map(|key| resolve.name_world_key(key)).collect();
    abi::check_version(&[&imports[..], &exports].concat())?;
    if !exports.iter().any(|name| name == v0_1::BACKEND) {
        return Err(Error::new(Kind::Invalid, "it is a component, and no backend"));
    }
    Ok(v0_1::asked(&imports))
}

/// Refuses what is no WebAssembly at all.
///
/// # Errors
/// `Invalid`.
pub fn is_wasm(bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(MAGIC) {
        return Ok(());
    }
    Err(Error::new(Kind::Invalid, "it is no WebAssembly component")
        .hint("name the file of a component, NAME.wasm, as its author built it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Guest;

    #[test]
    fn what_is_no_backend_is_told_without_compiling_it() {
        assert_eq!(asked(&Guest::default().build()).unwrap(), [""; 0]);
        let wasi = Guest { world: "wasi-plugin", ..Guest::default() };
        assert!(asked(&wasi.build()).unwrap().iter().all(|name| name.starts_with("wasi:")));
        let text = String::from_utf8_lossy(&Guest::default().build()).into_owned();
        assert!(text.contains("@0.1.0"));
        let mut next = Guest::default().build();
        let (from, to) = (b"@0.1.0", b"@0.2.0");
        for at in 0..next.len() - from.len() {
            if &next[at..at + from.len()] == from {
                next[at..at + from.len()].copy_from_slice(to);
            }
        }
        for (bytes, why) in [
            (&b"garbage"[..], "it is no WebAssembly component"),
            (b"", "it is no WebAssembly component"),
            (b"\0asm\x01\0\0\0", "it is not a component that can be read"),
            (b"\0asm\x0d\0\x01\0", "it is a component, and no backend"),
            (b"\0asm\x0d\0\x01\0\x07\xff\xff\xff\xff\x0f", "it is not a component that can be read"),
            (&next, "version 0.2 of the contract, and this program knows 0.1"),
        ] {
            let error = asked(bytes).unwrap_err();
            assert!(error.message().contains(why), "{error}");
        }
    }
}

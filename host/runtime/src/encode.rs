//! A component of what a compiler made: the SDK's own kind of module is one step short of
//! a component, and needs no other tool to become one.

use snapback_core::error::{Error, Kind, Result};
use wit_component::ComponentEncoder;

/// What a module begins with: magic, version, layer.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// `bytes` as a component: a module that was built against the contract is made one,
/// anything else is returned as it is.
///
/// # Errors
/// `Invalid` when a module was not built against the contract.
pub fn component_of(bytes: Vec<u8>) -> Result<Vec<u8>> {
    if !bytes.starts_with(MODULE) {
        return Ok(bytes);
    }
    let made = ComponentEncoder::default().module(&bytes).and_then(|encoder| encoder.validate(true).encode());
    made.map_err(|error| {
        let why = format!(
            "the module cannot be made a component: {}",
            crate::manifest::shorten(&format!("{error:#}"))
        );
        Error::new(Kind::Invalid, why)
            .hint("build it with the SDK for wasm32-unknown-unknown, or make it a component")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_has_nothing_of_the_contract_is_refused() {
        assert_eq!(component_of(b"something".to_vec()).unwrap(), b"something");
        let error = component_of([MODULE, b"\x01\x04\x01"].concat()).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
    }
}

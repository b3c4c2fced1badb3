//! Looking up names: those that settings gave, with the addresses that the host found
//! when the call began. Every other name is refused; no question leaves the machine.

use crate::component::State;
use std::net::IpAddr;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress, Network};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use bindings::wasi::sockets::ip_name_lookup as wit;

mod bindings {
    #![allow(unsafe_code, reason = "generated: each function's type was checked when it was looked up")]
    #![allow(missing_docs, clippy::all, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package snapback:lookup;
            world names {
                import wasi:sockets/ip-name-lookup@0.2.12;
            }
        ",
        imports: { default: trappable },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "wasi:sockets/network": wasmtime_wasi::p2::bindings::sockets::network,
            "wasi:sockets/ip-name-lookup.resolve-address-stream": crate::abi::wasi::Names,
        },
    });
}

/// The addresses of a name that were not told yet.
pub struct Names(std::vec::IntoIter<IpAddr>);

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<State>>(linker, State::reached)
}

impl wit::Host for State {
    fn resolve_addresses(
        &mut self,
        network: Resource<Network>,
        name: String,
    ) -> wasmtime::Result<Result<Resource<Names>, ErrorCode>> {
        self.open.get(&network)?;
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let granted = self.reach.addresses().filter(|(host, _)| host.eq_ignore_ascii_case(bare));
        let mut found: Vec<IpAddr> = Vec::new();
        for address in granted.flat_map(|(_, all)| all) {
            if !found.contains(&address.ip()) {
                found.push(address.ip());
            }
        }
        if found.is_empty() {
            return Ok(Err(ErrorCode::AccessDenied));
        }
        Ok(Ok(self.open.push(Names(found.into_iter()))?))
    }
}

impl wit::HostResolveAddressStream for State {
    fn resolve_next_address(
        &mut self,
        names: Resource<Names>,
    ) -> wasmtime::Result<Result<Option<IpAddress>, ErrorCode>> {
        Ok(Ok(self.open.get_mut(&names)?.0.next().map(IpAddress::from)))
    }

    fn subscribe(&mut self, names: Resource<Names>) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(&mut self.open, names)
    }

    fn drop(&mut self, names: Resource<Names>) -> wasmtime::Result<()> {
        self.open.delete(names)?;
        Ok(())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Names {
    async fn ready(&mut self) {}
}

//! WASI for components that import it: there for whoever asks, and empty but for what the
//! target's settings were given.
//!
//! Directories are preopened as `/SETTING`, to read only unless writing was asked for;
//! names have the addresses that the host found when the call began, and TCP connects to
//! those alone; of the environment there are the variables that settings name. No UDP, no
//! listening, no other name, no standard stream, no argument.

mod lookup;

pub use lookup::Names;

use crate::component::State;
use crate::manifest::Access;
use crate::reach::{Found, Reach};
use snapback_core::error::{Error, Kind, Result};
use std::cell::OnceCell;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use wasmtime::component::Linker;
use wasmtime_wasi::sockets::SocketAddrUse;
use wasmtime_wasi::{FsPerms, WasiCtx};

/// Puts WASI into `linker`, with name lookup that knows only what was granted.
pub fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    lookup::link(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// What a component has of WASI in a call that reaches `reach`.
///
/// # Errors
/// When a directory cannot be opened, is not what was agreed to, or holds snapback's own files.
pub fn context(reach: &Reach, variables: fn(&str) -> Option<String>) -> Result<WasiCtx> {
    let mut builder = WasiCtx::builder();
    let guarded = OnceCell::new();
    for item in reach.items() {
        match &item.found {
            Found::Place(place) if item.kind == crate::manifest::Kind::Dir && place.id.is_some() => {
                let perms = match item.access {
                    Access::Read => FsPerms::ReadOnly,
                    Access::Write => FsPerms::ReadWrite,
                };
                let dir = place.open(&item.key)?;
                guarded.get_or_init(|| reach.guarded()).refuse_around(&item.key, &place.path, &dir)?;
                // By the open directory, so that it is the one that was looked at.
                let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
                builder.preopened_dir(path, format!("/{}", item.key), perms).map_err(|e| {
                    Error::new(Kind::Other, format!("could not open the setting `{}`: {e:#}", item.key))
                })?;
            }
            Found::Variable => {
                if let Some(value) = variables(&item.value) {
                    builder.env(&item.value, value);
                }
            }
            _ => {}
        }
    }
    let allowed: Arc<[SocketAddr]> = reach.addresses().flat_map(|(_, all)| all).copied().collect();
    if !allowed.is_empty() {
        builder.allow_tcp(true).socket_addr_check(move |address, what| {
            let ok = match what {
                SocketAddrUse::TcpConnect => allowed.contains(&address),
                // What the system chooses itself when it connects.
                SocketAddrUse::TcpBind => address.ip().is_unspecified() && address.port() == 0,
                _ => false,
            };
            Box::pin(async move { ok })
        });
    }
    Ok(builder.build())
}

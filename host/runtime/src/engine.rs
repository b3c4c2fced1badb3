//! wasmtime, set up once.
//!
//! Two engines with one set-up: one that runs code, without a compiler, so that it
//! costs microseconds to start; and one that compiles, made only when something has
//! to be compiled. The target is named, so that no feature of this machine's
//! processor is assumed and an artifact loads on any machine of the architecture.
//!
//! While a call is going on, a thread ticks; at each tick the code of a component is
//! stopped for a moment and looked at (see `component::watch`).

use crate::manifest::shorten;
use snapback_core::error::{Error, Kind, Result};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;
use wasmtime::Config;

/// Time between two looks at running code.
pub const TICK: Duration = Duration::from_millis(100);
/// Bytes of stack that a component's code may use.
const WASM_STACK: usize = 512 * 1024;
/// Bytes of stack on which a component and the host functions that it calls run.
const CALL_STACK: usize = 2 * 1024 * 1024;

/// The engine that runs code. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: wasmtime::Engine,
    room: bool,
    clock: Arc<Clock>,
}

impl Engine {
    /// Starts it.
    ///
    /// # Errors
    /// When this machine is not one that code can be run on.
    pub fn new() -> Result<Self> {
        // Room for 4 GiB of addresses makes code faster, but a limit may forbid it (`ulimit -v`).
        let limit = rustix::process::getrlimit(rustix::process::Resource::As);
        Self::with_room(limit.current.is_none())
    }

    /// Starts it, with or without room for all addresses that code can form.
    ///
    /// # Errors
    /// When this machine is not one that code can be run on.
    pub fn with_room(room: bool) -> Result<Self> {
        Ok(Self { inner: make(false, room)?, room, clock: Arc::default() })
    }

    /// wasmtime's own.
    pub fn raw(&self) -> &wasmtime::Engine {
        &self.inner
    }

    /// Names everything but the component that an artifact depends on, in hexadecimal.
    pub fn compatibility(&self) -> String {
        let mut hasher = Sha(sha2::Sha256::default());
        self.inner.precompile_compatibility_hash().hash(&mut hasher);
        target().hash(&mut hasher);
        let digest = sha2::Digest::finalize(hasher.0);
        crate::digest::hex(&digest[..8])
    }

    /// Compiles a component for [`Engine::raw`].
    ///
    /// # Errors
    /// `Invalid` when the bytes are not a component.
    pub fn compile(&self, component: &[u8]) -> Result<Vec<u8>> {
        crate::inspect::is_wasm(component)?;
        let compiler = make(true, self.room)?;
        compiler.precompile_component(component).map_err(|e| {
            Error::new(
                Kind::Invalid,
                format!("it is not a component that can be compiled: {}", shorten(&format!("{e:#}"))),
            )
        })
    }

    /// Ticks until the result is dropped.
    pub fn tick(&self) -> Ticking {
        self.clock.start(&self.inner);
        Ticking(self.clock.clone())
    }
}

fn make(compiler: bool, room: bool) -> Result<wasmtime::Engine> {
    let failed = |e: wasmtime::Error| Error::new(Kind::Other, format!("could not start WebAssembly: {e:#}"));
    let mut config = Config::new();
    config
        .enable_compiler(compiler)
        .wasm_component_model(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(CALL_STACK);
    if !room {
        config.memory_reservation(0).memory_reservation_for_growth(0).memory_guard_size(0);
    }
    if let Some(target) = target() {
        config.target(target).map_err(failed)?;
    }
    wasmtime::Engine::new(&config).map_err(failed)
}

/// This machine's architecture and system, without any feature of its processor; `None`
/// where that is not known, and artifacts are for this machine alone.
fn target() -> Option<&'static str> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        Some("x86_64-unknown-linux-gnu")
    } else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
        Some("aarch64-unknown-linux-gnu")
    } else {
        None
    }
}

/// Lets what is hashable be named by SHA-256.
struct Sha(sha2::Sha256);

impl Hasher for Sha {
    fn write(&mut self, bytes: &[u8]) {
        sha2::Digest::update(&mut self.0, bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// The thread that ticks, and how many calls want it to.
#[derive(Default)]
struct Clock {
    calls: Mutex<usize>,
    changed: Condvar,
    thread: OnceLock<()>,
}

impl Clock {
    fn start(self: &Arc<Self>, engine: &wasmtime::Engine) {
        *self.calls.lock().unwrap_or_else(|e| e.into_inner()) += 1;
        self.thread.get_or_init(|| {
            let (clock, engine) = (Arc::downgrade(self), engine.weak());
            let thread = std::thread::Builder::new().name("tick".into()).spawn(move || {
                while let (Some(clock), Some(engine)) = (clock.upgrade(), engine.upgrade()) {
                    let calls = clock.calls.lock().unwrap_or_else(|e| e.into_inner());
                    let (calls, _) =
                        clock.changed.wait_timeout(calls, TICK).unwrap_or_else(|e| e.into_inner());
                    if *calls > 0 {
                        engine.increment_epoch();
                    }
                }
            });
            // Without it a component could loop for ever.
            thread.expect("a thread keeps the time");
        });
    }
}

/// Ticks go on while this lives.
pub struct Ticking(Arc<Clock>);

impl Drop for Ticking {
    fn drop(&mut self) {
        *self.0.calls.lock().unwrap_or_else(|e| e.into_inner()) -= 1;
    }
}

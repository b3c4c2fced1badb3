//! Write a snapback backend in one file.
//!
//! A backend is a type that implements [`Backend`], a manifest, and one macro. Built
//! for `wasm32-unknown-unknown` and made a component (`cargo guests` does both for
//! the ones in this repository), it is one file that snapback can run.
//!
//! ```
//! use snapback_sdk::{Backend, Part, Reader, Result, Target, Writer};
//! use std::io::{Read, Write};
//!
//! struct Greeting;
//!
//! impl Backend for Greeting {
//!     const MANIFEST: &'static str = r#"
//!         name = "greeting"
//!         version = "0.1.0"
//!         summary = "Remembers whom to greet"
//!
//!         [[setting]]
//!         key = "whom"
//!         kind = "text"
//!         default = "world"
//!         help = "who is greeted"
//!     "#;
//!
//!     fn snapshot(target: &Target, _previous: Vec<Part>) -> Result<Vec<Part>> {
//!         let mut writer = Writer::new()?;
//!         writer.write_all(target.setting("whom").unwrap_or_default().as_bytes())?;
//!         Ok(vec![Part { name: "whom".into(), content: writer.finish()? }])
//!     }
//!
//!     fn restore(_target: &Target, parts: Vec<Part>, _current: Vec<Part>) -> Result<()> {
//!         for part in &parts {
//!             let mut whom = String::new();
//!             Reader::new(&part.content)?.read_to_string(&mut whom)?;
//!             snapback_sdk::report::log("info", &format!("hello, {whom}"));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! snapback_sdk::export!(Greeting);
//! ```
//!
//! The law for every backend: after `snapshot`, any change, and `restore` of what was
//! stored, the target is in the stored state. What a component does not call is not
//! in its import list, and the import list is what the user is shown.

#[doc(hidden)]
pub mod bindings;
mod content;
mod error;
pub mod file;
pub mod fs;
pub mod net;
mod options;
pub mod process;
mod wait;

pub use bindings::explains::exports::snapback::plugin::explain::Change;
pub use bindings::finds::exports::snapback::plugin::finder::Finding;
pub use bindings::snapback::plugin::store::{Draft, Object, Part};
pub use bindings::snapback::plugin::types::{Error, ErrorKind, Target};
pub use bindings::wasi::io::{poll, streams};
pub use content::{Reader, Writer, splice};
pub use options::Options;

/// Telling the user what is going on.
pub mod report {
    pub use crate::bindings::snapback::plugin::report::{Task, log, omitted, refused};
}

/// Variables of the environment that settings of kind env were given.
pub mod env {
    use crate::Target;
    use crate::bindings::wasi::cli::environment::get_environment;

    /// The value of the variable that the setting `key` names; none when it is not set.
    pub fn var(target: &Target, key: &str) -> Option<String> {
        let name = target.setting(key)?;
        get_environment().into_iter().find(|(variable, _)| *variable == name).map(|(_, value)| value)
    }
}

/// What nobody can guess.
pub mod random {
    use crate::bindings::wasi::random::random::get_random_bytes;

    /// As many bytes of it.
    pub fn bytes(count: usize) -> Vec<u8> {
        get_random_bytes(count as u64)
    }
}

/// Directories, captured and restored by the host.
pub mod tree {
    pub use crate::bindings::snapback::plugin::tree::Directory;
}

/// SQLite databases, captured and restored by the host under SQLite's own locks.
pub mod sqlite {
    pub use crate::bindings::snapback::plugin::sqlite::Database;
}

/// Docker volumes, captured and restored by the host, and the containers that use them.
pub mod docker {
    pub use crate::bindings::snapback::plugin::docker::{Quiesced, Volume};
}

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One kind of state that can be captured and put back.
pub trait Backend {
    /// Who this is, in TOML: `name` (which is the file's name, too), `version`,
    /// `summary`, and a `[[setting]]` for each setting: `key`, `kind`, `help`, and
    /// where needed `list = true`, `required = true`, `default`.
    ///
    /// Kinds: text, number, bool, duration, size; and those that carry authority:
    /// dir, file, database, volume, address, env, program.
    const MANIFEST: &'static str;

    /// Stores the target's state and leaves it as it was. `previous` is the last
    /// snapshot's parts: an unchanged piece may be returned as it is.
    ///
    /// # Errors
    /// Whatever kept the state from being captured whole; nothing is kept then.
    fn snapshot(target: &Target, previous: Vec<Part>) -> Result<Vec<Part>>;

    /// Makes the target's state the stored one. `current` is what was captured just
    /// before: what is no longer as in it must be left alone. Idempotent: a second
    /// call completes a first that was cut short.
    ///
    /// # Errors
    /// Whatever kept the state from being restored.
    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()>;
}

/// Finer words for what differs between two snapshots than that a part does; exported by
/// `export!(Type, explain)`.
pub trait Explain {
    /// What differs, in the order in which people read it; by the parts alone. Of a
    /// [`Change`] the `kind` is added, modified or deleted, the `detail` text for `diff -p`.
    ///
    /// # Errors
    /// Whatever kept it from being told: users then see which parts differ.
    fn compare(target: &Target, before: Vec<Part>, after: Vec<Part>) -> Result<Vec<Change>>;
}

/// For parts that stand for something outside the store, such as a copy on a server;
/// exported by `export!(Type, release)`.
pub trait Release {
    /// Removes what `parts`, which no snapshot has, stand for. What is gone already is no
    /// failure.
    ///
    /// # Errors
    /// Whatever kept it from going: it is tried again by the next gc.
    fn discard(target: &Target, parts: Vec<Part>) -> Result<()>;
}

/// Proposals for targets, which `snapback init` writes down for the user to switch on;
/// exported by `export!(Type, find)`. The manifest names the files that it wants to hear
/// of: `finds = ["compose.yaml"]`.
pub trait Find {
    /// What there is to cover, where `matches` are the paths of such files from the project's
    /// root. Nothing can be opened or asked here.
    fn discover(matches: Vec<String>) -> Vec<Finding>;
}

/// Takes the part called `name` out of `parts`.
///
/// # Errors
/// `Incompatible` when it is not there: another version of the backend stored them.
pub fn take_part(parts: Vec<Part>, name: &str) -> Result<Object> {
    parts.into_iter().find(|part| part.name == name).map(|part| part.content).ok_or_else(|| {
        Error::new(ErrorKind::Incompatible, format!("the snapshot has no part called `{name}`"))
            .with_hint("it was made by another version of this backend")
    })
}

/// Turns a [`Backend`] into what the contract asks for.
#[doc(hidden)]
pub struct Adapter<T>(std::marker::PhantomData<T>);

impl<T: Backend> bindings::exports::snapback::plugin::backend::Guest for Adapter<T> {
    fn manifest() -> String {
        T::MANIFEST.to_owned()
    }

    fn snapshot(target: &Target, previous: Vec<Part>) -> Result<Vec<Part>> {
        speak_before_giving_up();
        T::snapshot(target, previous)
    }

    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        speak_before_giving_up();
        T::restore(target, parts, current)
    }
}

impl<T: Explain> bindings::explains::exports::snapback::plugin::explain::Guest for Adapter<T> {
    fn compare(target: &Target, before: Vec<Part>, after: Vec<Part>) -> Result<Vec<Change>> {
        speak_before_giving_up();
        T::compare(target, before, after)
    }
}

impl<T: Release> bindings::releases::exports::snapback::plugin::release::Guest for Adapter<T> {
    fn discard(target: &Target, parts: Vec<Part>) -> Result<()> {
        speak_before_giving_up();
        T::discard(target, parts)
    }
}

impl<T: Find> bindings::finds::exports::snapback::plugin::finder::Guest for Adapter<T> {
    fn discover(matches: Vec<String>) -> Vec<Finding> {
        T::discover(matches)
    }
}

/// The host makes an error of what a panic says; without this it would only know that
/// there was one.
fn speak_before_giving_up() {
    std::panic::set_hook(Box::new(|panic| {
        let why = panic.payload_as_str().unwrap_or("it does not say why");
        let place = panic.location().map_or_else(String::new, |place| format!(" ({place})"));
        report::log("panic", &format!("{why}{place}"));
    }));
}

/// Makes a type that implements [`Backend`] the component's backend; with `explain`,
/// `release` and `find` also what [`Explain`], [`Release`] and [`Find`] do. Built for another
/// target than WebAssembly it only checks the type, so that a backend's own tests run anywhere.
#[macro_export]
macro_rules! export {
    ($backend:ty $(, $more:ident)*) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "exported functions have fixed names and raw arguments")]
        const _: () = {
            type Exported = $crate::Adapter<$backend>;
            $crate::bindings::export_backend!(Exported with_types_in $crate::bindings);
        };

        #[cfg(not(target_family = "wasm"))]
        const _: () = $crate::check_backend::<$backend>();

        $($crate::export_more!($more $backend);)*
    };
}

/// One thing more that a backend does.
#[doc(hidden)]
#[macro_export]
macro_rules! export_more {
    (explain $backend:ty) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "exported functions have fixed names and raw arguments")]
        const _: () = {
            type Exported = $crate::Adapter<$backend>;
    $crate::bindings::explains::export_explain!(Exported with_types_in $crate::bindings::explains);
        };

        #[cfg(not(target_family = "wasm"))]
        const _: () = $crate::check_explain::<$backend>();
    };
    (release $backend:ty) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "exported functions have fixed names and raw arguments")]
        const _: () = {
            type Exported = $crate::Adapter<$backend>;
    $crate::bindings::releases::export_release!(Exported with_types_in $crate::bindings::releases);
        };

        #[cfg(not(target_family = "wasm"))]
        const _: () = $crate::check_release::<$backend>();
    };
    (find $backend:ty) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "exported functions have fixed names and raw arguments")]
        const _: () = {
            type Exported = $crate::Adapter<$backend>;
    $crate::bindings::finds::export_find!(Exported with_types_in $crate::bindings::finds);
        };

        #[cfg(not(target_family = "wasm"))]
        const _: () = $crate::check_find::<$backend>();
    };
}

/// Compiles only for a [`Backend`].
#[doc(hidden)]
pub const fn check_backend<T: Backend>() {}

/// Compiles only for an [`Explain`].
#[doc(hidden)]
pub const fn check_explain<T: Explain>() {}

/// Compiles only for a [`Release`].
#[doc(hidden)]
pub const fn check_release<T: Release>() {}

/// Compiles only for a [`Find`].
#[doc(hidden)]
pub const fn check_find<T: Find>() {}

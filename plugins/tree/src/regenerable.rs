//! What can be made again, and so is left out unless the user wants it.
//!
//! A name alone is enough only where nobody gives it to anything else. Names that
//! people also use for their own work need a sign: git ignores them, or, without
//! git, the file of the tool that makes them lies beside.

/// The rules, in the host's form.
pub const RULES: &[&str] = &[
    "node_modules",
    "__pycache__",
    ".venv holding pyvenv.cfg",
    "venv holding pyvenv.cfg",
    "* holding CACHEDIR.TAG",
];

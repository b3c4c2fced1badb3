//! What the tests of this crate share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own for one test, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("snapback-runtime-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What every component here says about itself.
pub const MANIFEST: &str = "name = \"guest\"\nversion = \"1.2.3\"\nsummary = \"For tests\"\n\
    [[setting]]\nkey = \"path\"\nkind = \"dir\"\n[[setting]]\nkey = \"label\"\nkind = \"text\"\ndefault = \"x\"\n";

/// A component of the world `world`, whose functions have these bodies, in text form.
///
/// In the memory, from 64: 0 for an empty list that went well; from 1024: the manifest;
/// from 4096 to 8191: `data`; beyond that what the host puts there.
pub struct Guest {
    pub world: &'static str,
    pub imports: &'static str,
    pub data: &'static str,
    pub manifest: &'static str,
    pub snapshot: &'static str,
    pub restore: &'static str,
    /// Of the module itself: tables, globals.
    pub extra: &'static str,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            world: "plugin",
            imports: "",
            data: "",
            manifest: "(i32.const 48)",
            snapshot: "(i32.const 64)",
            restore: "(i32.const 64)",
            extra: "",
        }
    }
}

impl Guest {
    pub fn build(&self) -> Vec<u8> {
        self.build_saying(MANIFEST)
    }

    pub fn build_saying(&self, manifest: &str) -> Vec<u8> {
        assert!(manifest.len() < 3072);
        let Self { world, imports, data, manifest: describe, snapshot, restore, extra } = self;
        let bytes: String = manifest.bytes().map(|b| format!("\\{b:02x}")).collect();
        let length: String =
            (manifest.len() as u32).to_le_bytes().iter().map(|b| format!("\\{b:02x}")).collect();
        let text = format!(
            r#"(module
                {imports}
                (import "snapback:plugin/types@0.1.0" "[resource-drop]target" (func $done (param i32)))
                (memory (export "memory") 1)
                {extra}
                (global $free (mut i32) (i32.const 8192))
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                    (local $at i32)
                    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
                    (global.set $free (i32.add (local.get $at) (local.get 3)))
                    (local.get $at))
                (data (i32.const 48) "\00\04\00\00{length}")
                (data (i32.const 1024) "{bytes}")
                (data (i32.const 4096) "{data}")
                (func (export "snapback:plugin/backend@0.1.0#manifest") (result i32) {describe})
                (func $snapshot (export "snapback:plugin/backend@0.1.0#snapshot")
                    (param $target i32) (param $parts i32) (param $count i32) (result i32) (local $a i32) (local $b i32)
                    {snapshot}
                    (call $done (local.get $target)))
                (func (export "snapback:plugin/backend@0.1.0#restore")
                    (param $target i32) (param i32 i32 i32 i32) (result i32)
                    {restore}
                    (call $done (local.get $target))))"#
        );
        let mut module = wat::parse_str(text).unwrap();
        let mut resolve = wit_parser::Resolve::default();
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let (package, _) = resolve.push_dir(wit).unwrap();
        let world = resolve.select_world(&[package], Some(world)).unwrap();
        let utf8 = wit_component::StringEncoding::UTF8;
        wit_component::embed_component_metadata(&mut module, &resolve, world, utf8).unwrap();
        let mut encoder = wit_component::ComponentEncoder::default();
        encoder.module(&module).unwrap().validate(true).encode().unwrap()
    }
}

//! Looking into a snapshot: its captured directories, and what lies in them.

use snapback_core::disk::Dir;
use snapback_core::error::Result;
use snapback_core::history::Snapshot;
use snapback_core::history::snapshot::Captured;
pub use snapback_core::session::lookup::{Found, look, place, placed, within};
use snapback_core::session::scope;
use snapback_core::store::Source;
use snapback_core::text::Bytes;
use snapback_core::tree::node::{Entry, Node, decode_tree};
use snapback_core::tree::root::Root;
use snapback_core::tree::view::read_root;
use snapback_core::volume::directory_of;
use std::path::Path;

/// The directories that `captured` holds, those of volumes among them.
///
/// # Errors
/// When one cannot be read.
pub fn roots(source: &dyn Source, captured: &Captured) -> Result<Vec<Root>> {
    let mut roots = Vec::new();
    for part in &captured.parts {
        if let Some(key) = directory_of(source, &part.content)? {
            roots.push(read_root(source, &key)?);
        }
    }
    Ok(roots)
}

/// The target and the path inside it that `path` names in a volume of `snapshot`: it
/// begins with the target's name and a colon.
pub fn in_volume<'p>(snapshot: &Snapshot, path: &'p [u8]) -> Option<(&'p str, &'p [u8])> {
    let colon = path.iter().position(|&b| b == b':')?;
    let name = std::str::from_utf8(&path[..colon]).ok()?;
    let rest = path[colon + 1..].strip_prefix(b"/").unwrap_or(&path[colon + 1..]);
    snapshot.target(name).filter(|captured| scope::is_volume(captured)).map(|_| (name, rest))
}

/// The path of what lies at `inside` in the volume of `target`: `NAME:/a/b`.
pub fn path_in_volume(target: &str, inside: &[u8]) -> Bytes {
    let names = inside.split(|&b| b == b'/').filter(|name| !name.is_empty() && *name != b".");
    let base = scope::volume_base(target);
    Bytes(std::iter::once(&base[..]).chain(names).collect::<Vec<_>>().join(&b'/'))
}

/// What `snapshot` recorded of a repository at `path`, which is one inside the project:
/// there to be read, and never restored.
///
/// # Errors
/// When a directory on the way cannot be read.
pub fn recorded(
    project: &Path,
    source: &dyn Source,
    snapshot: &Snapshot,
    path: &[u8],
) -> Result<Option<Entry>> {
    for captured in &snapshot.targets {
        for (base, root) in placed(project, source, captured)? {
            let inside = within(path, &base).and_then(|path| within(path, b".git"));
            if let (Some(git), Some(path)) = (root.git, inside)
                && let Some(entry) = find_in(source, Node::Dir(git.tree), path)?
            {
                return Ok(Some(entry));
            }
        }
    }
    Ok(None)
}

/// The content of the regular file at `path` of the project at `root` as it is now, when
/// it has at most `limit` bytes. No link is followed.
pub fn now(root: &Path, path: &[u8], limit: u64) -> Option<Vec<u8>> {
    let mut names = path.split(|&b| b == b'/').filter(|name| !name.is_empty()).peekable();
    let mut dir = Dir::open(root).ok()?;
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            return dir.read(name, limit).ok();
        }
        dir = dir.child(name).ok()?;
    }
    None
}

/// The entry at `path` in a captured directory; its top for the empty path. A link on
/// the way is not followed: there is nothing behind it here.
///
/// # Errors
/// When a directory on the way cannot be read.
pub fn find(source: &dyn Source, root: &Root, path: &[u8]) -> Result<Option<Entry>> {
    if path.is_empty() { Ok(Some(root.top.clone())) } else { find_in(source, root.top.node.clone(), path) }
}

/// The entry at `path` in the directory that is `node`; none for the empty path.
fn find_in(source: &dyn Source, node: Node, path: &[u8]) -> Result<Option<Entry>> {
    let (mut node, mut found) = (node, None);
    for name in path.split(|&b| b == b'/').filter(|name| !name.is_empty()) {
        let Node::Dir(key) = node else { return Ok(None) };
        let inside = decode_tree(&source.read(&key)?)?;
        let Some(entry) = inside.into_iter().find(|inner| inner.name == name) else { return Ok(None) };
        node = entry.node.clone();
        found = Some(entry);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use snapback_core::object::{Key, ObjectKind};
    use snapback_core::tree::node::{Time, encode_tree};
    use std::collections::HashMap;

    fn entry(name: &[u8], node: Node) -> Entry {
        Entry { name: name.to_vec(), mode: 0o755, uid: 0, gid: 0, xattrs: vec![], link: None, node }
    }

    #[test]
    fn entries_are_found_by_their_path() {
        let mut objects = HashMap::new();
        let mut dir = |entries: &[Entry]| {
            let bytes = encode_tree(entries);
            let key = Key::of(ObjectKind::Tree, &bytes);
            objects.insert(key, bytes);
            Node::Dir(key)
        };
        let inner = dir(&[entry(b"\xfe", Node::Fifo)]);
        let top = dir(&[entry(b"d", inner), entry(b"l", Node::Symlink(b"d".to_vec()))]);
        let root = Root {
            setting: "path".into(),
            value: ".".into(),
            options: vec![],
            top: entry(b"", top),
            mtime: Time::default(),
            times: Key::of(ObjectKind::Times, b""),
            left_out: vec![],
            ignored: vec![],
            ignored_stamps: vec![],
            files: 0,
            bytes: 0,
            git: None,
        };
        let found = |path: &[u8]| find(&objects, &root, path).unwrap().map(|entry| entry.name);
        assert_eq!(found(b"d/\xfe"), Some(b"\xfe".to_vec()));
        assert_eq!(found(b""), Some(vec![]));
        assert_eq!(found(b"d/x"), None);
        assert_eq!(found(b"l/\xfe"), None);
    }
}

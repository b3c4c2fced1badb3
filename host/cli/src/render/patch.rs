//! One change in full: what differs beside the content, and text as a unified patch.
//!
//! Invariant: what `patch -p1` gets to see of changed text applies. Content that is no
//! text, or too long to be compared as text, is told by its sizes. Bytes are written
//! as they are, in whatever encoding they were.

use crate::terminal::{Terminal, Tone};
use similar::{Algorithm, ChangeTag, TextDiff};
use snapback_core::error::{Result, show_bytes};
use snapback_core::project::units::human;
use snapback_core::store::{Source, content};
use snapback_core::tree::compare::{Aspects, Change};
use snapback_core::tree::node::{Entry, Node};
use std::time::Duration;

/// Longest content that is compared as text, in bytes: it is held in memory.
const LONGEST: u64 = 16 << 20;
/// Where a NUL makes content binary, in bytes from its start: as git looks at it.
const LOOKED_AT: usize = 8000;
/// How long one comparison looks for the shortest patch before it takes any.
const PATIENCE: Duration = Duration::from_millis(500);
/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Writes all about `change` to `out`; contents of both sides are read from `source`.
///
/// # Errors
/// When a content cannot be read, or `out` fails.
pub fn write(
    change: &Change,
    source: &dyn Source,
    terminal: &Terminal,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    for line in beside(change.before.as_ref(), change.after.as_ref()) {
        out(format!("{line}\n").as_bytes())?;
    }
    let old = File::of(change.before.as_ref());
    let new = File::of(change.after.as_ref());
    if old.is_none() && new.is_none() || same(&old, &new) {
        return Ok(());
    }
    let texts = match (text(&old, source)?, text(&new, source)?) {
        (Some(a), Some(b)) => (a, b),
        _ => {
            let size = |file: &Option<File<'_>>| file.as_ref().map(|file| human(file.size));
            let line = match (size(&old), size(&new)) {
                (Some(a), Some(b)) => format!("Binary differs, size {a} -> {b}\n"),
                (Some(size), None) | (None, Some(size)) => format!("Binary, size {size}\n"),
                (None, None) => return Ok(()),
            };
            return out(line.as_bytes());
        }
    };
    let name = |side: &str, there: bool| match there {
        true => show_bytes(&[side.as_bytes(), b"/", &change.path].concat()),
        false => "/dev/null".to_owned(),
    };
    let head = [name("a", old.is_some()), name("b", new.is_some())];
    unified(&texts.0, &texts.1, [&head[0], &head[1]], terminal, out)
}

/// A file's content.
pub(super) struct File<'a> {
    content: &'a snapback_core::object::Key,
    /// In bytes.
    pub size: u64,
}

impl<'a> File<'a> {
    /// That of an entry which is a file.
    pub fn of(entry: Option<&'a Entry>) -> Option<Self> {
        match &entry?.node {
            Node::File { content, size, .. } => Some(File { content, size: *size }),
            _ => None,
        }
    }
}

/// Whether two sides have the same content.
pub(super) fn same(old: &Option<File<'_>>, new: &Option<File<'_>>) -> bool {
    matches!((old, new), (Some(a), Some(b)) if a.content == b.content)
}

/// The content as text; empty for a side without a file, none for what is no text.
pub(super) fn text(file: &Option<File<'_>>, source: &dyn Source) -> Result<Option<Vec<u8>>> {
    let Some(file) = file else { return Ok(Some(Vec::new())) };
    if file.size > LONGEST {
        return Ok(None);
    }
    content::read_all(source, file.content, file.size, LONGEST).map(as_text)
}

/// `bytes` if they are text.
pub(super) fn as_text(bytes: Vec<u8>) -> Option<Vec<u8>> {
    let is_binary = bytes[..bytes.len().min(LOOKED_AT)].contains(&0);
    (!is_binary).then_some(bytes)
}

/// A line for each difference beside a file's content.
fn beside(before: Option<&Entry>, after: Option<&Entry>) -> Vec<String> {
    let mut lines = Vec::new();
    let (Some(a), Some(b)) = (before, after) else {
        // What came or went and is no file is told by its kind.
        let only = before.or(after);
        lines.extend(
            only.filter(|entry| !matches!(entry.node, Node::File { .. })).map(|entry| described(&entry.node)),
        );
        return lines;
    };
    let differs = Aspects::of(a, b);
    if differs.kind || differs.content && !matches!(a.node, Node::File { .. }) {
        lines.push(format!("{} -> {}", described(&a.node), described(&b.node)));
    }
    // A symbolic link has no mode of its own.
    let is_link = |entry: &Entry| matches!(entry.node, Node::Symlink(_));
    if differs.mode && !is_link(a) && !is_link(b) {
        lines.push(format!("mode {:04o} -> {:04o}", a.mode, b.mode));
    }
    if differs.owner {
        lines.push(format!("owner {}:{} -> {}:{}", a.uid, a.gid, b.uid, b.gid));
    }
    if differs.xattrs {
        let names = |entry: &Entry, other: &Entry| -> Vec<String> {
            let lacks = |xattr: &&(Vec<u8>, Vec<u8>)| !other.xattrs.contains(xattr);
            entry.xattrs.iter().filter(lacks).map(|(name, _)| show_bytes(name)).collect()
        };
        let mut names = [names(a, b), names(b, a)].concat();
        names.sort();
        names.dedup();
        lines.push(format!("attributes {}", names.join(", ")));
    }
    if differs.link {
        lines.push("other hard links".into());
    }
    lines
}

fn described(node: &Node) -> String {
    match node {
        Node::Symlink(to) => format!("{} to {}", node.word(), show_bytes(to)),
        Node::CharDevice(major, minor) | Node::BlockDevice(major, minor) => {
            format!("{} {major}:{minor}", node.word())
        }
        _ => node.word().to_owned(),
    }
}

fn unified(
    old: &[u8],
    new: &[u8],
    head: [&str; 2],
    terminal: &Terminal,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_lines(old, new);
    let mut begun = false;
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        if !begun {
            out(format!("--- {}\n+++ {}\n", head[0], head[1]).as_bytes())?;
            begun = true;
        }
        out(format!("{}\n", terminal.paint(Tone::Aside, &hunk.header().to_string())).as_bytes())?;
        for change in hunk.iter_changes() {
            let (sign, tone) = match change.tag() {
                ChangeTag::Equal => (" ", None),
                ChangeTag::Delete => ("-", Some(Tone::Deleted)),
                ChangeTag::Insert => ("+", Some(Tone::Added)),
            };
            out(&painted(sign, change.value(), tone, terminal))?;
            if change.missing_newline() {
                out(b"\n\\ No newline at end of file\n")?;
            }
        }
    }
    Ok(())
}

/// A line of a patch; colour stands around its text, not around its line break.
fn painted(sign: &str, line: &[u8], tone: Option<Tone>, terminal: &Terminal) -> Vec<u8> {
    let plain = [sign.as_bytes(), line].concat();
    match tone {
        Some(tone) if terminal.colour_out => {
            let (text, end) = match plain.split_last() {
                Some((b'\n', text)) => (text, &b"\n"[..]),
                _ => (&plain[..], &b""[..]),
            };
            let marks = terminal.paint(tone, "\0");
            let (before, after) = marks.split_once('\0').unwrap_or_default();
            [before.as_bytes(), text, after.as_bytes(), end].concat()
        }
        _ => plain,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use snapback_core::object::{Key, ObjectKind};
    use snapback_core::tree::node::Time;
    use std::collections::HashMap;

    pub const PLAIN: Terminal = Terminal { width: None, colour_out: false, err: false };

    fn entry(node: Node, mode: u32) -> Entry {
        Entry { name: b"f".to_vec(), mode, uid: 0, gid: 0, xattrs: vec![], link: None, node }
    }

    fn file(bytes: &[u8], mode: u32) -> Entry {
        let content = Key::of(ObjectKind::Blob, bytes);
        entry(Node::File { content, size: bytes.len() as u64, sparse: false }, mode)
    }

    type Objects = HashMap<Key, Vec<u8>>;

    fn changed(before: Option<(Entry, &[u8])>, after: Option<(Entry, &[u8])>) -> (Change, Objects) {
        let contents = [&before, &after].into_iter().flatten();
        let objects = contents.map(|(_, b)| (Key::of(ObjectKind::Blob, b), b.to_vec())).collect();
        let change = Change {
            path: b"d/f".to_vec(),
            before: before.map(|(entry, _)| entry),
            before_time: Time::default(),
            after: after.map(|(entry, _)| entry),
            after_time: Time::default(),
            common: 1,
            passage: false,
        };
        (change, objects)
    }

    /// The change of the file `d/f` from one content to another.
    pub fn change_of(before: Option<&[u8]>, after: Option<&[u8]>) -> (Change, Objects) {
        changed(before.map(|b| (file(b, 0o644), b)), after.map(|b| (file(b, 0o644), b)))
    }

    fn patch(before: Option<(Entry, &[u8])>, after: Option<(Entry, &[u8])>, terminal: &Terminal) -> Vec<u8> {
        let (change, objects) = changed(before, after);
        let mut written = Vec::new();
        write(&change, &objects, terminal, &mut |bytes| {
            written.extend_from_slice(bytes);
            Ok(())
        })
        .unwrap();
        written
    }

    fn of_files(before: &[u8], after: &[u8]) -> String {
        let patch = patch(Some((file(before, 0o644), before)), Some((file(after, 0o644), after)), &PLAIN);
        String::from_utf8(patch).unwrap()
    }

    #[test]
    fn changed_text_is_a_patch() {
        assert_eq!(
            of_files(b"a\nb\nc\n", b"a\nB\nc"),
            "--- a/d/f\n+++ b/d/f\n@@ -1,3 +1,3 @@\n a\n-b\n-c\n+B\n+c\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn what_came_and_what_went_stand_against_nothing() {
        let new = patch(None, Some((file(b"a\n", 0o644), b"a\n")), &PLAIN);
        assert_eq!(String::from_utf8(new).unwrap(), "--- /dev/null\n+++ b/d/f\n@@ -0,0 +1 @@\n+a\n");
        let old = patch(Some((file(b"a\n", 0o644), b"a\n")), None, &PLAIN);
        assert_eq!(String::from_utf8(old).unwrap(), "--- a/d/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
    }

    #[test]
    fn what_is_no_text_is_told_by_its_sizes() {
        assert_eq!(of_files(b"a\0b", b"a\0bc"), "Binary differs, size 3 B -> 4 B\n");
        let latin = patch(
            Some((file(b"\xe9\n", 0o644), b"\xe9\n")),
            Some((file(b"\xe8\n", 0o644), b"\xe8\n")),
            &PLAIN,
        );
        assert!(latin.ends_with(b"-\xe9\n+\xe8\n"));
    }

    #[test]
    fn modes_links_and_kinds_are_named() {
        let modes = patch(Some((file(b"a", 0o644), b"a")), Some((file(b"a", 0o755), b"a")), &PLAIN);
        assert_eq!(String::from_utf8(modes).unwrap(), "mode 0644 -> 0755\n");
        let link = |to: &str| entry(Node::Symlink(to.into()), 0o777);
        let links = patch(Some((link("a"), b"")), Some((link("b"), b"")), &PLAIN);
        assert_eq!(String::from_utf8(links).unwrap(), "symbolic link to a -> symbolic link to b\n");
        let kinds = patch(Some((entry(Node::Fifo, 0o644), b"")), Some((link("b"), b"")), &PLAIN);
        assert_eq!(String::from_utf8(kinds).unwrap(), "fifo -> symbolic link to b\n");
    }

    #[test]
    fn colour_stands_around_the_text_of_a_line() {
        let colour = Terminal { colour_out: true, ..PLAIN };
        let patch = patch(Some((file(b"a\n", 0o644), b"a\n")), Some((file(b"b\n", 0o644), b"b\n")), &colour);
        let text = String::from_utf8(patch).unwrap();
        assert!(text.ends_with("\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n"), "{text:?}");
    }
}

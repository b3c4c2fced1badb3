//! Where a repository stood, what it was in the middle of, and what was staged: read from
//! what a capture recorded of it.

use super::operation::Operation;
use super::staged::{Mark, Staged};
use crate::error::Result;
use crate::object::Key;
use crate::store::Source;
use crate::store::content::read_all;
use crate::tree::node::{Entry, Node, decode_tree};
use std::collections::BTreeMap;

/// A recorded file that is larger than this, in bytes, is not read.
const LARGEST: u64 = 64 << 20;
/// Refs that lead to refs that lead to refs.
const MOST_STEPS: usize = 5;

/// Where a repository stood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// What HEAD was.
    pub head: Head,
    /// The commit that it led to, in hexadecimal; none in a repository without one.
    pub commit: Option<String>,
    /// What git was in the middle of; none when that was not recorded.
    pub under_way: Option<Vec<Operation>>,
    /// What was staged; none when that is not known.
    pub staged: Option<Staged>,
    refs: BTreeMap<Vec<u8>, Ref>,
    /// Files of refs in a form that is not read: path, content.
    pub(super) unread: Vec<(Vec<u8>, Key)>,
}

/// What HEAD is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Head {
    /// On this ref, `refs/heads/main`.
    Branch(Vec<u8>),
    /// On a commit.
    Detached,
    /// Not known: it could not be read, or refs are kept in another form.
    #[default]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ref {
    Id(String),
    To(Vec<u8>),
}

impl Head {
    /// The branch without what all of them begin with.
    pub fn branch(&self) -> Option<&[u8]> {
        match self {
            Self::Branch(name) => Some(name.strip_prefix(b"refs/heads/").unwrap_or(name)),
            Self::Detached | Self::Unknown => None,
        }
    }
}

impl Position {
    /// Reads what was recorded in the `Tree` `record`.
    ///
    /// # Errors
    /// Only when what is stored cannot be read: what git itself would not understand is
    /// not known.
    pub fn read(source: &dyn Source, record: &Key) -> Result<Self> {
        let (mut all, mut unread) = (Vec::new(), Vec::new());
        files(source, record, &|path| !path.starts_with(b"logs"), &mut |path, entry| {
            if let (Node::File { content, .. }, true) = (&entry.node, path.starts_with(b"reftable/")) {
                unread.push((path.to_vec(), *content));
            }
            // A list is long, and what is in the others is not asked for.
            let is_read = is_ref_file(path) || matches!(path, b"staged/hash" | b"staged/tree");
            let text = if is_read { text(source, &entry)? } else { Vec::new() };
            all.push((path.to_vec(), text));
            Ok(())
        })?;
        unread.sort_unstable();
        Ok(Self { unread, ..Self::of(all) })
    }

    /// What files of a repository say: path, content; of a link, what a file in its place
    /// would hold.
    pub(super) fn of(files: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let mut position = Self::default();
        let (mut head, mut loose) = (None, BTreeMap::new());
        let (mut hash, mut tree, mut listed, mut under_way) = (None, None, false, Vec::new());
        let mut marks = Vec::new();
        for (path, text) in files {
            match &path[..] {
                b"HEAD" => head = parse(&text),
                b"staged/hash" => hash = Some(text),
                b"staged/tree" => tree = object_id(text.trim_ascii()),
                b"staged/entries" => listed = true,
                b"packed-refs" => position.add_packed(&text),
                [b's', b't', b'a', b'g', b'e', b'd', b'/', name @ ..] => {
                    marks.extend(Mark::ALL.into_iter().filter(|mark| mark.file().as_bytes() == name));
                }
                _ if is_ref_file(&path) => loose.extend(parse(&text).map(|found| (path, found))),
                _ => under_way.extend(Operation::told_by(&path)),
            }
        }
        if let Some(hash) = hash {
            under_way.sort();
            under_way.dedup();
            position.under_way = Some(under_way);
            marks.sort_by_key(|mark| *mark as u8);
            position.staged = Staged::of(&hash, tree, listed, marks);
        }
        // A loose ref hides the packed one.
        position.refs.append(&mut loose);
        match head {
            // What git writes where refs are not files.
            Some(Ref::To(name)) if name == b"refs/heads/.invalid" => {}
            Some(Ref::To(name)) => {
                position.commit = position.id(&name).map(str::to_owned);
                position.head = Head::Branch(name);
            }
            Some(Ref::Id(id)) => (position.head, position.commit) = (Head::Detached, Some(id)),
            None => {}
        }
        position
    }

    /// The object that the ref `name` leads to.
    pub fn id(&self, name: &[u8]) -> Option<&str> {
        let mut name = name;
        for _ in 0..MOST_STEPS {
            match self.refs.get(name)? {
                Ref::Id(id) => return Some(id),
                Ref::To(to) => name = to,
            }
        }
        None
    }

    /// All refs that name an object: name, object; sorted by name.
    pub fn refs(&self) -> impl Iterator<Item = (&[u8], &str)> {
        self.refs.iter().filter_map(|(name, to)| match to {
            Ref::Id(id) => Some((name.as_slice(), id.as_str())),
            Ref::To(_) => None,
        })
    }

    fn add_packed(&mut self, text: &[u8]) {
        for line in text.split(|&b| b == b'\n') {
            // Comments, and what tags lead to, are no refs.
            let Some((id, name)) = line.iter().position(|&b| b == b' ').map(|at| line.split_at(at)) else {
                continue;
            };
            if let Some(id) = object_id(id) {
                self.refs.insert(name[1..].to_vec(), Ref::Id(id));
            }
        }
    }
}

/// Whether a reflog in the `Tree` `record` names the object `id`.
///
/// # Errors
/// When what is stored cannot be read.
pub fn is_in_reflog(source: &dyn Source, record: &Key, id: &str) -> Result<bool> {
    let mut found = false;
    let is_log = |path: &[u8]| path == b"logs" || path.starts_with(b"logs/");
    files(source, record, &is_log, &mut |_, entry| {
        let names = |text: &[u8]| text.windows(id.len()).any(|part| part == id.as_bytes());
        found = found || names(&text(source, &entry)?);
        Ok(())
    })?;
    Ok(found)
}

fn is_ref_file(path: &[u8]) -> bool {
    matches!(path, b"HEAD" | b"packed-refs" | b"refs") || path.starts_with(b"refs/")
}

/// Calls `act` for each file and link in the `Tree` `record` whose path, and the paths
/// above it, are `wanted`.
fn files(
    source: &dyn Source,
    record: &Key,
    wanted: &dyn Fn(&[u8]) -> bool,
    act: &mut dyn FnMut(&[u8], Entry) -> Result<()>,
) -> Result<()> {
    let mut next = vec![(Vec::new(), *record)];
    while let Some((at, tree)) = next.pop() {
        for entry in decode_tree(&source.read(&tree)?)? {
            let path =
                if at.is_empty() { entry.name.clone() } else { [&at, &b"/"[..], &entry.name].concat() };
            match entry.node {
                _ if !wanted(&path) => {}
                Node::Dir(inside) => next.push((path, inside)),
                _ => act(&path, entry)?,
            }
        }
    }
    Ok(())
}

/// What a recorded file holds; of a link, what a file in its place would.
fn text(source: &dyn Source, entry: &Entry) -> Result<Vec<u8>> {
    match &entry.node {
        Node::File { content, size, .. } if *size <= LARGEST => read_all(source, content, *size, LARGEST),
        Node::Symlink(to) => Ok([b"ref: ", &to[..]].concat()),
        _ => Ok(Vec::new()),
    }
}

/// What HEAD or a loose ref says.
pub(crate) fn parse(text: &[u8]) -> Option<Ref> {
    match text.strip_prefix(b"ref:") {
        Some(to) => Some(Ref::To(to.trim_ascii().to_vec())).filter(|to| *to != Ref::To(Vec::new())),
        None => object_id(text.trim_ascii()).map(Ref::Id),
    }
}

/// The name of an object, if it is one: SHA-1 or SHA-256 in hexadecimal.
fn object_id(text: &[u8]) -> Option<String> {
    let good = matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit);
    good.then(|| String::from_utf8_lossy(text).to_ascii_lowercase())
}

//! Capturing a directory from an archive of it: each file goes into the store as it arrives;
//! names and attributes wait for the end, since only then is known which of them are one inode.

use super::names::{inside, is_beneath, order, split};
use super::read::Reader;
use super::{Member, What};
use crate::backend::Call;
use crate::disk::size_text;
use crate::error::{Error, Kind, Result, show_bytes};
use crate::object::{Key, ObjectKind};
use crate::store::Lane;
use crate::store::content::store_bytes;
use crate::tree::node::{Entry, EntryTime, Node, Time, encode_times, encode_tree, wrong};
use crate::tree::root::Root;
use crate::tree::select::Options;
use std::collections::BTreeMap;
use std::io::Read;

/// What an archive is of.
pub struct Of<'a> {
    /// The setting that names the directory.
    pub setting: &'a str,
    /// How many names of each path lead to the directory itself.
    pub above: usize,
    /// What is selected of it, and how its times are taken.
    pub options: &'a Options,
}

/// An entry that came, and where it is.
struct Item {
    path: Vec<u8>,
    entry: Entry,
    mtime: Time,
}

/// Stores what the archive `input` holds; returns the key of its `Root`.
///
/// # Errors
/// `TooLarge` for more than the call allows; `Corrupt` when it is no archive of a directory;
/// what kept the store from being written.
pub fn capture(input: impl Read, of: &Of<'_>, call: &Call) -> Result<Key> {
    let writer = call.writer.as_deref();
    let writer =
        writer.ok_or_else(|| Error::new(Kind::Other, "there is nowhere to store what is captured"))?;
    let mut lane = writer.lane();
    call.report.begin("reading an archive", None, "items");
    let done = receive(input, of, call, &mut lane);
    call.report.end();
    let items = done?;
    let is_file = |item: &&Item| !matches!(item.entry.node, Node::Dir(_));
    let size = |item: &Item| if let Node::File { size, .. } = item.entry.node { size } else { 0 };
    let (files, bytes) = (items.iter().filter(is_file).count() as u64, items.iter().map(size).sum());
    let (top, mtime, times) = build(items, &mut lane)?;
    let root = Root {
        setting: of.setting.to_owned(),
        value: ".".to_owned(),
        options: of.options.text.clone(),
        top,
        mtime,
        times,
        left_out: Vec::new(),
        ignored: Vec::new(),
        ignored_stamps: Vec::new(),
        files,
        bytes,
        git: None,
    };
    let key = lane.put(ObjectKind::Root, &root.encode())?;
    lane.publish()?;
    Ok(key)
}

/// All entries of the archive, sorted.
fn receive(input: impl Read, of: &Of<'_>, call: &Call, lane: &mut Lane<'_>) -> Result<Vec<Item>> {
    let mut archive = Reader::new(input);
    let (mut items, mut links, mut files, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
    while let Some(member) = archive.next()? {
        call.cancel.check()?;
        let path = inside(&member.path, of.above)?;
        let node = match &member.what {
            What::Link(to) => {
                links.push((path, inside(to, of.above)?));
                files += 1;
                continue;
            }
            // Its own `Tree` is known when all that is in it has come.
            What::Dir => Node::Dir(Key::of(ObjectKind::Tree, b"")),
            What::File(_) => {
                let (content, size) = store_bytes(lane, &mut archive, &call.cancel)?;
                bytes += size;
                Node::File { content, size, sparse: false }
            }
            What::Symlink(to) => Node::Symlink(to.clone()),
            What::Fifo => Node::Fifo,
            What::CharDevice(major, minor) => Node::CharDevice(*major, *minor),
            What::BlockDevice(major, minor) => Node::BlockDevice(*major, *minor),
        };
        files += u64::from(member.what != What::Dir);
        call.report.advance(1);
        if let Some(limit) = call.huge.filter(|limit| files > limit.files || bytes > limit.bytes) {
            let why = format!(
                "`{}` is huge: more than {} files or {}",
                call.target.name,
                limit.files,
                size_text(limit.bytes)
            );
            return Err(Error::new(Kind::TooLarge, why).hint("insist with `--allow-huge`"));
        }
        items.push(item(path, member, node)?);
    }
    items.sort_by(|a, b| order(&a.path, &b.path));
    // Of one that came twice, what came last is what is there.
    items.dedup_by(|later, earlier| {
        let same = later.path == earlier.path;
        if same {
            std::mem::swap(later, earlier);
        }
        same
    });
    join(&mut items, links)?;
    Ok(items)
}

fn item(path: Vec<u8>, member: Member, node: Node) -> Result<Item> {
    let Member { mode, uid, gid, mtime, xattrs, .. } = member;
    let name = split(&path).map_or_else(Vec::new, |(_, name)| name.to_vec());
    let entry = Entry { name, mode, uid, gid, xattrs, link: None, node };
    match wrong(&entry) {
        Some(how) => Err(Error::corrupt(format!("the archive has {how} ({})", show_bytes(&path)))),
        None => Ok(Item { path, entry, mtime }),
    }
}

/// Adds the other names of inodes that came: each with the path of the first that came.
fn join(items: &mut Vec<Item>, links: Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
    let mut groups: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    links.into_iter().for_each(|(path, to)| groups.entry(to).or_default().push(path));
    let mut others = Vec::new();
    for (first, paths) in groups {
        let at = items.binary_search_by(|item| order(&item.path, &first)).map_err(|_| {
            Error::corrupt(format!("the archive links to what is not in it: {}", show_bytes(&first)))
        })?;
        let least = paths.iter().chain([&first]).min().expect("there is one at least");
        let hash = Key::of(ObjectKind::Blob, least);
        let link = u64::from_le_bytes(hash.hash()[..8].try_into().expect("a hash has more bytes"));
        items[at].entry.link = Some(link);
        for path in paths {
            let name = split(&path).map_or_else(Vec::new, |(_, name)| name.to_vec());
            let entry = Entry { name, ..items[at].entry.clone() };
            others.push(Item { path, entry, mtime: items[at].mtime });
        }
    }
    if !others.is_empty() {
        items.append(&mut others);
        items.sort_by(|a, b| order(&a.path, &b.path));
        items.dedup_by(|later, earlier| later.path == earlier.path);
    }
    Ok(())
}

/// A directory of which not all has come.
struct Open {
    item: Item,
    entries: Vec<Entry>,
    times: Vec<EntryTime>,
}

/// Stores the directories, from the deepest up; the top one, when it was last modified, and
/// the times of what is in it.
fn build(items: Vec<Item>, lane: &mut Lane<'_>) -> Result<(Entry, Time, Key)> {
    let lost =
        |path: &[u8]| Error::corrupt(format!("the archive has {} without its directory", show_bytes(path)));
    let mut items = items.into_iter();
    let open = |item: Item| Open { item, entries: Vec::new(), times: Vec::new() };
    let top = items.next().filter(|item| item.path.is_empty() && matches!(item.entry.node, Node::Dir(_)));
    let mut stack = vec![open(top.ok_or_else(|| lost(b"something"))?)];
    for item in items {
        while stack.last().is_some_and(|open| !is_beneath(&item.path, &open.item.path)) {
            let done = stack.pop().expect("there is one");
            let above = stack.last_mut().ok_or_else(|| lost(&item.path))?;
            finish(done, above, lane)?;
        }
        let above = stack.last_mut().ok_or_else(|| lost(&item.path))?;
        if split(&item.path).map(|(dir, _)| dir) != Some(&above.item.path) {
            return Err(lost(&item.path));
        }
        if matches!(item.entry.node, Node::Dir(_)) {
            stack.push(open(item));
        } else {
            above.times.push(EntryTime { mtime: item.mtime, inside: None });
            above.entries.push(item.entry);
        }
    }
    loop {
        let done = stack.pop().expect("the top is there until the end");
        match stack.last_mut() {
            Some(above) => finish(done, above, lane)?,
            None => {
                let (tree, times) = store(&done, lane)?;
                let Item { entry, mtime, .. } = done.item;
                return Ok((Entry { node: Node::Dir(tree), ..entry }, mtime, times));
            }
        }
    }
}

fn store(open: &Open, lane: &mut Lane<'_>) -> Result<(Key, Key)> {
    let tree = lane.put(ObjectKind::Tree, &encode_tree(&open.entries))?;
    Ok((tree, lane.put(ObjectKind::Times, &encode_times(&open.times))?))
}

fn finish(done: Open, above: &mut Open, lane: &mut Lane<'_>) -> Result<()> {
    let (tree, times) = store(&done, lane)?;
    let Item { entry, mtime, .. } = done.item;
    above.entries.push(Entry { node: Node::Dir(tree), ..entry });
    above.times.push(EntryTime { mtime, inside: Some(times) });
    Ok(())
}

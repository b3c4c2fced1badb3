//! Reading git's index: its entries, one by one, and what stands behind them.
//!
//! Versions 2 to 4. What is damaged or of another form is none.

/// An index, and the paths in it, are not larger than this, in bytes: a million files.
pub(super) const LARGEST: u64 = 128 << 20;
/// A path is not longer than this, in bytes; one entry may repeat most of the one before.
pub(super) const LONGEST: usize = 4096;

/// Where the mode of an entry stands, and the bytes before its object: times, device, inode,
/// mode, owner, size.
const MODE: usize = 24;
const FIXED: usize = 40;

/// Bytes of a hash: SHA-1, SHA-256. It is the repository's; a wrong one does not fit the
/// first entry.
pub(super) const HASHES: [usize; 2] = [20, 32];

/// The flag of an entry that has more flags, and the bits that are the length of its name.
const EXTENDED: u16 = 0x4000;
const LENGTH: u16 = 0xfff;
/// The flag of an entry that is taken for unchanged without a look.
const ASSUMED: u16 = 0x8000;
/// The flags among the further ones of an entry that is only meant to be added, and of one that
/// is not to be in the work tree.
const INTENT: u16 = 0x2000;
const SKIPPED: u16 = 0x4000;

/// One entry.
pub(super) struct Item<'i> {
    pub mode: u32,
    pub object: &'i [u8],
    /// 0, or which side of a conflict it is.
    pub stage: u16,
    /// Nothing of it is staged but its name.
    pub intent: bool,
    /// The work tree is not asked for it: it is not meant to be there, or to be unchanged.
    pub skipped: bool,
    pub assumed: bool,
    pub path: &'i [u8],
}

/// What stands behind the entries.
#[derive(Default)]
pub(super) struct Tail {
    /// The name of the index that this one shares entries with.
    pub shared: Option<String>,
    /// The tree that git wrote of all entries, when none was staged since.
    pub tree: Option<Vec<u8>>,
}

/// Tells each entry of `index`, whose hashes have `hash` bytes, until one is not wanted.
pub(super) fn each(index: &[u8], hash: usize, tell: &mut dyn FnMut(&Item<'_>) -> bool) -> Option<Tail> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let short = |at: usize| Some(u16::from_be_bytes(index.get(at..at + 2)?.try_into().ok()?));
    let version = number(4)?;
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let (count, mut at, mut path) = (number(8)?, 12, Vec::new());
    for _ in 0..count {
        let (begin, flags) = (at, at + FIXED + hash);
        let bits = short(flags)?;
        let more = if bits & EXTENDED == 0 { 0 } else { short(flags + 2)? };
        at = flags + if bits & EXTENDED == 0 { 2 } else { 4 };
        if version == 4 {
            let (strip, length) = varint(index.get(at..)?)?;
            at += length;
            path.truncate(path.len().checked_sub(strip)?);
        } else {
            path.clear();
        }
        let name = index.get(at..)?;
        let end = name.iter().position(|&b| b == 0)?;
        path.extend_from_slice(&name[..end]);
        if path.len() > LONGEST || path.len().min(usize::from(LENGTH)) != usize::from(bits & LENGTH) {
            return None;
        }
        let item = Item {
            mode: number(begin + MODE)?,
            object: &index[begin + FIXED..flags],
            stage: bits >> 12 & 3,
            intent: more & INTENT != 0,
            skipped: more & SKIPPED != 0,
            assumed: bits & ASSUMED != 0,
            path: &path,
        };
        if !tell(&item) {
            return None;
        }
        at += end;
        // Padded with one to eight zeros to a multiple of eight; not in version 4.
        at = if version == 4 { at + 1 } else { begin + (at - begin + 8) / 8 * 8 };
    }
    let mut tail = Tail::default();
    while at + hash < index.len() {
        let (name, length) = (index.get(at..at + 4)?, number(at + 4)? as usize);
        let end = at.checked_add(8 + length)?;
        match name {
            b"link" => tail.shared = Some(hex(index.get(at + 8..at + 8 + hash)?)),
            b"TREE" => tail.tree = whole(index.get(at + 8..end)?, count, hash),
            _ => {}
        }
        at = end;
    }
    Some(tail)
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The tree of all `count` entries, of what git remembers of trees: the top comes first, an
/// empty name, how many entries it is of (-1 once one was staged), how many trees lie in it.
fn whole(trees: &[u8], count: u32, hash: usize) -> Option<Vec<u8>> {
    let top = trees.strip_prefix(b"\0")?;
    let end = top.iter().position(|&b| b == b'\n')?;
    let of = top[..end].split(|&b| b == b' ').next()?;
    (of == count.to_string().as_bytes()).then(|| top.get(end + 1..end + 1 + hash).map(<[u8]>::to_vec))?
}

/// A number of version 4, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0usize;
    for (at, &byte) in bytes.iter().enumerate().take(9) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

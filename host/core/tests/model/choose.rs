//! Which operations are tried: names are few, so that they meet.

use crate::deed::{Deed, Fill, Make};
use crate::state::Op;
use crate::tree::Path;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use snapback_core::text::Bytes;

/// Names, those that meet most often first.
const NAMES: [&[u8]; 6] = [b"a", b"b", b"c.d", "\u{e9}".as_bytes(), b"x y\n", b"\xfe"];
/// Around the lengths of a block and of a list of them.
const LENGTHS: [usize; 9] = [0, 1, 10, 4096, 5000, 65_535, 65_536, 65_537, 200_000];
const MODES: [u32; 9] = [0o600, 0o644, 0o755, 0o444, 0o500, 0o700, 0o4755, 0o2711, 0o1777];
const TARGETS: [&[u8]; 5] = [b"a", b"../b", b"/nonexistent", b".", b"a/b/\xfe"];

fn path() -> impl Strategy<Value = Path> {
    let name = prop_oneof![4 => 0..2usize, 2 => 0..4usize, 1 => 0..NAMES.len()];
    vec(name, 1..4).prop_map(|names| {
        let names: Vec<&[u8]> = names.into_iter().map(|at| NAMES[at]).collect();
        Bytes(names.join(&b'/'))
    })
}

/// A path, the root at times.
fn any_path() -> impl Strategy<Value = Path> {
    prop_oneof![15 => path(), 1 => Just(Bytes::default())]
}

fn fill() -> impl Strategy<Value = Fill> {
    (0..6u8, select(&LENGTHS[..])).prop_map(|(seed, len)| Fill { seed, len })
}

fn make() -> impl Strategy<Value = Make> {
    let target = select(&TARGETS[..]).prop_map(|to| Make::Symlink(Bytes(to.to_vec())));
    prop_oneof![4 => fill().prop_map(Make::File), 3 => Just(Make::Dir), 1 => target, 1 => Just(Make::Fifo)]
}

/// `xattrs` and `owners`: whether attributes and owners can be set here.
fn deed(xattrs: bool, owners: bool) -> impl Strategy<Value = Deed> {
    let everywhere = prop_oneof![
        12 => (path(), make()).prop_map(|(path, make)| Deed::Make(path, make)),
        4 => (path(), make()).prop_map(|(path, make)| Deed::Turn(path, make)),
        3 => (path(), fill()).prop_map(|(path, fill)| Deed::Write(path, fill)),
        2 => (path(), 0..6u8).prop_map(|(path, seed)| Deed::Rewrite(path, seed)),
        2 => (path(), fill()).prop_map(|(path, fill)| Deed::Append(path, fill)),
        1 => (path(), any::<u8>()).prop_map(|(path, part)| Deed::Shorten(path, part)),
        1 => path().prop_map(Deed::Extend),
        3 => path().prop_map(Deed::Remove),
        4 => (path(), path()).prop_map(|(from, to)| Deed::Rename(from, to)),
        2 => (path(), path()).prop_map(|(a, b)| Deed::Exchange(a, b)),
        6 => (path(), path()).prop_map(|(path, new)| Deed::Link(path, new)),
        3 => (any_path(), select(&MODES[..])).prop_map(|(path, mode)| Deed::Chmod(path, mode)),
        1 => (any_path(), 1..1000u32).prop_map(|(path, sec)| Deed::Touch(path, sec)),
    ];
    let mut all = vec![(45, everywhere.boxed())];
    if owners {
        let chown = (any_path(), select(vec![0, 7])).prop_map(|(path, uid)| Deed::Chown(path, uid));
        all.push((1, chown.boxed()));
    }
    if xattrs {
        let set = (any_path(), 0..2u8, 0..9u8).prop_map(|(path, n, value)| Deed::SetXattr(path, n, value));
        let remove = (any_path(), 0..2u8).prop_map(|(path, n)| Deed::RemoveXattr(path, n));
        all.extend([(3, set.boxed()), (1, remove.boxed())]);
    }
    Union::new_weighted(all)
}

/// A snapshot: mostly a new one.
fn back() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..3usize, 1 => 0..9usize]
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    vec(path(), 1..3)
}

/// One operation.
pub fn op(xattrs: bool, owners: bool) -> impl Strategy<Value = Op> {
    prop_oneof![
        60 => deed(xattrs, owners).prop_map(Op::Do),
        5 => Just(Op::Begin),
        5 => Just(Op::End),
        1 => Just(Op::Kill),
        5 => (proptest::bool::weighted(0.2), proptest::bool::weighted(0.1))
            .prop_map(|(named, pinned)| Op::Snap { named, pinned }),
        8 => Just(Op::Undo),
        5 => Just(Op::Redo),
        2 => Just(Op::OneBack),
        3 => back().prop_map(Op::Restore),
        2 => paths().prop_map(Op::UndoPaths),
        3 => (back(), paths()).prop_map(|(back, paths)| Op::RestorePaths(back, paths)),
        1 => (0..5usize).prop_map(Op::Gc),
        1 => back().prop_map(Op::Forget),
        1 => Just(Op::LoseStore),
        1 => Just(Op::LoseCaches),
    ]
}

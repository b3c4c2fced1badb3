//! Random trees and random changes: there and back again, whole, in part, and cut short.

use super::world::{State, World, set_time};
use crate::disk::{FailAt, Hook};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The seeds of a test: `SNAPBACK_SEEDS` (from..to) asks for others.
fn seeds(few: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("SNAPBACK_SEEDS").ok();
    let range = asked.as_deref().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    range.unwrap_or(1..few + 1)
}

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn path(&mut self, world: &World) -> PathBuf {
        let names = ["a", "b", "c.d", "\u{e9}", "x y"];
        let mut path = world.tree.clone();
        for _ in 0..=self.roll(3) {
            // Never through a link: it may lead anywhere.
            if path.symlink_metadata().is_ok_and(|stat| stat.is_symlink()) {
                break;
            }
            path.push(names[self.roll(5) as usize]);
        }
        path
    }
}

fn clear(path: &Path) {
    match path.symlink_metadata() {
        Ok(stat) if stat.is_dir() => {
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                clear(&entry.path());
            }
            let _ = std::fs::remove_dir(path);
        }
        Ok(_) => std::fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Does something to the tree; what does not work is let be.
fn deed(world: &World, dice: &mut Dice) {
    let path = dice.path(world);
    let other = dice.path(world);
    let _ = std::fs::create_dir_all(path.parent().unwrap());
    let is_file = path.symlink_metadata().is_ok_and(|stat| stat.is_file());
    match dice.roll(15) {
        0..=4 => {
            let size = [0, 1, 10, 4000, 70_000, 200_000][dice.roll(6) as usize];
            let byte = b'a' + dice.roll(3) as u8;
            if path.symlink_metadata().is_err() || is_file {
                let _ = std::fs::write(&path, vec![byte; size]);
            }
        }
        5 => clear(&path),
        6 => drop(std::fs::rename(&path, &other)),
        7 => {
            let mode = [0o600, 0o644, 0o755, 0o4711, 0o700][dice.roll(5) as usize];
            if path.symlink_metadata().is_ok_and(|stat| stat.is_dir() || stat.is_file()) {
                let mode = if path.is_dir() { mode | 0o700 } else { mode };
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        8 => drop(symlink(["a", "../b", "/nonexistent", "."][dice.roll(4) as usize], &path)),
        9 | 10 => {
            if other.symlink_metadata().is_ok_and(|stat| stat.is_file()) {
                let _ = std::fs::hard_link(&other, &path);
            }
        }
        11 => {
            let kind = rustix::fs::FileType::Fifo;
            let _ = rustix::fs::mknodat(rustix::fs::CWD, &path, kind, 0o640.into(), 0);
        }
        12 => {
            clear(&path);
            let _ = std::fs::create_dir(&path);
        }
        13 if path.symlink_metadata().is_ok() => set_time(&path, 1_000_000 + dice.roll(1000) as i64),
        _ => {
            let value = [dice.roll(200) as u8];
            if is_file {
                let _ = rustix::fs::setxattr(&path, "user.x", &value, rustix::fs::XattrFlags::empty());
            }
        }
    }
}

/// The names of each inode.
fn names(state: &State) -> BTreeMap<u64, BTreeSet<&[u8]>> {
    let mut names: BTreeMap<u64, BTreeSet<&[u8]>> = BTreeMap::new();
    for (path, it) in &state.0 {
        names.entry(it.ino).or_default().insert(path);
    }
    names
}

/// Fails unless the restored state is the wanted one, hard links included, and what was
/// the same before is not touched.
fn check(after: &State, wanted: &State, before: &State, case: &str) {
    assert_eq!(after.what(), wanted.what(), "{case}");
    let groups = |state| names(state).into_values().collect::<BTreeSet<_>>();
    assert_eq!(groups(after), groups(wanted), "{case}");
    let (had, want) = (names(before), names(wanted));
    for (path, it) in &after.0 {
        let wanted = &wanted.0[path];
        if !it.what.starts_with("file") {
            assert_eq!(it.mtime, wanted.mtime, "{case}: {}", String::from_utf8_lossy(path));
        } else if before.0.get(path).is_some_and(|b| b == wanted && had[&b.ino] == want[&wanted.ino]) {
            assert_eq!(it, wanted, "{case}: {}", String::from_utf8_lossy(path));
        }
    }
}

#[test]
fn there_and_back_again() {
    for seed in seeds(60) {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let world = World::new(&format!("model-{seed}"));
        let deeds = 5 + dice.roll(60);
        (0..deeds).for_each(|_| deed(&world, &mut dice));
        let (first, stored) = (world.state(), world.record());
        let deeds = 1 + dice.roll(40);
        (0..deeds).for_each(|_| deed(&world, &mut dice));
        let (second, current) = (world.state(), world.record());
        let case = format!("seed {seed}");

        let outcome = world.restore(&stored, &current).unwrap();
        assert!(
            outcome.refused.is_empty() && outcome.notes.is_empty() && outcome.saved.is_empty(),
            "{case}: {outcome:?}"
        );
        check(&world.state(), &first, &second, &case);

        // Back, but cut short somewhere; then completed, or taken back.
        let hook = Arc::new(FailAt::new(dice.roll(60), Errno::IO.raw_os_error(), dice.roll(2) == 0));
        let cut = world.restore_with(&current, &stored, &[], Some(hook as Arc<dyn Hook>));
        let complete = cut.is_ok() || dice.roll(2) == 0;
        let (to, from, wanted) =
            if complete { (&current, &stored, &second) } else { (&stored, &current, &first) };
        let outcome = world.restore(to, from).unwrap();
        assert!(outcome.refused.is_empty() && outcome.saved.is_empty(), "{case}: {outcome:?}");
        assert_eq!(world.state().what(), wanted.what(), "{case}");
        assert_eq!(world.leftovers(), [""; 0], "{case}");
    }
}

#[test]
fn captured_for_real() {
    for seed in seeds(25) {
        let mut dice = Dice(seed.wrapping_mul(0xd134_2543_de82_ef95));
        let world = World::new(&format!("model-real-{seed}"));
        (0..40).for_each(|_| deed(&world, &mut dice));
        let (first, stored) = (world.state(), world.capture(&[], None));
        (0..30).for_each(|_| deed(&world, &mut dice));
        let (second, current) = (world.state(), world.capture(&[], Some(stored)));
        let case = format!("seed {seed}");
        let (outcome, told) = world.put_back(&[], &stored, &current, &[]).unwrap();
        assert!(told.is_empty(), "{case}: {told:?} {outcome:?}");
        check(&world.state(), &first, &second, &case);
        let (_, told) = world.put_back(&[], &current, &stored, &[]).unwrap();
        assert!(told.is_empty(), "{case}: {told:?}");
        check(&world.state(), &second, &first, &case);
        // What comes back is the same state again, as a capture sees it.
        let again = world.capture(&[], Some(stored));
        let root = |key| crate::tree::view::read_root(&*world.store, key).unwrap();
        assert!(root(&again).same_state(&root(&current)), "{case}");
        assert_eq!(world.leftovers(), [""; 0], "{case}");
    }
}

#[test]
fn one_path_at_a_time() {
    for seed in seeds(25) {
        let mut dice = Dice(seed.wrapping_mul(0xda94_2042_e4dd_58b5));
        let world = World::new(&format!("model-only-{seed}"));
        (0..40).for_each(|_| deed(&world, &mut dice));
        let (first, stored) = (world.state(), world.record());
        (0..30).for_each(|_| deed(&world, &mut dice));
        let (second, current) = (world.state(), world.record());
        let path = dice.path(&world).strip_prefix(&world.tree).unwrap().to_str().unwrap().to_owned();
        let case = format!("seed {seed}, {path}");
        let done = world.restore_with(&stored, &current, &[&path], None);
        // Something else stands on the way to it: said, nothing done.
        let Ok(outcome) = done else {
            assert_eq!(world.state(), second, "{case}");
            continue;
        };
        assert!(outcome.refused.is_empty(), "{case}: {outcome:?}");
        let after = world.state();
        let inside =
            |p: &[u8]| p == path.as_bytes() || (p.starts_with(path.as_bytes()) && p[path.len()] == b'/');
        // How many names an inode has is not a matter of one path, and what is set on one
        // of them is set on all.
        let shared: BTreeSet<&[u8]> = names(&second)
            .into_values()
            .filter(|names| names.len() > 1 && names.iter().any(|p| inside(p)))
            .flatten()
            .collect();
        let plain = |what: &str| what.split(" x").next().unwrap().to_owned();
        let of = |state: &State, within: bool| -> BTreeMap<Vec<u8>, String> {
            let all = state
                .0
                .iter()
                .filter(|(p, _)| inside(p) == within && (within || !shared.contains(p.as_slice())));
            all.map(|(p, it)| (p.clone(), plain(&it.what))).collect()
        };
        assert_eq!(of(&after, true), of(&first, true), "{case}");
        let mut outside = of(&after, false);
        // Directories on the way may have been made for it.
        outside.retain(|p, _| second.0.contains_key(p) || !path.as_bytes().starts_with(p));
        assert_eq!(outside, of(&second, false), "{case}");
    }
}

//! A capture that uses the cache is the same as one that has none, whatever happened
//! in between.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn path(&mut self) -> String {
        let names = ["a", "b", "c", "d"];
        (0..=self.below(4)).map(|_| names[self.below(4)]).collect::<Vec<_>>().join("/")
    }
}

/// One change, or none where it is not possible.
fn change(world: &World, rng: &mut Rng) {
    let (one, other) = (world.path(&rng.path()), world.path(&rng.path()));
    let text = vec![b'x' + rng.below(3) as u8; [0, 5, 5, 70_000][rng.below(4)]];
    let _ = match rng.below(14) {
        0 | 1 => fs::create_dir_all(&one),
        2..=4 => fs::create_dir_all(one.parent().unwrap()).and_then(|()| fs::write(&one, text)),
        5 => fs::hard_link(&one, &other),
        6 => std::os::unix::fs::symlink(&other, &one),
        7 | 8 => fs::rename(&one, &other),
        9 => fs::remove_file(&one).or_else(|_| fs::remove_dir_all(&one)),
        10 => fs::set_permissions(&one, PermissionsExt::from_mode([0o644, 0o755, 0o1700][rng.below(3)])),
        11 => {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(rng.below(3) as u64);
            fs::File::open(&one).and_then(|file| file.set_modified(time))
        }
        12 => fs::File::options().write(true).open(&one).and_then(|file| file.set_len(5)),
        _ => {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::lsetxattr(&one, "user.x", &text[..text.len().min(5)], flags).map_err(Into::into)
        }
    };
}

#[test]
fn the_cache_never_shows() {
    for seed in 0..4 {
        let mut rng = Rng(seed);
        let mut world = World::new();
        let cold = Store::create(&world.path("../cold"), Disk::default().with_sync(false)).unwrap();
        let (mut opened, mut changes) = (0, 0);
        for _ in 0..60 {
            for _ in 0..rng.below(6) {
                change(&world, &mut rng);
                changes += 1;
            }
            if rng.below(3) == 0 {
                world.settle();
            }
            if rng.below(8) == 0 {
                world.try_capture(false).unwrap();
            }
            let taken = world.capture();
            opened += taken.counts.opened;
            let _ = fs::remove_dir_all(cold.path().join("cache"));
            let warm = std::mem::replace(&mut world.store, cold.clone());
            let previous = world.previous.take();
            let fresh = world.try_capture(true).unwrap();
            (world.store, world.previous) = (warm, previous);
            assert_eq!(taken.root, fresh.root, "seed {seed} after {changes} changes");
        }
        assert!(opened > 0);
    }
}

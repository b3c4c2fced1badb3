//! What the system would refuse is found while planning, and nothing is touched.

use super::world::World;
use crate::disk::{Hook, Op, OpKind, PlainRenames};
use crate::error::Kind;
use crate::testing::{as_nobody, give_to_nobody};
use rustix::fs::IFlags;
use std::os::unix::fs::{MetadataExt, chown};
use std::sync::Arc;

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Sets or clears flags as `chattr` does; false where that is not possible.
fn chattr(world: &World, path: &str, flag: IFlags, on: bool) -> bool {
    let file = std::fs::File::open(world.path(path)).unwrap();
    let Ok(flags) = rustix::fs::ioctl_getflags(&file) else { return false };
    let flags = if on { flags | flag } else { flags - flag };
    rustix::fs::ioctl_setflags(&file, flags).is_ok()
}

#[test]
fn an_immutable_file_is_named_and_nothing_is_touched() {
    for (path, flag, hint) in [
        ("fixed", IFlags::IMMUTABLE, "chattr -i"),
        ("fixed", IFlags::APPEND, "chattr -a"),
        ("dir", IFlags::IMMUTABLE, "chattr -i"),
    ] {
        let world = World::new(&format!("immutable-{path}-{hint}"));
        world.write("fixed", "one");
        world.write("dir/inside", "one");
        world.write("other", "one");
        let (before, stored) = (world.state(), world.record());
        for name in ["fixed", "dir/inside", "other"] {
            world.write(name, "two");
        }
        let (spoilt, current) = (world.state(), world.record());
        if !chattr(&world, path, flag, true) {
            return;
        }
        let error = world.restore(&stored, &current).unwrap_err();
        let seen = world.state();
        let again = world.restore(&current, &stored);
        let partial = {
            let mut world_options = world.options;
            world_options.partial = true;
            world.restore_as(&stored, &current, world_options)
        };
        let after = world.state();
        assert!(chattr(&world, path, flag, false));
        assert_eq!(error.kind(), Kind::Denied);
        assert!(error.message().contains(path) && error.message().contains("nothing was changed"), "{error}");
        assert!(error.hint_text().unwrap().contains(hint), "{error:?}");
        assert_eq!(seen, spoilt);
        // Taking back what was not begun is no reason to refuse again.
        again.unwrap();
        let outcome = partial.unwrap();
        assert_eq!(outcome.refused.len(), 1, "{outcome:?}");
        assert_eq!(after.at("other").what, before.at("other").what);
        let kept = if path == "dir" { "dir/inside" } else { path };
        assert_eq!(after.at(kept), spoilt.at(kept));
        assert_eq!(world.leftovers(), [""; 0]);
    }
}

#[test]
fn an_immutable_file_that_is_right_is_no_hindrance() {
    let world = World::new("immutable-right");
    world.write("fixed", "one");
    world.write("dir/fixed", "one");
    world.write("other", "one");
    let stored = world.record();
    world.write("other", "two");
    let current = world.record();
    if !chattr(&world, "fixed", IFlags::IMMUTABLE, true) {
        return;
    }
    let done = world.restore(&stored, &current);
    assert!(chattr(&world, "fixed", IFlags::IMMUTABLE, false));
    assert!(done.unwrap().refused.is_empty());
    assert_eq!(world.read("other"), b"one");
}

#[test]
fn a_directory_of_somebody_else_is_named() {
    if !root() {
        return;
    }
    let world = World::new("not-ours");
    world.write("theirs/f", "one");
    world.write("theirs/sub/g", "one");
    world.write("ours/f", "one");
    let stored = world.record();
    world.write("theirs/f", "two");
    world.write("theirs/sub/g", "two");
    world.write("ours/f", "two");
    let (spoilt, current) = (world.state(), world.record());
    let plan = world.plan_as(65534, &stored, &current);
    let all = ["ours/f", "theirs/f", "theirs/sub/g"];
    let refused: Vec<String> =
        plan.refusals.iter().map(|r| String::from_utf8_lossy(&r.path).into_owned()).collect();
    assert_eq!(refused, all);
    assert!(
        plan.refusals.iter().all(|r| r.hint.as_ref().unwrap().starts_with("sudo chown 65534 ")),
        "{plan:?}"
    );
    assert_eq!(world.state(), spoilt);
}

#[test]
fn a_sticky_directory_protects_what_others_own() {
    if !root() {
        return;
    }
    let world = World::new("sticky");
    world.write("shared/theirs", "one");
    world.write("shared/mine", "one");
    let stored = world.record();
    world.write("shared/theirs", "two");
    world.write("shared/mine", "two");
    world.chmod("shared", 0o1777);
    chown(world.path("shared/mine"), Some(65534), Some(65534)).unwrap();
    let current = world.record();
    let plan = world.plan_as(65534, &stored, &current);
    let about: Vec<&str> = plan.refusals.iter().map(|r| std::str::from_utf8(&r.path).unwrap()).collect();
    assert_eq!(about, ["shared/theirs"], "{plan:?}");
}

#[test]
fn content_of_somebody_else_comes_back_and_the_owner_is_noted() {
    let world = World::new("owner");
    world.write("f", "one");
    give_to_nobody(&world.base);
    world.chmod("f", 0o4755);
    let outcome = as_nobody(|| {
        let mut stored = world.record();
        // As if root had owned it when it was recorded.
        world.owned_by_root(&mut stored, b"f");
        world.write("f", "two");
        world.restore(&stored, &world.record()).unwrap()
    });
    assert_eq!(world.read("f"), b"one");
    assert!(outcome.refused.is_empty(), "{outcome:?}");
    let [note] = &outcome.notes[..] else { panic!("{outcome:?}") };
    assert!(note.reason.contains("owner 0:0") && note.reason.contains("setuid"), "{note:?}");
    let hint = format!("sudo chown 0:0 {0} && sudo chmod 4755 {0}", world.path("f").display());
    assert_eq!(note.hint, Some(hint));
    assert_eq!(world.path("f").metadata().unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_device_that_cannot_be_made_is_noted() {
    let world = World::new("device");
    give_to_nobody(&world.base);
    let objects = crate::tree::sample::Objects::default();
    let node = crate::tree::node::Node::CharDevice(1, 3);
    let mut device = crate::tree::sample::file("null", "");
    device.entry.node = node;
    let stored =
        crate::tree::sample::sample_root(&objects, vec![device, crate::tree::sample::file("f", "x")]);
    let current = crate::tree::sample::sample_root(&objects, vec![]);
    let outcome = as_nobody(|| world.restore_from(&objects, &stored, &current).unwrap());
    assert_eq!(world.read("f"), b"x");
    assert_eq!(outcome.refused.len(), 1, "{outcome:?}");
    assert!(outcome.refused[0].reason.contains("character device"), "{outcome:?}");
}

#[test]
fn no_room_is_found_before_anything_is_touched() {
    let world = World::new("no-room");
    let objects = crate::tree::sample::Objects::default();
    let mut huge = crate::tree::sample::file("huge", "");
    let list = crate::object::Key::of(crate::object::ObjectKind::List, b"never read");
    huge.entry.node = crate::tree::node::Node::File { content: list, size: 1 << 60, sparse: false };
    let stored = crate::tree::sample::sample_root(&objects, vec![huge, crate::tree::sample::file("f", "x")]);
    let current = crate::tree::sample::sample_root(&objects, vec![]);
    let error = world.restore_from(&objects, &stored, &current).unwrap_err();
    assert_eq!(error.kind(), Kind::NoSpace);
    assert!(error.message().contains("writes 1024.0 PiB"), "{error}");
    assert!(!world.path("f").exists());
}

#[test]
fn what_something_is_mounted_on_is_named() {
    let world = World::new("mounted");
    world.write("f", "one");
    let stored = world.record();
    world.write("f", "two");
    let current = world.record();
    world.write("over", "mounted");
    let mount = std::process::Command::new("mount")
        .arg("--bind")
        .args([world.path("over"), world.path("f")])
        .stderr(std::process::Stdio::null())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        return;
    }
    let done = world.restore(&stored, &current);
    let read = world.read("f");
    assert!(std::process::Command::new("umount").arg(world.path("f")).status().unwrap().success());
    assert!(done.unwrap_err().message().contains("mounted on it"));
    assert_eq!((read, world.read("f")), (b"mounted".to_vec(), b"two".to_vec()));
}

#[test]
fn a_directory_that_holds_what_was_not_recorded_does_not_give_way() {
    let world = World::new("gives-way");
    world.write("was-file", "one");
    world.write("other", "one");
    let options = [("ignore", "node_modules/")];
    let stored = world.capture(&options, None);
    std::fs::remove_file(world.path("was-file")).unwrap();
    world.write("was-file/index.js", "two");
    world.write("was-file/node_modules/m.js", "installed");
    world.write("other", "two");
    // A capture that does not know what is to come back.
    let current = world.capture(&options, None);
    let (_, told) = world.put_back(&options, &stored, &current, &[]).unwrap();
    assert_eq!(world.read("other"), b"one");
    assert_eq!(world.read("was-file/index.js"), b"two");
    assert_eq!(world.read("was-file/node_modules/m.js"), b"installed");
    assert!(told.len() == 1 && told[0].0 == "was-file" && told[0].1.contains("node_modules"), "{told:?}");
}

#[test]
fn stopping_takes_back_what_was_done() {
    /// Asks for a stop before the first operation of a kind.
    struct Stop(OpKind, crate::backend::Cancel);
    impl Hook for Stop {
        fn before(&self, op: &Op<'_>) -> std::io::Result<()> {
            if op.kind == self.0 {
                self.1.cancel();
            }
            Ok(())
        }
    }
    for kind in [OpKind::Write, OpKind::Rename, OpKind::MakeDir, OpKind::Exchange, OpKind::RemoveDir] {
        let world = World::new(&format!("stop-{kind:?}"));
        super::sample(&world);
        let stored = world.record();
        super::spoil(&world);
        let (spoilt, current) = (world.state(), world.record());
        let hook = Arc::new(Stop(kind, world.cancel()));
        let error = world.restore_with(&stored, &current, &[], Some(hook)).unwrap_err();
        assert_eq!(error.kind(), Kind::Cancelled, "{error}");
        assert_eq!(world.state().what(), spoilt.what(), "{kind:?}");
        assert_eq!(world.leftovers(), [""; 0], "{kind:?}");
    }
}

#[test]
fn a_file_system_with_plain_renames_only() {
    let world = World::new("plain");
    super::sample(&world);
    let (before, stored) = (world.state(), world.record());
    super::spoil(&world);
    let (spoilt, current) = (world.state(), world.record());
    let outcome = world.restore_with(&stored, &current, &[], Some(Arc::new(PlainRenames))).unwrap();
    assert!(outcome.refused.is_empty() && outcome.notes.is_empty(), "{outcome:?}");
    world.state().assert_is(&before, &["a/x", "a/y", "b/deep/er/z"]);
    world.restore_with(&current, &stored, &[], Some(Arc::new(PlainRenames))).unwrap();
    assert_eq!(world.state().what(), spoilt.what());
    assert_eq!(world.leftovers(), [""; 0]);
}

//! Repositories that are recorded: real ones, and ones made to be a trap.

use super::*;
use crate::tree::git::look::{DEEPEST, LARGEST_FILE, LARGEST_REF, MOST_NAMES};
use crate::tree::git::{Head, Position};
use crate::tree::root::GitRecord;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::os::unix::fs::symlink;
use std::process::Command;

fn git(world: &World, at: &str, args: &[&str]) -> String {
    let done = Command::new("git")
        .arg("-C")
        .arg(world.path(at))
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@b")))
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A repository with one commit.
fn repository() -> World {
    let world = World::new();
    git(&world, "", &["init", "-q", "-b", "main"]);
    world.write("f", "0");
    git(&world, "", &["add", "f"]);
    git(&world, "", &["commit", "-q", "-m", "one"]);
    world
}

fn record(taken: &Taken) -> GitRecord {
    taken.root.git.expect("a repository is recorded")
}

fn position(world: &World, taken: &Taken) -> Position {
    Position::read(&*world.store, &record(taken).tree).unwrap()
}

/// The paths of all that is recorded.
fn paths(world: &World, taken: &Taken) -> Vec<String> {
    let (mut next, mut all) = (vec![(String::new(), record(taken).tree)], Vec::new());
    while let Some((at, tree)) = next.pop() {
        for entry in decode_tree(&world.store.read(&tree).unwrap()).unwrap() {
            let path = format!("{at}{}", entry.name.escape_ascii());
            match entry.node {
                Node::Dir(inside) => next.push((format!("{path}/"), inside)),
                _ => all.push(path),
            }
        }
    }
    all.sort();
    all
}

#[test]
fn head_refs_reflogs_and_what_is_staged_are_recorded_and_nothing_else() {
    let mut world = repository();
    git(&world, "", &["tag", "v1"]);
    git(&world, "", &["pack-refs", "--all"]);
    git(&world, "", &["branch", "side/way"]);
    let commit = git(&world, "", &["rev-parse", "HEAD"]);
    let taken = world.capture();
    let want = [
        "HEAD",
        "logs/HEAD",
        "logs/refs/heads/main",
        "logs/refs/heads/side/way",
        "packed-refs",
        "refs/heads/side/way",
        "staged/hash",
        "staged/tree",
    ];
    assert_eq!((paths(&world, &taken), record(&taken).whole), (want.map(str::to_owned).to_vec(), true));
    let position = position(&world, &taken);
    assert_eq!(position.head.branch(), Some(&b"main"[..]));
    assert_eq!(position.commit.as_deref(), Some(&*commit));
    assert_eq!(position.refs().count(), 3);
    assert_eq!(taken.paths(), ["f"], "the record is no part of the tree");
    // Covered as files, it needs no record.
    world.options = vec![("git", "true".into())];
    assert_eq!(world.capture().root.git, None);
}

#[test]
fn an_unchanged_repository_is_not_read_again() {
    let mut world = repository();
    world.settle();
    let first = world.capture();
    assert_eq!(first.counts.git, 5);
    let again = world.capture();
    assert_eq!((again.counts.git, again.added, again.key), (0, 0, first.key));
    // Another tree, the same repository; also when the capture before was not kept.
    world.write("g", "1");
    world.settle();
    assert_eq!(world.try_capture(false).unwrap().counts.git, 0);
    let next = world.capture();
    assert_eq!((next.counts.git, record(&next)), (0, record(&first)));
    assert_eq!(world.capture().counts.git, 0);
    // Of the index only what is staged: its times are no change, and only it is read again.
    std::fs::write(world.path("f"), "0").unwrap();
    git(&world, "", &["status"]);
    world.settle();
    let touched = world.capture();
    assert_eq!((touched.counts.git, record(&touched)), (1, record(&next)));
    git(&world, "", &["add", "g"]);
    world.settle();
    let staged = world.capture();
    assert_eq!(staged.counts.git, 1);
    assert_ne!(record(&staged).tree, record(&next).tree);
    assert_eq!((world.capture().counts.git, world.capture().key), (0, staged.key));
    assert!(paths(&world, &staged).contains(&"staged/entries".to_owned()));
    git(&world, "", &["commit", "-q", "-m", "two"]);
    world.settle();
    let moved = world.capture();
    assert_ne!(record(&moved).tree, record(&next).tree);
    assert_eq!((world.capture().counts.git, world.capture().key), (0, moved.key));
    // Nobody vouches for what was never committed.
    let lost = World { previous: None, ..world };
    assert_eq!(lost.try_capture(true).unwrap().counts.git, 5);
}

#[test]
fn a_ref_written_in_the_same_tick_is_seen() {
    let mut world = repository();
    let ids = ["a", "b"].map(|digit| digit.repeat(40));
    for round in 0..20 {
        for id in &ids {
            world.write(".git/refs/heads/main", id);
            let taken = world.capture();
            assert_eq!(position(&world, &taken).commit.as_ref(), Some(id), "round {round}");
        }
    }
}

#[test]
fn a_damaged_memo_costs_time_and_nothing_else() {
    let mut world = repository();
    world.settle();
    let first = world.capture();
    let memo = world.store.path().join("cache/tree-path.git");
    for bytes in [&b""[..], b"snapback git 2\n", &[0; 200]] {
        std::fs::write(&memo, bytes).unwrap();
        let taken = world.capture();
        assert_eq!((taken.counts.git, taken.key), (5, first.key));
    }
}

#[test]
fn work_trees_and_submodules_are_followed_to_where_they_point() {
    let mut world = repository();
    git(&world, "", &["worktree", "add", "-q", "-b", "side", "../tree"]);
    std::fs::rename(world.path("../tree/.git"), world.path("tree.git")).unwrap();
    let main = git(&world, "", &["rev-parse", "HEAD"]);
    // The work tree itself is captured, its repository lies outside.
    let linked = World::new();
    let place = std::fs::read_to_string(world.path("tree.git")).unwrap();
    linked.write(".git", place);
    let taken = linked.try_capture(true).unwrap();
    let position = position(&linked, &taken);
    assert_eq!(position.head, Head::Branch(b"refs/heads/side".to_vec()));
    assert_eq!(position.commit.as_deref(), Some(&*main));
    assert!(paths(&linked, &taken).contains(&"logs/refs/heads/main".to_owned()));
    // The file `.git` is covered, whatever is said of repositories: it only points.
    assert!(taken.paths().contains(&".git"));
    let linked = World { options: vec![("git", "true".into())], ..linked };
    let taken = linked.try_capture(true).unwrap();
    assert!(taken.paths().contains(&".git") && taken.root.git.is_some());
    assert!(world.capture().root.git.is_some());
}

#[test]
fn a_repository_without_a_commit_stands_on_a_branch_without_one() {
    let mut world = World::new();
    git(&world, "", &["init", "-q", "-b", "main"]);
    let taken = world.capture();
    let position = position(&world, &taken);
    assert_eq!((position.head.branch(), position.commit), (Some(&b"main"[..]), None));
}

#[test]
fn refs_in_another_form_are_kept_as_they_are() {
    let mut world = World::new();
    world.write(".git/HEAD", "ref: refs/heads/.invalid\n");
    world.write(".git/refs/heads", "this repository uses the reftable format\n");
    world.write(".git/reftable/tables.list", "0x1.ref\n");
    let first = world.capture();
    assert_eq!(position(&world, &first).head, Head::Unknown);
    world.write(".git/reftable/tables.list", "0x2.ref\n");
    assert_ne!(record(&world.capture()).tree, record(&first).tree);
}

#[test]
fn a_trap_is_not_entered() {
    let mut world = repository();
    world.mkdir(".git/refs/heads/dir");
    let pipe = |path: &str| {
        mknodat(CWD, world.path(path), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    };
    for path in [".git/refs/heads/pipe", ".git/packed-refs", ".git/logs/refs/heads/pipe", ".git/commondir"] {
        pipe(path);
    }
    symlink("/", world.path(".git/refs/all")).unwrap();
    symlink("loop", world.path(".git/refs/loop")).unwrap();
    symlink("/dev/zero", world.path(".git/refs/zero")).unwrap();
    let taken = world.capture();
    assert!(record(&taken).whole);
    let links = ["refs/all", "refs/heads/main", "refs/loop", "refs/zero"];
    let found = paths(&world, &taken);
    assert_eq!(found.iter().filter(|path| path.starts_with("refs/")).collect::<Vec<_>>(), links);
    assert_eq!(position(&world, &taken).head.branch(), Some(&b"main"[..]));
}

#[test]
fn there_is_a_limit_to_everything() {
    let world = repository();
    let whole = || {
        let taken = world.try_capture(true).unwrap();
        assert_eq!(position(&world, &taken).head.branch(), Some(&b"main"[..]), "what fits is recorded");
        record(&taken).whole
    };
    assert!(whole());
    let sparse = |path: &str, len: u64| {
        std::fs::File::create(world.path(path)).unwrap().set_len(len).unwrap();
    };
    let remove = |path: &str| std::fs::remove_file(world.path(path)).unwrap();
    for (path, limit) in [
        (".git/refs/heads/large", LARGEST_REF),
        (".git/packed-refs", LARGEST_FILE),
        (".git/logs/refs/heads/large", LARGEST_FILE),
    ] {
        sparse(path, limit);
        assert!(whole(), "{path}");
        sparse(path, limit + 1);
        assert!(!whole(), "{path}");
        remove(path);
    }
    for at in 0..5 {
        sparse(&format!(".git/logs/refs/heads/{at}"), LARGEST_FILE);
    }
    assert!(!whole(), "all together are too large");
    (0..5).for_each(|at| remove(&format!(".git/logs/refs/heads/{at}")));
    world.write(&format!(".git/refs/{}deep", "d/".repeat(DEEPEST)), "x");
    assert!(whole());
    world.write(&format!(".git/refs/{}deep", "d/".repeat(DEEPEST + 1)), "x");
    assert!(!whole(), "too deep");
    std::fs::remove_dir_all(world.path(".git/refs/d")).unwrap();
    world.mkdir(".git/refs/tags");
    for at in 0..=MOST_NAMES {
        std::fs::hard_link(world.path(".git/refs/heads/main"), world.path(&format!(".git/refs/tags/{at}")))
            .unwrap();
    }
    assert!(!whole(), "too many names");
}

#[test]
fn what_may_not_be_read_is_not_recorded() {
    let world = repository();
    let close = |path: &str| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o0);
        std::fs::set_permissions(world.path(path), mode).unwrap();
    };
    close(".git/logs/HEAD");
    close(".git/refs/heads/main");
    let taken = as_nobody(&world, || world.try_capture(true).unwrap());
    assert!(!record(&taken).whole);
    let position = position(&world, &taken);
    assert_eq!((position.head.branch(), position.commit), (Some(&b"main"[..]), None));
}

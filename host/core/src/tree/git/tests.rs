//! Positions read from records made by hand, and what is told of two of them.

use super::*;
use crate::tree::node::Node;
use crate::tree::root::{GitRecord, LeftOut, Root, Stamp, Why};
use crate::tree::sample::{Objects, Sample, dir, file, link, sample_root};

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const C: &str = "cccccccccccccccccccccccccccccccccccccccc";

/// A work tree whose repository, the directory of inode `ino`, holds `inside`.
fn root(objects: &Objects, ino: u64, inside: Vec<Sample>) -> Root {
    let Node::Dir(tree) = sample_root(objects, inside).top.node else { panic!("a root is a directory") };
    Root { git: Some(GitRecord { tree, whole: true }), ..bare(objects, Some(ino)) }
}

/// A directory of whose repository nothing is known but that it is there.
fn bare(objects: &Objects, ino: Option<u64>) -> Root {
    let left = |ino| LeftOut {
        path: b".git".to_vec(),
        why: Why::Git,
        detail: String::new(),
        files: None,
        stamp: Some(Stamp { ino, ctime: None }),
    };
    Root { left_out: ino.map(left).into_iter().collect(), ..sample_root(objects, vec![]) }
}

/// HEAD with `head`, and branches.
fn refs(head: &str, branches: &[(&str, &str)]) -> Vec<Sample> {
    let heads = branches.iter().map(|(name, id)| file(name, &format!("{id}\n"))).collect();
    vec![file("HEAD", &format!("{head}\n")), dir("refs", vec![dir("heads", heads)])]
}

fn told(objects: &Objects, before: &Root, now: &Root) -> Option<(State, String, bool)> {
    let moved = moved(objects, before, now).unwrap()?;
    let words = |words: &Vec<Vec<u8>>| {
        words.iter().map(|word| String::from_utf8(word.clone()).unwrap()).collect::<Vec<_>>().join(" ")
    };
    Some((moved.state, moved.commands.iter().map(words).collect::<Vec<_>>().join("; "), moved.leaves))
}

#[test]
fn a_position_is_read_from_loose_and_packed_refs_and_links() {
    let objects = Objects::default();
    let packed = format!(
        "# pack-refs with: peeled\n{A} refs/heads/main\n{B} refs/tags/v1\n^{C}\nnonsense\n{A}x refs/x\n"
    );
    let record = root(
        &objects,
        1,
        vec![
            file("HEAD", "ref: refs/heads/alias\n"),
            file("packed-refs", &packed),
            dir(
                "refs",
                vec![dir(
                    "heads",
                    vec![link("alias", "refs/heads/main"), file("main", C), file("bad", "zz")],
                )],
            ),
        ],
    );
    let position = Position::read(&objects, &record.git.unwrap().tree).unwrap();
    assert_eq!(position.head, Head::Branch(b"refs/heads/alias".to_vec()));
    assert_eq!(position.commit.as_deref(), Some(C), "what is loose hides what is packed");
    let all: Vec<_> = position.refs().collect();
    assert_eq!(all, [(&b"refs/heads/main"[..], C), (b"refs/tags/v1", B)]);
}

#[test]
fn what_git_would_not_understand_is_not_known() {
    let objects = Objects::default();
    for head in ["", "ref: ", "ref: refs/heads/.invalid", "zzz", &A[1..], "ref: refs/heads/a\nref: b"] {
        let record = root(&objects, 1, refs(head, &[]));
        let position = Position::read(&objects, &record.git.unwrap().tree).unwrap();
        assert_eq!(position.commit, None, "{head}");
        assert!(position.head == Head::Unknown || head.contains('\n'), "{head}");
    }
    // Refs that lead to each other lead nowhere.
    let circle = refs("ref: refs/heads/a", &[("a", "ref: refs/heads/b"), ("b", "ref: refs/heads/a")]);
    let record = root(&objects, 1, circle);
    assert_eq!(Position::read(&objects, &record.git.unwrap().tree).unwrap().commit, None);
}

#[test]
fn each_way_that_head_can_move_has_its_way_back() {
    let objects = Objects::default();
    let (main, side) = ("ref: refs/heads/main", "ref: refs/heads/side");
    let reset = "git reset --soft aaaaaaaaaa";
    for (before, now, commands, leaves) in [
        // A commit on the branch; the same, and another ref keeps it.
        ((main, vec![("main", A)]), (main, vec![("main", B)]), reset, true),
        ((main, vec![("main", A)]), (main, vec![("main", B), ("keep", B)]), reset, false),
        // Another branch: at the same commit, at another, and the old one moved or went.
        ((main, vec![("main", A)]), (side, vec![("main", A), ("side", A)]), "git switch main", false),
        (
            (main, vec![("main", A)]),
            (side, vec![("main", A), ("side", B)]),
            "git symbolic-ref HEAD refs/heads/main",
            false,
        ),
        (
            (main, vec![("main", A)]),
            (side, vec![("main", C), ("side", B)]),
            "git symbolic-ref HEAD refs/heads/main; git reset --soft aaaaaaaaaa",
            false,
        ),
        (
            (main, vec![("main", A)]),
            (side, vec![("side", A)]),
            "git symbolic-ref HEAD refs/heads/main; git reset --soft aaaaaaaaaa",
            false,
        ),
        // The first commit, and a branch that is none yet.
        ((main, vec![]), (main, vec![("main", B)]), "git update-ref -d HEAD", true),
        ((main, vec![]), (side, vec![("side", B)]), "git symbolic-ref HEAD refs/heads/main", false),
        ((main, vec![]), (side, vec![]), "git symbolic-ref HEAD refs/heads/main", false),
        // Without a branch.
        ((A, vec![]), (B, vec![]), reset, true),
        ((A, vec![]), (main, vec![("main", B)]), "git update-ref --no-deref HEAD aaaaaaaaaa", false),
        ((main, vec![("main", A)]), (A, vec![("main", A)]), "git switch main", false),
        ((main, vec![("main", A)]), (B, vec![("main", A)]), "git symbolic-ref HEAD refs/heads/main", true),
        // What `git switch` would take for an option.
        (
            ("ref: refs/heads/-x", vec![("-x", A)]),
            (side, vec![("-x", A), ("side", A)]),
            "git symbolic-ref HEAD refs/heads/-x",
            false,
        ),
    ] {
        let (before, now) =
            (root(&objects, 1, refs(before.0, &before.1)), root(&objects, 1, refs(now.0, &now.1)));
        let want = Some((State::Moved, commands.to_owned(), leaves));
        assert_eq!(told(&objects, &before, &now), want);
        assert_eq!(told(&objects, &now, &now), None);
    }
}

#[test]
fn a_repository_comes_goes_and_is_another() {
    let objects = Objects::default();
    let at = |ino, id| root(&objects, ino, refs("ref: refs/heads/main", &[("main", id)]));
    let state =
        |before: &Root, now: &Root| told(&objects, before, now).map(|(state, commands, _)| (state, commands));
    let (none, unknown) = (bare(&objects, None), bare(&objects, Some(1)));
    let alone = |state| Some((state, String::new()));
    assert_eq!(state(&at(1, A), &none), alone(State::Gone));
    assert_eq!(state(&at(1, A), &unknown), alone(State::Broken));
    assert_eq!(state(&none, &at(1, A)), alone(State::New));
    assert_eq!(state(&at(1, A), &at(2, B)), alone(State::Replaced));
    assert_eq!(state(&at(1, A), &at(2, A)), None, "it stands where it stood");
    // A snapshot that only knows that there was one says nothing of where it stood.
    assert_eq!(state(&unknown, &at(1, A)), None);
    assert_eq!(state(&unknown, &none), None);
}

#[test]
fn what_nothing_names_any_more_is_told() {
    let objects = Objects::default();
    let tree = |branches: &[(&str, &str)], stash: Option<&str>, log: &str| {
        let mut inside = refs("ref: refs/heads/main", branches);
        let Sample { inside: refs, .. } = &mut inside[1];
        refs.extend(stash.map(|id| file("stash", id)));
        refs.push(dir("remotes", vec![file(log, C)]));
        inside.push(dir("logs", vec![file("HEAD", &format!("{A} {log} a <a@b> 1 +0000\tx\n"))]));
        root(&objects, 1, inside)
    };
    let lost = |before: &Root, now: &Root| {
        let moved = moved(&objects, before, now).unwrap()?;
        let names = moved.lost_refs.iter().map(|(name, _)| String::from_utf8(name.clone()).unwrap());
        Some((moved.state, moved.lost_commit, names.collect::<Vec<_>>()))
    };
    let before = tree(&[("main", A), ("side", B)], Some(C), A);
    // The remote's refs come and go by themselves, and the stash is still named by it.
    let now = tree(&[("main", A)], None, B);
    assert_eq!(lost(&before, &now), Some((State::RefsGone, false, vec!["refs/heads/side".into()])));
    let before = tree(&[("main", B)], Some(B), A);
    let now = tree(&[("main", A)], None, A);
    assert_eq!(lost(&before, &now), Some((State::Moved, true, vec!["refs/stash".into()])));
    let now = tree(&[("main", A)], None, B);
    assert_eq!(lost(&before, &now), Some((State::Moved, false, vec![])), "its reflog names it");
    let now = tree(&[("main", B), ("new", A)], Some(B), B);
    assert_eq!(lost(&before, &now), None, "nothing is lost");
}

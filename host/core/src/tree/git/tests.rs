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
    let words = |step: &Step| match step {
        Step::Command(words) => {
            words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
        }
        Step::Stage => "stage".into(),
        Step::Mark(mark) => format!("mark {}", mark.file()),
        Step::Resume(file) => format!("write {file}"),
    };
    Some((moved.state, moved.steps.iter().map(words).collect::<Vec<_>>().join("; "), moved.leaves))
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
    // What is staged is not known: HEAD's commit is.
    let reset = "git reset aaaaaaaaaa";
    for (before, now, commands, leaves) in [
        // A commit on the branch; the same, and another ref keeps it.
        ((main, vec![("main", A)]), (main, vec![("main", B)]), reset, true),
        ((main, vec![("main", A)]), (main, vec![("main", B), ("keep", B)]), reset, false),
        // Another branch: at the same commit, at another, and the old one moved or went.
        ((main, vec![("main", A)]), (side, vec![("main", A), ("side", A)]), "git switch main", false),
        (
            (main, vec![("main", A)]),
            (side, vec![("main", A), ("side", B)]),
            "git symbolic-ref HEAD refs/heads/main; git reset",
            false,
        ),
        (
            (main, vec![("main", A)]),
            (side, vec![("main", C), ("side", B)]),
            "git symbolic-ref HEAD refs/heads/main; git reset aaaaaaaaaa",
            false,
        ),
        (
            (main, vec![("main", A)]),
            (side, vec![("side", A)]),
            "git symbolic-ref HEAD refs/heads/main; git reset aaaaaaaaaa",
            false,
        ),
        // The first commit, and a branch that is none yet.
        ((main, vec![]), (main, vec![("main", B)]), "git update-ref -d HEAD; git reset", true),
        (
            (main, vec![]),
            (side, vec![("side", B)]),
            "git symbolic-ref HEAD refs/heads/main; git reset",
            false,
        ),
        ((main, vec![]), (side, vec![]), "git symbolic-ref HEAD refs/heads/main", false),
        // Without a branch.
        ((A, vec![]), (B, vec![]), reset, true),
        (
            (A, vec![]),
            (main, vec![("main", B)]),
            "git update-ref --no-deref HEAD aaaaaaaaaa; git reset",
            false,
        ),
        ((main, vec![("main", A)]), (A, vec![("main", A)]), "git switch main", false),
        (
            (main, vec![("main", A)]),
            (B, vec![("main", A)]),
            "git symbolic-ref HEAD refs/heads/main; git reset",
            true,
        ),
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
    assert_eq!(lost(&before, &now), Some((State::Changed, false, vec!["refs/heads/side".into()])));
    let before = tree(&[("main", B)], Some(B), A);
    let now = tree(&[("main", A)], None, A);
    assert_eq!(lost(&before, &now), Some((State::Moved, true, vec!["refs/stash".into()])));
    let now = tree(&[("main", A)], None, B);
    assert_eq!(lost(&before, &now), Some((State::Moved, false, vec![])), "its reflog names it");
    let now = tree(&[("main", B), ("new", A)], Some(B), B);
    assert_eq!(lost(&before, &now), None, "nothing is lost");
}

#[test]
fn refs_that_are_not_read_may_have_moved_and_nothing_is_advised_then() {
    let objects = Objects::default();
    let at = |ino, table: &str, index: &str| {
        let inside = vec![
            file("HEAD", "ref: refs/heads/.invalid\n"),
            dir("reftable", vec![file("tables.list", table)]),
            staged(index, C),
        ];
        root(&objects, ino, inside)
    };
    let told = |now: &Root| {
        let moved = moved(&objects, &at(1, "a", "1"), now).unwrap()?;
        Some((moved.state, moved.unread, moved.steps.len()))
    };
    assert_eq!(told(&at(1, "b", "1")), Some((State::Changed, true, 0)));
    assert_eq!(told(&at(1, "b", "2")), Some((State::Changed, true, 0)));
    assert_eq!(told(&at(1, "a", "2")), Some((State::Changed, false, 1)));
    assert_eq!(told(&at(1, "a", "1")), None);
}

/// What is staged, as it is recorded.
fn staged(hash: &str, by: &str) -> Sample {
    let more = match by {
        "" => vec![],
        "list" => vec![file("entries", "x")],
        tree => vec![file("tree", tree)],
    };
    dir("staged", [more, vec![file("hash", hash)]].concat())
}

#[test]
fn what_is_staged_and_begun_has_its_way_back_too() {
    let objects = Objects::default();
    let at = |id: &str, more: Vec<Sample>| {
        let inside = [more, refs("ref: refs/heads/main", &[("main", id)])].concat();
        root(&objects, 1, inside)
    };
    let state = |before: &Root, now: &Root| told(&objects, before, now).map(|told| (told.0, told.1));
    let some = |state, commands: &str| Some((state, commands.to_owned()));
    let tree = || vec![staged("1", C)];
    let (moved, same) = (State::Moved, State::Changed);
    // The index is as it was, is another, and is not known.
    assert_eq!(state(&at(A, tree()), &at(B, tree())), some(moved, "git reset --soft aaaaaaaaaa"));
    let other = |id| at(id, vec![staged("2", "list")]);
    let back = "git read-tree --reset cccccccccc";
    assert_eq!(
        state(&at(A, tree()), &other(B)),
        some(moved, &format!("{back}; git reset --soft aaaaaaaaaa"))
    );
    assert_eq!(state(&at(A, tree()), &other(A)), some(same, back));
    let list = "git read-tree --empty; git reset --soft aaaaaaaaaa; stage";
    assert_eq!(state(&other(A), &at(B, tree())), some(moved, list));
    assert_eq!(state(&other(A), &at(A, tree())), some(same, "git read-tree --empty; stage"));
    let unnamed = |id| at(id, vec![staged("3", "")]);
    assert_eq!(state(&unnamed(A), &at(B, tree())), some(moved, "git reset aaaaaaaaaa"));
    assert_eq!(state(&unnamed(A), &at(A, tree())), some(same, "git reset"));
    assert_eq!(state(&at(A, vec![staged("", "")]), &at(A, tree())), None);
    // A snapshot that says nothing of it.
    assert_eq!(state(&at(A, vec![]), &at(B, tree())), some(moved, "git reset aaaaaaaaaa"));
    assert_eq!(state(&at(A, vec![]), &at(A, vec![staged("1", C), file("MERGE_HEAD", B)])), None);
    // What git is in the middle of.
    let doing = |file: Sample| at(A, vec![staged("1", C), file]);
    for (begun, end, resume) in [
        (file("MERGE_HEAD", B), "merge --quit", "write MERGE_HEAD"),
        (file("CHERRY_PICK_HEAD", B), "cherry-pick --quit", "write CHERRY_PICK_HEAD"),
        (file("REVERT_HEAD", B), "revert --quit", "write REVERT_HEAD"),
        (file("BISECT_LOG", ""), "bisect reset HEAD", ""),
        (dir("rebase-merge", vec![file("head-name", "")]), "rebase --quit", ""),
        (dir("rebase-apply", vec![file("head-name", "")]), "rebase --quit", ""),
        (dir("rebase-apply", vec![file("applying", "")]), "am --quit", ""),
    ] {
        let (before, now) = (at(A, tree()), doing(begun));
        assert_eq!(state(&before, &now), some(same, &format!("git {end}")));
        assert_eq!(state(&now, &before), some(same, resume));
        assert_eq!(state(&now, &now), None);
    }
    // `git switch` refuses then.
    let side = [
        refs("ref: refs/heads/side", &[("main", A), ("side", A)]),
        vec![staged("1", C), file("MERGE_HEAD", B)],
    ];
    let want = "git merge --quit; git symbolic-ref HEAD refs/heads/main";
    assert_eq!(state(&at(A, tree()), &root(&objects, 1, side.concat())), some(moved, want));
}

#[test]
fn branches_and_tags_that_moved_are_named_with_where_they_were() {
    let objects = Objects::default();
    let at = |branches: &[(&str, &str)], tag: &str| {
        let mut inside = refs("ref: refs/heads/main", branches);
        let Sample { inside: refs, .. } = &mut inside[1];
        refs.push(dir("tags", vec![file("v1", tag)]));
        refs.push(dir("remotes", vec![file("x", tag)]));
        root(&objects, 1, inside)
    };
    let before = at(&[("main", A), ("side", A), ("kept", A)], B);
    let now = at(&[("main", A), ("side", B), ("kept", A), ("new", B)], C);
    let found = moved(&objects, &before, &now).unwrap().unwrap();
    let want = [("refs/heads/side", A), ("refs/tags/v1", B)].map(|(name, id)| (name.into(), id.to_owned()));
    assert_eq!((found.state, found.moved_refs), (State::Changed, want.to_vec()));
    // HEAD's own branch is told of with HEAD.
    let found = moved(&objects, &before, &at(&[("main", B), ("side", A), ("kept", A)], B)).unwrap().unwrap();
    assert_eq!((found.state, found.moved_refs), (State::Moved, vec![]));
}

#[test]
fn a_file_that_says_where_the_repository_is_comes_back_by_itself() {
    let objects = Objects::default();
    let at = |link: Option<&str>, id: &str| {
        let Node::Dir(tree) = sample_root(&objects, refs("ref: refs/heads/main", &[("main", id)])).top.node
        else {
            panic!("a root is a directory")
        };
        let link = link.map(|to| file(".git", to)).into_iter().collect();
        Root { git: Some(GitRecord { tree, whole: true }), ..sample_root(&objects, link) }
    };
    let state = |before: &Root, now: &Root| told(&objects, before, now).map(|told| told.0);
    let linked = at(Some("a"), A);
    assert_eq!(state(&linked, &at(Some("a"), B)), Some(State::Moved));
    for other in [at(Some("b"), B), at(None, B), Root { git: None, ..at(None, B) }] {
        assert_eq!(state(&linked, &other), None, "what it leads to is not known, and it comes back");
        assert_eq!(state(&other, &linked), None);
    }
    assert_eq!(state(&linked, &Root { git: None, ..at(Some("a"), B) }), Some(State::Broken));
    // One that a snapshot left out is left as it is.
    let old = Root { left_out: bare(&objects, Some(1)).left_out, ..at(None, A) };
    assert_eq!(state(&old, &at(Some("a"), B)), Some(State::Moved));
    assert_eq!(state(&old, &at(None, B)), Some(State::Replaced));
}

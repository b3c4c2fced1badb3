//! What no restore brings back, in words: a repository that stands elsewhere, things that
//! are not covered.

use super::words::{command_line, first, one_line};
use snapback_core::error::show_bytes;
use snapback_core::history::Id;
use snapback_core::project::config::TREE;
use snapback_core::session::Beyond;
use snapback_core::text::Bytes;
use snapback_core::tree::git::{Head, Moved, Position, State, Step, short};

/// Names that a line mentions before it only counts.
const NAMED: usize = 5;

/// What an undo, a redo or a restore to the snapshot `to` says of git, before anything else.
pub fn git(beyond: &Beyond, to: &Id) -> Vec<String> {
    let mut lines = Vec::new();
    for (target, moved) in &beyond.git {
        let whose = if target == TREE { String::new() } else { format!("{target}: ") };
        let said = [sentence(moved, to), lost_refs(moved), moved_refs(moved)];
        lines.extend(said.into_iter().flatten().map(|line| format!("{whose}{line}")));
    }
    lines
}

fn sentence(moved: &Moved, to: &Id) -> Option<String> {
    let was = moved.before.as_ref().map(place).unwrap_or_default();
    let is = moved.now.as_ref().map(place).unwrap_or_default();
    Some(match moved.state {
        State::Gone | State::Broken => {
            let what = if moved.state == State::Gone { "is gone" } else { "is no repository any more" };
            format!(
                ".git {what}: HEAD was on {was}, and does not come back, since its objects are not covered \
                 (`git = true` covers them); `snapback cat {to} .git/logs/HEAD` shows what is recorded, and \
                 `git clone` fetches what a remote has"
            )
        }
        State::New => format!(".git is new (HEAD is on {is}) and stays as it is"),
        State::Replaced => {
            format!(
                ".git is another repository: HEAD was on {was} and is on {is}; it stays as it is{}",
                lost(moved)
            )
        }
        State::Moved | State::Changed => {
            let mut differs = Vec::new();
            if moved.state == State::Moved {
                differs.push(format!("HEAD moved since: it was on {was} and is on {is}"));
            }
            if moved.unread {
                differs.push(
                    "refs changed since, and perhaps HEAD: they are in a form that is not read (reftable)"
                        .to_owned(),
                );
            }
            differs.extend(moved.begun.iter().map(|of| format!("a {} was begun since", of.word())));
            differs.extend(moved.ended.iter().map(|of| {
                let stays = if of.is_recorded() { "" } else { ", which stays so" };
                format!("a {} was going on, and is not now{stays}", of.word())
            }));
            if moved.state == State::Changed && moved.restaged {
                differs.push("what is staged is not as it was then".to_owned());
            }
            if differs.is_empty() {
                return None;
            }
            format!("{}; git stays as it is{}{}", differs.join(", "), way_back(moved, to), lost(moved))
        }
    })
}

fn way_back(moved: &Moved, to: &Id) -> String {
    if moved.steps.is_empty() {
        return String::new();
    }
    let what = match (moved.state, moved.unstages) {
        (State::Moved, false) => "HEAD back",
        (State::Moved, true) => "HEAD back and unstages what is staged",
        (_, false) => "it back",
        (_, true) => "it back, with nothing staged",
    };
    let now = moved.now.as_ref().and_then(|now| now.commit.as_deref()).filter(|_| moved.leaves);
    let leaves = now.map(|id| format!(" ({} may then be in the reflog only)", short(id))).unwrap_or_default();
    format!(", and `{}` takes {what}{leaves}", commands(moved, to).join(" && "))
}

/// The commands that take a repository back to where it stood in the snapshot `to`, as they
/// can be typed.
pub fn commands(moved: &Moved, to: &Id) -> Vec<String> {
    let typed = |step: &Step| match step {
        Step::Command(words) => typed(words),
        Step::Stage => {
            format!("snapback cat {to} .git/staged/entries | git update-index -z --index-info")
        }
        Step::Mark(mark) => {
            format!("snapback cat {to} .git/staged/{} | git {}", mark.file(), mark.command())
        }
        Step::Resume(file) => {
            format!("snapback cat {to} .git/{file} > \"$(git rev-parse --git-path {file})\"")
        }
    };
    moved.steps.iter().map(typed).collect()
}

fn typed(words: &[Vec<u8>]) -> String {
    command_line(&words.iter().cloned().map(Bytes).collect::<Vec<_>>())
}

fn lost(moved: &Moved) -> String {
    let commit = moved.before.as_ref().and_then(|before| before.commit.as_deref());
    match commit.filter(|_| moved.lost_commit) {
        Some(id) => format!("; no ref or reflog names {} any more, and git may have dropped it", short(id)),
        None => String::new(),
    }
}

fn lost_refs(moved: &Moved) -> Option<String> {
    // Another repository need not have what they named.
    if moved.state == State::Replaced && !moved.lost_refs.is_empty() {
        let names = moved
            .lost_refs
            .iter()
            .map(|(name, id)| format!("{} at {}", one_line(&show_bytes(name)), short(id)));
        let names: Vec<String> = first(names, NAMED).collect();
        return Some(format!("refs that the other repository had: {}", names.join(", ")));
    }
    let refs = named(&moved.lost_refs, &[]);
    refs.map(|refs| format!("refs of git are gone since, and stay so; to have them again: {refs}"))
}

fn moved_refs(moved: &Moved) -> Option<String> {
    let refs = named(&moved.moved_refs, &[b"-f"]);
    refs.map(|refs| format!("refs of git moved since, and stay so; to have them where they were: {refs}"))
}

/// The commands that make `refs` name what they named; none when there are none.
fn named(refs: &[(Vec<u8>, String)], options: &[&[u8]]) -> Option<String> {
    let command = |(name, id): &(Vec<u8>, String)| {
        let (verb, short_name): (&[u8], _) =
            match (name.strip_prefix(b"refs/heads/"), name.strip_prefix(b"refs/tags/")) {
                (Some(branch), _) => (b"branch", Some(branch)),
                (_, Some(tag)) => (b"tag", Some(tag)),
                _ => (b"stash", None),
            };
        let id = short(id).as_bytes();
        let words: Vec<&[u8]> = match short_name {
            // What git would take for an option.
            Some([b'-', ..]) => vec![b"git", b"update-ref", name, id],
            Some(short_name) => [&[b"git", verb], options, &[short_name, id]].concat(),
            None => vec![b"git", verb, b"store", id],
        };
        format!("`{}`", typed(&words.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>()))
    };
    let all: Vec<String> = first(refs.iter().map(command), NAMED).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Where a repository stands.
fn place(position: &Position) -> String {
    let commit = position.commit.as_deref().map(short);
    match (position.head.branch(), commit) {
        (Some(branch), Some(commit)) => format!("{} at {commit}", one_line(&show_bytes(branch))),
        (Some(branch), None) => format!("{} without a commit", one_line(&show_bytes(branch))),
        (None, Some(commit)) => format!("{commit} (detached)"),
        (None, None) => "a place that is not known".into(),
    }
}

/// What is not covered and is not as it was: `lead` says when. None when there is nothing.
pub fn uncovered(beyond: &Beyond, lead: &str) -> Option<String> {
    list(beyond, false).map(|list| format!("not covered, and {lead}: {list}"))
}

/// What a run changed that is not covered, repositories among it.
pub fn after_run(beyond: &Beyond) -> Option<String> {
    list(beyond, true).map(|list| format!("not covered, and changed by the run: {list}"))
}

fn list(beyond: &Beyond, git: bool) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, moved) in beyond.git.iter().filter(|_| git) {
        match (moved.state, &moved.before, &moved.now) {
            (State::Moved, Some(was), Some(is)) => {
                names.push(format!("HEAD ({} to {})", place(was), place(is)));
            }
            (State::Changed, ..) => {}
            (state, ..) => names.push(format!(".git ({})", state.word())),
        }
        names.extend(moved.begun.iter().map(|of| format!("a {} (begun)", of.word())));
        names.extend(moved.ended.iter().map(|of| format!("a {} (ended)", of.word())));
        if moved.state == State::Changed && moved.lost_staged {
            names.push("what is staged".to_owned());
        }
        if moved.unread || !(moved.lost_refs.is_empty() && moved.moved_refs.is_empty()) {
            names.push("refs of git".to_owned());
        }
    }
    let items = beyond.uncovered.iter();
    names.extend(items.map(|item| format!("{} ({})", item.path, item.fate.word())));
    let named: Vec<String> = first(names.into_iter(), NAMED).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Where a snapshot says that a repository stood, for `show` and `status`.
pub fn recorded(position: &Position, whole: bool) -> String {
    let what = match (&position.head, whole) {
        (Head::Unknown, _) => "HEAD is recorded, and not understood",
        (_, true) => "HEAD, refs and reflogs are recorded",
        (_, false) => "HEAD is recorded, refs and reflogs in part",
    };
    format!("{}; {what}, index and objects are not (`git = true` covers all of .git)", place(position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use snapback_core::session::Uncovered;
    use snapback_core::tree::compare::Fate;
    use snapback_core::tree::git::Operation;
    use snapback_core::tree::root::Why;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn at(branch: &str, commit: Option<&str>) -> Option<Position> {
        let head = match branch {
            "" => Head::Detached,
            branch => Head::Branch(format!("refs/heads/{branch}").into_bytes()),
        };
        let mut position = Position::default();
        (position.head, position.commit) = (head, commit.map(str::to_owned));
        Some(position)
    }

    fn moved(state: State, before: Option<Position>, now: Option<Position>) -> Moved {
        Moved { before, now, ..Moved::nothing(state) }
    }

    fn command(words: &[&str]) -> Step {
        Step::Command(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    }

    fn said(target: &str, moved: Moved) -> Vec<String> {
        let beyond = Beyond { git: vec![(target.into(), moved)], uncovered: vec![] };
        git(&beyond, &Id::parse("20260102-030405-7f3a").unwrap())
    }

    #[test]
    fn where_head_went_and_what_takes_it_back_is_one_line() {
        let mut head = moved(State::Moved, at("main", Some(A)), at("", Some(B)));
        head.steps =
            vec![command(&["git", "symbolic-ref", "HEAD", "refs/heads/a;b"]), command(&["git", "x"])];
        (head.leaves, head.lost_commit) = (true, true);
        assert_eq!(
            said("tree", head.clone()),
            [
                "HEAD moved since: it was on main at aaaaaaaaaa and is on bbbbbbbbbb (detached); git stays as it is, and \
              `git symbolic-ref HEAD 'refs/heads/a;b' && git x` takes HEAD back (bbbbbbbbbb may then be in the reflog \
              only); no ref or reflog names aaaaaaaaaa any more, and git may have dropped it"
            ]
        );
        head.lost_refs = vec![
            (b"refs/heads/x".to_vec(), A.into()),
            (b"refs/tags/y".to_vec(), B.into()),
            (b"refs/stash".to_vec(), B.into()),
        ];
        let lines = said("data", head);
        assert!(lines[0].starts_with("data: HEAD moved since"));
        assert_eq!(
            lines[1],
            "data: refs of git are gone since, and stay so; to have them again: `git branch x aaaaaaaaaa`, \
             `git tag y bbbbbbbbbb`, `git stash store bbbbbbbbbb`"
        );
    }

    #[test]
    fn refs_that_moved_are_named_with_where_they_were() {
        let mut refs = moved(State::Changed, at("main", Some(A)), at("main", Some(A)));
        let name = |name: &str| (name.as_bytes().to_vec(), A.to_owned());
        refs.moved_refs = ["refs/heads/x y", "refs/tags/v1", "refs/heads/-d"].map(name).to_vec();
        assert_eq!(
            said("tree", refs.clone()),
            [
                "refs of git moved since, and stay so; to have them where they were: `git branch -f 'x y' aaaaaaaaaa`, \
              `git tag -f v1 aaaaaaaaaa`, `git update-ref refs/heads/-d aaaaaaaaaa`"
            ]
        );
        let beyond = Beyond { git: vec![("tree".into(), refs)], uncovered: vec![] };
        assert_eq!(after_run(&beyond).unwrap(), "not covered, and changed by the run: refs of git");
    }

    #[test]
    fn what_is_staged_and_what_git_is_in_the_middle_of_is_said_with_the_way_back() {
        let mut git = moved(State::Changed, at("main", Some(A)), at("main", Some(A)));
        (git.restaged, git.lost_staged) = (true, true);
        git.steps = vec![command(&["git", "read-tree", "--empty"]), Step::Stage];
        let staged = "what is staged is not as it was then; git stays as it is, and `git read-tree --empty && snapback cat \
                      20260102-030405-7f3a .git/staged/entries | git update-index -z --index-info` takes it back";
        assert_eq!(said("tree", git.clone()), [staged]);
        let run =
            |git: &Moved| after_run(&Beyond { git: vec![("tree".into(), git.clone())], uncovered: vec![] });
        assert_eq!(run(&git).unwrap(), "not covered, and changed by the run: what is staged");
        git.lost_staged = false;
        assert_eq!(run(&git), None, "a run that stages something loses nothing");
        git.unstages = true;
        git.steps = vec![command(&["git", "reset"])];
        assert!(said("tree", git.clone())[0].ends_with("and `git reset` takes it back, with nothing staged"));
        (git.begun, git.ended) = (vec![Operation::Merge], vec![Operation::CherryPick]);
        git.steps = vec![command(&["git", "merge", "--quit"]), Step::Resume("CHERRY_PICK_HEAD")];
        (git.restaged, git.unstages) = (false, false);
        let begun = "a merge was begun since, a cherry-pick was going on, and is not now; git stays as it is, and `git merge \
                     --quit && snapback cat 20260102-030405-7f3a .git/CHERRY_PICK_HEAD > \"$(git rev-parse --git-path \
                     CHERRY_PICK_HEAD)\"` takes it back";
        assert_eq!(said("tree", git.clone()), [begun]);
        assert_eq!(
            run(&git).unwrap(),
            "not covered, and changed by the run: a merge (begun), a cherry-pick (ended)"
        );
    }

    #[test]
    fn a_repository_that_comes_or_goes_is_said() {
        let gone = said("tree", moved(State::Gone, at("main", Some(A)), None));
        assert!(gone[0].starts_with(".git is gone: HEAD was on main at aaaaaaaaaa, and does not come back"));
        assert!(gone[0].contains("`snapback cat 20260102-030405-7f3a .git/logs/HEAD`"));
        let broken = said("tree", moved(State::Broken, at("main", None), None));
        assert!(broken[0].starts_with(".git is no repository any more: HEAD was on main without a commit"));
        let new = said("tree", moved(State::New, None, at("main", None)));
        assert_eq!(new, [".git is new (HEAD is on main without a commit) and stays as it is"]);
        let other = said("tree", moved(State::Replaced, at("main", Some(A)), at("main", Some(B))));
        assert!(
            other[0].starts_with(
                ".git is another repository: HEAD was on main at aaaaaaaaaa and is on main at b"
            )
        );
    }

    #[test]
    fn what_is_not_covered_is_one_line_of_a_few_names() {
        let item = |n: u32| {
            let (path, target) = (Bytes(format!("d{n}").into_bytes()), "tree".into());
            Uncovered { target, path, why: Why::Regenerable, fate: Fate::Gone }
        };
        let mut beyond = Beyond { git: vec![], uncovered: (0..2).map(item).collect() };
        assert_eq!(
            uncovered(&beyond, "changed since").unwrap(),
            "not covered, and changed since: d0 (gone), d1 (gone)"
        );
        beyond.uncovered = (0..7).map(item).collect();
        beyond.git = vec![("tree".into(), moved(State::Moved, at("main", Some(A)), at("main", Some(B))))];
        assert_eq!(
            after_run(&beyond).unwrap(),
            "not covered, and changed by the run: HEAD (main at aaaaaaaaaa to main at bbbbbbbbbb), d0 (gone), d1 (gone), \
             d2 (gone), d3 (gone), 3 more"
        );
        assert_eq!(after_run(&Beyond::default()), None);
    }
}

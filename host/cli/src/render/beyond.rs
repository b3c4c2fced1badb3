//! What no restore brings back, in words: a repository that stands elsewhere, things that
//! are not covered.

use super::words::{command_line, first, one_line};
use snapback_core::error::show_bytes;
use snapback_core::history::Id;
use snapback_core::project::config::TREE;
use snapback_core::session::Beyond;
use snapback_core::text::Bytes;
use snapback_core::tree::git::{Head, Moved, Position, State, short};

/// Names that a line mentions before it only counts.
const NAMED: usize = 5;

/// What an undo, a redo or a restore to the snapshot `to` says of git, before anything else.
pub fn git(beyond: &Beyond, to: &Id) -> Vec<String> {
    let mut lines = Vec::new();
    for (target, moved) in &beyond.git {
        let whose = if target == TREE { String::new() } else { format!("{target}: ") };
        if moved.state != State::RefsGone {
            lines.push(format!("{whose}{}", sentence(moved, to)));
        }
        if !moved.lost_refs.is_empty() {
            lines.push(format!("{whose}{}", lost_refs(moved)));
        }
    }
    lines
}

fn sentence(moved: &Moved, to: &Id) -> String {
    let was = moved.before.as_ref().map(place).unwrap_or_default();
    let is = moved.now.as_ref().map(place).unwrap_or_default();
    match moved.state {
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
        State::Moved | State::RefsGone => format!(
            "HEAD moved since: it was on {was} and is on {is}; git stays as it is{}{}",
            way_back(moved),
            lost(moved)
        ),
    }
}

fn way_back(moved: &Moved) -> String {
    if moved.commands.is_empty() {
        return String::new();
    }
    let now = moved.now.as_ref().and_then(|now| now.commit.as_deref()).filter(|_| moved.leaves);
    let leaves = now.map(|id| format!(" ({} may then be in the reflog only)", short(id))).unwrap_or_default();
    format!(", and `{}` takes HEAD back{leaves}", commands(moved).join(" && "))
}

/// The commands that take HEAD back, as they can be typed.
pub fn commands(moved: &Moved) -> Vec<String> {
    moved.commands.iter().map(|words| typed(words)).collect()
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

fn lost_refs(moved: &Moved) -> String {
    let command = |(name, id): &(Vec<u8>, String)| {
        let word = |text: &str| text.as_bytes().to_vec();
        let (verb, name) = match (name.strip_prefix(b"refs/heads/"), name.strip_prefix(b"refs/tags/")) {
            (Some(branch), _) => ("branch", Some(branch)),
            (_, Some(tag)) => ("tag", Some(tag)),
            _ => ("stash", None),
        };
        let mut words = vec![word("git"), word(verb)];
        words.push(name.map_or_else(|| word("store"), <[u8]>::to_vec));
        words.push(word(short(id)));
        format!("`{}`", typed(&words))
    };
    let named: Vec<String> = first(moved.lost_refs.iter().map(command), NAMED).collect();
    format!("refs of git are gone since, and stay so; to have them again: {}", named.join(", "))
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
        names.push(match (moved.state, &moved.before, &moved.now) {
            (State::Moved, Some(was), Some(is)) => format!("HEAD ({} to {})", place(was), place(is)),
            (State::RefsGone, ..) => "refs of git".to_owned(),
            (state, ..) => format!(".git ({})", state.word()),
        });
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
        let (commands, lost_refs) = (Vec::new(), Vec::new());
        Moved { state, before, now, commands, leaves: false, lost_commit: false, lost_refs }
    }

    fn said(target: &str, moved: Moved) -> Vec<String> {
        let beyond = Beyond { git: vec![(target.into(), moved)], uncovered: vec![] };
        git(&beyond, &Id::parse("20260102-030405-7f3a").unwrap())
    }

    #[test]
    fn where_head_went_and_what_takes_it_back_is_one_line() {
        let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut head = moved(State::Moved, at("main", Some(A)), at("", Some(B)));
        head.commands = vec![words(&["git", "symbolic-ref", "HEAD", "refs/heads/a;b"]), words(&["git", "x"])];
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

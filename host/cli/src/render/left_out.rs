//! What a snapshot does not hold, in one clause and in full.

use super::words::count;
use snapback_core::error::show_bytes;
use snapback_core::project::STORE;
use snapback_core::tree::root::{LeftOut, Root, Why};

/// Names that a clause mentions before it only counts.
const NAMED: usize = 3;

/// One clause about all `roots` of a snapshot: holes first, then what rules left out.
/// None when there is nothing to tell; snapback's own store is nothing to tell.
pub fn clause(roots: &[Root]) -> Option<String> {
    let items = || roots.iter().flat_map(told);
    let mut clauses = Vec::new();
    let holes: Vec<&LeftOut> = items().filter(|item| item.why.is_hole()).collect();
    if !holes.is_empty() {
        clauses.push(format!("not covered: {}", named(&holes, true)));
    }
    let by_rule: Vec<&LeftOut> = items().filter(|item| !item.why.is_hole()).collect();
    if !by_rule.is_empty() {
        clauses.push(format!("left out: {}", named(&by_rule, false)));
    }
    let ignored = roots.iter().flat_map(|root| &root.ignored).map(|(_, files)| *files);
    let ignored = ignored.fold(0, u64::saturating_add);
    if ignored > 0 {
        clauses.push(format!("ignored: {}", count(ignored, "file")));
    }
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// What was left out of `root` and is worth telling: the project's own store is not.
pub fn told(root: &Root) -> impl Iterator<Item = &LeftOut> {
    root.left_out.iter().filter(|item| item.why != Why::Store || item.path != STORE.as_bytes())
}

fn named(items: &[&LeftOut], with_reason: bool) -> String {
    let name = |item: &&LeftOut| match with_reason {
        true => format!("{} ({})", show_bytes(&item.path), item.why.word()),
        false => show_bytes(&item.path),
    };
    let mut names: Vec<String> = items.iter().take(NAMED).map(name).collect();
    if items.len() > NAMED {
        names.push(format!("{} more", items.len() - NAMED));
    }
    names.join(", ")
}

/// A line for each thing that `root` lacks: path, reason, number of files.
pub fn lines(root: &Root) -> Vec<String> {
    let mut lines: Vec<String> = told(root).map(line).collect();
    lines.extend(root.ignored.iter().map(|(pattern, files)| {
        format!("{}  ignored by `{}`", count(*files, "file"), super::words::one_line(pattern))
    }));
    lines
}

fn line(item: &LeftOut) -> String {
    let detail = super::words::one_line(&item.detail);
    let why = match (item.why.word(), detail.as_str()) {
        (word, "") => word.to_owned(),
        (word, detail) if word == detail => word.to_owned(),
        (word, detail) => format!("{word}: {detail}"),
    };
    let files = item.files.map(|files| format!(", {}", count(files, "file"))).unwrap_or_default();
    format!("{}  {why}{files}", show_bytes(&item.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use snapback_core::object::{Key, ObjectKind};
    use snapback_core::tree::node::{Entry, Node, Time};

    fn root(left_out: &[(&str, Why)], ignored: &[(&str, u64)]) -> Root {
        let node = Node::Dir(Key::of(ObjectKind::Tree, b""));
        let top = Entry { name: vec![], mode: 0o755, uid: 0, gid: 0, xattrs: vec![], link: None, node };
        let item = |(path, why): &(&str, Why)| LeftOut {
            path: path.as_bytes().to_vec(),
            why: *why,
            detail: "its rule".into(),
            files: Some(2),
        };
        Root {
            setting: "path".into(),
            value: ".".into(),
            options: vec![],
            top,
            mtime: Time::default(),
            times: Key::of(ObjectKind::Times, b""),
            left_out: left_out.iter().map(item).collect(),
            ignored: ignored.iter().map(|(pattern, files)| ((*pattern).into(), *files)).collect(),
            files: 1,
            bytes: 1,
        }
    }

    #[test]
    fn nothing_to_tell_is_no_clause() {
        assert_eq!(clause(&[root(&[], &[])]), None);
        assert_eq!(clause(&[root(&[(".snapback", Why::Store)], &[])]), None);
    }

    #[test]
    fn holes_come_first_and_long_lists_are_counted() {
        let many = [
            (".git", Why::Git),
            ("a", Why::Regenerable),
            ("b", Why::Ignored),
            ("c", Why::Mount),
            ("secret", Why::Unreadable),
        ];
        assert_eq!(
            clause(&[root(&many, &[("*.log", 4)])]).unwrap(),
            "not covered: secret (unreadable); left out: .git, a, b, 1 more; ignored: 4 files"
        );
    }

    #[test]
    fn each_thing_has_a_line_with_its_reason() {
        assert_eq!(
            lines(&root(&[("out\n", Why::TooManyFiles)], &[("*.log", 1)])),
            ["\"out\\n\"  too many files: its rule, 2 files", "1 file  ignored by `*.log`"]
        );
    }
}

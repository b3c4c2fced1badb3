//! What a snapshot does not hold, in one clause and in full.

use super::words::{count, first, grouped};
use snapback_core::error::show_bytes;
use snapback_core::project::STORE;
use snapback_core::project::config::FILE;
use snapback_core::tree::Survey;
use snapback_core::tree::root::{LeftOut, Root, Why};

/// What is said of a snapshot without a target.
pub const NOTHING: &str = "nothing is covered, so nothing can be undone";

/// Names that a clause mentions for each reason before it only counts.
const NAMED: usize = 3;

/// One clause about all `roots` of a snapshot: holes first, then what rules left out.
/// None when there is nothing to tell; snapback's own store is nothing to tell.
pub fn clause(roots: &[Root]) -> Option<String> {
    let items = |holes: bool| {
        let of = |why| roots.iter().flat_map(told).filter(move |item| item.why == why).collect::<Vec<_>>();
        let reasons = Why::ALL.into_iter().filter(|why| why.is_hole() == holes);
        let groups = reasons.map(of).filter(|items| !items.is_empty());
        let named: Vec<String> = groups.map(|items| named(&items)).collect();
        (!named.is_empty()).then(|| named.join(", "))
    };
    let mut clauses = Vec::new();
    clauses.extend(items(true).map(|holes| format!("not covered: {holes}")));
    clauses.extend(way(roots.iter().flat_map(told)));
    clauses.extend(items(false).map(|by_rule| format!("left out: {by_rule}")));
    let ignored = roots.iter().flat_map(|root| &root.ignored).map(|(_, files)| *files);
    let ignored = ignored.fold(0, u64::saturating_add);
    if ignored > 0 {
        clauses.push(format!("ignored: {}", count(ignored, "file")));
    }
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// What was left out of `root` and is worth telling.
pub fn told(root: &Root) -> impl Iterator<Item = &LeftOut> {
    root.left_out.iter().filter(|item| is_told(item))
}

/// Whether something that is left out is worth telling: the project's own store is not,
/// and what another target has is in the snapshot.
pub fn is_told(item: &LeftOut) -> bool {
    let own = item.why == Why::Store && item.path == STORE.as_bytes();
    !own && item.why != Why::Elsewhere
}

/// Things of one reason: how many, and the first of them.
fn named(items: &[&LeftOut]) -> String {
    let why = items[0].why.word();
    if let [item] = items {
        return format!("{} ({why})", show_bytes(&item.path));
    }
    let names: Vec<String> = first(items.iter().map(|item| show_bytes(&item.path)), NAMED).collect();
    format!("{} {why} ({})", grouped(items.len() as u64), names.join(", "))
}

/// How those of `items` that hold too many files are covered all the same.
fn way<'a>(items: impl Iterator<Item = &'a LeftOut>) -> Option<String> {
    let items: Vec<&LeftOut> = items.filter(|item| item.why == Why::TooManyFiles).collect();
    let meant: Option<Vec<String>> = items.iter().map(|item| pattern(&item.path)).collect();
    let meant = meant.filter(|meant| meant.len() <= NAMED).map(|meant| format!(" = [{}]", meant.join(", ")));
    let that = if items.len() == 1 { "that directory" } else { "such directories" };
    (!items.is_empty()).then(|| format!("`include{}` in {FILE} covers {that}", meant.unwrap_or_default()))
}

/// The pattern that means the directory at `path`, as it is written in TOML; none where it
/// could not be written as it is.
fn pattern(path: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(path).ok()?;
    let is_plain = |c: char| c.is_alphanumeric() || "-_./ ".contains(c);
    (text.chars().all(is_plain) && !text.ends_with(' ')).then(|| format!("\"{text}\""))
}

/// A line for each thing that `root` lacks: path, reason, number of files.
pub fn lines(root: &Root) -> Vec<String> {
    all_lines(&root.left_out, &root.ignored)
}

/// The same for what a snapshot would lack.
pub fn surveyed(survey: &Survey) -> Vec<String> {
    all_lines(&survey.left_out, &survey.ignored)
}

fn all_lines(left_out: &[LeftOut], ignored: &[(String, u64)]) -> Vec<String> {
    let mut lines: Vec<String> = left_out.iter().filter(|item| is_told(item)).map(line).collect();
    lines.extend(ignored.iter().map(|(pattern, files)| {
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
    let way = way(std::iter::once(item)).map(|way| format!("; {way}")).unwrap_or_default();
    format!("{}  {why}{files}{way}", show_bytes(&item.path))
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
            stamp: None,
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
            ignored_stamps: vec![],
            files: 1,
            bytes: 1,
            git: None,
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
            ("b", Why::Regenerable),
            ("c", Why::Regenerable),
            ("d", Why::Regenerable),
            ("e", Why::Mount),
            ("secret", Why::Unreadable),
        ];
        assert_eq!(
            clause(&[root(&many, &[("*.log", 4)])]).unwrap(),
            "not covered: secret (unreadable); left out: 4 regenerable (a, b, c, 1 more), .git (git), e (mount); \
             ignored: 4 files"
        );
    }

    #[test]
    fn each_thing_has_a_line_with_its_reason() {
        assert_eq!(
            lines(&root(&[("out\n", Why::TooManyFiles)], &[("*.log", 1)])),
            [
                "\"out\\n\"  too many files: its rule, 2 files; `include` in snapback.toml covers that directory",
                "1 file  ignored by `*.log`"
            ]
        );
    }

    #[test]
    fn what_a_number_leaves_out_is_said_with_the_way_to_cover_it() {
        let one = root(&[("a/uploads", Why::TooManyFiles)], &[]);
        let way = "`include = [\"a/uploads\"]` in snapback.toml covers that directory";
        assert_eq!(lines(&one), [format!("a/uploads  too many files: its rule, 2 files; {way}")]);
        assert_eq!(clause(&[one]).unwrap(), format!("not covered: a/uploads (too many files); {way}"));
        let two = root(&[("a", Why::TooManyFiles), ("b", Why::TooManyFiles)], &[]);
        let way = "`include = [\"a\", \"b\"]` in snapback.toml covers such directories";
        assert_eq!(clause(&[two]).unwrap(), format!("not covered: 2 too many files (a, b); {way}"));
        // What a pattern would mean otherwise is not written as one.
        assert_eq!(pattern(b"a[1]*"), None);
    }
}

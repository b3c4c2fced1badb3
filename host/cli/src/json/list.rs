//! Snapshots in JSON: what `list` and `show` have.

use super::names::{Named, Words, path};
use crate::render::left_out::told;
use serde::Serialize;
use snapback_core::history::snapshot::{Captured, Snapshot, SnapshotKind};
use snapback_core::session::Listing;
use snapback_core::text::Bytes;
use snapback_core::tree::root::{LeftOut, Root};
use std::collections::BTreeMap;

/// A snapshot, as `list` has it.
#[derive(Serialize)]
pub struct ListItem<'a> {
    id: &'a str,
    kind: &'static str,
    run: Option<&'a str>,
    state: &'static str,
    created: String,
    ended: Option<String>,
    message: Option<&'a str>,
    #[serde(flatten)]
    command: Words<'a>,
    exit_code: Option<i32>,
    #[serde(flatten)]
    root: Named<'a, 1>,
    targets: Vec<TargetItem<'a>>,
    excluded: Vec<Excluded<'a>>,
    bytes_added: u64,
}

/// A captured target, as `list` has it.
#[derive(Serialize)]
struct TargetItem<'a> {
    name: &'a str,
    backend: &'a str,
    bytes: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    more: Option<TargetMore<'a>>,
}

/// What `show` says of a target beyond that.
#[derive(Serialize)]
struct TargetMore<'a> {
    files: u64,
    settings: &'a BTreeMap<String, String>,
}

/// Something that a snapshot lacks.
#[derive(Serialize)]
pub struct Excluded<'a> {
    target: &'a str,
    #[serde(flatten)]
    path: Named<'a, 1>,
    reason: &'a str,
    files: Option<u64>,
}

/// What a snapshot lacks, with names that can be lent to JSON.
#[derive(Default)]
pub struct Lacks {
    items: Vec<(String, Bytes, String, Option<u64>)>,
}

impl Lacks {
    /// What the captured directories say, and what the backends said. `roots` are the
    /// captured directories of each target.
    pub fn of<'a>(captured: impl IntoIterator<Item = (&'a Captured, &'a [Root])>) -> Self {
        let mut items = Vec::new();
        for (captured, roots) in captured {
            let target = || captured.target.name.clone();
            let left_out =
                |item: &LeftOut| (target(), Bytes(item.path.clone()), item.why.word().to_owned(), item.files);
            for root in roots {
                items.extend(told(root).map(left_out));
                items.extend(root.ignored.iter().map(|(pattern, files)| {
                    (target(), Bytes(pattern.clone().into_bytes()), "ignored".to_owned(), Some(*files))
                }));
            }
            let omitted = captured.omitted.iter();
            items.extend(omitted.map(|(subject, reason)| (target(), subject.clone(), reason.clone(), None)));
        }
        Self { items }
    }

    /// For JSON.
    pub fn items(&self) -> Vec<Excluded<'_>> {
        self.items
            .iter()
            .map(|(target, name, reason, files)| Excluded { target, path: path(name), reason, files: *files })
            .collect()
    }
}

impl<'a> ListItem<'a> {
    /// A snapshot and what it lacks.
    pub fn new(listing: &'a Listing, lacks: &'a Lacks) -> Self {
        let snapshot = &listing.snapshot;
        Self {
            id: snapshot.id.as_str(),
            kind: snapshot.kind.word(),
            run: run_of(snapshot),
            state: listing.state.word(),
            created: snapshot.created.to_string(),
            ended: listing.end.as_ref().map(|end| end.ended.to_string()),
            message: snapshot.message.as_deref(),
            command: Words(snapshot.command.as_deref()),
            exit_code: listing.end.as_ref().map(|end| end.exit_code),
            root: Named([("root", "root_b64", &snapshot.root)]),
            targets: snapshot
                .targets
                .iter()
                .map(|c| TargetItem {
                    name: &c.target.name,
                    backend: &c.target.backend,
                    bytes: c.bytes,
                    more: None,
                })
                .collect(),
            excluded: lacks.items(),
            bytes_added: snapshot.bytes_added,
        }
    }
}

/// The run that a snapshot belongs to: that of a run is its own.
fn run_of(snapshot: &Snapshot) -> Option<&str> {
    let own = (snapshot.kind == SnapshotKind::Run).then_some(&snapshot.id);
    snapshot.run.as_ref().or(own).map(|id| id.as_str())
}

/// A snapshot, as `show` has it: as in `list`, and more.
#[derive(Serialize)]
pub struct ShowItem<'a> {
    #[serde(flatten)]
    item: ListItem<'a>,
    pinned: bool,
    skipped: &'a [String],
}

impl<'a> ShowItem<'a> {
    /// A snapshot and what it lacks.
    pub fn new(listing: &'a Listing, lacks: &'a Lacks) -> Self {
        let snapshot = &listing.snapshot;
        let mut item = ListItem::new(listing, lacks);
        for (item, captured) in item.targets.iter_mut().zip(&snapshot.targets) {
            item.more = Some(TargetMore { files: captured.files, settings: &captured.target.settings });
        }
        Self { item, pinned: snapshot.pinned, skipped: &snapshot.skipped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use snapback_core::backend::Target;
    use snapback_core::history::Id;
    use snapback_core::history::snapshot::RunEnd;
    use snapback_core::session::State;

    fn id(text: &str) -> Id {
        Id::parse(text).unwrap()
    }

    fn moment(text: &str) -> snapback_core::history::clock::Moment {
        serde_json::from_value(json!(text)).unwrap()
    }

    fn listing() -> Listing {
        let target = Target {
            name: "tree".into(),
            backend: "tree".into(),
            settings: [("ignore".to_owned(), "*.log".to_owned())].into(),
        };
        let omitted = vec![(Bytes(b"\xfe".to_vec()), "too odd".to_owned())];
        let (parts, left_out) = (vec![], vec![]);
        let captured = Captured {
            target,
            parts,
            omitted,
            bytes: 12,
            files: 3,
            left_out,
            releases: false,
            through: None,
            carried: Vec::new(),
        };
        let snapshot = Snapshot {
            format: Snapshot::FORMAT,
            id: id("20260102-030405-7f3a"),
            kind: SnapshotKind::Run,
            run: None,
            created: moment("2026-01-02T03:04:05.678Z"),
            message: Some("why".into()),
            command: Some(vec![Bytes(b"ls".to_vec()), Bytes(b"-l".to_vec())]),
            root: Bytes(b"/p\xff".to_vec()),
            pinned: true,
            targets: vec![captured],
            skipped: vec!["db".into()],
            bytes_added: 5,
        };
        let end = RunEnd { ended: moment("2026-01-02T03:04:06Z"), exit_code: 143 };
        Listing { snapshot, state: State::Ended, end: Some(end) }
    }

    fn lacks(listing: &Listing) -> Lacks {
        Lacks::of(listing.snapshot.targets.iter().map(|captured| (captured, &[][..])))
    }

    #[test]
    fn list_has_the_promised_keys_and_no_other() {
        let listing = listing();
        let lacks = lacks(&listing);
        assert_eq!(
            serde_json::to_value(ListItem::new(&listing, &lacks)).unwrap(),
            json!({
                "id": "20260102-030405-7f3a",
                "kind": "run",
                "run": "20260102-030405-7f3a",
                "state": "ended",
                "created": "2026-01-02T03:04:05.678Z",
                "ended": "2026-01-02T03:04:06.000Z",
                "message": "why",
                "command": ["ls", "-l"],
                "exit_code": 143,
                "root_b64": "L3D/",
                "targets": [{"name": "tree", "backend": "tree", "bytes": 12}],
                "excluded": [{"target": "tree", "path_b64": "/g==", "reason": "too odd", "files": null}],
                "bytes_added": 5,
            })
        );
    }

    #[test]
    fn what_is_not_known_is_null_and_not_absent() {
        let mut listing = listing();
        let snapshot = &mut listing.snapshot;
        (snapshot.kind, snapshot.message, snapshot.command) = (SnapshotKind::Manual, None, None);
        (snapshot.run, listing.end, listing.state) =
            (Some(id("20260102-030404-0001")), None, State::Complete);
        let lacks = lacks(&listing);
        let value = serde_json::to_value(ListItem::new(&listing, &lacks)).unwrap();
        for key in ["message", "command", "ended", "exit_code"] {
            assert_eq!(value.get(key), Some(&Value::Null), "{key}");
        }
        assert_eq!((&value["run"], &value["state"]), (&json!("20260102-030404-0001"), &json!("complete")));
    }

    #[test]
    fn show_has_all_that_list_has_and_more() {
        let listing = listing();
        let lacks = lacks(&listing);
        let value = serde_json::to_value(ShowItem::new(&listing, &lacks)).unwrap();
        assert_eq!((&value["id"], &value["exit_code"]), (&json!("20260102-030405-7f3a"), &json!(143)));
        assert_eq!((&value["pinned"], &value["skipped"]), (&json!(true), &json!(["db"])));
        let target = &value["targets"][0];
        assert_eq!((&target["files"], &target["settings"]), (&json!(3), &json!({"ignore": "*.log"})));
    }
}

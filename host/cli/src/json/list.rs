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

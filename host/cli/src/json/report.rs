//! What was done, and what would be, in JSON.

use super::beyond::{Beyond, Perhaps};
use super::histories::HistoryItem;
use super::list::{Excluded, Lacks};
use super::names::{Named, path};
use super::problem::Problem;
use crate::survivors::Survivor;
use serde::{Serialize, Serializer};
use snapback_core::error::Error;
use snapback_core::session::{By, Difference, Freed, History, NotRestored};
use snapback_core::text::Bytes;
use snapback_runtime::sqlite::Comparison;

/// One difference, as `diff` and `undo` have it.
pub struct Change {
    target: String,
    kind: &'static str,
    path: Bytes,
    by: Option<&'static str>,
    rows: Option<Rows>,
}

/// What differs inside a database.
#[derive(Serialize)]
struct Rows {
    schema: Vec<Object>,
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Object {
    kind: &'static str,
    #[serde(rename = "type")]
    what: String,
    name: String,
}

#[derive(Serialize)]
struct Table {
    name: String,
    added: u64,
    modified: u64,
    deleted: u64,
}

impl Change {
    /// The same with what differs inside the database that it is about.
    #[must_use]
    pub fn with(self, found: Comparison) -> Self {
        let objects = found.schema.into_iter();
        let schema = objects.map(|o| Object { kind: o.kind.word(), what: o.what, name: o.name });
        let tables = found.tables.into_iter().map(|table| {
            let (added, modified, deleted) = (table.added, table.modified, table.deleted);
            Table { name: table.name, added, modified, deleted }
        });
        Self { rows: Some(Rows { schema: schema.collect(), tables: tables.collect() }), ..self }
    }
}

impl From<&Difference> for Change {
    fn from(difference: &Difference) -> Self {
        Self {
            target: difference.target.to_string(),
            kind: difference.kind.word(),
            path: Bytes(difference.path.clone()),
            by: difference.by.map(By::word),
            rows: None,
        }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            target: &'a str,
            kind: &'static str,
            #[serde(flatten)]
            path: Named<'a, 1>,
            #[serde(skip_serializing_if = "Option::is_none")]
            by: Option<&'static str>,
            #[serde(flatten)]
            rows: Option<&'a Rows>,
        }
        let (target, path, rows) = (&self.target, path(&self.path), self.rows.as_ref());
        Form { target, kind: self.kind, path, by: self.by, rows }.serialize(s)
    }
}

/// What an undo, a redo or a restore did, or would do.
#[derive(Serialize)]
pub struct Restored<'a> {
    restored_to: &'a str,
    saved_as: Option<&'a str>,
    changes: Vec<Change>,
    not_restored: Vec<Refused<'a>>,
    /// Targets that the snapshot was taken without.
    skipped: Vec<String>,
    #[serde(flatten)]
    beyond: Beyond,
}

impl<'a> Restored<'a> {
    /// `saved_as` is none when nothing was done.
    pub fn new(
        restored_to: &'a str,
        saved_as: Option<&'a str>,
        changes: &[Difference],
        not_restored: &'a [NotRestored],
    ) -> Self {
        Self {
            restored_to,
            saved_as,
            changes: changes.iter().map(Change::from).collect(),
            not_restored: refused(not_restored),
            skipped: Vec::new(),
            beyond: Beyond::default(),
        }
    }

    /// The same with what no restore brings back, and the targets that `skipped` names.
    #[must_use]
    pub fn with(self, beyond: Beyond, skipped: Vec<String>) -> Self {
        Self { beyond, skipped, ..self }
    }
}

/// What was left as it was, for JSON.
pub fn refused(items: &[NotRestored]) -> Vec<Refused<'_>> {
    items
        .iter()
        .map(|item| Refused { target: &item.target, path: path(&item.path), reason: &item.reason })
        .collect()
}

/// Something that was not restored.
#[derive(Serialize)]
pub struct Refused<'a> {
    target: &'a str,
    #[serde(flatten)]
    path: Named<'a, 1>,
    reason: &'a str,
}

/// What a gc or a forget did, or would do.
#[derive(Serialize)]
pub struct FreedReport<'a> {
    dropped: Vec<&'a str>,
    bytes: u64,
    /// With `--all`: the histories of removed projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    histories: Option<Vec<HistoryItem<'a>>>,
}

impl<'a> FreedReport<'a> {
    /// For JSON.
    pub fn new(freed: &'a Freed, histories: Option<&'a [History]>) -> Self {
        Self {
            dropped: freed.dropped.iter().map(|id| id.as_str()).collect(),
            bytes: freed.bytes,
            histories: histories.map(|all| all.iter().map(HistoryItem::from).collect()),
        }
    }
}

/// What `run --report` writes.
#[derive(Serialize)]
pub struct RunReport<'a> {
    /// The run; none when its snapshot failed.
    id: Option<&'a str>,
    /// The snapshot that was taken before it.
    snapshot: Option<&'a str>,
    exit_code: u8,
    /// Why the command was not started; none when it was.
    error: Option<Problem>,
    /// None when it could not be found out.
    changes: Option<&'a [Change]>,
    not_covered: Vec<Excluded<'a>>,
    /// Processes that went on after the command.
    still_running: Vec<Running<'a>>,
    /// Whether what a failed command did was undone; none when that was not asked for.
    undone: Option<bool>,
    #[serde(flatten)]
    beyond: Perhaps<'a>,
}

/// A process that went on.
#[derive(Serialize)]
struct Running<'a> {
    pid: u32,
    command: &'a str,
}

impl<'a> RunReport<'a> {
    /// For JSON.
    pub fn new(
        id: &'a str,
        exit_code: u8,
        changes: Option<&'a [Change]>,
        lacks: &'a Lacks,
        beyond: Option<&'a Beyond>,
    ) -> Self {
        let (not_covered, still_running) = (lacks.items(), Vec::new());
        let (id, snapshot, error, undone) = (Some(id), Some(id), None, None);
        let beyond = beyond.into();
        Self { id, snapshot, exit_code, error, changes, not_covered, still_running, undone, beyond }
    }

    /// Of a command that was not started, and no snapshot taken for it.
    pub fn not_started(exit_code: u8, error: &Error) -> Self {
        Self {
            id: None,
            snapshot: None,
            exit_code,
            error: Some(error.into()),
            changes: None,
            not_covered: Vec::new(),
            still_running: Vec::new(),
            undone: None,
            beyond: None.into(),
        }
    }

    /// The same with the reason why the command was not started, if it was not.
    #[must_use]
    pub fn because(self, error: Option<&Error>) -> Self {
        Self { error: error.map(Into::into), ..self }
    }

    /// The same with what became of the undo that was asked for, if it was.
    #[must_use]
    pub fn undone(self, undone: Option<bool>) -> Self {
        Self { undone, ..self }
    }

    /// The same with the processes that went on.
    #[must_use]
    pub fn with(self, left: &'a [Survivor]) -> Self {
        let running = left.iter().map(|s| Running { pid: s.pid, command: &s.command });
        Self { still_running: running.collect(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use snapback_core::error::Kind;
    use snapback_core::session::What;
    use snapback_core::tree::compare::ChangeKind;

    fn change(path: &[u8]) -> Difference {
        let (target, path) = ("tree".into(), path.to_vec());
        Difference { target, kind: ChangeKind::Added, path, what: What::Entry, by: None, detail: None }
    }

    #[test]
    fn undo_has_the_promised_keys_and_no_other() {
        let refused = [NotRestored {
            target: "tree".into(),
            path: Bytes(b"x".to_vec()),
            reason: "unreadable".into(),
            in_part: false,
        }];
        let report = Restored::new("a", None, &[change(b"n"), change(b"\xff")], &refused);
        assert_eq!(
            serde_json::to_value(&report).unwrap(),
            json!({
                "restored_to": "a",
                "saved_as": null,
                "changes": [
                    {"target": "tree", "kind": "added", "path": "n"},
                    {"target": "tree", "kind": "added", "path_b64": "/w=="},
                ],
                "not_restored": [{"target": "tree", "path": "x", "reason": "unreadable"}],
                "skipped": [],
                "git": [],
                "uncovered": [],
            })
        );
    }

    #[test]
    fn the_report_of_a_run_has_the_promised_keys_and_no_other() {
        let lacks = Lacks::of([]);
        let changes = [Change::from(&change(b"n"))];
        let left = [Survivor { pid: 7, command: "sleep 9".into() }];
        assert_eq!(
            serde_json::to_value(
                RunReport::new("a", 7, Some(&changes), &lacks, Some(&Beyond::default())).with(&left)
            )
            .unwrap(),
            json!({
                "id": "a",
                "snapshot": "a",
                "exit_code": 7,
                "error": null,
                "changes": [{"target": "tree", "kind": "added", "path": "n"}],
                "not_covered": [],
                "still_running": [{"pid": 7, "command": "sleep 9"}],
                "undone": null,
                "git": [],
                "uncovered": [],
            })
        );
        let unknown = serde_json::to_value(RunReport::new("a", 0, None, &lacks, None)).unwrap();
        assert!(unknown["changes"].is_null());
        let error = Error::new(Kind::Busy, "it is locked").hint("wait");
        let failed = serde_json::to_value(RunReport::not_started(125, &error)).unwrap();
        assert_eq!(failed["error"], json!({"kind": "busy", "message": "it is locked", "hint": "wait"}));
        assert_eq!((&failed["id"], &failed["exit_code"]), (&json!(null), &json!(125)));
        let keys = |report: &serde_json::Value| -> Vec<String> {
            report.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(&failed), keys(&unknown), "the same keys, whatever is known");
        assert!(failed["git"].is_null() && failed["uncovered"].is_null());
    }
}

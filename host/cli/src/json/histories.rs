//! The histories of a user in JSON: what `list --all`, `gc --all` and `trust --list` have.

use super::names::Named;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use snapback_core::session::History;
use snapback_core::text::Bytes;

/// One history.
#[derive(Serialize)]
pub struct HistoryItem<'a> {
    #[serde(flatten)]
    root: Root,
    store: &'a str,
    project: &'static str,
    snapshots: usize,
    bytes: u64,
    last_used: Option<String>,
    trusted: Option<String>,
}

/// The project's root under its key; null when nobody knows it.
struct Root(Option<Bytes>);

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(root) => Named([("root", "root_b64", root)]).serialize(s),
            None => {
                let mut map = s.serialize_map(Some(1))?;
                map.serialize_entry("root", &None::<()>)?;
                map.end()
            }
        }
    }
}

impl<'a> From<&'a History> for HistoryItem<'a> {
    fn from(history: &'a History) -> Self {
        let time = |time: snapback_core::history::clock::Moment| time.to_string();
        let moment = snapback_core::history::clock::Moment;
        Self {
            root: Root(history.root.as_deref().map(Bytes::from)),
            store: &history.store,
            project: history.whereabouts.word(),
            snapshots: history.snapshots,
            bytes: history.bytes,
            last_used: history.used.map(moment).map(time),
            trusted: history.trusted.map(moment).map(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use snapback_core::session::Whereabouts;

    #[test]
    fn a_history_has_the_promised_keys_and_no_other() {
        let mut history = History {
            root: Some("/p".into()),
            store: "0123".into(),
            whereabouts: Whereabouts::Gone,
            snapshots: 3,
            bytes: 5,
            used: Some("2026-01-02T03:04:05Z".parse().unwrap()),
            trusted: None,
        };
        assert_eq!(
            serde_json::to_value(HistoryItem::from(&history)).unwrap(),
            json!({
                "root": "/p",
                "store": "0123",
                "project": "gone",
                "snapshots": 3,
                "bytes": 5,
                "last_used": "2026-01-02T03:04:05.000Z",
                "trusted": null,
            })
        );
        history.root = None;
        assert_eq!(serde_json::to_value(HistoryItem::from(&history)).unwrap()["root"], json!(null));
    }
}

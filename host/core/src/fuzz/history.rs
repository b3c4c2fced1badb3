//! Records of the history: JSON comes back as the same value, the rest as the same bytes.

use crate::history::changes::Changes;
use crate::history::journal::Journal;
use crate::history::sealed;
use crate::history::snapshot::{RunEnd, Snapshot};
use crate::history::timeline::Timeline;
use crate::object::{Key, ObjectKind};
use crate::session::Release;
use crate::session::twin::dropped::{decode_drops, decode_states};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A sealed record: as it is, and as a document with a seal that fits.
fn record<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let hash = hex(Key::of(ObjectKind::Blob, bytes).hash());
    let sealed = [format!("{{\"sha256\":\"{hash}\",\"data\":").as_bytes(), bytes, b"}"].concat();
    for bytes in [bytes, &sealed] {
        let Ok(value) = sealed::open::<T>(bytes, "it") else { continue };
        let again = sealed::seal(&value);
        assert_eq!(sealed::open::<T>(&again, "it").unwrap(), value);
    }
}

/// `meta.json`.
pub fn meta(bytes: &[u8]) {
    record::<Snapshot>(bytes);
}

/// `end.json`.
pub fn end(bytes: &[u8]) {
    record::<RunEnd>(bytes);
}

/// The journal.
pub fn journal(bytes: &[u8]) {
    record::<Journal>(bytes);
}

/// What is to be let go of outside the store.
pub fn releases(bytes: &[u8]) {
    record::<Vec<Release>>(bytes);
}

/// Which twins there are, and how often something was dropped.
pub fn twins(bytes: &[u8]) {
    let states = decode_states(bytes);
    assert_eq!(decode_states(&serde_json::to_vec(&states).expect("paths can be written")), states);
    if let Some(drops) = decode_drops(bytes) {
        assert_eq!(decode_drops(drops.to_string().as_bytes()), Some(drops));
    }
}

/// The timeline: as it is, and with checksums that fit. What it says is the same when it
/// is written anew.
pub fn timeline(bytes: &[u8]) {
    let mut whole = Vec::new();
    for line in bytes.split(|&b| b == b'\n') {
        let json = line.get(17..).unwrap_or(line);
        whole.extend_from_slice(hex(&Key::of(ObjectKind::Blob, json).hash()[..8]).as_bytes());
        whole.push(b' ');
        whole.extend_from_slice(json);
        whole.push(b'\n');
    }
    for bytes in [bytes, &whole] {
        let timeline = Timeline::replay(bytes);
        let lines = bytes.iter().filter(|&&b| b == b'\n').count();
        assert!(timeline.done.len() + timeline.undone.len() <= lines);
        assert!(timeline.undone.iter().all(|step| step.after.is_some()));
        let again = Timeline::replay(&timeline.lines(|_| true));
        assert_eq!((&again.done, &again.undone, again.damaged), (&timeline.done, &timeline.undone, 0));
        if again.last.is_some() {
            assert_eq!(again.number, timeline.number);
        }
    }
}

/// What a run changed: as the file is, and as what is packed in it.
pub fn changes(bytes: &[u8]) {
    let _ = Changes::open(bytes);
    let packed = [Key::of(ObjectKind::Opaque, bytes).hash(), bytes].concat();
    let _ = Changes::open(&packed);
    if let Ok(changes) = Changes::decode(bytes.to_vec()) {
        assert_eq!(changes.encode(), bytes);
    }
}

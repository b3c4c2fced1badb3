//! A store whose objects are elsewhere.

use super::*;
use crate::error::Kind;
use std::sync::PoisonError;

/// Objects in memory, as whoever is at the other end has them.
#[derive(Default)]
struct Map(Mutex<HashMap<Key, Vec<u8>>>);

impl Map {
    fn with<R>(&self, act: impl FnOnce(&mut HashMap<Key, Vec<u8>>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Far for Map {
    fn contains(&self, key: &Key) -> Result<bool> {
        Ok(self.with(|map| map.contains_key(key)))
    }

    fn read(&self, key: &Key) -> Result<Vec<u8>> {
        let missing = || Error::new(Kind::NotFound, "it is not there");
        self.with(|map| map.get(key).cloned()).ok_or_else(missing)
    }

    fn put(&self, key: &Key, bytes: &[u8]) -> Result<()> {
        self.with(|map| map.insert(*key, bytes.to_vec()));
        Ok(())
    }
}

#[test]
fn what_is_written_goes_there_and_what_is_read_comes_from_there() {
    let scratch = Scratch::new("far");
    let far = Arc::new(Map::default());
    let store =
        Store::create_far(&scratch.0.join("store"), Disk::default().with_sync(false), far.clone()).unwrap();
    let writer = store.writer().unwrap();
    let known = far.with(|map| {
        let key = Key::of(ObjectKind::Blob, b"known");
        map.insert(key, b"known".to_vec());
        key
    });
    assert!(writer.contains(&known).unwrap());
    assert_eq!(writer.read(&known).unwrap(), b"known");
    let content = noise(3, 200_000);
    let mut lane = writer.lane();
    let (key, _) = store_bytes(&mut lane, &content[..], &Cancel::default()).unwrap();
    let small = lane.put(ObjectKind::Opaque, b"small").unwrap();
    lane.publish().unwrap();
    assert_eq!(writer.read(&small).unwrap(), b"small");
    assert_eq!(far.with(|map| map.get(&small).cloned()).as_deref(), Some(&b"small"[..]));
    // Every part of the content is there, under its own name.
    let reached = super::walk::references(key.kind(), &writer.read(&key).unwrap()).unwrap();
    assert!(!reached.is_empty() && reached.iter().all(|key| far.contains(key).unwrap()));
    assert!(far.with(|map| map.iter().all(|(key, bytes)| Key::of(key.kind(), bytes) == *key)));
    drop(writer);
    assert!(scratch.names("packs").is_empty() && scratch.names("tmp").is_empty());
}

#[test]
fn what_comes_as_something_else_is_damage() {
    let scratch = Scratch::new("far-damage");
    let far = Arc::new(Map::default());
    let store = Store::create_far(&scratch.0.join("store"), Disk::default(), far.clone()).unwrap();
    let key = Key::of(ObjectKind::Blob, b"asked for");
    far.with(|map| map.insert(key, b"something else".to_vec()));
    assert_eq!(store.read(&key).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(store.read(&Key::of(ObjectKind::Blob, b"no")).unwrap_err().kind(), Kind::NotFound);
}

//! A store that was written once and is kept: what a released version wrote stays
//! readable. The files are never made anew for a version of the format that was
//! released; a new version gets a sample beside them.

use super::*;
use crate::store::content::{read_all, store_file};
use crate::store::opaque::{Draft, Opaque};
use crate::tree::node::{decode_times, decode_tree};
use crate::tree::root::{GitRecord, LeftOut, Stamp, Why};

const FILES: [(&str, &[u8]); 4] = [
    ("format", include_bytes!("frozen/format")),
    ("id", include_bytes!("frozen/id")),
    ("index", include_bytes!("frozen/index")),
    ("packs/NAME", include_bytes!("frozen/pack")),
];
const PACK: &str = include_str!("frozen/name");
const ROOT_KEY: &str = include_str!("frozen/root");
const SECOND_ROOT: &[u8] = include_bytes!("frozen/root-2");
const THIRD_ROOT: &[u8] = include_bytes!("frozen/root-3");
const OPAQUE: &str = include_str!("frozen/opaque");

fn text() -> Vec<u8> {
    (0..20_000).flat_map(|i: u32| format!("line {i}\n").into_bytes()).collect()
}

fn entries(text: (Key, u64), holes: (Key, u64), empty: Key) -> (Vec<Entry>, Vec<EntryTime>) {
    let file = |(content, size), sparse| Node::File { content, size, sparse };
    let mut entries = vec![
        entry(b"\xff\n", Node::Socket),
        entry(b"block", Node::BlockDevice(8, 300)),
        entry(b"char", Node::CharDevice(1, 3)),
        entry(b"empty", file((empty, 0), false)),
        entry(b"fifo", Node::Fifo),
        entry(b"holes", file(holes, true)),
        entry(b"link", Node::Symlink(b"../elsewhere".to_vec())),
        entry(b"text", file(text, false)),
    ];
    entries[3].link = Some(0x0102_0304_0506_0708);
    entries[7].xattrs = vec![(b"user.a".to_vec(), b"\0value".to_vec())];
    entries[7].mode = 0o6755;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let time = |i| EntryTime { mtime: Time { sec: i as i64 - 3, nsec: 999_999_999 }, inside: None };
    let times = (0..entries.len()).map(time).collect();
    (entries, times)
}

fn root(tree: Key, times: Key) -> Root {
    let left_out = LeftOut {
        path: b"a/node_modules".to_vec(),
        why: Why::Regenerable,
        detail: "node_modules".into(),
        files: Some(0),
        stamp: None,
    };
    Root {
        options: vec![("ignore".into(), "*.log".into())],
        mtime: Time { sec: 5, nsec: 6 },
        left_out: vec![left_out],
        ignored: vec![("*.log".into(), 3)],
        bytes: 7,
        ..root_of(tree, times, 8)
    }
}

#[test]
fn the_first_version_stays_readable() {
    for with_index in [true, false] {
        let scratch = Scratch::new(&format!("frozen-{with_index}"));
        std::fs::create_dir_all(scratch.0.join("store/packs")).unwrap();
        for (name, bytes) in FILES {
            if with_index || name != "index" {
                let name = name.replace("NAME", PACK.trim());
                std::fs::write(scratch.0.join("store").join(name), bytes).unwrap();
            }
        }
        let store = scratch.reopen();
        assert!(store.catalog().unwrap().index_problem.is_none());
        assert_eq!(store.id().unwrap(), "00112233445566778899aabbccddeeff");
        let root = Key::parse(ROOT_KEY.trim()).unwrap();
        assert!(is_whole(&store, &root));
        let top = Root::decode(&store.read(&root).unwrap()).unwrap();
        let Node::Dir(tree) = top.top.node else { panic!("a root is a directory") };
        assert_eq!(top, self::root(tree, top.times));
        let found = decode_tree(&store.read(&tree).unwrap()).unwrap();
        let content = |name: &[u8]| match found.iter().find(|e| e.name == name).unwrap().node {
            Node::File { content, size, .. } => (content, size),
            _ => panic!("it is a file"),
        };
        let (text_at, holes_at, empty_at) = (content(b"text"), content(b"holes"), content(b"empty"));
        let (entries, times) = entries(text_at, holes_at, empty_at.0);
        assert_eq!(found, entries);
        assert_eq!(decode_times(&store.read(&top.times).unwrap()).unwrap(), times);
        assert_eq!(read_all(&*store, &text_at.0, text_at.1, 1 << 20).unwrap(), text());
        assert_eq!(read_all(&*store, &empty_at.0, 0, 0).unwrap(), b"");
        let holes = read_all(&*store, &holes_at.0, holes_at.1, 64 << 20).unwrap();
        assert_eq!((holes.len(), &holes[20_000_000..20_000_003]), (30_000_001, &b"end"[..]));
        assert!(holes.iter().filter(|&&byte| byte != 0).count() == 3);

        let opaque = Opaque::read(&*store, &Key::parse(OPAQUE.trim()).unwrap()).unwrap();
        let stream: Vec<u8> = opaque.pieces.iter().flat_map(|p| store.read(&p.key).unwrap()).collect();
        assert_eq!(stream, [text(), text()].concat());

        // The same content has the same keys today: it is not stored again.
        let writer = store.writer().unwrap();
        let again = store_bytes(&mut writer.lane(), &text()[..], &Cancel::default()).unwrap();
        let zeros = store_bytes(&mut writer.lane(), &holes[..], &Cancel::default()).unwrap();
        assert_eq!((again, zeros), (text_at, holes_at));
        assert_eq!(writer.seal().unwrap(), 0);
    }
}

#[test]
fn later_forms_of_a_root_stay_readable() {
    assert_eq!(Root::decode(SECOND_ROOT).unwrap(), second_root());
    assert_eq!(Root::decode(THIRD_ROOT).unwrap(), third_root());
    assert_eq!(third_root().encode(), THIRD_ROOT, "and the last is what is written");
}

/// With what came into the form later: stamps, and a record of git.
fn second_root() -> Root {
    let tree = Key::of(ObjectKind::Tree, b"tree");
    let mut root = root(tree, Key::of(ObjectKind::Times, b"times"));
    let stamp = |ino, ctime| Some(Stamp { ino, ctime });
    root.left_out[0].stamp = stamp(300, Some(Time { sec: -7, nsec: 8 }));
    root.left_out.push(LeftOut { path: b".git".to_vec(), stamp: stamp(1, None), ..root.left_out[0].clone() });
    root.left_out.push(LeftOut { path: b"x".to_vec(), stamp: None, ..root.left_out[0].clone() });
    root.git = Some(GitRecord { tree, whole: false });
    root
}

/// With stamps of single files that were ignored.
fn third_root() -> Root {
    let stamp = |ino, sec| Stamp { ino, ctime: Some(Time { sec, nsec: 9 }) };
    Root { ignored_stamps: vec![stamp(5, 1 << 40), stamp(7, -7)], ..second_root() }
}

/// Makes the sample: `cargo test -p snapback-core make_the_sample -- --ignored`.
#[test]
#[ignore = "makes the files that the test above reads"]
fn make_the_sample() {
    use std::os::unix::fs::FileExt;
    let scratch = Scratch::new("frozen-make");
    let store = scratch.store();
    let path = scratch.0.join("holes");
    let file = File::create_new(&path).unwrap();
    file.set_len(30_000_001).unwrap();
    file.write_all_at(b"end", 20_000_000).unwrap();
    let writer = Arc::new(store.writer().unwrap());
    let mut lane = writer.lane();
    let cancel = Cancel::default();
    let text_at = store_bytes(&mut lane, &text()[..], &cancel).unwrap();
    let holes_at = store_file(&mut lane, &File::open(&path).unwrap(), 30_000_001, true, &cancel).unwrap();
    let empty = lane.put(ObjectKind::Blob, b"").unwrap();
    let (entries, times) = entries(text_at, holes_at, empty);
    let tree = lane.put(ObjectKind::Tree, &encode_tree(&entries)).unwrap();
    let times = lane.put(ObjectKind::Times, &encode_times(&times)).unwrap();
    let root = lane.put(ObjectKind::Root, &root(tree, times).encode()).unwrap();
    lane.flush().unwrap();
    let mut draft = Draft::new(writer.clone());
    draft.write(&text()).unwrap();
    draft.write(&text()).unwrap();
    let opaque = draft.finish().unwrap();
    writer.seal().unwrap();
    store.catalog().unwrap().write_index(&store.disk, &store.dir).unwrap();
    let to = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/tests/frozen");
    let pack = scratch.names("packs").pop_first().unwrap();
    let keep = |name: &str, bytes: &[u8]| std::fs::write(to.join(name), bytes).unwrap();
    keep("format", &std::fs::read(scratch.0.join("store/format")).unwrap());
    keep("id", b"00112233445566778899aabbccddeeff\n");
    keep("index", &std::fs::read(scratch.0.join("store/index")).unwrap());
    keep("pack", &std::fs::read(scratch.0.join("store/packs").join(&pack)).unwrap());
    keep("name", format!("{pack}\n").as_bytes());
    keep("root", format!("{root}\n").as_bytes());
    keep("opaque", format!("{opaque}\n").as_bytes());
}

const SHARED_PACK: &[u8] = include_bytes!("frozen/shared/pack");
const SHARED_NAME: &str = include_str!("frozen/shared/name");
const SHARED_KEY: &str = include_str!("frozen/shared/key");

#[test]
fn blocks_that_files_share_stay_readable() {
    let scratch = Scratch::new("frozen-shared");
    std::fs::create_dir_all(scratch.0.join("store/packs")).unwrap();
    std::fs::write(scratch.0.join("store/format"), FILES[0].1).unwrap();
    std::fs::write(scratch.0.join("store/packs").join(SHARED_NAME.trim()), SHARED_PACK).unwrap();
    let store = scratch.reopen();
    let key = Key::parse(SHARED_KEY.trim()).unwrap();
    assert_eq!(read_all(&*store, &key, text().len() as u64, 1 << 20).unwrap(), text());
    let text = text();
    let blocks = text.chunks(BLOCK).map(|block| store.extent(&Key::of(ObjectKind::Blob, block)));
    assert_eq!(
        blocks.map(|extent| extent.map(|e| e.offset)).collect::<Vec<_>>(),
        [Some(65_536), Some(131_072), Some(196_608), None,]
    );
}

/// Makes the sample: `cargo test -p snapback-core make_the_shared_sample -- --ignored`.
#[test]
#[ignore = "makes the files that the test above reads"]
fn make_the_shared_sample() {
    let scratch = Scratch::new("frozen-shared-make");
    let disk = Disk::default().with_sync(false).with_copies_as_clones();
    let store = Store::create(&scratch.0.join("store"), disk).unwrap();
    let path = scratch.0.join("text");
    std::fs::write(&path, text()).unwrap();
    let writer = store.writer().unwrap();
    let still = writer.still_of(&File::open(path).unwrap()).unwrap().unwrap();
    let size = text().len() as u64;
    let mut lane = writer.lane();
    let (key, _) =
        crate::store::content::store_still(&mut lane, &still, size, false, &Cancel::default()).unwrap();
    lane.flush().unwrap();
    writer.seal().unwrap();
    let to = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/tests/frozen/shared");
    let pack = scratch.names("packs").pop_first().unwrap();
    let keep = |name: &str, bytes: &[u8]| std::fs::write(to.join(name), bytes).unwrap();
    keep("pack", &std::fs::read(scratch.0.join("store/packs").join(&pack)).unwrap());
    keep("name", format!("{pack}\n").as_bytes());
    keep("key", format!("{key}\n").as_bytes());
}

/// Makes that of the last form: `cargo test -p snapback-core make_the_last -- --ignored`.
#[test]
#[ignore = "makes the file that the test above reads"]
fn make_the_last_root() {
    let to = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/tests/frozen/root-3");
    std::fs::write(to, third_root().encode()).unwrap();
}

//! What our encoders write, a few of each kind: where mutations begin.

use crate::backend::{Part, Target};
use crate::database::{Database, Found, seen};
use crate::history::changes::Changes;
use crate::history::clock::Moment;
use crate::history::journal::{Journal, Verb};
use crate::history::snapshot::{Captured, RunEnd, Snapshot, SnapshotKind};
use crate::history::timeline::{Record, Step, Timeline};
use crate::history::{self, Id, sealed};
use crate::object::codec::Put;
use crate::object::{Key, ObjectKind};
use crate::project::consents::Consent;
use crate::project::registry::Known;
use crate::session::Release;
use crate::store::content::List;
use crate::store::index::{Place, put};
use crate::store::opaque::{Opaque, Piece};
use crate::store::pack::{Encoding, Frame, FrameTable, HEAD, Table};
use crate::text::Bytes;
use crate::tree::archive::{Member, What, Writer};
use crate::tree::capture::git::memo::Memo;
use crate::tree::node::{Entry, EntryTime, Node, Time, encode_times, encode_tree};
use crate::tree::root::{GitRecord, LeftOut, Root, Stamp, Why};
use crate::tree::scan::Stat;
use crate::tree::statcache::{RecordBuilder, Remembered, StatCache, Update};
use crate::volume::Volume;

fn key(kind: ObjectKind) -> Key {
    Key::of(kind, b"something")
}

fn id(n: u32) -> Id {
    Id::parse(&format!("20260102-030405-{n:04x}")).expect("the shape of a name")
}

fn entry(name: &str, node: Node) -> Entry {
    let xattrs = vec![(b"user.a".to_vec(), b"\0value".to_vec()), (b"user.b".to_vec(), vec![])];
    let (xattrs, link) = if name < "c" { (xattrs, None) } else { (vec![], Some(0x1234_5678_9abc)) };
    Entry { name: name.into(), mode: 0o644, uid: 1000, gid: 100, xattrs, link, node }
}

fn entries() -> Vec<Entry> {
    let content = key(ObjectKind::Blob);
    vec![
        entry("a", Node::File { content, size: 9, sparse: false }),
        entry("b", Node::File { content: key(ObjectKind::List), size: 99_999, sparse: true }),
        entry("c", Node::Dir(key(ObjectKind::Tree))),
        entry("d", Node::Symlink(b"../elsewhere".to_vec())),
        entry("e", Node::Fifo),
        entry("f", Node::Socket),
        entry("g", Node::CharDevice(1, 3)),
        entry("h\u{e9}", Node::BlockDevice(8, 0)),
    ]
}

pub fn trees() -> Vec<Vec<u8>> {
    vec![encode_tree(&[]), encode_tree(&entries()), encode_tree(&entries()[2..4])]
}

fn entry_times() -> Vec<EntryTime> {
    let inside = |entry: &Entry| matches!(entry.node, Node::Dir(_)).then(|| key(ObjectKind::Times));
    let time =
        |entry: &Entry| EntryTime { mtime: Time { sec: -5, nsec: 999_999_999 }, inside: inside(entry) };
    entries().iter().map(time).collect()
}

pub fn times() -> Vec<Vec<u8>> {
    vec![encode_times(&[]), encode_times(&entry_times())]
}

pub fn lists() -> Vec<Vec<u8>> {
    let list = |level, length, children| List { level, length, children: vec![[7; 32]; children] }.encode();
    vec![list(1, 65_537, 2), list(1, 128 * 65_536, 128), list(2, 129 * 65_536, 2), list(7, u64::MAX, 64)]
}

fn root() -> Root {
    let left_out = |path: &str, why, files, stamp| {
        let (path, detail) = (path.into(), "a rule".into());
        LeftOut { path, why, detail, files, stamp }
    };
    let changed = Stamp { ino: 7, ctime: Some(Time { sec: -1, nsec: 5 }) };
    let left_out = vec![
        left_out("a/node_modules", Why::Regenerable, None, Some(changed)),
        left_out("b", Why::Unreadable, Some(3), None),
        left_out("c", Why::Store, None, Some(Stamp { ino: 1 << 40, ctime: None })),
    ];
    Root {
        setting: "path".into(),
        value: ".".into(),
        options: vec![("ignore".into(), "*.log\n/tmp".into())],
        top: Entry { name: vec![], ..entry("c", Node::Dir(key(ObjectKind::Tree))) },
        mtime: Time { sec: 1_700_000_000, nsec: 1 },
        times: key(ObjectKind::Times),
        left_out,
        ignored: vec![("*.log".into(), 300)],
        ignored_stamps: vec![Stamp { ino: 300, ctime: Some(Time { sec: 1 << 33, nsec: 7 }) }],
        files: 1000,
        bytes: 1 << 40,
        git: Some(GitRecord { tree: key(ObjectKind::Tree), whole: true }),
    }
}

pub fn roots() -> Vec<Vec<u8>> {
    vec![root().encode(), Root { left_out: vec![], ignored: vec![], options: vec![], ..root() }.encode()]
}

pub fn opaques() -> Vec<Vec<u8>> {
    let pieces: Vec<Piece> = [65_536, 8192, 1].map(|len| Piece { key: key(ObjectKind::Blob), len }).into();
    vec![Opaque::default().encode(), Opaque { size: 65_536 + 8192 + 1, pieces }.encode()]
}

pub fn databases() -> Vec<Vec<u8>> {
    let file = |name: &[u8], node| Entry {
        name: name.to_vec(),
        mode: 0o640,
        uid: 1,
        gid: 2,
        xattrs: vec![(b"user.a".to_vec(), vec![])],
        link: None,
        node,
    };
    let content = |size| Node::File { content: key(ObjectKind::Blob), size, sparse: false };
    let of = |found| Database { path: b"data/app.db".to_vec(), found }.encode();
    let link = file(b"app.db", Node::Symlink(b"../other".to_vec()));
    vec![
        of(Found::Image { file: file(b"app.db", content(4096)), state: [7; 32] }),
        of(Found::Files(vec![link, file(b"app.db-wal", content(9))])),
    ]
}

pub fn volumes() -> Vec<Vec<u8>> {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let volume = Volume {
        name: "project_data".into(),
        present: true,
        driver: "local".into(),
        options: [pair("device", "tmpfs"), pair("type", "tmpfs")].into(),
        labels: [pair("com.docker.compose.volume", "data")].into(),
        root: key(ObjectKind::Root),
    };
    let absent = Volume { present: false, options: Default::default(), ..volume.clone() };
    vec![volume.encode(), absent.encode()]
}

pub fn archives() -> Vec<Vec<u8>> {
    let kinds = [
        ("d", What::Dir),
        ("d/f", What::File(600)),
        ("d/\u{e4}", What::Link(b"d/f".to_vec())),
        ("d/s", What::Symlink(b"..".to_vec())),
        ("d/p", What::Fifo),
        ("d/c", What::CharDevice(1, 3)),
        ("d/b", What::BlockDevice(8, 1)),
    ];
    let write = |kinds: &[(&str, What)]| {
        let mut out = Vec::new();
        let mut archive = Writer::new(&mut out);
        for (path, what) in kinds {
            let xattrs = vec![(b"user.a".to_vec(), b"\0value".to_vec())];
            let (mtime, path, what) = (Time { sec: -5, nsec: 7 }, path.as_bytes().to_vec(), what.clone());
            let member = Member { path, mode: 0o644, uid: 1000, gid: 3_000_000, mtime, xattrs, what };
            archive.add(&member).expect("memory takes all");
            if let What::File(size) = member.what {
                archive.zeros(size).expect("memory takes all");
            }
        }
        archive.finish().expect("memory takes all");
        out
    };
    vec![write(&kinds[..2]), write(&kinds[2..4]), write(&kinds[4..])]
}

pub fn keys() -> Vec<Vec<u8>> {
    let all = (1..=8).filter_map(ObjectKind::from_number).map(key);
    all.flat_map(|key| [key.to_bytes().to_vec(), key.to_string().into_bytes()]).collect()
}

/// Frames that lie one after the other from the head of a pack on, and their stored bytes.
fn stored() -> (Vec<FrameTable>, Vec<u8>) {
    let raw = b"one object and another, which is longer".repeat(20);
    let packed = zstd::bulk::compress(&raw, 1).expect("memory");
    let (first, second) = raw.split_at(100);
    let object = |bytes: &[u8]| (Key::of(ObjectKind::Blob, bytes), bytes.len() as u32);
    let frame = |offset, stored: &[u8], encoding| {
        let (stored, raw) = (stored.len() as u32, raw.len() as u32);
        let frame = Frame { offset, stored, raw, encoding };
        FrameTable { frame, objects: vec![object(first), object(second)] }
    };
    let start = HEAD.len() as u32;
    let frames =
        vec![frame(start, &raw, Encoding::Raw), frame(start + raw.len() as u32, &packed, Encoding::Zstd)];
    (frames, [raw, packed].concat())
}

fn table(frames: &[FrameTable]) -> Vec<u8> {
    let (mut bytes, _) = Table::encode(frames, 0);
    // Without the trailer.
    bytes.truncate(bytes.len() - 64);
    bytes
}

pub fn tables() -> Vec<Vec<u8>> {
    let (frames, _) = stored();
    vec![table(&[]), table(&frames), table(&frames[1..])]
}

pub fn packs() -> Vec<Vec<u8>> {
    let (frames, bytes) = stored();
    let table = table(&frames);
    vec![[&(table.len() as u16).to_le_bytes()[..], &bytes, &table].concat()]
}

pub fn frames() -> Vec<Vec<u8>> {
    let (frames, bytes) = stored();
    let form = |table: &FrameTable| {
        let Frame { offset, stored, raw, encoding } = table.frame;
        let start = offset as usize - HEAD.len();
        [&[encoding as u8][..], &raw.to_le_bytes(), &bytes[start..][..stored as usize]].concat()
    };
    frames.iter().map(form).collect()
}

pub fn indexes() -> Vec<Vec<u8>> {
    let (frames, bytes) = stored();
    let mut page = vec![4, 0];
    let places = frames.iter().flat_map(|t| {
        let lens = t.objects.iter().scan(0, |start, (key, len)| {
            *start += len;
            Some((*key, *start - len, *len))
        });
        lens.map(|(key, start, len)| (key, Place { pack: 0, frame: t.frame, start, len }))
    });
    let mut places: Vec<(Key, Place)> = places.collect();
    places.sort_by_key(|(key, _)| *key.hash());
    places.iter().for_each(|(key, place)| put(&mut page, key, place));
    page.resize(4088, 0);
    let mut tail = Vec::new();
    tail.put_uint(4);
    tail.put_uint(1);
    tail.extend_from_slice(&[7; 16]);
    tail.put_uint(bytes.len() as u64 + 1000);
    tail.extend_from_slice(places[0].0.hash()[..8].iter().rev().copied().collect::<Vec<u8>>().as_slice());
    vec![[&[1][..], &page, &tail].concat(), vec![0, 0, 0]]
}

pub fn statcaches() -> Vec<Vec<u8>> {
    let entries = entries();
    let mut builder = RecordBuilder::new((77, 1), 1, entries.len());
    for (entry, time) in entries.iter().zip(&entry_times()) {
        let kind = if let Node::Dir(_) = entry.node { 0o040_000 } else { 0o100_000 };
        let stat = Stat {
            mode: kind | entry.mode,
            uid: entry.uid,
            gid: entry.gid,
            nlink: 1,
            dev: 77,
            ino: 5,
            size: 9,
            mtime: time.mtime,
            ctime: time.mtime,
            born: None,
            rdev: (1, 3),
            allocated: 4096,
            mount: 1,
            attributes: rustix::fs::StatxAttributes::empty(),
        };
        builder.add(&Remembered { entry, time, stat: &stat, racy: entry.name == b"a" });
    }
    let record = builder.finish(&key(ObjectKind::Tree), &key(ObjectKind::Times)).expect("a small record");
    let empty = StatCache::default();
    let mut update = Update::new(&empty, None);
    update.add((77, 1), &record);
    vec![update.finish(&key(ObjectKind::Root)).expect("a new cache")]
}

fn snapshot() -> Snapshot {
    let settings = [("path".to_owned(), ".".to_owned()), ("ignore".to_owned(), "a\nb".to_owned())].into();
    let captured = Captured {
        target: Target { name: "tree".into(), backend: "tree".into(), settings },
        parts: vec![Part { name: "tree".into(), content: key(ObjectKind::Root) }],
        omitted: vec![(Bytes(b"a/\xfe".to_vec()), "permission denied".into())],
        bytes: 12,
        files: 3,
        left_out: vec![history::snapshot::LeftOut {
            reason: "regenerable".into(),
            count: 1,
            files: None,
            paths: vec![Bytes(b"target".to_vec())],
        }],
        releases: false,
        through: None,
        carried: Vec::new(),
    };
    Snapshot {
        format: Snapshot::FORMAT,
        id: id(1),
        kind: SnapshotKind::Run,
        run: Some(id(1)),
        created: moment(),
        message: Some("why \"so\"\n".into()),
        command: Some(vec![Bytes(b"make".to_vec()), Bytes(b"\xff".to_vec())]),
        root: Bytes(b"/home/user/project".to_vec()),
        pinned: false,
        targets: vec![captured],
        skipped: vec!["db".into()],
        bytes_added: 345,
    }
}

fn moment() -> Moment {
    Moment(jiff::Timestamp::from_second(1_767_323_045).expect("a time of this century"))
}

/// The document in a sealed record, with its seal and without.
fn both(sealed: Vec<u8>) -> Vec<Vec<u8>> {
    // {"sha256":"<64 digits>","data":<document>}
    let document = sealed[11 + 64 + 9..sealed.len() - 1].to_vec();
    vec![document, sealed]
}

pub fn metas() -> Vec<Vec<u8>> {
    both(sealed::seal(&snapshot()))
}

pub fn ends() -> Vec<Vec<u8>> {
    both(sealed::seal(&RunEnd { ended: moment(), exit_code: 143 }))
}

pub fn journals() -> Vec<Vec<u8>> {
    both(sealed::seal(&Journal {
        format: Journal::FORMAT,
        verb: Verb::Undo,
        to: id(1),
        saved: id(2),
        targets: vec!["tree".into()],
        only: vec![Bytes(b"src/\xfe".to_vec())],
        record: Record::Undid { before: id(1), saved: id(2) },
        number: 3,
    }))
}

pub fn releases() -> Vec<Vec<u8>> {
    let Captured { target, parts, .. } = snapshot().targets.remove(0);
    both(sealed::seal(&vec![Release { snapshot: id(1), target, parts, reason: Some("it is away".into()) }]))
}

pub fn twins() -> Vec<Vec<u8>> {
    let states = vec![Bytes(b"/home/user/.local/state".to_vec()), Bytes(b"/\xfe".to_vec())];
    vec![serde_json::to_vec(&states).expect("paths can be written as JSON"), b"17".to_vec()]
}

pub fn seens() -> Vec<Vec<u8>> {
    vec![seen::encode(&[7; 216], &key(ObjectKind::Database)), seen::encode(&[], &key(ObjectKind::Blob))]
}

pub fn memos() -> Vec<Vec<u8>> {
    let memo = |seen, base| {
        let record = GitRecord { tree: key(ObjectKind::Tree), whole: true };
        Memo { seen, index: Some([3; 32]), record, base, root: key(ObjectKind::Root) }.encode()
    };
    vec![memo(None, None), memo(Some([7; 32]), Some(key(ObjectKind::Root)))]
}

pub fn consents() -> Vec<Vec<u8>> {
    let consent = Consent {
        store: "0123456789abcdef".repeat(2),
        root: Bytes(b"/p\xff".to_vec()),
        target: "pg".into(),
        backend: "postgres".into(),
        reaches: vec!["address: db:5432".into()],
        given: moment(),
    };
    vec![serde_json::to_vec(&consent).expect("texts and a time can be written as JSON")]
}

pub fn timelines() -> Vec<Vec<u8>> {
    let step = |n, after| Step { kind: SnapshotKind::Run, before: id(n), after };
    let done = vec![step(1, None), step(2, None), step(2, None)];
    let undone = vec![step(4, Some(id(5))), step(3, Some(id(4)))];
    let mut timeline = Timeline::default();
    (timeline.done, timeline.undone, timeline.number) = (done, undone, 20);
    let mut redone = timeline.lines(|_| true);
    redone.extend_from_slice(b"0123456789abcdef {\"number\":21,\"step\":\"redid\",\"before\":\"");
    redone.extend_from_slice(format!("{}\",\"saved\":\"{}\"}}\n", id(3), id(3)).as_bytes());
    vec![timeline.lines(|_| true), redone]
}

pub fn changes() -> Vec<Vec<u8>> {
    let mut changes = Changes::default();
    for (n, entry) in entries().iter().enumerate() {
        changes.add(["tree", "db"][n % 2], &entry.name, (n % 3 > 0).then_some(entry));
    }
    vec![
        Changes::default().encode(),
        changes.encode(),
        zstd::bulk::compress(&changes.encode(), 1).expect("memory"),
    ]
}

pub fn configs() -> Vec<Vec<u8>> {
    let all = "[snapshot]\nenabled = true\npaths = [\"src\", \"docs\"]\nignore = [\"*.log\"]\ninclude = []\n\
               skip-regenerable = false\nmax-files-per-dir = 20000\ngit = true\nstrategy = \"copy\"\n\
               times = \"stored\"\ninterval = \"30s\"\n[plugins]\ndir = \"tools\"\n[[target]]\nname = \"db\"\n\
               backend = \"sqlite\"\npath = \"app.db\"\nevery-interval = true\nenabled = false\n";
    let wrong = "[snapshot]\npath = 5\n[[target]]\nname = \"tree\"\n";
    [all, wrong, "target = [{ backend = 'x', a = [\"\\n\"] }]\nplugins.dir = '''y'''"].map(Into::into).into()
}

pub fn users() -> Vec<Vec<u8>> {
    let all = "[retention]\nkeep = 5\nkeep-within = \"7d\"\nmax-size = \"2GiB\"\nmin-free = \"0\"\n\
               interval-keep = 3\n[store]\nsync = false\ntwin = false\n";
    [all, "500ms", "64 KiB", "18446744073709551615B"].map(Into::into).into()
}

pub fn knowns() -> Vec<Vec<u8>> {
    let known = |root: &[u8]| {
        let store = "0123456789abcdef".repeat(2);
        Known { root: Bytes(root.to_vec()), store, on: None, trusted: None }
    };
    let json = |root| serde_json::to_vec(&known(root)).expect("a path and an id can be written as JSON");
    vec![json(b"/home/user"), json(b"/\xfe")]
}

pub fn patterns() -> Vec<Vec<u8>> {
    let file = "*.log\n!keep.log\n/build/\n**/a*b*c*d?\nx/**/y\n[!a-z[:digit:]]\\ \n\\#x\n";
    [format!("{file}a/b/abcd"), format!("{}\n{}", "*a".repeat(30), "a".repeat(60))].map(Into::into).into()
}

/// An index of git with two paths, in each form, and settings of git.
pub fn git() -> Vec<Vec<u8>> {
    let index = |version: u8, hash: usize| {
        let mut index = b"DIRC\0\0\0".to_vec();
        index.push(version);
        index.extend(2u32.to_be_bytes());
        for (strip, rest) in [(0, "dist/a"), (1, "b")] {
            let begin = index.len();
            index.resize(begin + 40 + hash, 1);
            index.extend([0, 6]);
            match version {
                4 => {
                    index.push(strip);
                    index.extend(rest.bytes().chain([0]));
                }
                _ => {
                    index.extend(b"dist/");
                    index.extend(rest.bytes().last());
                    let length = (index.len() - begin + 8) / 8 * 8;
                    index.resize(begin + length, 0);
                }
            }
        }
        index.extend(b"link");
        index.extend(20u32.to_be_bytes());
        index.resize(index.len() + 20 + hash, 7);
        index
    };
    let settings = "[core]\n\texcludesFile = \"~/a \\\" b\" ; c\n[include \"x\"] path = d\\\n e\n# f\nbare\n";
    vec![
        index(2, 20),
        index(2, 32),
        index(4, 20),
        settings.into(),
        "\"d/\\xff\\n\"".into(),
        b"ref: refs/heads/main\n".to_vec(),
    ]
}

pub fn options() -> Vec<Vec<u8>> {
    let all = "paths=src,docs/a\nignore=*.log,/x/\ninclude=!y\nmax-files-per-dir=0\ngit=true\ntimes=stored\n\
               strategy=auto\nregenerable=node_modules,* holding CACHEDIR.TAG,target ignored else beside Cargo.toml";
    vec![all.into()]
}

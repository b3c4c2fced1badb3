//! Archives of the system's own tar, and a directory behind one that behaves as an engine does.

use super::*;
use crate::backend::{Call, Target};
use crate::disk::Disk;
use crate::error::{Kind, Result};
use crate::object::Key;
use crate::report::Report;
use crate::store::{Store, Writer as StoreWriter};
use crate::testing::TempDir;
use crate::tree::view::read_root;
use crate::tree::{self, Directory, Options};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// Everything that an archive can have.
const EVERYTHING: &str = r#"
    mkdir -p deep/er empty; echo two > deep/er/file; chmod 555 deep/er; chmod 750 .
    head -c 3000000 /dev/urandom > large; : > none
    ln -s ../../outside deep/link; ln -s / root
    echo names > first; ln first deep/second; ln first a-third
    mkfifo pipe; echo bits > bits; chmod 4755 bits; mkdir sticky; chmod 1777 sticky
    printf x > "$(printf 'a\376')"; printf y > 'new
line'; mkdir deep.er; echo z > deep.er/z
    long=$(printf 'n%.0s' $(seq 120)); mkdir $long; echo l > $long/$long; ln -s $long/$long to-long
    touch -h -d '2001-02-03 04:05:06.789' bits deep/link deep/er; touch -d '1960-01-01 00:00:00.25' none
"#;

#[derive(Default)]
struct Told(Mutex<Vec<(String, String)>>);

impl Report for Told {
    fn refused(&self, _: &str, subject: &[u8], reason: &str) {
        let subject = String::from_utf8_lossy(subject).into_owned();
        self.0.lock().unwrap().push((subject, reason.to_owned()));
    }
}

struct World {
    temp: TempDir,
    store: Arc<Store>,
    told: Arc<Told>,
    /// What is done to the directory before the next archive is sent to it.
    meanwhile: Mutex<Option<&'static str>>,
}

impl World {
    fn new() -> Self {
        let temp = TempDir::new();
        std::fs::create_dir(temp.path().join("d")).unwrap();
        let store = Store::create(&temp.path().join("store"), Disk::default().with_sync(false)).unwrap();
        Self { temp, store, told: Arc::default(), meanwhile: Mutex::default() }
    }

    fn dir(&self) -> PathBuf {
        self.temp.path().join("d")
    }

    fn sh(&self, script: &str) -> String {
        let output = Command::new("sh").args(["-ec", script]).current_dir(self.dir()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What is there, told by others.
    fn look(&self) -> String {
        self.sh(
            "find . -printf '%p %y %m %U:%G %n %s %l %T@\\n' | grep -v '^. d' | sed 's/ d \\([0-9]*\\) \\([^ ]*\\) [0-9]* [0-9]*/ d \\1 \\2/' | sort
             find . -type f | sort | xargs -d '\\n' sha256sum | sort",
        )
    }

    fn call(&self, writer: Option<Arc<StoreWriter>>) -> Call {
        let target = Target { name: "t".into(), backend: String::new(), settings: [].into() };
        let call = Call::about(self.dir(), target, Some(self.store.clone()), self.told.clone());
        Call { writer, ..call }
    }

    fn options(&self) -> Options {
        Options::parse(&[("times", "stored"), ("git", "true"), ("max-files-per-dir", "0")]).unwrap()
    }

    fn capture(&self) -> Key {
        let writer = Arc::new(self.store.writer().unwrap());
        let (options, call) = (self.options(), self.call(Some(writer.clone())));
        let of = Of { setting: "s", above: 1, options: &options };
        let mut key = None;
        self.fetch(b"", &mut |input| {
            key = Some(capture(input, &of, &call)?);
            Ok(())
        })
        .unwrap();
        writer.seal().unwrap();
        key.unwrap()
    }

    fn restore(&self, stored: &Key, current: &Key) -> Result<usize> {
        restore(self, "d", &self.call(None), stored, current)
    }

    fn told(&self) -> Vec<String> {
        let told = std::mem::take(&mut *self.told.0.lock().unwrap());
        told.into_iter().map(|(path, reason)| format!("{path}: {reason}")).collect()
    }
}

impl Far for World {
    fn look(&self, path: &[u8]) -> Result<Option<Seen>> {
        let Ok(meta) = self.dir().join(std::ffi::OsStr::from_bytes(path)).symlink_metadata() else {
            return Ok(None);
        };
        let kind = meta.file_type();
        Ok(Some(if kind.is_dir() {
            Seen::Dir
        } else if kind.is_symlink() {
            // An engine resolves it.
            Seen::Symlink(None)
        } else if kind.is_file() {
            Seen::File(meta.size(), Time { sec: meta.mtime(), nsec: 0 })
        } else {
            assert!(kind.is_fifo() || kind.is_socket());
            Seen::Other
        }))
    }

    fn fetch(&self, path: &[u8], take: Take<'_>) -> Result<()> {
        let path = self.dir().join(std::ffi::OsStr::from_bytes(path));
        let (above, name) = (path.parent().unwrap(), path.file_name().unwrap());
        let options = ["--format=posix", "--pax-option=delete=atime,delete=ctime", "--xattrs", "-c", "-C"];
        let mut tar = Command::new("tar");
        tar.args(options).arg(above).arg(name).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut tar = tar.spawn().unwrap();
        let done = take(&mut tar.stdout.take().unwrap());
        tar.wait().unwrap();
        done
    }

    /// As docker does: what another kind comes to the place of goes with all that is in it.
    fn send(&self, give: Give<'_>) -> Result<()> {
        if let Some(script) = self.meanwhile.lock().unwrap().take() {
            self.sh(script);
        }
        let mut bytes = Vec::new();
        give(&mut bytes)?;
        let mut archive = Reader::new(&bytes[..]);
        while let Some(member) = archive.next()? {
            let path = self.temp.path().join(std::ffi::OsStr::from_bytes(&member.path));
            let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            match member.what {
                What::Dir if is_dir(&path) => {}
                _ if is_dir(&path) => std::fs::remove_dir_all(&path).unwrap(),
                _ => drop(std::fs::remove_file(&path)),
            }
        }
        let mut tar = Command::new("tar")
            .args(["-x", "-p", "--xattrs", "--numeric-owner", "--delay-directory-restore", "-C"])
            .arg(self.temp.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(&bytes).unwrap();
        assert!(tar.wait().unwrap().success());
        Ok(())
    }
}

#[test]
fn an_archive_is_captured_as_the_directory_that_it_is_of() {
    let world = World::new();
    world.sh(EVERYTHING);
    // Where the file system has attributes.
    world.sh("setfattr -n user.note -v value bits 2>/dev/null || true");
    let archived = read_root(&*world.store, &world.capture()).unwrap();
    let writer = Arc::new(world.store.writer().unwrap());
    let directory = Directory::open(&world.dir(), "s", ".", &world.options()).unwrap();
    let plain = tree::capture(&directory, &world.call(Some(writer.clone())), None).unwrap();
    writer.seal().unwrap();
    let plain = read_root(&*world.store, &plain).unwrap();
    // To the last bit: names, modes, owners, links, hard links, attributes, content, times.
    assert_eq!(archived, plain);
}

#[test]
fn what_differs_comes_back_and_what_is_new_stays_and_is_told() {
    let world = World::new();
    world.sh(EVERYTHING);
    let (before, stored) = (world.look(), world.capture());
    world.sh(
        "chmod 700 .; echo more >> large; rm none; rm -r deep/er; mkdir -p deep/er/new; rm pipe; mkdir pipe; echo in > pipe/in
         rm bits; ln -s x bits; rm -r sticky; echo f > sticky; rm first; echo other > first; rm root to-long
         rm -r deep.er; ln -s / deep.er; rm \"$(printf 'a\\376')\"; touch -d '2002-02-02' 'new\nline'",
    );
    let mangled = world.capture();
    assert_eq!(world.restore(&stored, &mangled).unwrap(), 1);
    assert_eq!(world.told(), [format!("deep/er/new: {}", jobs::ADDED)]);
    world.sh("rmdir deep/er/new; touch -h -d '2001-02-03 04:05:06.789' deep/er; chmod 555 deep/er");
    assert_eq!(world.look(), before);
    // A second call has nothing to do, and says the same of nothing.
    let now = world.capture();
    assert_eq!(world.restore(&stored, &now).unwrap(), 0);
    assert_eq!(world.look(), before);
}

#[test]
fn what_did_not_change_is_not_written() {
    let world = World::new();
    world.sh("mkdir a b; echo 1 > a/f; echo 2 > b/f; ln b/f b/g; ln b/f a/g; echo 3 > c");
    let stored = world.capture();
    let inodes = || world.sh("stat -c '%n %i' a a/f b b/f b/g c");
    let before = inodes();
    world.sh("rm a/g; echo 4 > a/g");
    let now = world.capture();
    world.restore(&stored, &now).unwrap();
    assert_eq!(inodes(), before);
    assert_eq!(world.sh("cat a/g; stat -c %h a/g"), "2\n3\n");
}

#[test]
fn what_changed_since_is_left_alone() {
    let world = World::new();
    world.sh(
        "echo 1 > f; echo 1 > g; mkdir d; echo 1 > d/f; printf 1 > \"$(printf 'x\\376')\"; echo kept > h",
    );
    let stored = world.capture();
    world.sh("echo 22 > f; rm g; rm -r d; echo 2 > d; printf 22 > \"$(printf 'x\\376')\"; rm h; mkdir h; echo 2 > h/f");
    let now = world.capture();
    // Nothing of this is in any snapshot.
    world.sh("echo 333 > f; echo 333 > g; rm d; mkdir d; echo 333 > d/mine; printf 333 > \"$(printf 'x\\376')\"; echo 333 > h/mine");
    let look = "cat f g d/mine h/mine h/f \"$(printf 'x\\376')\"";
    let before = world.sh(look);
    // Of a directory that came there only what is not in the way is made.
    assert_eq!(world.restore(&stored, &now).unwrap(), 4, "{:?}", world.told());
    assert_eq!(world.sh(look), before);
    let told = world.told();
    for path in ["f", "g", "h", "x\u{fffd}"] {
        assert!(told.iter().any(|line| line.starts_with(&format!("{path}: it was"))), "{path}: {told:?}");
    }
}

#[test]
fn what_was_cut_short_is_completed() {
    let world = World::new();
    world.sh("head -c 3000000 /dev/urandom > large; echo 1 > none; mkdir d; echo 1 > d/f; echo 1 > e");
    let (before, stored) = (world.look(), world.capture());
    world.sh("cp large ../large; echo 2 > large; rm none; rm e; mkdir e; echo 2 > e/a; echo 2 > e/b");
    let now = world.capture();
    // As an engine leaves it that ended in the middle: the begin of a file, with no time yet; some
    // of a directory that goes.
    world.sh("head -c 2500000 ../large > large; : > none; rm e/a");
    assert_eq!(world.restore(&stored, &now).unwrap(), 0, "{:?}", world.told());
    assert_eq!(world.look(), before);
    world.sh("head -c 2000000 ../large > large; printf x >> large");
    assert_eq!(world.restore(&stored, &now).unwrap(), 1, "another's bytes follow");
}

#[test]
fn damage_is_found_before_anything_is_sent() {
    let world = World::new();
    world.sh("head -c 3000000 /dev/urandom > large; echo old > f");
    let stored = world.capture();
    for pack in std::fs::read_dir(world.temp.path().join("store/packs")).unwrap().flatten() {
        let mut bytes = std::fs::read(pack.path()).unwrap();
        if bytes.len() > 2_000_000 {
            bytes[1_000_000] ^= 1;
            std::fs::remove_file(pack.path()).unwrap();
            std::fs::write(pack.path(), bytes).unwrap();
        }
    }
    world.sh("echo new > large; echo new > f");
    let now = world.capture();
    *world.meanwhile.lock().unwrap() = Some("false");
    assert_eq!(world.restore(&stored, &now).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(world.sh("cat large f"), "new\nnew\n");
}

#[test]
fn only_what_is_named_is_put_back() {
    let world = World::new();
    world.sh("mkdir d; echo 1 > d/f; echo 1 > d/g; echo 1 > h");
    let stored = world.capture();
    world.sh("echo 22 > d/f; echo 22 > d/g; echo 22 > h; echo 2 > d/new");
    let now = world.capture();
    let call = Call { only: Arc::new(vec![b"d/f".to_vec()]), ..world.call(None) };
    assert_eq!(restore(&world, "d", &call, &stored, &now).unwrap(), 0);
    assert_eq!(world.sh("cat d/f d/g h d/new"), "1\n22\n22\n2\n");
}

#[test]
fn whether_there_is_anything_new_is_told() {
    let world = World::new();
    world.sh(EVERYTHING);
    let now = world.capture();
    let same = || holds_nothing_new(&world, &world.call(None), &now).unwrap();
    assert!(same());
    world.sh("rm -r empty none");
    assert!(same(), "what is gone is nothing new");
    for change in ["echo x > deep/new", "rm deep/new; echo longer >> first", "rm first; mkdir first"] {
        world.sh(change);
        assert!(!same(), "{change}");
    }
}

/// Reads an archive to its end, content and all.
fn read(bytes: &[u8]) -> Result<Vec<Member>> {
    let (mut archive, mut members) = (Reader::new(bytes), Vec::new());
    while let Some(member) = archive.next()? {
        archive.read_to_end(&mut Vec::new()).map_err(|e| crate::error::Error::io(e, "read", "it"))?;
        members.push(member);
    }
    Ok(members)
}

#[test]
fn an_archive_that_is_cut_short_or_leads_out_is_refused() {
    let world = World::new();
    world.sh(EVERYTHING);
    let mut whole = Vec::new();
    world
        .fetch(b"", &mut |input| {
            input.read_to_end(&mut whole).unwrap();
            Ok(())
        })
        .unwrap();
    let members = read(&whole).unwrap().len();
    assert!(members > 20);
    let end = whole.len() - whole.iter().rev().take_while(|&&b| b == 0).count();
    for cut in (0..end).step_by(997) {
        assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
    }
    let (options, writer) = (world.options(), Arc::new(world.store.writer().unwrap()));
    let of = Of { setting: "s", above: 1, options: &options };
    let attempt = |members: &[(&str, What)]| {
        let mut bytes = Vec::new();
        let mut archive = Writer::new(&mut bytes);
        for (path, what) in members {
            let (path, what) = (path.as_bytes().to_vec(), what.clone());
            let (mode, uid, gid, mtime, xattrs) = (0o755, 0, 0, Time::default(), Vec::new());
            archive.add(&Member { path, mode, uid, gid, mtime, xattrs, what }).unwrap();
        }
        archive.finish().unwrap();
        capture(&bytes[..], &of, &world.call(Some(writer.clone())))
    };
    let top = ("d", What::Dir);
    assert!(attempt(std::slice::from_ref(&top)).is_ok());
    for wrong in [
        vec![],
        vec![("d", What::File(0))],
        vec![top.clone(), ("d/../x", What::Fifo)],
        vec![top.clone(), ("d/a/b", What::Fifo)],
        vec![top.clone(), ("d/f", What::Fifo), ("d/f/b", What::Fifo)],
        vec![top.clone(), ("d/a", What::Link(b"d/none".to_vec()))],
        vec![top.clone(), ("d/a", What::Link(b"../x".to_vec()))],
        vec![top, ("d/a", What::Symlink(Vec::new()))],
    ] {
        assert_eq!(attempt(&wrong).unwrap_err().kind(), Kind::Corrupt, "{wrong:?}");
    }
}

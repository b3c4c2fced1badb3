//! Whatever is damaged in the store, in whatever way, whatever is done next: it is said
//! clearly, nothing wrong is ever put back, what is whole stays usable, and `verify` finds
//! it and names the snapshots that are concerned.
//!
//! A table: what is damaged, how, and which command meets it. What each snapshot holds is
//! known from records that other people's tools took.

use crate::sandbox;
use snapback_tests::{Output, Record, Sandbox, assert_same, say};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What can be damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Pack,
    Index,
    Meta,
    End,
    Changes,
    Timeline,
    Journal,
    StatCache,
    Id,
    Format,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Missing,
    Truncated,
    Flipped,
}

const THINGS: [Thing; 10] = [
    Thing::Pack,
    Thing::Index,
    Thing::Meta,
    Thing::End,
    Thing::Changes,
    Thing::Timeline,
    Thing::Journal,
    Thing::StatCache,
    Thing::Id,
    Thing::Format,
];
const HOWS: [How; 3] = [How::Missing, How::Truncated, How::Flipped];
const VERBS: [&str; 6] = ["list", "diff", "undo", "snap", "gc", "verify"];

/// What a command may do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It works as if nothing had happened.
    Works,
    /// It says what is damaged and does nothing.
    Fails,
    /// Either, as it needs what is damaged or not.
    Either,
}

/// Where else the history is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Twin {
    /// Second names of the same files.
    Links,
    /// Files of its own, as where links do not reach.
    Copies,
    /// Nowhere.
    None,
}

/// What is expected of a command.
fn expected(thing: Thing, how: How, verb: &str, twin: Twin) -> Then {
    use Then::{Either, Fails, Works};
    // What is gone is there once more; what was written into has no other copy, unless it is one.
    let is_back = twin != Twin::None && how == How::Missing;
    match (thing, verb) {
        (Thing::StatCache, _) | (Thing::Index, "list" | "diff" | "undo" | "snap" | "gc") => Works,
        (Thing::Index, _) => {
            if how == How::Missing {
                Works
            } else {
                Fails
            }
        }
        // How a run ended and what it changed decide nothing.
        (Thing::Id | Thing::Changes, _) => Works,
        (Thing::End, _) if verb != "verify" || how == How::Missing => Works,
        (Thing::End, _) => Fails,
        (Thing::Journal, "list" | "diff") => Works,
        // Without it nobody knows of the step that was cut short: it is half of it that is there.
        (Thing::Journal, _) if how == How::Missing => Works,
        (Thing::Journal, _) => Fails,
        _ if is_back => Works,
        (Thing::Format, _) if twin == Twin::Copies => Works,
        (Thing::Format, _) => Fails,
        (Thing::Timeline, "list" | "snap" | "gc") => Works,
        (Thing::Timeline, "verify") => {
            if how == How::Missing {
                Works
            } else {
                Fails
            }
        }
        (Thing::Timeline, _) => Either,
        (_, "list") => Works,
        (_, "verify") => Fails,
        (Thing::Meta, "snap") => Works,
        (Thing::Pack | Thing::Meta, _) => Either,
    }
}

/// A project with a history, kept so that it can be damaged again and again.
struct World {
    s: Sandbox,
    twin: Twin,
    /// The state before the run, after it, and after an edit since.
    records: [Record; 3],
    /// The state in the middle of an undo.
    half: Option<Record>,
    /// The snapshot of the run.
    run: String,
}

impl World {
    /// With an undo that was cut short, or without.
    fn new(twin: Twin, pending: bool) -> Self {
        let s = sandbox();
        fs::create_dir_all(s.config().parent().unwrap()).unwrap();
        fs::write(s.config(), format!("[store]\ntwin = {}\n", twin != Twin::None)).unwrap();
        s.sh("mkdir d; for f in $(seq 200); do head -c 2000 /dev/urandom > d/f$f; done; ln -s f1 d/link");
        let first = Record::take(&s.project());
        s.run("for f in $(seq 200); do head -c 2000 /dev/urandom > d/f$f; done; echo new > new");
        let run = crate::newest(&s);
        let second = Record::take(&s.project());
        s.ok(["snap"]);
        s.write("d/by-hand", "by hand");
        let third = Record::take(&s.project());
        let mut world = Self { s, twin, records: [first, second, third], half: None, run };
        if pending {
            world.cut_short();
        }
        world.sh("mkdir kept; cp -a home state kept");
        world
    }

    /// Two undos, the second killed as soon as it has written down what it does.
    fn cut_short(&mut self) {
        self.s.ok(["undo"]);
        let mut tries = 0;
        while !self.s.cut_short(&["undo"], Duration::ZERO) {
            tries += 1;
            assert!(tries < 50, "it was never hit in its middle");
            self.s.ok(["redo"]);
        }
        self.half = Some(Record::take(&self.s.project()));
    }

    fn sh(&self, script: &str) {
        let mut sh = Command::new("sh");
        sh.current_dir(self.s.dir()).args(["-ec", script]);
        assert!(sh.status().unwrap().success(), "{script}");
    }

    /// As before the damage; the store's directory stays the one in which it was made.
    fn again(&self) {
        self.sh("find home/project -mindepth 1 ! -path home/project/.snapback -delete; rm -rf state");
        match self.twin {
            // In one go, names of one file stay that.
            Twin::Links | Twin::None => self.sh("cp -a kept/home kept/state ."),
            Twin::Copies => self.sh("cp -a kept/home .; cp -a kept/state ."),
        }
    }

    /// The file that is damaged: the one that the run's undo needs.
    fn file(&self, thing: Thing) -> PathBuf {
        let store = self.s.project().join(".snapback");
        let largest = |dir: &Path| {
            let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
            files.max_by_key(|path| path.metadata().unwrap().len()).unwrap()
        };
        match thing {
            // The first of the two that are large: what was there before the run.
            Thing::Pack => {
                let files = fs::read_dir(store.join("packs")).unwrap().map(|entry| entry.unwrap().path());
                let large = files.filter(|path| path.metadata().unwrap().len() > 100_000);
                large.min_by_key(|path| path.metadata().unwrap().modified().unwrap()).unwrap()
            }
            Thing::Index => store.join("index"),
            Thing::Meta => store.join("snapshots").join(&self.run).join("meta.json"),
            Thing::End => store.join("snapshots").join(&self.run).join("end.json"),
            Thing::Changes => store.join("snapshots").join(&self.run).join("changes"),
            Thing::Timeline => store.join("timeline"),
            Thing::Journal => store.join("journal"),
            Thing::StatCache => largest(&store.join("cache")),
            Thing::Id => store.join("id"),
            Thing::Format => store.join("format"),
        }
    }

    /// Damages it, at a place that depends on `number`.
    fn damage(&self, thing: Thing, how: How, number: usize) {
        let path = self.file(thing);
        if thing == Thing::Index && !path.exists() {
            // Small stores need none: one that makes no sense is as good as a damaged one.
            fs::write(&path, vec![7; 5000]).unwrap();
        }
        let bytes = fs::read(&path).unwrap();
        if how == How::Missing {
            return fs::remove_file(&path).unwrap();
        }
        // In place: another name of the file is the same damage.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let step = bytes.len() / VERBS.len();
        match how {
            // At first to nothing.
            How::Truncated => file.set_len((step * number) as u64).unwrap(),
            // Beyond the head of a pack, on which nothing that is read depends.
            _ => {
                let place = step * number + step / 2;
                file.write_all_at(&[bytes[place] ^ 1], place as u64).unwrap();
            }
        }
    }

    /// Whether the project is in a state that it ever was in.
    fn is_right(&self, now: &Record) -> bool {
        self.records.iter().chain(&self.half).any(|record| record.is_like(now))
    }
}

/// What is said is for people, and whoever fails says what to do.
fn assert_clear(output: &Output) {
    let err = output.err();
    for bare in ["panicked", "fault in snapback", "os error", "Err(", "errno", "RUST_BACKTRACE"] {
        assert!(!err.contains(bare), "{bare:?} is not for people\n{output}");
    }
    let is_verify = output.line.contains("verify");
    if output.code() != 0 && output.code() != 3 && !is_verify {
        assert!(err.contains("snapback: ") && err.contains("hint: "), "no sentence with a hint\n{output}");
    }
}

#[derive(Default)]
struct Count {
    cases: u64,
    failed: u64,
    worked: u64,
}

impl Count {
    /// Says what was counted: `things` were damaged, each in every way and before every command.
    #[track_caller]
    fn end(self, things: usize) {
        let Self { cases, failed, worked } = self;
        say(&format!("{cases} damages: {worked} commands worked, {failed} said what is damaged"));
        assert_eq!(cases, (things * HOWS.len() * VERBS.len()) as u64);
        assert!(worked > 0 && failed > 0, "{worked} worked, {failed} failed");
    }
}

fn try_all(world: &World, things: &[Thing], count: &mut Count) {
    for &thing in things {
        for how in HOWS {
            for number in 0..VERBS.len() {
                one(world, thing, how, number, count);
            }
        }
    }
}

fn one(world: &World, thing: Thing, how: How, number: usize, count: &mut Count) {
    let (s, verb) = (&world.s, VERBS[number]);
    world.again();
    world.damage(thing, how, number);
    let case = format!("{thing:?} {how:?}, {:?}, {verb}", world.twin);
    let before = Record::take(&s.project());
    let output = s.snapback([verb]);
    count.cases += 1;
    assert_clear(&output);
    let works = matches!(output.code(), 0 | 3);
    if works {
        count.worked += 1
    } else {
        count.failed += 1
    }
    let then = expected(thing, how, verb, world.twin);
    assert!(then == Then::Either || works == (then == Then::Works), "{case}: should be {then:?}\n{output}");
    let now = Record::take(&s.project());
    if works && verb == "undo" {
        assert!(world.is_right(&now), "{case}: a state that never was\n{output}");
    } else if world.half.is_none() {
        assert_same(&before, &now);
    }
    afterwards(world, thing, how, &case);
}

/// What is damaged is found; then the next snapshot is whole again, and what is whole can
/// be gone back to.
fn afterwards(world: &World, thing: Thing, how: How, case: &str) {
    let s = &world.s;
    if thing == Thing::Format {
        let format = s.project().join(".snapback/format");
        if s.snapback(["list"]).code() != 0 {
            // As the hint says.
            fs::write(&format, "snapback store\nversion 1\n").unwrap();
        }
        s.ok(["verify"]);
        return;
    }
    if thing == Thing::Journal && s.snapback(["status", "--json"]).code() != 0 {
        s.snapback(["undo"]).fails(1, &["journal"]).says("--abandon");
        let half = Record::take(&s.project());
        s.ok(["undo", "--abandon", "tree"]).says("set aside");
        assert_same(&half, &Record::take(&s.project()));
    }
    let verify = s.snapback(["verify"]);
    assert_clear(&verify);
    let is_back = world.twin != Twin::None && how == How::Missing;
    let is_said = matches!(thing, Thing::Pack | Thing::Meta) || (thing == Thing::End && how != How::Missing);
    let is_lost = is_said && !is_back && world.twin != Twin::Copies;
    if is_lost {
        assert_eq!(verify.code(), 1, "{case}: it is not found\n{verify}");
        assert!(verify.out().contains(&world.run), "{case}: the snapshot is not named\n{verify}");
    }
    // A second look: what can be made again was made again.
    if !is_lost {
        s.ok(["verify"]);
    }
    s.write("after", "after the damage");
    let want = Record::take(&s.project());
    let id = s.ok(["snap"]).out().trim_end().to_owned();
    s.sh("rm -r d after");
    s.ok(["restore", &id]);
    assert!(want.is_like(&Record::take(&s.project())), "{case}: what was stored since comes back");
    let verify = s.snapback(["verify", "--json"]).json();
    let concerned = verify["concerned"].as_array().unwrap().iter();
    let concerned: Vec<&str> = concerned.map(|c| c["id"].as_str().unwrap()).collect();
    assert!(!concerned.contains(&id.as_str()), "{case}: the new one is not whole\n{verify}");
    for id in concerned {
        s.ok(["forget", "--yes", id]);
    }
    s.ok(["verify"]);
    s.ok(["gc"]);
}

#[test]
fn damage_is_said_and_nothing_wrong_is_put_back() {
    let mut count = Count::default();
    let things: Vec<Thing> = THINGS.into_iter().filter(|thing| *thing != Thing::Journal).collect();
    try_all(&World::new(Twin::Links, false), &things, &mut count);
    count.end(9);
}

#[test]
fn damage_without_a_second_copy_is_said_and_nothing_wrong_is_put_back() {
    let mut count = Count::default();
    let things = [Thing::Pack, Thing::Meta, Thing::Timeline, Thing::Id, Thing::Format];
    try_all(&World::new(Twin::None, false), &things, &mut count);
    count.end(5);
}

#[test]
fn damage_is_mended_from_a_copy_that_is_whole() {
    let mut count = Count::default();
    let things = [Thing::Pack, Thing::Meta, Thing::End, Thing::Format];
    try_all(&World::new(Twin::Copies, false), &things, &mut count);
    count.end(4);
}

#[test]
fn a_damaged_journal_is_said_and_can_be_set_aside() {
    let mut count = Count::default();
    try_all(&World::new(Twin::Links, true), &[Thing::Journal], &mut count);
    count.end(1);
}

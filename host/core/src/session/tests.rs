//! History with a fake backend: undo, redo, recovery, without WebAssembly or trees.

use super::*;
use crate::backend::{Backend, Call, Part};
use crate::history::SnapshotKind;
use crate::history::journal::Journal;
use crate::object::ObjectKind;
use crate::report::Silent;
use crate::testing::TempDir;
use jiff::{SignedDuration, Timestamp};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// State in memory; fails to restore when told to.
#[derive(Default)]
struct Fake {
    state: Mutex<String>,
    fail: Mutex<u32>,
    restores: AtomicU64,
}

impl Backend for Fake {
    fn snapshot(&self, call: &Call, _previous: &[Part]) -> Result<Vec<Part>> {
        let writer = call.writer.as_ref().unwrap();
        let mut lane = writer.lane();
        let content = lane.put(ObjectKind::Blob, self.state.lock().unwrap().as_bytes())?;
        lane.flush()?;
        Ok(vec![Part { name: "text".into(), content }])
    }

    fn restore(&self, call: &Call, parts: &[Part], _current: &[Part]) -> Result<()> {
        self.restores.fetch_add(1, Ordering::Relaxed);
        let mut fail = self.fail.lock().unwrap();
        if *fail > 0 {
            *fail -= 1;
            *self.state.lock().unwrap() = "half".into();
            return Err(Error::new(Kind::Other, "told to fail"));
        }
        let bytes = call.store.read(&parts[0].content)?;
        *self.state.lock().unwrap() = String::from_utf8(bytes).unwrap();
        Ok(())
    }
}

/// Two fakes, the second after the first.
#[derive(Default)]
struct Fakes(Arc<Fake>, Arc<Fake>);

impl Backends for Fakes {
    fn names(&self) -> Vec<String> {
        vec!["tree".into(), "other".into()]
    }

    fn settings(&self, _name: &str) -> Result<Vec<String>> {
        Ok(vec!["path".into()])
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Backend>> {
        Ok(if name == "tree" { self.0.clone() } else { self.1.clone() })
    }
}

/// Each look at it is a second later, each random number the next.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds as i64)
    }

    fn random(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

struct World {
    temp: TempDir,
    root: PathBuf,
    fakes: Arc<Fakes>,
    clock: Arc<Ticking>,
    user: User,
    inside: Option<String>,
}

impl World {
    fn new() -> Self {
        Self::with("")
    }

    fn with(config: &str) -> Self {
        let temp = TempDir::new();
        fs::create_dir(temp.path().join("project")).unwrap();
        fs::write(temp.path().join("project/snapback.toml"), config).unwrap();
        let root = temp.path().join("project");
        Self { temp, root, fakes: Arc::default(), clock: Arc::default(), user: User::default(), inside: None }
    }

    fn open(&self) -> Result<Project> {
        Project::open(Environment {
            root: self.root.clone(),
            state: self.temp.path().join("state"),
            home: None,
            user: self.user.clone(),
            disk: Disk::default(),
            clock: self.clock.clone(),
            backends: self.fakes.clone(),
            report: Arc::new(Silent),
            cancel: Cancel::default(),
            inside: self.inside.clone(),
        })
    }

    fn session(&self) -> Session {
        self.open().unwrap().lock().unwrap()
    }

    fn take(&self, kind: SnapshotKind) -> Taken {
        self.session()
            .take(Request {
                kind,
                message: None,
                command: None,
                pinned: false,
                selection: Selection::default(),
            })
            .unwrap()
    }

    /// A run that leaves the state `after`.
    fn run(&self, after: &str) -> Id {
        let id = self.take(SnapshotKind::Run).snapshot.id;
        self.set(after);
        self.session().end_run(&id, 0).unwrap();
        id
    }

    fn go(&self, ask: &Ask) -> Result<Outcome> {
        let session = self.open()?.lock()?;
        let plan = session.plan(ask, &[], &[])?;
        session.execute(plan, false)
    }

    fn set(&self, state: &str) {
        *self.fakes.0.state.lock().unwrap() = state.into();
    }

    fn state(&self) -> String {
        self.fakes.0.state.lock().unwrap().clone()
    }
}

#[test]
fn run_a_run_b_undo_undo_redo_redo() {
    let world = World::new();
    world.set("start");
    let first = world.run("after A");
    let second = world.run("after B");
    let outcome = world.go(&Ask::Undo).unwrap();
    assert_eq!((world.state().as_str(), outcome.restored_to), ("after A", second.clone()));
    let outcome = world.go(&Ask::Undo).unwrap();
    assert_eq!((world.state().as_str(), outcome.restored_to), ("start", first.clone()));
    assert_eq!(outcome.saved_as, second, "a state that is stored is not stored again");
    assert_eq!(world.go(&Ask::Undo).err().unwrap().kind(), Kind::NotFound);
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after A");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after B");
    let error = world.go(&Ask::Redo).err().unwrap();
    assert_eq!(error.to_string(), "there is nothing to redo");
}

#[test]
fn a_step_that_is_done_again_is_still_itself() {
    let world = World::new();
    world.set("start");
    // Two runs from the same state: which one is meant is not for the state to say.
    let first = world.run("start");
    let second = world.run("after B");
    let ids = || world.open().unwrap().timeline().unwrap().done.into_iter().map(|step| step.before);
    let before: Vec<_> = ids().collect();
    assert_eq!(before, [first.clone(), second.clone()]);
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Redo).unwrap();
    world.go(&Ask::Redo).unwrap();
    assert_eq!(ids().collect::<Vec<_>>(), before);
}

#[test]
fn edits_after_the_run_are_saved_and_redone() {
    let world = World::new();
    world.set("start");
    world.run("after");
    world.set("after, edited");
    let outcome = world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
    assert_eq!(world.open().unwrap().load(&outcome.saved_as).unwrap().kind, SnapshotKind::PreUndo);
    world.set("start, edited");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after, edited");
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start, edited", "an undo of a redo goes back to what the redo replaced");
}

#[test]
fn an_undo_that_changes_nothing_goes_one_step_back() {
    let world = World::new();
    world.set("start");
    world.run("after");
    world.take(SnapshotKind::Manual);
    let session = world.session();
    let plan = session.plan(&Ask::Undo, &[], &[]).unwrap();
    assert!(plan.is_empty());
    assert_eq!(plan.next.as_ref().unwrap().kind, SnapshotKind::Run);
    session.execute(plan, false).unwrap();
    drop(session);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

#[test]
fn an_unchanged_manual_snapshot_is_not_taken_again() {
    let world = World::new();
    world.set("x");
    let first = world.take(SnapshotKind::Manual);
    let again = world.take(SnapshotKind::Manual);
    assert!(first.new && !again.new);
    assert_eq!(first.snapshot.id, again.snapshot.id);
    world.set("y");
    assert!(world.take(SnapshotKind::Manual).new);
}

#[test]
fn a_restore_is_a_step_that_can_be_undone() {
    let world = World::new();
    world.set("start");
    let first = world.run("after A");
    world.run("after B");
    world.go(&Ask::Restore(first)).unwrap();
    assert_eq!(world.state(), "start");
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "after B");
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "after A");
}

#[test]
fn snapshots_inside_a_run_belong_to_it() {
    let mut world = World::new();
    world.set("start");
    let run = world.take(SnapshotKind::Run).snapshot.id;
    let session = world.session();
    let mark = session.begin_run(&run).unwrap();
    drop(session);
    world.inside = Some(run.to_string());
    world.set("one");
    let one = world.take(SnapshotKind::Manual).snapshot;
    assert_eq!(one.run.as_ref(), Some(&run));
    world.set("two");
    let two = world.take(SnapshotKind::Run).snapshot;
    assert_eq!(two.run.as_ref(), Some(&run));
    let session = world.session();
    assert_eq!(session.plan(&Ask::Undo, &[], &[]).unwrap().running, std::slice::from_ref(&run));
    assert_eq!(session.list().unwrap().0.last().unwrap().state, State::Running);
    drop(session);
    drop(mark);
    world.set("three");
    for expected in ["two", "one", "start"] {
        world.go(&Ask::UndoStep).unwrap();
        assert_eq!(world.state(), expected);
    }
    let (list, _) = world.open().unwrap().list().unwrap();
    assert_eq!(list.last().unwrap().state, State::Interrupted);
}

#[test]
fn a_failed_restore_is_taken_back() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    world.set("start");
    world.run("after");
    *world.fakes.1.fail.lock().unwrap() = 1;
    let error = world.go(&Ask::Undo).err();
    // The other target did not change, so only a change in it makes it fail.
    assert!(error.is_some());
    assert_eq!(world.state(), "after");
    assert_eq!(world.open().unwrap().pending().unwrap(), None);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

#[test]
fn what_cannot_be_taken_back_stays_pending_and_can_be_ended() {
    for (how, state) in
        [(None, "start"), (Some(Recovery::Resume), "start"), (Some(Recovery::TakeBack), "after")]
    {
        let world = World::new();
        world.set("start");
        world.run("after");
        *world.fakes.0.fail.lock().unwrap() = 2;
        let error = world.go(&Ask::Undo).err().unwrap();
        assert!(error.to_string().contains("could not be taken back"), "{error}");
        assert_eq!(world.state(), "half");
        assert!(world.open().unwrap().pending().unwrap().is_some());
        assert_eq!(world.open().unwrap().list().unwrap().0.len(), 2, "reading goes on");
        match &how {
            Some(how) => drop(world.open().unwrap().lock_unrecovered().unwrap().end_pending(how).unwrap()),
            None => drop(world.session()),
        }
        assert_eq!(world.state(), state);
        assert_eq!(world.open().unwrap().pending().unwrap(), None);
        let timeline = world.open().unwrap().timeline().unwrap();
        assert_eq!(timeline.undone.len(), usize::from(state == "start"));
    }
}

#[test]
fn a_target_can_be_abandoned() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    world.set("start");
    world.run("after");
    *world.fakes.1.fail.lock().unwrap() = u32::MAX;
    assert!(world.go(&Ask::Undo).is_err());
    assert!(world.open().unwrap().lock().is_err(), "writing waits for a decision");
    let session = world.open().unwrap().lock_unrecovered().unwrap();
    assert!(session.end_pending(&Recovery::Abandon("nobody".into())).is_err());
    session.end_pending(&Recovery::Abandon("other".into())).unwrap();
    assert_eq!(world.state(), "start");
    drop(session);
    world.session();
}

#[test]
fn a_crash_between_the_timeline_and_the_journal_adds_the_step_once() {
    let world = World::new();
    world.set("start");
    world.run("after");
    let outcome = world.go(&Ask::Undo).unwrap();
    let session = world.session();
    let record = session.timeline().unwrap().last.unwrap();
    let journal = Journal {
        format: Journal::FORMAT,
        to: outcome.restored_to,
        saved: outcome.saved_as,
        targets: vec!["tree".into()],
        only: Vec::new(),
        record,
    };
    journal.begin(&session.env().disk, &session.dir).unwrap();
    let before = session.timeline().unwrap();
    drop(session);
    let after = world.session().timeline().unwrap();
    assert_eq!((before.done, before.undone), (after.done, after.undone));
}

#[test]
fn a_step_that_is_taken_back_late_leaves_the_history_as_it_was() {
    // Killed after the line was added and before the journal was removed.
    for ask in [Ask::Undo, Ask::Redo, Ask::Restore(Id::parse("20260102-030405-0000").unwrap())] {
        let world = World::new();
        world.set("start");
        let first = world.run("after A");
        world.run("after B");
        world.go(&Ask::Undo).unwrap();
        let before = (world.state(), world.open().unwrap().timeline().unwrap());
        let ask = if let Ask::Restore(_) = ask { Ask::Restore(first) } else { ask };
        let outcome = world.go(&ask).unwrap();
        let session = world.session();
        let journal = Journal {
            format: Journal::FORMAT,
            to: outcome.restored_to,
            saved: outcome.saved_as,
            targets: vec!["tree".into()],
            only: Vec::new(),
            record: session.timeline().unwrap().last.unwrap(),
        };
        journal.begin(&session.env().disk, &session.dir).unwrap();
        drop(session);
        world.open().unwrap().lock_unrecovered().unwrap().end_pending(&Recovery::TakeBack).unwrap();
        let after = (world.state(), world.open().unwrap().timeline().unwrap());
        assert_eq!(before.0, after.0, "{ask:?}");
        let next = |t: &Timeline| t.done.last().map(|step| step.kind);
        assert_eq!(next(&before.1), next(&after.1), "{ask:?}");
        world.go(&Ask::Undo).unwrap();
        assert_eq!(world.state(), "start", "{ask:?}");
        world.go(&Ask::Redo).unwrap();
        assert_eq!(world.state(), "after A", "{ask:?}");
    }
}

#[test]
fn a_store_that_was_never_finished_is_finished() {
    let world = World::new();
    world.set("start");
    for unfinished in [&[][..], &["packs"], &["packs", "tmp", "snapshots"]] {
        let _ = fs::remove_dir_all(world.root.join(".snapback"));
        let _ = fs::remove_dir_all(world.temp.path().join("state"));
        fs::create_dir(world.root.join(".snapback")).unwrap();
        for sub in unfinished {
            fs::create_dir(world.root.join(".snapback").join(sub)).unwrap();
        }
        assert!(world.open().unwrap().list().unwrap().0.is_empty());
        world.run("after");
        world.go(&Ask::Undo).unwrap();
        assert_eq!(world.state(), "start");
    }
}

#[test]
fn chosen_things_come_back_one_after_another() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    world.set("start");
    world.run("after");
    *world.fakes.1.state.lock().unwrap() = "other, changed".into();
    for (name, changed) in [("tree", 1), ("other", 1)] {
        let session = world.session();
        let plan = session.plan(&Ask::Undo, &[name.to_owned()], &[]).unwrap();
        assert_eq!(plan.changes.len(), changed, "{name}");
        session.execute(plan, false).unwrap();
    }
    assert_eq!((world.state().as_str(), world.fakes.1.state.lock().unwrap().as_str()), ("start", ""));
}

#[test]
fn a_project_that_a_run_moves_keeps_its_history() {
    let mut world = World::new();
    world.set("start");
    let session = world.session();
    let id = session
        .take(Request {
            kind: SnapshotKind::Run,
            message: None,
            command: None,
            pinned: false,
            selection: Selection::default(),
        })
        .unwrap()
        .snapshot
        .id;
    let project = session.unlock();
    world.set("after");
    let moved = world.temp.path().join("moved");
    fs::rename(&world.root, &moved).unwrap();
    let session = project.lock().unwrap();
    assert_eq!(session.root(), moved);
    session.end_run(&id, 0).unwrap();
    drop(session);
    assert!(!world.root.exists(), "nothing is made where the project was");
    world.root = moved;
    assert_eq!(world.open().unwrap().list().unwrap().0[0].state, State::Ended);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

#[test]
fn what_is_no_file_is_no_configuration() {
    let world = World::new();
    let path = world.root.join("snapback.toml");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(world.open().unwrap().config().unwrap_err().to_string().ends_with("is not a regular file"));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert!(world.open().unwrap().config().unwrap_err().to_string().ends_with("is a link to nothing"));
    fs::remove_file(&path).unwrap();
    assert!(world.open().unwrap().config().is_ok());
}

#[test]
fn old_snapshots_go_and_what_undo_needs_stays() {
    let mut world = World::new();
    world.user.retention.keep = 3;
    for n in 0..6 {
        world.set(&n.to_string());
        world.run(&format!("after {n}"));
    }
    assert_eq!(world.open().unwrap().ids().unwrap().len(), 3);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "5");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after 5");
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "4");
    assert_eq!(world.open().unwrap().ids().unwrap().len(), 3);
    assert!(world.go(&Ask::Undo).is_err(), "older steps went with their snapshots");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "5");
}

#[test]
fn a_forgotten_snapshot_is_gone_from_the_list_and_the_timeline() {
    let world = World::new();
    world.set("secret");
    let first = world.run("clean");
    world.run("later");
    world.session().forget(&first).unwrap();
    let project = world.open().unwrap();
    assert!(!project.ids().unwrap().contains(&first));
    assert_eq!(project.timeline().unwrap().done.len(), 1);
    let secret = crate::object::Key::of(ObjectKind::Blob, b"secret");
    assert!(!project.need_store().unwrap().contains(&secret).unwrap());
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "clean");
}

#[test]
fn a_damaged_record_leaves_the_others_listed() {
    let world = World::new();
    world.set("a");
    let first = world.run("b");
    world.run("c");
    let meta = world.temp.path().join("project/.snapback/snapshots").join(first.as_str()).join("meta.json");
    let mut bytes = fs::read(&meta).unwrap();
    bytes[100] ^= 1;
    fs::remove_file(&meta).unwrap();
    fs::write(&meta, bytes).unwrap();
    let (whole, damaged) = world.open().unwrap().list().unwrap();
    assert_eq!((whole.len(), damaged.len()), (1, 1));
    assert_eq!(damaged[0].id, first);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "b");
    assert_eq!(world.go(&Ask::Undo).err().unwrap().kind(), Kind::Corrupt);
}

#[test]
fn backends_and_settings_that_do_not_exist_are_named_with_their_line() {
    let message = |config: &str| {
        let error = World::with(config).open().unwrap().config().err().unwrap();
        format!("{error} | {}", error.hint_text().unwrap_or(""))
    };
    assert_eq!(
        message("[[target]]\nname = \"x\"\nbackend = \"othr\"\n"),
        "snapback.toml, line 3: there is no backend `othr` | did you mean `other`?"
    );
    assert_eq!(
        message("[[target]]\nbackend = \"other\"\npth = \"x\"\n"),
        "snapback.toml, line 3: the backend `other` has no setting `pth` | did you mean `path`?"
    );
}

/// Removes parts of the project as a command might, and undoes.
fn undo_after(remove: impl Fn(&Path)) -> World {
    let world = World::new();
    world.set("start");
    world.run("after A");
    world.run("after B");
    remove(&world.temp.path().join("project"));
    assert_eq!(world.open().unwrap().list().unwrap().0.len(), 2, "reading needs no store in the project");
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "after A");
    let store = world.temp.path().join("project/.snapback");
    assert!(Store::open(&store, Disk::default()).is_ok(), "the store is there again");
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after A");
    assert!(world.open().unwrap().verify().unwrap().is_whole());
    world
}

#[test]
fn the_history_outlives_the_store_and_the_project() {
    undo_after(|project| fs::remove_dir_all(project.join(".snapback")).unwrap());
    undo_after(|project| fs::remove_dir_all(project).unwrap());
    undo_after(|project| fs::remove_dir_all(project.join(".snapback/packs")).unwrap());
    undo_after(|project| fs::remove_dir_all(project.join(".snapback/snapshots")).unwrap());
    undo_after(|project| fs::remove_file(project.join(".snapback/format")).unwrap());
    undo_after(|project| fs::remove_file(project.join(".snapback/timeline")).unwrap());
}

#[test]
fn what_is_dropped_is_gone_from_the_twin_as_well() {
    let world = World::new();
    world.set("secret");
    let first = world.run("clean");
    world.run("later");
    world.session().forget(&first).unwrap();
    fs::remove_dir_all(world.temp.path().join("project/.snapback")).unwrap();
    let session = world.session();
    assert_eq!(session.ids().unwrap().len(), 1);
    let secret = crate::object::Key::of(ObjectKind::Blob, b"secret");
    assert!(!session.need_store().unwrap().contains(&secret).unwrap());
}

#[test]
fn a_copied_project_and_its_original_do_not_share_a_twin() {
    let mut world = World::new();
    world.set("start");
    world.run("after");
    let project = world.temp.path().join("project");
    let copy = world.temp.path().join("copy");
    let status = std::process::Command::new("cp").arg("-a").args([&project, &copy]).status();
    assert!(status.unwrap().success());
    let id = |root: &Path| fs::read_to_string(root.join(".snapback/id")).unwrap();
    assert_eq!(id(&project), id(&copy));
    world.root = copy.clone();
    world.go(&Ask::Undo).unwrap();
    assert_ne!(id(&project), id(&copy));
    world.set("after");
    world.root = project.clone();
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
    // A moved one keeps its history and its identity.
    let before = id(&project);
    let moved = world.temp.path().join("moved");
    fs::rename(&project, &moved).unwrap();
    world.root = moved.clone();
    world.go(&Ask::Redo).unwrap();
    assert_eq!((world.state().as_str(), id(&moved)), ("after", before));
    fs::remove_dir_all(moved.join(".snapback")).unwrap();
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

#[test]
fn what_another_command_is_dropping_is_not_brought_back() {
    struct Waiting(std::sync::mpsc::SyncSender<()>);
    impl Report for Waiting {
        fn waiting(&self, _why: &str) {
            self.0.send(()).unwrap();
        }
    }
    let world = World::new();
    let (kept, dropped) = (world.run("A"), world.run("B"));
    let holder = world.session();
    // The other command has dropped it from the store, and not yet from the twin.
    fs::remove_dir_all(world.root.join(STORE).join("snapshots").join(dropped.as_str())).unwrap();
    let (send, waits) = std::sync::mpsc::sync_channel(1);
    let mut env = world.open().unwrap().env;
    env.report = Arc::new(Waiting(send));
    let ids = std::thread::scope(|scope| {
        let other = scope.spawn(|| Project::open(env).unwrap().lock().unwrap().ids().unwrap());
        waits.recv().unwrap();
        holder.mirror_removal().unwrap();
        drop(holder);
        other.join().unwrap()
    });
    assert_eq!(ids, [kept]);
}

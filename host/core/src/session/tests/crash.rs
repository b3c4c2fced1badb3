//! Every operation of every command fails, is the last one before the process is killed,
//! or the last one before the power goes: the next command makes the tree as it was
//! before or as it was to be, the store is whole, a second try succeeds, and what was
//! committed can be gone back to.

use super::trees::{Deed, Ground, State, go};
use super::*;
use crate::disk::{FailAt, PowerCut};
use rustix::io::Errno;
use snapback_tests::say;
use std::ops::Range;

/// At most so many cases are shown.
const SHOWN: usize = 12;

/// What may be found after a deed that was cut short.
struct Expected {
    deed: Deed,
    before: State,
    after: State,
    /// Snapshots that were there before and are after it, and what they hold.
    stored: Vec<(Id, State)>,
    /// How many steps can be undone and redone after it.
    steps: (usize, usize),
}

impl Expected {
    /// What `deed` does when nothing goes wrong. The place is as before afterwards.
    fn of(deed: Deed, ground: &Ground) -> Self {
        let there = ground.reading().ids().unwrap();
        let before = ground.state();
        deed.act(ground, &Disk::default().with_sync(false)).unwrap();
        let (after, steps) = (ground.state(), steps(ground));
        let mut stored = Vec::new();
        for id in ground.reading().ids().unwrap().into_iter().filter(|id| there.contains(id)) {
            go(&ground.reading().lock().unwrap(), &Ask::Restore(id.clone())).unwrap();
            stored.push((id, ground.state()));
        }
        ground.again();
        Self { deed, before, after, stored, steps }
    }

    /// Whether `ground` recovers by itself; else what is wrong. With `first`, by another
    /// command before the same one is given again.
    fn check(&self, ground: &Ground, first: bool) -> Result<(), String> {
        ground.troubles();
        make_whole(ground)?;
        if first {
            drop(ground.reading().lock().map_err(|error| format!("no command can go on: {error}"))?);
            let state = ground.state();
            if state != self.before && state != self.after {
                return Err(format!("it is neither as before nor as after: {state:#?}"));
            }
        }
        // An undo that is over and was not only cut short is not given again: that is one more.
        let is_step = matches!(self.deed, Deed::Undo | Deed::Redo);
        let over = ground.state() == self.after
            && steps(ground) == self.steps
            && ground.reading().pending().map_err(|error| error.to_string())?.is_none();
        if !(is_step && over) {
            let again = self.deed.act(ground, &Disk::default());
            same("refused", &again.map_err(|error| format!("a second try fails: {error}"))?, &0)?;
        }
        same("after a second try", &ground.state(), &self.after)?;
        // A run that was cut short is one more step.
        if self.deed != Deed::Run {
            same("steps", &steps(ground), &self.steps)?;
        }
        make_whole(ground)?;
        for (id, want) in &self.stored {
            let gone = ground.reading().lock().and_then(|session| go(&session, &Ask::Restore(id.clone())));
            gone.map_err(|error| format!("{id} is lost: {error}"))?;
            same("an earlier snapshot", &ground.state(), want)?;
        }
        same("troubles", &ground.troubles(), &Vec::new())?;
        same("left over", &left_over(ground), &Vec::new())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, should: &T) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("{what}: {is:?}, should be {should:?}")) }
}

/// What went wrong, case by case.
#[derive(Default)]
struct Wrong {
    cases: u64,
    wrong: Vec<String>,
}

impl Wrong {
    fn note(&mut self, case: impl FnOnce() -> String, done: Result<(), String>) {
        self.cases += 1;
        if let Err(how) = done {
            self.wrong.push(format!("{}: {how}", case()));
        }
    }
}

impl Drop for Wrong {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let first = self.wrong.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
            assert!(self.wrong.is_empty(), "{} of {} went wrong:\n{first}", self.wrong.len(), self.cases);
        }
    }
}

/// A state without modes.
fn content(state: &State) -> Vec<(&Path, String)> {
    let without = |what: &str| {
        let words = what.split(' ').enumerate().filter(|(at, _)| *at != 1 || what.starts_with("link"));
        words.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    };
    state.iter().map(|(path, what)| (&**path, without(what))).collect()
}

fn steps(ground: &Ground) -> (usize, usize) {
    let timeline = ground.reading().timeline().unwrap();
    (timeline.done.len(), timeline.undone.len())
}

/// Looks whether everything in the store is whole, but for what can be made again, and
/// makes that again.
fn make_whole(ground: &Ground) -> Result<(), String> {
    let project = ground.reading();
    if project.store().is_none() {
        return Ok(());
    }
    let found = project.verify().map_err(|error| error.to_string())?;
    if found.is_whole() {
        return Ok(());
    }
    let only_index = found.problems.iter().all(|error| error.message().starts_with("the index"));
    let records = found.records.len() + found.timeline + usize::from(found.journal.is_some());
    if !only_index || !found.concerned.is_empty() || records > 0 {
        return Err(format!("the store is damaged: {found:?}"));
    }
    let mended = project.lock_unrecovered().and_then(|session| session.mend(&found));
    mended.map_err(|error| error.to_string())?;
    let whole = ground.reading().verify().is_ok_and(|found| found.is_whole());
    if whole { Ok(()) } else { Err("the index is not made again".into()) }
}

/// What a command left in the store and should have removed.
fn left_over(ground: &Ground) -> Vec<String> {
    let store = ground.project().join(STORE);
    let mut left = Vec::new();
    let names = |dir: &Path| -> Vec<_> {
        fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    };
    let aside = names(&store.join("aside")).into_iter().flat_map(|dir| names(&dir));
    let all = aside.chain(["tmp", "saved"].iter().flat_map(|dir| names(&store.join(dir))));
    let hidden = ["packs", "snapshots"].iter().flat_map(|dir| names(&store.join(dir)));
    let hidden = hidden.filter(|path| path.file_name().unwrap().as_encoded_bytes()[0] == b'.');
    left.extend(all.chain(hidden).map(|path| path.display().to_string()));
    left
}

/// Tries `each` of `deeds`, and says how many crash points these had: at least `least`, since a
/// deed that does nothing has none.
fn try_all(what: &str, deeds: &[Deed], least: u64, each: impl Fn(Deed) -> u64) {
    let points: u64 = deeds.iter().map(|deed| each(*deed)).sum();
    say(&format!("{points} crash points: {what} in {deeds:?}"));
    assert!(points >= least, "only {points} crash points: {what} in {deeds:?}");
}

/// What each operation fails with.
const ERRORS: [Errno; 3] = [Errno::IO, Errno::NOSPC, Errno::ACCESS];

/// The n-th operation of `deed` fails, for every n; how many cases that were.
fn fails(deed: Deed) -> u64 {
    let ground = deed.prepare();
    let expected = Expected::of(deed, &ground);
    let all = deed.operations(&ground);
    assert!(all >= 15, "{deed:?} takes {all} operations");
    let (mut failed, mut wrong) = (0, Wrong::default());
    for (n, errno) in (0..all).flat_map(|n| ERRORS.map(|errno| (n, errno))) {
        ground.again();
        let hook = Arc::new(FailAt::new(n, errno.raw_os_error(), false));
        let done = deed.act(&ground, &Disk::default().with_hook(hook.clone()));
        if !hook.reached() {
            // The cache of what was seen is written when its clock has moved on: now it had not.
            continue;
        }
        let told = match done {
            Ok(0) => same("done", &ground.state(), &expected.after),
            // An attribute that could not be given is told, and is no failure.
            Ok(_) => {
                let done = same("content", &content(&ground.state()), &content(&expected.after));
                wrong.note(|| format!("{deed:?}, operation {n} of {all} fails with {errno}"), done);
                continue;
            }
            Err(error) => {
                failed += 1;
                let is_sentence = error.message().contains("could not");
                if is_sentence { Ok(()) } else { Err(format!("it is told as: {error}")) }
            }
        };
        let done = told.and_then(|()| expected.check(&ground, n.is_multiple_of(2)));
        wrong.note(|| format!("{deed:?}, operation {n} of {all} fails with {errno}"), done);
    }
    assert!(failed > 3 * all / 4, "{failed} of three times {all} were told");
    wrong.cases
}

/// Nothing works any more from the n-th operation of `deed` on, for every n: as if the
/// process had been killed; how many cases that were.
fn is_killed(deed: Deed) -> u64 {
    let ground = deed.prepare();
    let expected = Expected::of(deed, &ground);
    let all = deed.operations(&ground);
    let mut wrong = Wrong::default();
    for n in 0..all {
        ground.again();
        let hook = Arc::new(FailAt::new(n, Errno::IO.raw_os_error(), true));
        let _ = deed.act(&ground, &Disk::default().with_hook(hook));
        // What is kept outside may be behind: it is read only where something else removed
        // what the store had.
        let outlived = ground.reading().outlived().map(Path::to_owned);
        let done = same("the history is read from", &outlived, &None)
            .and_then(|()| expected.check(&ground, !n.is_multiple_of(2)));
        wrong.note(|| format!("{deed:?}, killed at operation {n} of {all}"), done);
    }
    wrong.cases
}

/// The power goes after the n-th operation of `deed`, for every n: what was not synced is
/// lost, or kept in part; how many cases that were.
fn loses_power(deed: Deed, seeds: Range<u64>) -> u64 {
    let ground = deed.prepare();
    let expected = Expected::of(deed, &ground);
    let cut = Arc::new(PowerCut::new(&ground.place()).unwrap());
    deed.act(&ground, &Disk::default().with_hook(cut.clone())).unwrap();
    let all = cut.operations();
    let mut wrong = Wrong::default();
    for n in 0..=all {
        for seed in seeds.clone() {
            ground.left(|place| cut.leave(n, seed, place).unwrap());
            let done = expected.check(&ground, (n as u64 + seed).is_multiple_of(2));
            wrong.note(|| format!("{deed:?}, power cut after operation {n} of {all}, seed {seed}"), done);
        }
    }
    wrong.cases
}

/// What is lost in a power cut, in so many ways; `SNAPBACK_SEEDS` (from..to) asks for others.
fn seeds() -> Range<u64> {
    let asked = std::env::var("SNAPBACK_SEEDS").ok();
    let range = asked.as_deref().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    range.unwrap_or(0..3)
}

/// How many ways that are.
fn ways() -> u64 {
    seeds().end - seeds().start
}

/// The power goes, in as many ways as are asked for.
fn power(deed: Deed) -> u64 {
    loses_power(deed, seeds())
}

#[test]
fn whatever_fails_a_snapshot_is_there_or_not() {
    try_all("an operation fails", &[Deed::First, Deed::Snap, Deed::Run], 400, fails);
}

#[test]
fn whatever_fails_an_undo_is_done_or_not() {
    try_all("an operation fails", &[Deed::Undo], 200, fails);
}

#[test]
fn whatever_fails_a_redo_or_a_restore_is_done_or_not() {
    try_all("an operation fails", &[Deed::Redo, Deed::Restore], 400, fails);
}

#[test]
fn whatever_fails_when_space_is_given_back_nothing_needed_is_lost() {
    try_all("an operation fails", &[Deed::Retain, Deed::Gc, Deed::Forget], 400, fails);
}

#[test]
fn killed_anywhere_a_command_is_finished_or_forgotten() {
    try_all("it is killed", &Deed::ALL, 500, is_killed);
}

#[test]
fn when_the_power_goes_a_snapshot_is_there_or_not() {
    try_all("the power goes", &[Deed::First, Deed::Snap, Deed::Run], 120 * ways(), power);
}

#[test]
fn when_the_power_goes_a_restore_is_done_or_not() {
    try_all("the power goes", &[Deed::Undo, Deed::Redo, Deed::Restore], 200 * ways(), power);
}

#[test]
fn when_the_power_goes_while_space_is_given_back_nothing_needed_is_lost() {
    try_all("the power goes", &[Deed::Retain, Deed::Gc, Deed::Forget], 120 * ways(), power);
}

#[test]
fn when_the_power_goes_a_record_is_dropped_in_both_places_or_in_none() {
    // One in which the record outside was half there.
    try_all("the power goes", &[Deed::Retain], 50, |deed| loses_power(deed, 6..7));
}

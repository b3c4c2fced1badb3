//! The laws, each as a trial.

use super::{Outcome, Trial, Verdict, World};
use crate::component::{FAULT, How};
use snapback_core::backend::{Cancel, Part};
use snapback_core::error::{Error, Kind, Result};
use std::thread;
use std::time::Duration;

/// After these times, in milliseconds, a restore is told to stop, whatever it is doing.
const TIMES: [u64; 2] = [3, 20];

/// At so many places in a call it is ended, beside its first call of the host.
const ENDS: u64 = 9;
/// At no more places than these it is ended in both ways.
const FEW: usize = 4;

const DENIED: &str = "without a setting that opens something it fails, and does nothing worse";

// The laws for which the state must be known.
const LEAVES: &str = "a snapshot leaves the state as it was";
const RESTORES: &str = "a restore brings back what was stored";
const TWICE: &str = "a second restore changes nothing";
const OLDER: &str = "older states come back after newer ones";
const CHANGED: &str = "what changed in between is left alone";
const LETS_GO: &str = "what it holds outside the store goes, and no second time";
const CUT: &str = "a restore that was cut short is completed by the next";
const CUT_SNAPSHOT: &str = "a snapshot that was cut short leaves the state as it was";

/// One law about the state: what it says, and how it is tried.
type Law = (&'static str, fn(&Trial, &mut dyn World) -> Result<(), Fault>);

/// In the order in which one builds on another.
const ABOUT_THE_STATE: [Law; 7] = [
    (LEAVES, leaves),
    (RESTORES, |trial, world| comes_back(trial, world, 1)),
    (TWICE, |trial, world| comes_back(trial, world, 2)),
    (OLDER, older),
    (CHANGED, changed_in_between),
    (CUT, completes),
    (CUT_SNAPSHOT, touches_nothing),
];

/// A row of laws.
pub(super) struct Suite<'a> {
    trial: &'a Trial,
    verdicts: Vec<Verdict>,
}

/// What keeps one law from being kept: the component's doing, or the author's commands'.
enum Fault {
    Broken(String),
    Unchecked(String),
    Commands(Error),
}

/// Of something that the component was asked for.
fn of<T>(result: Result<T>, doing: &str) -> Result<T, Fault> {
    result.map_err(|error| Fault::Broken(format!("{doing} failed: {error}")))
}

impl<'a> Suite<'a> {
    pub(super) fn new(trial: &'a Trial) -> Self {
        Self { trial, verdicts: Vec::new() }
    }

    pub(super) fn run(mut self, world: Option<&mut dyn World>) -> Result<Vec<Verdict>> {
        let trial = self.trial;
        self.law("it says the same about itself each time", || {
            let [first, second] = &trial.said;
            if first == second { Ok(()) } else { Err(Fault::Broken("two manifests differ".into())) }
        })?;
        if let Some(why) = trial.missing() {
            // A component that is not given what it cannot do without has done nothing wrong.
            self.unchecked(&ABOUT_THE_STATE.map(|(law, _)| law), &why);
            self.unchecked(&[DENIED], &why);
            if trial.releases() {
                self.unchecked(&[LETS_GO], &why);
            }
            return Ok(self.verdicts);
        }
        match world {
            None => {
                let why = "the settings file has no `[test]` with `setup`, `change` and `probe`";
                self.unchecked(&ABOUT_THE_STATE.map(|(law, _)| law), why);
            }
            Some(world) => self.with(world)?,
        }
        self.law(DENIED, || denied(trial))?;
        // Last, for it is what cleans up.
        if let Some(first) = trial.discard() {
            self.law(LETS_GO, || {
                of(first, "letting go")?;
                of(trial.discard().unwrap_or(Ok(())), "letting go of what is gone")
            })?;
        }
        Ok(self.verdicts)
    }

    /// Those for which the state must be known. One that was not kept may have left any state
    /// behind, so the next begins with the first one again.
    fn with(&mut self, world: &mut dyn World) -> Result<()> {
        let trial = self.trial;
        world.set_up()?;
        for (at, (law, check)) in ABOUT_THE_STATE.into_iter().enumerate() {
            self.law(law, || check(trial, world))?;
            let is_kept = self.verdicts.last().is_some_and(|verdict| verdict.outcome == Outcome::Kept);
            if !is_kept && let Err(error) = world.set_up() {
                let rest: Vec<_> = ABOUT_THE_STATE[at + 1..].iter().map(|(law, _)| *law).collect();
                self.unchecked(&rest, &format!("the state could not be set up again: {error}"));
                break;
            }
        }
        Ok(())
    }

    fn unchecked(&mut self, laws: &[&'static str], why: &str) {
        let outcome = || Outcome::Unchecked(why.to_owned());
        self.verdicts.extend(laws.iter().map(|law| Verdict { law, outcome: outcome() }));
    }

    fn law(&mut self, law: &'static str, check: impl FnOnce() -> Result<(), Fault>) -> Result<()> {
        let outcome = match check() {
            Ok(()) => Outcome::Kept,
            Err(Fault::Broken(how)) => Outcome::Broken(how),
            Err(Fault::Unchecked(why)) => Outcome::Unchecked(why),
            Err(Fault::Commands(error)) => return Err(error),
        };
        self.verdicts.push(Verdict { law, outcome });
        Ok(())
    }
}

/// A state that was stored, and what it looks like.
struct Stored {
    parts: Vec<Part>,
    looks: String,
}

impl Stored {
    fn of(trial: &Trial, world: &mut dyn World) -> Result<Self, Fault> {
        let parts = of(trial.snapshot(&[]), "a snapshot")?;
        Ok(Self { parts, looks: world.probe().map_err(Fault::Commands)? })
    }
}

/// The state after a change from `before`, stored.
fn changed(trial: &Trial, world: &mut dyn World, which: usize, before: &Stored) -> Result<Stored, Fault> {
    world.change(which).map_err(Fault::Commands)?;
    let now = Stored::of(trial, world)?;
    if now.looks == before.looks {
        let why = format!("`probe` sees nothing of change {}", which + 1);
        return Err(Fault::Unchecked(why));
    }
    Ok(now)
}

/// Whether the state is the same after snapshots.
fn leaves(trial: &Trial, world: &mut dyn World) -> Result<(), Fault> {
    let before = world.probe().map_err(Fault::Commands)?;
    let parts = of(trial.snapshot(&[]), "a snapshot")?;
    of(trial.snapshot(&parts), "a second snapshot")?;
    is(world, &before, "after two snapshots")
}

/// Whether states come back in whatever order.
fn older(trial: &Trial, world: &mut dyn World) -> Result<(), Fault> {
    let (first, second, third) = three(trial, world)?;
    for (to, from) in [(&second, &third), (&first, &second), (&third, &first), (&first, &third)] {
        of(trial.restore(&to.parts, &from.parts, &Cancel::default()), "a restore")?;
        is(world, &to.looks, "after a restore")?;
    }
    Ok(())
}

/// Whether what nobody captured is refused, and left alone.
fn changed_in_between(trial: &Trial, world: &mut dyn World) -> Result<(), Fault> {
    let (first, second, third) = three(trial, world)?;
    match trial.restore(&first.parts, &second.parts, &Cancel::default()) {
        Err(error) if error.kind() == Kind::Changed => is(world, &third.looks, "after it was refused")?,
        Err(error) => return Err(Fault::Broken(format!("it failed otherwise: {error}"))),
        Ok(0) => {
            let why = "a restore over a state that nobody had captured was done without a word";
            return Err(Fault::Broken(why.into()));
        }
        Ok(_) => {}
    }
    let current = of(trial.snapshot(&[]), "a snapshot")?;
    of(trial.restore(&first.parts, &current, &Cancel::default()), "a restore")?;
    is(world, &first.looks, "after a restore")
}

/// Whether a restore that ended in its middle, in one way or the other, is completed.
fn completes(trial: &Trial, world: &mut dyn World) -> Result<(), Fault> {
    comes_back(trial, world, 1)?;
    let calls = trial.cut().seen();
    let mut cuts = Cuts::default();
    let mut one = |end: Option<(u64, bool)>, time: Option<u64>| {
        let stored = Stored::of(trial, world)?;
        let current = changed(trial, world, 0, &stored)?;
        let cancel = Cancel::default();
        arm(trial, end, &cancel);
        let stopper = time.map(|after| {
            let stop = cancel.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(after));
                stop.cancel();
            })
        });
        let done = trial.restore(&stored.parts, &current.parts, &cancel);
        // A thread that sleeps and stores a flag does not fail.
        stopper.into_iter().for_each(|stopper| drop(stopper.join()));
        let was_cut = trial.cut().hit()
            || time.is_some() && done.as_ref().is_err_and(|error| error.kind() == Kind::Cancelled);
        match done {
            Err(error) if !was_cut => {
                return Err(Fault::Broken(format!("told to stop it failed otherwise: {error}")));
            }
            _ => cuts.count(end, was_cut),
        }
        of(trial.restore(&stored.parts, &current.parts, &Cancel::default()), "the next restore")?;
        is(world, &stored.looks, "after the next restore")
    };
    ends(calls).into_iter().try_for_each(|end| one(Some(end), None))?;
    TIMES.into_iter().try_for_each(|after| one(None, Some(after)))?;
    cuts.really("restore", calls)
}

/// Whether a snapshot that ended in its middle changed nothing.
fn touches_nothing(trial: &Trial, world: &mut dyn World) -> Result<(), Fault> {
    let looks = Stored::of(trial, world)?.looks;
    let calls = trial.cut().seen();
    let mut cuts = Cuts::default();
    for end in ends(calls) {
        let cancel = Cancel::default();
        arm(trial, Some(end), &cancel);
        let done = trial.snapshot_until(&cancel);
        if let Err(error) = done.as_ref()
            && !trial.cut().hit()
        {
            return Err(Fault::Broken(format!("told to stop it failed otherwise: {error}")));
        }
        cuts.count(Some(end), trial.cut().hit());
        is(world, &looks, "after a snapshot that was cut short")?;
    }
    of(trial.snapshot(&[]), "the next snapshot")?;
    is(world, &looks, "after the next snapshot")?;
    cuts.really("snapshot", calls)
}

/// Where a call that calls the host so often is ended, and whether as if it gave up: in turns;
/// in both ways at each place, where there are few.
fn ends(calls: u64) -> Vec<(u64, bool)> {
    let mut at: Vec<u64> = (1..=ENDS).map(|part| calls * part / (ENDS + 1)).collect();
    at.insert(0, 1);
    at.retain(|at| (1..calls.max(2)).contains(at));
    at.dedup();
    if at.len() <= FEW {
        return at.into_iter().flat_map(|at| [(at, true), (at, false)]).collect();
    }
    at.into_iter().enumerate().map(|(number, at)| (at, number % 2 == 0)).collect()
}

fn arm(trial: &Trial, end: Option<(u64, bool)>, cancel: &Cancel) {
    if let Some((at, gives_up)) = end {
        trial.cut().next(at, if gives_up { How::GaveUp } else { How::Asked(cancel.clone()) });
    }
}

/// How often calls were really ended in their middle, in each way.
#[derive(Default)]
struct Cuts {
    /// As if the component gave up.
    gave_up: u32,
    /// As if the user asked.
    asked: u32,
}

impl Cuts {
    /// One that was to be ended at `end`, or after a time, and `was_cut` or not.
    fn count(&mut self, end: Option<(u64, bool)>, was_cut: bool) {
        let number =
            if end.is_some_and(|(_, gives_up)| gives_up) { &mut self.gave_up } else { &mut self.asked };
        *number += u32::from(was_cut);
    }

    /// That both ways were tried: what is over before it can be stopped proves nothing.
    fn really(&self, what: &str, calls: u64) -> Result<(), Fault> {
        let way = match (self.gave_up, self.asked) {
            (0, 0) => "",
            (0, _) => " as if the component gave up",
            (_, 0) => " as if the user asked",
            _ => return Ok(()),
        };
        let why = format!(
            "no {what} could be cut short{way}: it is over as soon as it has begun (calls of the host: {calls})"
        );
        Err(Fault::Unchecked(why))
    }
}

/// Three states, each after another change.
fn three(trial: &Trial, world: &mut dyn World) -> Result<(Stored, Stored, Stored), Fault> {
    if world.changes() < 2 {
        return Err(Fault::Unchecked("two commands that change the state are needed".into()));
    }
    let first = Stored::of(trial, world)?;
    let second = changed(trial, world, 0, &first)?;
    let third = changed(trial, world, 1, &second)?;
    Ok((first, second, third))
}

/// Whether a changed state is the stored one after as many restores.
fn comes_back(trial: &Trial, world: &mut dyn World, restores: usize) -> Result<(), Fault> {
    let stored = Stored::of(trial, world)?;
    let current = changed(trial, world, 0, &stored)?;
    for _ in 0..restores {
        of(trial.restore(&stored.parts, &current.parts, &Cancel::default()), "a restore")?;
        is(world, &stored.looks, "after a restore")?;
    }
    Ok(())
}

/// Whether the state looks as it should.
fn is(world: &mut dyn World, wanted: &str, when: &str) -> Result<(), Fault> {
    let now = world.probe().map_err(Fault::Commands)?;
    if now == wanted {
        return Ok(());
    }
    let cut = |text: &str| text.trim().chars().take(200).collect::<String>();
    Err(Fault::Broken(format!("{when} `probe` says {:?}, not {:?}", cut(&now), cut(wanted))))
}

fn denied(trial: &Trial) -> Result<(), Fault> {
    if !trial.manifest().settings.iter().any(|setting| setting.kind.is_authority()) {
        return Ok(());
    }
    let granted = trial.granted();
    if granted.is_empty() {
        return Err(Fault::Unchecked("no setting that opens something was given".into()));
    }
    for key in granted {
        if let Err(error) = trial.snapshot_without(&key)
            && error.hint_text() == Some(FAULT)
        {
            return Err(Fault::Broken(format!("without `{key}` it gave up instead of failing: {error}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_ended_in_both_ways_and_never_behind_its_last_call_of_the_host() {
        assert_eq!(ends(1), [(1, true), (1, false)]);
        for calls in 2..500 {
            let ends = ends(calls);
            for way in [true, false] {
                assert!(ends.iter().any(|(_, gives_up)| *gives_up == way), "{calls}: {ends:?}");
            }
            assert!(ends.iter().all(|(at, _)| (1..calls).contains(at)), "{calls}: {ends:?}");
        }
    }

    #[test]
    fn what_was_ended_in_one_way_alone_is_not_called_kept() {
        let why = |gave_up, asked| match (Cuts { gave_up, asked }).really("restore", 3) {
            Err(Fault::Unchecked(why)) => why,
            Ok(()) => String::new(),
            _ => panic!("it blames nobody"),
        };
        assert_eq!(why(1, 1), "");
        assert!(why(0, 0).contains("cut short:"));
        assert!(why(0, 2).contains("as if the component gave up"));
        assert!(why(2, 0).contains("as if the user asked"));
        let mut cuts = Cuts::default();
        cuts.count(Some((1, true)), true);
        cuts.count(Some((1, false)), false);
        cuts.count(None, true);
        assert_eq!((cuts.gave_up, cuts.asked), (1, 1));
    }
}

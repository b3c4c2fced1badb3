//! The laws, each as a trial.

use super::{Outcome, Trial, Verdict, World};
use crate::component::FAULT;
use snapback_core::backend::{Cancel, Part};
use snapback_core::error::{Error, Kind, Result};
use std::thread;
use std::time::Duration;

/// After these times, in milliseconds, a restore is told to stop.
const STOPS: [u64; 5] = [0, 1, 3, 10, 40];

const DENIED: &str = "without a setting that opens something it fails, and does nothing worse";

// The laws for which the state must be known.
const LEAVES: &str = "a snapshot leaves the state as it was";
const RESTORES: &str = "a restore brings back what was stored";
const TWICE: &str = "a second restore changes nothing";
const OLDER: &str = "older states come back after newer ones";
const CHANGED: &str = "what changed in between is left alone";
const LETS_GO: &str = "what it holds outside the store goes, and no second time";
const CUT: &str = "a restore that was cut short is completed by the next";

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
            self.unchecked(&[LEAVES, RESTORES, TWICE, OLDER, CHANGED, CUT, DENIED], &why);
            if trial.releases() {
                self.unchecked(&[LETS_GO], &why);
            }
            return Ok(self.verdicts);
        }
        match world {
            None => {
                let why = "the settings file has no `[test]` with `setup`, `change` and `probe`";
                self.unchecked(&[LEAVES, RESTORES, TWICE, OLDER, CHANGED, CUT], why);
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

    /// Those for which the state must be known.
    fn with(&mut self, world: &mut dyn World) -> Result<()> {
        let trial = self.trial;
        world.set_up()?;
        self.law(LEAVES, || {
            let before = world.probe().map_err(Fault::Commands)?;
            let parts = of(trial.snapshot(&[]), "a snapshot")?;
            of(trial.snapshot(&parts), "a second snapshot")?;
            is(world, &before, "after two snapshots")
        })?;
        self.law(RESTORES, || comes_back(trial, world, 1))?;
        self.law(TWICE, || comes_back(trial, world, 2))?;
        self.law(OLDER, || {
            if world.changes() < 2 {
                return Err(Fault::Unchecked("two commands that change the state are needed".into()));
            }
            let first = Stored::of(trial, world)?;
            let second = changed(trial, world, 0, &first)?;
            let third = changed(trial, world, 1, &second)?;
            for (to, from) in [(&second, &third), (&first, &second), (&third, &first), (&first, &third)] {
                of(trial.restore(&to.parts, &from.parts, &Cancel::default()), "a restore")?;
                is(world, &to.looks, "after a restore")?;
            }
            Ok(())
        })?;
        self.law(CHANGED, || {
            if world.changes() < 2 {
                return Err(Fault::Unchecked("two commands that change the state are needed".into()));
            }
            let first = Stored::of(trial, world)?;
            let second = changed(trial, world, 0, &first)?;
            let third = changed(trial, world, 1, &second)?;
            match trial.restore(&first.parts, &second.parts, &Cancel::default()) {
                Err(error) if error.kind() == Kind::Changed => {
                    is(world, &third.looks, "after it was refused")?
                }
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
        })?;
        self.law(CUT, || {
            for after in STOPS {
                let stored = Stored::of(trial, world)?;
                let current = changed(trial, world, 0, &stored)?;
                let cancel = Cancel::default();
                let stop = cancel.clone();
                let stopper = thread::spawn(move || {
                    thread::sleep(Duration::from_millis(after));
                    stop.cancel();
                });
                let cut = trial.restore(&stored.parts, &current.parts, &cancel);
                // A thread that sleeps and stores a flag does not fail.
                let _ = stopper.join();
                if let Err(error) = cut
                    && error.kind() != Kind::Cancelled
                {
                    return Err(Fault::Broken(format!("told to stop it failed otherwise: {error}")));
                }
                of(trial.restore(&stored.parts, &current.parts, &Cancel::default()), "the next restore")?;
                is(world, &stored.looks, "after the next restore")?;
            }
            Ok(())
        })
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

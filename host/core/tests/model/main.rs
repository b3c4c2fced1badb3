//! Random operations on random trees, and after each of them the project compared with a
//! reference in memory: what the tree holds, what undo and redo would do, what is kept.
//!
//! A failing case is made as short as it can be. `SNAPBACK_MODEL_CASES` asks for so many
//! cases, `SNAPBACK_MODEL_SEED` for others.

mod act;
mod backend;
mod check;
mod choose;
mod deed;
mod found;
mod history;
mod look;
mod state;
mod tree;
mod world;

use proptest::collection::vec;
use proptest::sample::select;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use snapback_tests::say;
use state::{Op, Ops, State};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use world::World;

/// Cases without being asked for more.
const CASES: u32 = 60;
const SEED: u64 = 1;
/// Operations of a case.
const LONGEST: usize = 120;

/// Does one operation in both, and compares; the state afterwards.
fn step(world: &mut World, before: &State, op: &Op) -> Option<State> {
    let after = before.step(op)?;
    if let Op::Do(deed) = op {
        world.actor.act(deed, &before.tree, &after.tree);
        check::tree(&world.look(), &after.now);
        return Some(after);
    }
    let look = Arc::new(world.look());
    let way = before.way(op);
    let goal = way.as_ref().map(|(way, _, paths)| before.goal(way, paths).expect("it was possible"));
    let outcome = world.command(op, before, |world, plan| {
        let (way, ..) = before.way(op).expect("it was planned");
        check::plan(world, before, plan, &way, goal.as_ref().expect("it goes somewhere"));
    });
    let project = world.open();
    let new = after.history.snaps.last().filter(|snap| !world.ids.contains_key(&snap.number));
    if let Some(snap) = new {
        world.ids.insert(snap.number, project.ids().unwrap().into_iter().next().expect("one was taken"));
        world.looks.insert(snap.number, look.clone());
    }
    let then = world.look();
    check::tree(&then, &after.now);
    check::history(world, &after, &project);
    check::leftovers(world);
    if let (Some((way, _, paths)), Some(outcome)) = (way, outcome) {
        assert!(outcome.not_restored.is_empty(), "{:?}", outcome.not_restored);
        check::untouched(&look, &then, &world.looks[&way.to], paths, before.now != after.now);
    } else {
        assert_eq!(then.stamps.len(), look.stamps.len());
        let touched =
            then.stamps.iter().find(|(path, stamp)| !path.0.is_empty() && look.stamps[*path] != **stamp);
        assert_eq!(touched, None, "looking touches nothing");
    }
    if let Op::Forget(_) = op {
        check::forgotten(before, &after, &project);
    }
    Some(after)
}

/// Does all of `ops` that is possible in a project that keeps `keep` snapshots; how many
/// that were.
fn run(keep: usize, ops: &Ops) -> u64 {
    let mut world = World::new(keep);
    let mut state = State::new(rustix::process::geteuid().as_raw(), keep);
    let mut steps = 0;
    for op in &ops.0 {
        if let Some(after) = step(&mut world, &state, op) {
            state = after;
            steps += 1;
        }
    }
    steps
}

/// A number that the environment asks for.
fn asked<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn the_project_is_as_the_model_says() {
    let config = Config {
        cases: asked("SNAPBACK_MODEL_CASES", CASES),
        rng_seed: RngSeed::Fixed(asked("SNAPBACK_MODEL_SEED", SEED)),
        failure_persistence: None,
        max_shrink_iters: u32::MAX,
        max_shrink_time: 600_000,
        ..Config::default()
    };
    let owners = rustix::process::geteuid().is_root();
    let xattrs = look::takes_xattrs(&std::env::temp_dir());
    let cases = (select(vec![50, 5, 3]), vec(choose::op(xattrs, owners), 1..LONGEST).prop_map(Ops));
    let (steps, tried) = (AtomicU64::new(0), AtomicU64::new(0));
    // A case fails many times until it is as short as it can be: once is enough to be told.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let done = TestRunner::new(config).run(&cases, |(keep, ops)| {
        steps.fetch_add(run(keep, &ops), Ordering::Relaxed);
        tried.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    std::panic::set_hook(hook);
    let steps = steps.into_inner();
    if let Err(failed) = done {
        panic!("after {steps} steps: {failed}");
    }
    say(&format!("{} cases of the model, {steps} steps", tried.into_inner()));
    assert!(steps > 1000, "only {steps} steps were possible");
}

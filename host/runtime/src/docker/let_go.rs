//! Letting go of containers: whoever is the last to hold one does it, for all who held it.
//!
//! Who is done leaves the record on the engine, as one that holds nothing any more; it goes
//! when nobody else holds what it held. So two who hold one container do not let it go under
//! each other, and what one of them did harder, stopped where the other paused, is taken back
//! as well. What a killed process left half put back stays held.

use super::daemon::{BETWEEN, Daemon, TRIES};
use super::marker::{self, Helper, Marker, State};
use super::record::{How, Record};
use super::{fault, owner, users};
use bollard::Docker;
use bollard::errors::Error as Fault;
use bollard::query_parameters::StartContainerOptions;
use snapback_core::error::{Error, Result};
use std::collections::HashSet;

/// What was let go of for processes that are gone.
#[derive(Default)]
pub struct Swept {
    /// How many containers.
    pub freed: usize,
    /// What the engine would not let go of: nobody tries that again.
    pub failed: Vec<Error>,
}

/// Lets go of what the record `id` holds, as far as nobody else holds it.
///
/// # Errors
/// When the engine refuses: the record stays.
pub fn release(daemon: &Daemon, id: &str) -> Result<()> {
    marker::rename(daemon, id, State::Left)?;
    match sweep(daemon)?.failed.pop() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Lets go of what `record` says, as far as nobody else holds it, and leaves all records.
///
/// # Errors
/// When the engine refuses.
pub fn free_of(daemon: &Daemon, record: &Record) -> Result<()> {
    let markers = marker::all(daemon)?.0;
    let held = held(&markers);
    let free = record.held.iter().rev().filter(|id| !held.contains(&***id));
    free.map(|id| free_one(daemon, id, &[record])).fold(Ok(()), Result::and)
}

/// Gives up what killed processes left half put back in the project at `root`, which has no
/// step any more that would go on with it.
///
/// # Errors
/// When the engine cannot be asked.
pub fn give_up(daemon: &Daemon, root: &str) -> Result<()> {
    let markers = marker::all(daemon)?.0;
    let left = |m: &&Marker| m.state == State::Half && m.project == root && !m.is_live();
    markers.iter().filter(left).try_for_each(|marker| marker::rename(daemon, &marker.id, State::Left))
}

/// Lets go of whatever nobody holds any more, and removes what killed processes left.
///
/// # Errors
/// When the engine cannot be asked.
pub fn sweep(daemon: &Daemon) -> Result<Swept> {
    let (markers, helpers) = marker::all(daemon)?;
    // What lies in memory is needed by whoever goes on with it.
    let is_half = |volume: &String| markers.iter().any(|m| m.state == State::Half && m.volume == *volume);
    let is_needed = |helper: &Helper| helper.keeps.as_ref().is_some_and(is_half);
    for helper in helpers.iter().filter(|helper| owner::is_gone(&helper.owner) && !is_needed(helper)) {
        marker::remove(daemon, &helper.id)?;
    }
    let (held, done) = (held(&markers), markers.iter().filter(|marker| !marker.holds()));
    let done: Vec<&Marker> = done.collect();
    let mut swept = Swept::default();
    let mut seen = HashSet::new();
    for marker in &done {
        let mut failed = false;
        for id in marker.record.held.iter().rev().filter(|id| !held.contains(&***id)) {
            let is_new = seen.insert(id.as_str());
            let of_it = done.iter().filter(|other| other.ids().any(|other| other == id));
            let records: Vec<&Record> = of_it.map(|marker| &marker.record).collect();
            if !is_new {
                continue;
            }
            match free_one(daemon, id, &records) {
                Ok(()) => swept.freed += usize::from(!marker.is_live()),
                Err(error) => {
                    failed = true;
                    swept.failed.push(error);
                }
            }
        }
        // What cannot be let go of is said once by the next command, and is the user's then.
        let is_done = marker.ids().all(|id| !held.contains(id));
        if is_done && !(failed && marker.is_live()) {
            marker::remove(daemon, &marker.id)?;
        }
    }
    Ok(swept)
}

/// What is held, by whomever.
fn held(markers: &[Marker]) -> HashSet<&str> {
    markers.iter().filter(|marker| marker.holds()).flat_map(Marker::ids).collect()
}

/// Lets go of one container that was held as these records say; one that is not held is left as
/// it is. An engine that is away is waited for.
fn free_one(daemon: &Daemon, id: &str, records: &[&Record]) -> Result<()> {
    let restart = records.iter().find_map(|record| record.restarts.get(id));
    let give_back = || restart.map_or(Ok(()), |restart| restart.give_back(daemon, id));
    // Before it is started: one that ends at once is started again.
    let is_given_back = give_back().is_ok();
    let mut all = Ok(());
    let is_how = |how: &How| records.iter().any(|record| record.how_of(id) == *how);
    for how in [How::Pause, How::Stop].into_iter().filter(is_how) {
        let mut tries = 0;
        let done = loop {
            match daemon.try_ask(async |client| free(client, how, id).await)? {
                Err(answer) if fault::is_away(&answer) && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(BETWEEN);
                }
                done => break done,
            }
        };
        let said = |answer| {
            let name = users::name(daemon, id);
            daemon.explain(&format!("let go of the container {name}"), &answer)
        };
        all = all.and(done.map_err(said));
    }
    // Also to one that could not be started; an engine that was away is there by now.
    if is_given_back { all } else { all.and(give_back()) }
}

async fn free(client: &Docker, how: How, id: &str) -> Result<(), Fault> {
    let done = match how {
        How::Pause => client.unpause_container(id).await,
        How::Stop => client.start_container(id, None::<StartContainerOptions>).await,
    };
    match done {
        // It is not paused (any more), runs already, or was removed.
        Err(Fault::DockerResponseServerError { status_code: 304 | 404 | 409, .. }) => Ok(()),
        Err(answer) if how == How::Pause && (fault::is_not_paused(&answer) || fault::is_over(&answer)) => {
            Ok(())
        }
        done => done,
    }
}

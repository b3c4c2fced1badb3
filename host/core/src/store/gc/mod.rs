//! Removing what no snapshot refers to: plan, then apply.
//!
//! The plan walks everything that the roots refer to and looks at each pack: packs
//! that hold nothing of it are removed, packs that hold much else are rewritten.
//! Under the store's lock, which whoever is storing objects holds as well.
//!
//! Invariant: nothing that a root refers to is removed before another whole copy was
//! read or is sealed. When the walk could not read something, what is beneath it is
//! unknown, and nothing is removed at all. Whole packs go first, which needs no
//! space; what is rewritten is written, synced and seen before the old pack goes.

mod apply;

use super::Store;
use super::catalog::PackState;
use super::pack::{PackName, Table};
use super::walk::Reached;
use crate::backend::Cancel;
use crate::disk::Dir;
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use std::collections::{HashMap, HashSet};

/// A pack is rewritten when at least one part in so many of it is of no use.
const WASTE: u64 = 4;
/// Packs smaller than this are small, in bytes; with more than `MANY_SMALL` of them
/// they are put together.
const SMALL: u64 = 1 << 20;
const MANY_SMALL: usize = 16;

/// How thoroughly to clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Remove useless packs, rewrite those that are worth it.
    Worthwhile,
    /// Leave not one object that no root refers to: something must really be gone.
    Thorough,
}

/// What is going to be done with the packs.
pub struct Plan {
    /// Packs to remove.
    remove: Vec<Pack>,
    /// Packs to rewrite without what is of no use.
    rewrite: Vec<Pack>,
    live: HashSet<Key>,
    sweep: Sweep,
    /// Where packs have a second name.
    twins: Vec<Dir>,
    /// What is damaged or missing; packs that are concerned are kept.
    pub problems: Vec<Error>,
}

struct Pack {
    name: PackName,
    number: u32,
    state: PackState,
    size: u64,
    table: Table,
    /// Objects that roots refer to and whose home is this pack.
    live: u64,
    /// Their bytes, before compression.
    live_raw: u64,
    raw: u64,
    /// Objects that roots refer to and that another pack has as well.
    elsewhere: Vec<Key>,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Freed {
    /// Bytes of packs removed, less those of packs written.
    pub bytes: u64,
    /// Packs removed.
    pub removed: u64,
    /// Packs rewritten.
    pub rewritten: u64,
    /// What kept more from being freed.
    pub problems: Vec<Error>,
}

impl Plan {
    /// Whatever goes, goes first from `packs`, where the same packs have a second name.
    #[must_use]
    pub fn also_in(mut self, packs: Vec<Dir>) -> Self {
        self.twins = packs;
        self
    }

    /// About how many bytes it will free.
    pub fn bytes(&self) -> u64 {
        let whole: u64 = self.remove.iter().map(|pack| pack.size).sum();
        whole + self.rewrite.iter().map(Pack::waste).sum::<u64>()
    }

    /// How many packs it removes and how many it rewrites.
    pub fn packs(&self) -> (usize, usize) {
        (self.remove.len(), self.rewrite.len())
    }
}

impl Pack {
    /// About how many of its bytes are of no use.
    fn waste(&self) -> u64 {
        let dead = self.raw - self.live_raw;
        (u128::from(self.size) * u128::from(dead) / u128::from(self.raw.max(1))) as u64
    }
}

/// Plans what to remove, when `roots` are all that must stay readable.
///
/// # Errors
/// `Cancelled`, and what kept the packs from being looked at.
pub fn plan(store: &Store, roots: &[Key], sweep: Sweep, cancel: &Cancel) -> Result<Plan> {
    store.look_again();
    let mut reached = Reached::default();
    for root in roots {
        reached.walk(store, root, cancel)?;
    }
    let mut plan = Plan {
        remove: Vec::new(),
        rewrite: Vec::new(),
        live: reached.keys,
        sweep,
        twins: Vec::new(),
        problems: Vec::new(),
    };
    if !reached.unread.is_empty() {
        plan.problems = reached.unread.into_iter().map(|(_, e)| e).collect();
        plan.problems.push(
            Error::new(Kind::Corrupt, "nothing is removed, since what is beneath damaged objects is unknown")
                .hint(
                    "`snapback verify` names the snapshots that are concerned; `snapback forget` drops them",
                ),
        );
        return Ok(plan);
    }
    let (packs, unknown) = look(store, &mut plan, cancel)?;
    let small = packs.iter().filter(|pack| pack.size < SMALL && pack.live > 0).count();
    for pack in packs {
        let worth = match sweep {
            Sweep::Thorough => pack.live_raw < pack.raw,
            Sweep::Worthwhile => {
                pack.waste() * WASTE >= pack.size || (pack.size < SMALL && small > MANY_SMALL)
            }
        };
        if pack.live == 0 {
            plan.remove.push(pack);
        } else if worth || pack.state == PackState::Damaged {
            plan.rewrite.push(pack);
        }
    }
    // A pack of which nothing is known goes only when nothing can be missing from it.
    for pack in unknown {
        if plan.problems.is_empty() {
            plan.remove.push(pack);
        } else {
            let name = pack.name;
            plan.problems.push(Error::corrupt(format!("pack {name} is kept, though its table is damaged")));
        }
    }
    Ok(plan)
}

/// Looks into each pack: what of it is live; and the packs of which nothing is known.
fn look(store: &Store, plan: &mut Plan, cancel: &Cancel) -> Result<(Vec<Pack>, Vec<Pack>)> {
    let catalog = store.catalog()?;
    let mut order: Vec<u32> = (0..catalog.packs.len() as u32).collect();
    // The first pack that has an object is its home: one that can be relied on, if there is one.
    order.retain(|&n| catalog.packs[n as usize].state != PackState::Gone);
    order.sort_by_key(|&n| (catalog.packs[n as usize].state == PackState::Damaged, n));
    let mut homes: HashMap<Key, u32> = HashMap::with_capacity(plan.live.len());
    let (mut packs, mut unknown) = (Vec::new(), Vec::new());
    for number in order {
        cancel.check()?;
        let file = &catalog.packs[number as usize];
        let (table, wrong) = match store.open_pack(file.name) {
            Ok(open) => catalog.table_of(number, &open),
            Err(e) => (Table::default(), Some(e)),
        };
        let is_unknown = wrong.is_some() && table.frames.is_empty();
        let mut pack = Pack {
            name: file.name,
            number,
            state: file.state,
            size: file.size,
            table,
            live: 0,
            live_raw: 0,
            raw: 0,
            elsewhere: Vec::new(),
        };
        for (key, len) in pack.table.frames.iter().flat_map(|frame| &frame.objects) {
            pack.raw += u64::from(*len);
            if !plan.live.contains(key) {
                continue;
            }
            match homes.get(key) {
                Some(home) if *home != number => pack.elsewhere.push(*key),
                _ => {
                    homes.insert(*key, number);
                    pack.live += 1;
                    pack.live_raw += u64::from(*len);
                }
            }
        }
        if is_unknown { unknown.push(pack) } else { packs.push(pack) }
    }
    let missing = plan.live.iter().filter(|key| !homes.contains_key(*key)).count();
    if missing > 0 {
        plan.problems.push(
            Error::corrupt(format!("{missing} objects that snapshots refer to are missing"))
                .hint("`snapback verify` names the snapshots that are concerned"),
        );
    }
    Ok((packs, unknown))
}

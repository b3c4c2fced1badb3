//! What is stored where: the index, and the tables of packs that it does not cover.
//!
//! Invariant: a catalog never says that an object is there on the strength of a pack
//! that is missing, cut off or marked as damaged; reading may still try such a pack,
//! since what it yields is checked. A catalog does not change: what was sealed or
//! removed since makes a new one.

use super::index::{Covered, Draft, Index, Place, order};
use super::pack::{FrameTable, PackName, Table};
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

/// How a pack's file ends when objects in it were found damaged.
pub const DAMAGED: &[u8] = b".damaged";
/// More packs than this beside the index, or more objects than a part of those in it
/// (and not only a few): then the index is written anew.
const MAX_BESIDE: usize = 8;
const FEW_OBJECTS: u64 = 4096;

/// One pack, as its file was found.
#[derive(Debug, Clone)]
pub struct PackFile {
    /// Its name.
    pub name: PackName,
    /// The size of its file; 0 when the file is gone.
    pub size: u64,
    /// How far it can be relied on.
    pub state: PackState,
}

/// How far a pack can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackState {
    /// Nothing speaks against it.
    Good,
    /// Cut off, or objects in it were found damaged: to be read, not to be built on.
    Damaged,
    /// The index knows it, but its file is not there.
    Gone,
}

/// What is stored where.
pub struct Catalog {
    /// All packs; a place's `pack` is a position in this list.
    pub packs: Vec<PackFile>,
    index: Option<Arc<Index>>,
    /// The place in `packs` of each pack of the index.
    from_index: Arc<Vec<u32>>,
    /// The objects of packs that the index does not cover, each list in order.
    beside: Vec<Arc<Vec<(Key, Place)>>>,
    /// What speaks against each pack that cannot be relied on.
    pub problems: Vec<(PackName, Error)>,
    /// What is wrong with the index, when something is.
    pub index_problem: Option<Error>,
    index_is_bad: bool,
}

impl Catalog {
    /// Looks at the store's packs. Without `with_index` every table is read.
    pub fn load(store: &Dir, packs: &Dir, with_index: bool) -> Result<Self> {
        let (index, index_problem) = match with_index.then(|| Index::open(store)) {
            Some(Ok(index)) => (index.map(Arc::new), None),
            Some(Err(e)) => (None, Some(e)),
            None => (None, None),
        };
        let index_is_bad = !with_index || index_problem.is_some();
        let mut catalog = Self {
            packs: Vec::new(),
            index,
            from_index: Arc::default(),
            beside: Vec::new(),
            problems: Vec::new(),
            index_problem,
            index_is_bad,
        };
        catalog.look_at(packs)?;
        Ok(catalog)
    }

    fn look_at(&mut self, dir: &Dir) -> Result<()> {
        let mut found: HashMap<PackName, PackFile> = HashMap::new();
        for file in dir.names()? {
            let (hex, marked) = match file.strip_suffix(DAMAGED) {
                Some(hex) => (hex, true),
                None => (&file[..], false),
            };
            let (Some(name), Some(stat)) = (PackName::parse(hex), dir.stat(&file)?) else { continue };
            let state = if marked { PackState::Damaged } else { PackState::Good };
            let pack = PackFile { name, size: u64::try_from(stat.st_size).unwrap_or(0), state };
            let known = found.entry(name).or_insert_with(|| pack.clone());
            if state == PackState::Good {
                *known = pack;
            }
        }
        let mut from_index = Vec::new();
        for &(name, size) in self.index.iter().flat_map(|index| index.packs()) {
            from_index.push(self.packs.len() as u32);
            self.packs.push(match found.remove(&name) {
                Some(pack) if pack.size == size => pack,
                Some(pack) => {
                    let how = format!("pack {name} is damaged: it has {} bytes, not {size}", pack.size);
                    self.problems.push((name, Error::corrupt(how)));
                    PackFile { state: PackState::Damaged, ..pack }
                }
                None => PackFile { name, size: 0, state: PackState::Gone },
            });
        }
        self.from_index = Arc::new(from_index);
        let mut rest: Vec<PackFile> = found.into_values().collect();
        rest.sort_by_key(|pack| pack.name);
        for mut pack in rest {
            let mut file = pack.name.to_string().into_bytes();
            if pack.state == PackState::Damaged {
                file.extend_from_slice(DAMAGED);
            }
            let table = dir.open_file(&file).and_then(|f| Table::read(&f, pack.name));
            let number = self.packs.len() as u32;
            match table {
                Ok(table) => self.beside.push(Arc::new(places(&table, number))),
                // Removed by a gc that went on meanwhile.
                Err(e) if e.kind() == Kind::NotFound => continue,
                Err(e) if e.kind() == Kind::Incompatible => return Err(e),
                Err(e) => {
                    self.problems.push((pack.name, e));
                    pack.state = PackState::Damaged;
                }
            }
            self.packs.push(pack);
        }
        Ok(())
    }

    /// This catalog and the packs that were sealed since.
    pub fn with(&self, sealed: Vec<(PackName, u64, Table)>) -> Self {
        let mut packs = self.packs.clone();
        let mut beside = self.beside.clone();
        for (name, size, table) in sealed {
            beside.push(Arc::new(places(&table, packs.len() as u32)));
            packs.push(PackFile { name, size, state: PackState::Good });
        }
        Self {
            packs,
            index: self.index.clone(),
            from_index: self.from_index.clone(),
            beside,
            problems: self.problems.clone(),
            index_problem: self.index_problem.clone(),
            index_is_bad: self.index_is_bad,
        }
    }

    /// The places of `key`: those that can be relied on first.
    ///
    /// # Errors
    /// `Corrupt` when the index is: a catalog without it is to be made.
    pub fn find(&self, key: &Key) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        self.visit(key, |place, state| {
            match state {
                PackState::Good => places.insert(0, place),
                PackState::Damaged => places.push(place),
                PackState::Gone => {}
            }
            false
        })?;
        Ok(places)
    }

    /// Whether `key` is in a pack that can be relied on.
    ///
    /// # Errors
    /// `Corrupt` when the index is: a catalog without it is to be made.
    pub fn contains(&self, key: &Key) -> Result<bool> {
        let mut there = false;
        self.visit(key, |_, state| {
            there |= state == PackState::Good;
            there
        })?;
        Ok(there)
    }

    fn visit(&self, key: &Key, mut found: impl FnMut(Place, PackState) -> bool) -> Result<()> {
        let mut enough = false;
        for list in &self.beside {
            let first = list.partition_point(|(k, _)| order(k) < order(key));
            for (_, place) in list[first..].iter().take_while(|(k, _)| k == key) {
                enough = enough || found(*place, self.packs[place.pack as usize].state);
            }
        }
        let Some(index) = self.index.as_ref().filter(|_| !enough) else { return Ok(()) };
        index.find(key, |place| match self.renumbered(place) {
            Some(place) => found(place, self.packs[place.pack as usize].state),
            None => false,
        })
    }

    fn renumbered(&self, place: Place) -> Option<Place> {
        self.from_index.get(place.pack as usize).map(|&pack| Place { pack, ..place })
    }

    /// What is in the pack: by its table, else by what the index knows of it; and what
    /// is wrong with its table.
    pub fn table_of(&self, number: u32, file: &File) -> (Table, Option<Error>) {
        match Table::read(file, self.packs[number as usize].name) {
            Ok(table) => (table, None),
            Err(e) => (self.table_from_index(number).unwrap_or_default(), Some(e)),
        }
    }

    fn table_from_index(&self, number: u32) -> Result<Table> {
        let mut known = Vec::new();
        if let Some(index) = &self.index {
            index.each(|key, place| {
                known.extend(self.renumbered(place).filter(|p| p.pack == number).map(|p| (p, key)));
                Ok(())
            })?;
        }
        known
            .sort_unstable_by_key(|(place, key)| (place.frame.offset, place.frame.stored, place.start, *key));
        let mut frames: Vec<FrameTable> = Vec::new();
        for (place, key) in known {
            if frames.last().is_none_or(|table| table.frame != place.frame) {
                frames.push(FrameTable { frame: place.frame, objects: Vec::new() });
            }
            if let Some(table) = frames.last_mut() {
                table.objects.push((key, place.len));
            }
        }
        // Only frames that are known whole.
        frames.retain(|t| t.objects.iter().map(|o| u64::from(o.1)).sum::<u64>() == u64::from(t.frame.raw));
        Ok(Table { frames })
    }

    /// Whether the index should be written anew.
    pub fn wants_index(&self) -> bool {
        let beside: u64 = self.beside.iter().map(|list| list.len() as u64).sum();
        let inside = self.index.as_ref().map_or(0, |index| index.len());
        let gone = self.packs.iter().any(|pack| pack.state == PackState::Gone);
        gone || (self.index_is_bad && !self.packs.is_empty())
            || self.beside.len() > MAX_BESIDE
            || beside > FEW_OBJECTS.max(inside / 8)
    }

    /// Writes an index that covers all packs.
    pub fn write_index(&self, disk: &Disk, store: &Dir) -> Result<()> {
        // Packs without a table that can be read stay outside: their table is tried each
        // time, and what an earlier index knew of them is kept.
        let mut numbers = vec![None; self.packs.len()];
        let mut covered: Vec<Covered> = Vec::new();
        let in_index = self.from_index.iter().copied();
        let in_tables = self.beside.iter().filter_map(|list| list.first()).map(|(_, place)| place.pack);
        for number in in_index.chain(in_tables) {
            let pack = &self.packs[number as usize];
            if pack.state == PackState::Gone || numbers[number as usize].is_some() {
                continue;
            }
            numbers[number as usize] = Some(covered.len() as u32);
            covered.push((pack.name, self.size_of(number)));
        }
        let beside = match &self.beside[..] {
            [one] => Cow::Borrowed(&one[..]),
            many => {
                let mut all: Vec<(Key, Place)> = many.iter().flat_map(|list| list.iter().copied()).collect();
                all.sort_unstable_by(|a, b| order(&a.0).cmp(&order(&b.0)));
                Cow::Owned(all)
            }
        };
        let mut beside = beside.iter().copied().peekable();
        let mut draft = Draft::begin(disk, store)?;
        let add = |draft: &mut Draft<'_>, key: &Key, place: Place| match numbers[place.pack as usize] {
            Some(pack) => draft.add(key, &Place { pack, ..place }),
            None => Ok(()),
        };
        if let Some(index) = &self.index {
            index.each(|key, place| {
                while let Some((k, p)) = beside.next_if(|(k, _)| order(k) <= order(&key)) {
                    add(&mut draft, &k, p)?;
                }
                match self.renumbered(place) {
                    Some(place) => add(&mut draft, &key, place),
                    None => Ok(()),
                }
            })?;
        }
        for (key, place) in beside {
            add(&mut draft, &key, place)?;
        }
        draft.finish(&covered)
    }

    /// The size that the pack's file should have.
    fn size_of(&self, number: u32) -> u64 {
        let from_index = self.from_index.iter().position(|&n| n == number);
        match (from_index, &self.index) {
            (Some(i), Some(index)) => index.packs()[i].1,
            _ => self.packs[number as usize].size,
        }
    }
}

/// Where the objects of a pack's table lie, in order.
fn places(table: &Table, pack: u32) -> Vec<(Key, Place)> {
    let mut places = Vec::with_capacity(table.frames.iter().map(|f| f.objects.len()).sum());
    for FrameTable { frame, objects } in &table.frames {
        let (frame, mut start) = (*frame, 0);
        for &(key, len) in objects {
            places.push((key, Place { pack, frame, start, len }));
            start += len;
        }
    }
    places.sort_unstable_by(|a, b| order(&a.0).cmp(&order(&b.0)));
    places
}

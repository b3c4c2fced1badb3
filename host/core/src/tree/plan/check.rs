//! What the system would refuse, found beforehand: directories and entries that may not
//! be changed, owners that cannot be given back, room that is not there.

use super::Plan;
use super::moved::Moved;
use super::names::Names;
use crate::error::{Error, Kind, Result, shell_word, show};
use crate::object::Key;
use crate::store::content::{self, LARGE};
use crate::tree::apply::{
    Action, Look, Place, Places, Refusal, Request, Rights, Role, action, removes, removes_dir, split,
};
use crate::tree::compare::{Change, Step, Walk};
use crate::tree::node::{Entry, Node};
use rustix::fs::StatxAttributes;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::Arc;

/// Room that must be left when all is written.
const SPARE: u64 = 1 << 20;
const STICKY: u32 = 0o1000;

/// Looks at the disk for one plan.
pub(super) struct Check<'a> {
    places: Places<'a>,
    rights: Rights,
    /// What is known of directories: why names in them cannot be changed.
    dirs: HashMap<Vec<u8>, Option<Refusal>>,
    /// Bytes needed, for each file system: where it was seen.
    needed: HashMap<u64, (u64, Arc<Place<'a>>)>,
    moved: Moved<'a>,
    names: Names,
    /// The device of the store.
    store: u64,
    request: &'a Request<'a>,
}

impl<'a> Check<'a> {
    pub(super) fn new(request: &'a Request<'a>) -> Result<Self> {
        Ok(Self {
            places: Places::new(request.disk, request.directory.try_clone()?, None)?,
            rights: Rights::of_process(),
            dirs: HashMap::new(),
            needed: HashMap::new(),
            moved: Moved::new(request.stored, request.carried),
            names: Names::default(),
            store: request.store.dir().stat_self()?.st_dev,
            request,
        })
    }

    /// The refusal of what `change` would lose and the snapshot left out under another name.
    pub(super) fn moved(&mut self, change: &Change) -> Result<Option<Refusal>> {
        self.moved.refuse(&self.places, change)
    }

    /// Looks at one change; false when it cannot be done, nor what is inside.
    pub(super) fn change(&mut self, change: &Change, plan: &mut Plan) -> Result<bool> {
        // Roles in groups of hard links do not matter here: all need the same rights.
        let traits = change.traits();
        let action = action(traits, Role::Alone);
        let moves = removes(traits)
            || removes_dir(traits)
            || matches!(action, Action::Put | Action::Unshare | Action::MakeDir);
        if let Some(entry) = &change.after
            && action != Action::Nothing
        {
            self.owner(change, entry, plan);
        }
        if let Ok(Some(home)) = self.places.open(&change.path[..change.common]) {
            self.room(change, action, &home);
        }
        let parent = split(&change.path).0;
        // A directory that is not there yet will be ours.
        let Ok(Some(place)) = self.places.open(parent) else {
            return Ok(!moves || self.unreachable(change, parent, plan));
        };
        if moves && !self.dir(change, &place, plan)? {
            return Ok(false);
        }
        if change.before.is_none()
            || (!moves && !matches!(action, Action::Settle | Action::SettleDir | Action::Link))
        {
            return Ok(true);
        }
        self.entry(change, &place, moves, plan)
    }

    /// The parent cannot be opened, also where its owner lends itself the permission: is that a
    /// reason to refuse?
    fn unreachable(&mut self, change: &Change, parent: &[u8], plan: &mut Plan) -> bool {
        let error = match self.places.open(parent) {
            Ok(_) => return true,
            Err(error) => error,
        };
        if error.kind() != Kind::Denied {
            return true;
        }
        plan.refusals.push(Refusal::new(&change.path, error.message().to_owned()));
        false
    }

    /// Whether names can be made and removed in `place`; told once for each directory.
    fn dir(&mut self, change: &Change, place: &Place<'_>, plan: &mut Plan) -> Result<bool> {
        let why = match self.dirs.get(&place.path) {
            Some(why) => why.clone(),
            None => {
                let why = self.why_not(place);
                self.dirs.insert(place.path.clone(), why.clone());
                why
            }
        };
        let Some(why) = why else { return Ok(true) };
        if self.is_done(change, place)? {
            return Ok(true);
        }
        plan.refusals.push(Refusal { path: change.path.clone(), ..why });
        Ok(false)
    }

    /// Whether the disk is as it is to be already: what was cut short or taken back is
    /// no reason to refuse.
    fn is_done(&self, change: &Change, place: &Place<'_>) -> Result<bool> {
        let name = split(&change.path).1;
        let stat = if name.is_empty() { Some(place.stat) } else { place.stat_of(name)? };
        let (stat, entry) = match (&stat, &change.after) {
            (None, None) => return Ok(true),
            (Some(stat), Some(entry)) => (stat, entry),
            _ => return Ok(false),
        };
        let mode = matches!(entry.node, Node::Symlink(_)) || stat.permissions() == entry.mode;
        if !mode || (stat.uid, stat.gid) != (entry.uid, entry.gid) {
            return Ok(false);
        }
        self.look().is(&place.dir, name, stat, entry)
    }

    fn look(&self) -> Look<'_> {
        Look { source: self.request.source, rights: &self.rights, disk: self.request.disk }
    }

    fn why_not(&self, place: &Place) -> Option<Refusal> {
        let (shown, word_of_it) = (show(place.dir.path()), shell_word(place.dir.path()));
        let refuse = |reason: String, hint: String| Some(Refusal::new(&place.path, reason).hint(hint));
        if let Some((word, flag)) = place.stat.fixed() {
            let reason = format!("the directory {shown} is {word}");
            return refuse(reason, format!("sudo chattr -{flag} {word_of_it}"));
        }
        match place.may_write() {
            Ok(()) => None,
            Err(Errno::ROFS) => {
                refuse(format!("the file system of {shown} is read-only"), "mount it for writing".to_owned())
            }
            // Its owner opens it up for the work.
            Err(_) if place.stat.uid == self.rights.uid => None,
            Err(_) => {
                let reason = format!("this user may not write to the directory {shown}");
                refuse(reason, format!("sudo chown {} {word_of_it}", self.rights.uid))
            }
        }
    }

    /// Whether what is there now may be moved away or changed.
    fn entry(&mut self, change: &Change, place: &Place<'_>, moves: bool, plan: &mut Plan) -> Result<bool> {
        let name = split(&change.path).1;
        let shown = shell_word(place.dir.join(name));
        let Some(stat) = (if name.is_empty() { Some(place.stat) } else { place.stat_of(name)? }) else {
            return Ok(true);
        };
        if let Some((word, flag)) = stat.fixed()
            && !self.is_done(change, place)?
        {
            plan.refusals.push(
                Refusal::new(&change.path, format!("it is {word}"))
                    .hint(format!("sudo chattr -{flag} {shown}")),
            );
            return Ok(false);
        }
        if moves && !name.is_empty() && stat.attributes.contains(StatxAttributes::MOUNT_ROOT) {
            plan.refusals.push(
                Refusal::new(&change.path, "something is mounted on it").hint(format!("sudo umount {shown}")),
            );
            return Ok(false);
        }
        let sticky = place.stat.permissions() & STICKY != 0;
        let others = !self.rights.can_change(stat.uid) && !self.rights.can_change(place.stat.uid);
        if moves && sticky && others && !self.is_done(change, place)? {
            plan.refusals.push(
                Refusal::new(
                    &change.path,
                    "it belongs to somebody else, in a directory where only its owner may remove it",
                )
                .hint(format!("sudo chown {} {shown}", self.rights.uid)),
            );
            return Ok(false);
        }
        // What was put back before a call was cut short has the names that it is to have.
        if let Some(after) = change.after.as_ref().filter(|_| stat.nlink > 1)
            && !self.look().is(&place.dir, name, &stat, after)?
        {
            self.names.note(change, &stat);
        }
        if !moves && change.aspects().metadata() && !self.rights.can_change(stat.uid) {
            plan.notes
                .push(Refusal::new(&change.path, "its attributes stay, since it belongs to somebody else"));
        }
        Ok(true)
    }

    /// Notes what kind of entry or which owner this user cannot give.
    fn owner(&self, change: &Change, entry: &Entry, plan: &mut Plan) {
        if matches!(entry.node, Node::CharDevice(..) | Node::BlockDevice(..)) && !self.rights.root() {
            let reason = format!("a {} cannot be made by this user", entry.node.word());
            plan.notes.push(Refusal::new(&change.path, reason).hint("run the same command with sudo"));
        }
    }

    fn room(&mut self, change: &Change, action: Action, place: &Arc<Place<'a>>) {
        if let (Action::Put, Some(Node::File { content, size, sparse: false })) =
            (action, change.after.as_ref().map(|entry| &entry.node))
            && !self.is_shared(content, *size, place)
        {
            let needed = self.needed.entry(place.stat.dev).or_insert_with(|| (0, place.clone()));
            needed.0 = needed.0.saturating_add(*size);
        }
    }

    /// Whether the content of a file in `place` shares its blocks with the store, and so needs
    /// no room. That it begins so is enough to go by: what else it needs is seen when it is made.
    fn is_shared(&self, content: &Key, size: u64, place: &Place<'_>) -> bool {
        size > LARGE
            && !self.request.options.copy
            && place.stat.dev == self.store
            && content::begins_shared(self.request.source, content, size)
    }

    /// Whether any content is not in place already.
    fn still_needed(&self) -> Result<bool> {
        let Request { source, current, stored, only, .. } = self.request;
        for step in Walk::new(*source, current, stored, only)? {
            let Step::Change(change) = step? else { continue };
            let place = self.places.open(split(&change.path).0).unwrap_or(None);
            let is_file = matches!(change.after.as_ref().map(|e| &e.node), Some(Node::File { .. }));
            let done = match place {
                Some(place) => self.is_done(&change, &place)?,
                None => false,
            };
            if is_file && !done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks at what only the whole plan shows.
    pub(super) fn finish(self, plan: &mut Plan) -> Result<()> {
        for (needed, place) in self.needed.values() {
            let free = place.dir.free_space()?;
            if needed.saturating_add(SPARE) > free && self.still_needed()? {
                let [needed, spare, free] = [*needed, SPARE, free].map(crate::disk::size_text);
                let shown = show(place.dir.path());
                plan.no_space = Some(
                    Error::new(
                        Kind::NoSpace,
                        format!("the restore writes {needed} on the disk of {shown}, where {free} are free and {spare} are to stay so; nothing was changed"),
                    )
                    .hint("make room: move something away that the snapshot does not have, or let `snapback gc` drop old ones"),
                );
            }
        }
        self.names.finish(self.request.source, self.request.current, plan)
    }
}

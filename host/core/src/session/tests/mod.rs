//! History with a fake backend: undo, redo, recovery, without WebAssembly or trees.

mod bounds;
mod crash;
mod forge;
mod hostile;
mod many;
mod opening;
mod outlive;
mod recovery;
mod steps;
mod trees;
mod twin;
mod world;

use super::*;
use crate::history::SnapshotKind;
use crate::history::journal::{Journal, Verb};
use crate::object::ObjectKind;
use world::World;

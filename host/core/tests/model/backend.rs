//! The tree as a backend, without a component: policy is what nobody asked for.

use snapback_core::backend::{Backend, Backends, Call, Part};
use snapback_core::error::Result;
use snapback_core::tree::{self, Directory, Options};
use std::sync::Arc;

/// Captures and restores the whole project.
pub struct Tree;

impl Tree {
    fn open(call: &Call) -> Result<Directory> {
        Directory::open(&call.root, "path", ".", &Options::default())
    }
}

impl Backend for Tree {
    fn snapshot(&self, call: &Call, previous: &[Part]) -> Result<Vec<Part>> {
        let previous = previous.first().map(|part| &part.content);
        let content = tree::capture(&Self::open(call)?, call, previous)?;
        Ok(vec![Part { name: "tree".into(), content }])
    }

    fn restore(&self, call: &Call, parts: &[Part], current: &[Part]) -> Result<()> {
        tree::restore(&Self::open(call)?, call, &parts[0].content, &current[0].content).map(drop)
    }
}

/// There is only the tree.
pub struct OnlyTree;

impl Backends for OnlyTree {
    fn names(&self) -> Vec<String> {
        vec!["tree".into()]
    }

    fn settings(&self, _name: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn get(&self, _name: &str) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(Tree))
    }
}

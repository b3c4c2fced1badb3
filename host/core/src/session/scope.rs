//! Which part of a restore is meant. Paths are those of the project, or `NAME:/...` in the
//! volume of a target; each target gets what of them lies in it, as its own paths.

use super::absent::names;
use super::diff::{Difference, What};
use super::plan::is_within;
use crate::history::snapshot::Captured;
use crate::object::ObjectKind;
use crate::project::config::TREE;
use crate::text::Bytes;
use std::collections::HashSet;
use std::path::Path;

/// What a restore is narrowed to. Nothing at all: to nothing, all is meant.
#[derive(Debug, Clone, Default)]
pub struct Narrow {
    /// Only of these targets.
    pub targets: Vec<String>,
    /// Only these paths of the project, with all in them.
    pub paths: Vec<Bytes>,
    /// These targets besides, all of each: those that have no paths in the project.
    pub whole: Vec<String>,
    /// Targets that cannot be captured are left as they are, instead of keeping the others back.
    pub partial: bool,
}

impl Narrow {
    /// Whether only a part is meant.
    pub fn is_any(&self) -> bool {
        !self.targets.is_empty() || !self.paths.is_empty() || !self.whole.is_empty()
    }
}

/// What of `paths` of the project at `root` lies in a target, as paths in it: none when
/// nothing does. An empty list means all of it, as an empty list of `paths` does.
pub(super) fn inside(root: &Path, captured: &Captured, paths: &[Bytes]) -> Option<Vec<Bytes>> {
    if paths.is_empty() {
        return Some(Vec::new());
    }
    let base = base(root, captured)?;
    if is_within(&base, paths) {
        return Some(Vec::new());
    }
    let beneath = |path: &Bytes| match &base[..] {
        [] => Some(path.clone()),
        base => path.0.strip_prefix(base)?.strip_prefix(b"/").map(|rest| Bytes(rest.to_vec())),
    };
    let inside: Vec<Bytes> = paths.iter().filter_map(beneath).collect();
    (!inside.is_empty()).then_some(inside)
}

/// Where the directory or the volume of a target lies in the project at `root`; none when it
/// lies elsewhere, or when the target has none.
pub fn base(root: &Path, captured: &Captured) -> Option<Vec<u8>> {
    let target = &captured.target;
    if is_volume(captured) {
        return Some(volume_base(&target.name));
    }
    if target.backend != TREE {
        return None;
    }
    directory_base(root, target.settings.get("path").map_or(".", String::as_str))
}

/// Where the directory that a setting names by `value` lies in the project at `root`; empty
/// for that itself, none when it lies elsewhere.
pub fn directory_base(root: &Path, value: &str) -> Option<Vec<u8>> {
    names(root, value).map(|names| names.join(&b'/'))
}

/// Where what the target called `name` has of a volume lies: a colon behind the name makes
/// it no path of the project.
pub fn volume_base(name: &str) -> Vec<u8> {
    format!("{name}:").into_bytes()
}

/// Whether `captured` is of a volume.
pub fn is_volume(captured: &Captured) -> bool {
    captured.parts.iter().any(|part| part.content.kind() == ObjectKind::Volume)
}

/// What is meant in one target: made once, and asked for each difference.
pub(super) struct Meant {
    /// All of it.
    whole: bool,
    /// By paths of the project, which is how databases are told.
    project: Option<Within>,
    /// By paths in the target.
    target: Option<Within>,
}

impl Meant {
    /// What of the target of `captured` is at one of `paths`, or in one; a target without
    /// paths is meant by its name, so by `whole` alone.
    pub fn of(root: &Path, captured: &Captured, paths: &[Bytes], whole: &[String]) -> Self {
        let whole = whole.contains(&captured.target.name) || paths.is_empty() && whole.is_empty();
        let some = |paths: &[Bytes]| Within::of(paths);
        let is_any = !paths.is_empty();
        Self {
            whole,
            project: is_any.then(|| some(paths)),
            target: is_any.then(|| inside(root, captured, paths)).flatten().map(|paths| some(&paths)),
        }
    }

    /// Whether `difference` is.
    pub fn has(&self, difference: &Difference) -> bool {
        let by = match difference.what {
            What::Database => &self.project,
            What::Part => &None,
            What::Entry | What::Dir => &self.target,
        };
        self.whole || by.as_ref().is_some_and(|within| within.has(&difference.path))
    }
}

/// Paths with all that lies in them; none is everything.
struct Within(Option<HashSet<Vec<u8>>>);

impl Within {
    fn of(paths: &[Bytes]) -> Self {
        let everything = paths.is_empty() || paths.iter().any(|path| path.0.is_empty());
        Self((!everything).then(|| paths.iter().map(|path| path.0.clone()).collect()))
    }

    fn has(&self, path: &[u8]) -> bool {
        let Some(paths) = &self.0 else { return true };
        let mut above = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &path[..at]);
        paths.contains(path) || above.any(|above| paths.contains(above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Part, Target};
    use crate::object::Key;

    #[test]
    fn paths_of_the_project_are_seen_from_each_target() {
        let target = |backend: &str, path: Option<&str>| Captured {
            target: Target {
                name: "x".into(),
                backend: backend.into(),
                settings: path.map(|path| ("path".to_owned(), path.to_owned())).into_iter().collect(),
            },
            parts: Vec::new(),
            omitted: Vec::new(),
            bytes: 0,
            files: 0,
            left_out: Vec::new(),
            releases: false,
            through: None,
            carried: Vec::new(),
        };
        let bytes =
            |paths: &[&str]| paths.iter().map(|path| Bytes(path.as_bytes().to_vec())).collect::<Vec<_>>();
        let inside = |target: &Captured, paths: &[&str]| {
            let inside = inside(Path::new("/p"), target, &bytes(paths))?;
            Some(inside.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let found = |paths: &[&str]| Some(paths.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>());
        let (tree, data) = (target("tree", None), target("tree", Some("./a/data")));
        assert_eq!(inside(&tree, &["f", "a/data/g"]), found(&["f", "a/data/g"]));
        assert_eq!(inside(&data, &["f", "a/data/g"]), found(&["g"]));
        assert_eq!(inside(&data, &["f", "a/datum"]), None);
        for above in [&["a"][..], &["a/data"], &[""], &[]] {
            assert_eq!(inside(&data, above), found(&[]), "{above:?}: all of it");
        }
        let content = Key::of(ObjectKind::Volume, b"");
        let volume = Captured { parts: vec![Part { name: "volume".into(), content }], ..target("v", None) };
        assert_eq!(inside(&volume, &["f", "x:/d/g"]), found(&["d/g"]));
        assert_eq!(inside(&volume, &["x:"]), found(&[]));
        for other in [target("tree", Some("/elsewhere")), target("other", Some("a/data"))] {
            assert_eq!(inside(&other, &["a/data/g"]), None);
            assert_eq!(inside(&other, &[]), found(&[]));
        }
    }
}

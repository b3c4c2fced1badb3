//! Which part of a restore is meant. Paths are those of the project, or `NAME:/...` in the
//! volume of a target; each target gets what of them lies in it, as its own paths.

use super::absent::names;
use super::diff::{Difference, What};
use super::plan::is_within;
use crate::history::snapshot::Captured;
use crate::object::ObjectKind;
use crate::project::config::TREE;
use crate::text::Bytes;
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

/// Where the directory or the volume of a target lies in the project; none when it lies
/// elsewhere, or when the target has none.
pub(super) fn base(root: &Path, captured: &Captured) -> Option<Vec<u8>> {
    let target = &captured.target;
    if is_volume(captured) {
        return Some(format!("{}:", target.name).into_bytes());
    }
    if target.backend != TREE {
        return None;
    }
    let path = target.settings.get("path").map_or(".", String::as_str);
    names(root, path).map(|names| names.join(&b'/'))
}

/// Whether `captured` is of a volume.
pub(super) fn is_volume(captured: &Captured) -> bool {
    captured.parts.iter().any(|part| part.content.kind() == ObjectKind::Volume)
}

/// Whether `difference` in the target of `of` is at one of `paths`, or in one; a target
/// without paths is meant by its name, so by `whole` alone.
pub(super) fn is_meant(
    root: &Path,
    difference: &Difference,
    of: &Captured,
    paths: &[Bytes],
    whole: &[String],
) -> bool {
    if whole.contains(&of.target.name) || paths.is_empty() && whole.is_empty() {
        return true;
    }
    match difference.what {
        What::Database => !paths.is_empty() && is_within(&difference.path, paths),
        What::Part => false,
        What::Entry | What::Dir => {
            !paths.is_empty()
                && inside(root, of, paths).is_some_and(|paths| is_within(&difference.path, &paths))
        }
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

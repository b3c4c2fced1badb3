//! What files of docker compose say at the top: the volumes that they name, for proposals, and
//! the name of their project.
//!
//! No parser of YAML, of which this needs next to nothing: lines of one block, by how far they
//! are indented, and one line in braces. What is written another way is passed over, and so
//! is a name with a variable in it. What comes of a file is text for a person to read.

use super::find::is_name;
use crate::propose::Finding;
use snapback_core::project::config;
use std::path::Path;

/// The setting for the volume.
const VOLUME: &str = "volume";

/// A target for each volume that the files at `paths`, from `root`, have.
pub fn propose(root: &Path, paths: &[String]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for path in paths {
        // Only a regular file of a size that a person writes is read.
        let Ok(Some(text)) = config::read(&root.join(path)) else { continue };
        for Named { key, volume } in volumes(&text) {
            let finding = Finding { name: key, settings: [(VOLUME.to_owned(), volume)].into() };
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found
}

/// A volume, by the key that the file has for it.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    key: String,
    /// What to look for: its own name, else the key, which compose notes on the volume.
    volume: String,
}

/// The name that a file gives its project: none when it gives none, none inside when only compose can
/// work it out.
pub fn name(text: &str) -> Option<Option<String>> {
    let line = lines(text).find(|line| line.is_top("name"))?;
    (!matches!(&*line.value, "" | "''" | "\"\"")).then(|| bare(&line.value))
}

/// The lines with a key of the document that a file is.
fn lines(text: &str) -> impl Iterator<Item = Line> {
    let text = text.trim_start_matches('\u{feff}');
    // A second document is none of compose's.
    let is_before =
        |line: &&str| line.trim().is_empty() || ["#", "%", "---"].iter().any(|sign| line.starts_with(sign));
    let document = text.lines().skip_while(is_before);
    let document = document.take_while(|line| !line.starts_with("---") && !line.starts_with("..."));
    document.filter_map(Line::of)
}

/// The volumes that a file names.
fn volumes(text: &str) -> Vec<Named> {
    let mut lines = lines(text).skip_while(|line| !line.is_top("volumes"));
    let Some(head) = lines.next() else { return Vec::new() };
    if !head.value.is_empty() {
        return in_braces(&head.value);
    }
    let block: Vec<Line> = lines.take_while(|line| line.indent > 0).collect();
    let Some(indent) = block.first().map(|line| line.indent) else { return Vec::new() };
    let mut entries: Vec<Entry> = Vec::new();
    for line in block {
        match entries.last_mut() {
            _ if line.indent == indent => entries.push(Entry::new(line.key, &line.value)),
            Some(entry) if line.indent > indent => entry.below(&line),
            _ => return Vec::new(),
        }
    }
    entries.into_iter().filter_map(Entry::named).collect()
}

/// `{a: {name: x}, b: }` on one line.
fn in_braces(text: &str) -> Vec<Named> {
    let Some(inside) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return Vec::new();
    };
    let (mut depth, mut pieces) = (0_usize, vec![String::new()]);
    for c in inside.chars() {
        depth = match c {
            '{' => depth + 1,
            '}' => depth.saturating_sub(1),
            _ => depth,
        };
        match pieces.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => pieces.push(String::new()),
        }
    }
    let entry = |piece: &String| {
        let (key, value) = piece.split_once(':')?;
        Entry::new(bare(key)?, value.trim()).named()
    };
    pieces.iter().filter_map(entry).collect()
}

/// A line with a key.
struct Line {
    indent: usize,
    key: String,
    value: String,
}

impl Line {
    /// None for one that is empty, a remark, or has no key.
    fn of(text: &str) -> Option<Self> {
        let body = text.trim_start_matches(' ');
        let indent = text.len() - body.len();
        let body = without_remark(body).trim_end();
        let (key, value) = match body.split_once(": ") {
            Some((key, value)) => (key, value.trim()),
            None => (body.strip_suffix(':')?, ""),
        };
        // What names a value for later use is not the value.
        let value = if value.starts_with('&') { "" } else { value };
        Some(Self { indent, key: bare(key)?, value: value.to_owned() })
    }

    /// Whether it has `key` at the top.
    fn is_top(&self, key: &str) -> bool {
        self.indent == 0 && self.key == key
    }
}

fn without_remark(text: &str) -> &str {
    if text.starts_with('#') { "" } else { text.split(" #").next().unwrap_or_default() }
}

/// A word without the quotes around it; none for what is more than a word.
fn bare(text: &str) -> Option<String> {
    let text = text.trim();
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let text = quoted('"').or_else(|| quoted('\'')).unwrap_or(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (!text.is_empty() && text.chars().all(plain)).then(|| text.to_owned())
}

/// What a file says of one volume.
struct Entry {
    key: String,
    /// Its own name; none inside for one that cannot be told.
    name: Option<Option<String>>,
    external: bool,
    /// How far what is said of it is indented, and what was said last.
    inside: Option<(usize, String)>,
}

impl Entry {
    fn new(key: String, value: &str) -> Self {
        let mut entry = Self { key, name: None, external: false, inside: None };
        let inside = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        for piece in inside.split(',') {
            if let Some((key, value)) = piece.split_once(':') {
                entry.more(key.trim(), value.trim());
            }
        }
        entry
    }

    /// A line below it: what is said of it, or of that; an old way has the name of an
    /// external one there.
    fn below(&mut self, line: &Line) {
        let (indent, last) = self.inside.get_or_insert((line.indent, String::new()));
        if line.indent == *indent {
            last.clone_from(&line.key);
        } else if last != "external" {
            return;
        }
        self.more(&line.key, &line.value);
    }

    /// One more thing that is said of it.
    fn more(&mut self, key: &str, value: &str) {
        match key {
            "name" => self.name = Some(bare(value)),
            "external" => self.external = value != "false",
            _ => {}
        }
    }

    /// How it can be found; none when that cannot be told.
    fn named(self) -> Option<Named> {
        let Self { key, name, external, .. } = self;
        let volume = match name {
            Some(Some(name)) => name,
            // What compose makes it remembers by the key.
            Some(None) if !external => key.clone(),
            Some(None) => return None,
            None => key.clone(),
        };
        (is_name(&key) && is_name(&volume)).then_some(Named { key, volume })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    fn found(text: &str) -> Vec<(String, String)> {
        volumes(text).into_iter().map(|named| (named.key, named.volume)).collect()
    }

    #[track_caller]
    fn are(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(key, volume)| ((*key).to_owned(), (*volume).to_owned())).collect();
        assert_eq!(found(text), expected, "{text}");
    }

    #[test]
    fn the_volumes_at_the_top_are_found_with_their_names() {
        let text = "name: shop\nservices:\n  db:\n    image: postgres # volumes:\n    volumes:\n      - pgdata:/v\n      \
            - ./src:/src\nvolumes:\n  pgdata:\n  cache: {}\n  mail: null # none\n  \"quoted\":\n    driver: local\n    \
            labels:\n      name: x\n      external: x\n  named:\n    name: shop-named\n  far:\n    external: true\n  farther:\n    \
            external: true\n    name: 'real'\nnetworks:\n  net:\n";
        are(
            text,
            &[
                ("pgdata", "pgdata"),
                ("cache", "cache"),
                ("mail", "mail"),
                ("quoted", "quoted"),
                ("named", "shop-named"),
                ("far", "far"),
                ("farther", "real"),
            ],
        );
        are(&text.replace('\n', "\r\n"), &found(text).iter().map(|(k, v)| (&**k, &**v)).collect::<Vec<_>>());
        are(
            &format!("\u{feff}# A remark.\n\n---\n{text}---\nvolumes:\n  other:\n"),
            &found(text).iter().map(|(k, v)| (&**k, &**v)).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn names_that_only_compose_can_work_out_are_found_by_the_key_or_not_at_all() {
        are(
            "volumes:\n  a:\n    name: ${P}_a\n  b:\n    external: true\n    name: ${P}_b\n  c:\n",
            &[("a", "a"), ("c", "c")],
        );
        are("volumes:\n  a:\n    external:\n      name: old-way\n", &[("a", "old-way")]);
        are("volumes:\n  a:\n    external: false\n", &[("a", "a")]);
    }

    #[test]
    fn one_line_in_braces_is_read_as_well() {
        are(
            "volumes: {a: , b: {name: x}, 'c': {external: true, name: y}, d: null}",
            &[("a", "a"), ("b", "x"), ("c", "y"), ("d", "d")],
        );
        are("volumes: {}", &[]);
        are("volumes: {{{{:", &[]);
        are("volumes: {a: {b: {name: deep}}}", &[("a", "a")]);
    }

    #[test]
    fn odd_files_have_none() {
        for text in [
            "",
            "volumes",
            "volumes:",
            "volumes:\n",
            "volumes:\nservices:\n",
            "volumes: ~",
            "volumes: *other",
            "volumes:\n- a\n- b\n",
            "volumes:\n  - a\n",
            "  volumes:\n    a:\n",
            "services:\n  volumes:\n    a:\n",
            "#volumes:\n#  a:\n",
            "x: |\n  volumes:\n    a:\n",
            "volumes:\n\ta:\n",
            "volumes:\n    a:\n  b:\n",
            "volumes:\n  ../etc:\n",
            "volumes:\n  a/b:\n  <<: *x\n  ? k\n",
            "{\"volumes\": {\"a\": {}}}",
            "\u{0}\u{1}volumes:\n  a:\n",
            "...\nvolumes:\n  a:\n",
        ] {
            are(text, &[]);
        }
        are(&("volumes:\n".to_owned() + &"  a".repeat(100_000) + ":\n"), &[]);
        are("volumes: &v\n  a: &a\n    name: n\n  b: *a\n", &[("a", "n"), ("b", "b")]);
    }

    #[test]
    fn only_a_regular_file_is_read_and_each_volume_is_proposed_once() {
        let scratch = Scratch::new();
        for name in ["compose.yaml", "compose.yml"] {
            std::fs::write(scratch.path().join(name), "volumes:\n  data:\n").unwrap();
        }
        std::fs::create_dir(scratch.path().join("dir")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", scratch.path().join("zero")).unwrap();
        let paths = ["dir", "zero", "gone", "compose.yaml", "compose.yml"].map(str::to_owned);
        let found = propose(scratch.path(), &paths);
        assert_eq!(
            found,
            [Finding { name: "data".into(), settings: [("volume".into(), "data".into())].into() }]
        );
    }
}

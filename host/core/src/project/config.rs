//! snapback.toml: what the project asks for.
//!
//! Invariant: every key is known, of the right kind, and in range, or the whole file
//! is refused with the line and the nearest right key. It may come from a stranger:
//! it can ask, it cannot grant. Retention is not here (see `user`): a run can edit
//! this file and must not be able to shorten the history.

use super::nearest::nearest;
use super::units;
use crate::backend::Target;
use crate::error::{Error, Kind, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The file's name.
pub const FILE: &str = "snapback.toml";

/// The name of the tree's own target and of its backend.
pub const TREE: &str = "tree";

const TOP: [&str; 3] = ["snapshot", "target", "plugins"];
const TARGET: [&str; 4] = ["name", "backend", "enabled", "every-interval"];

/// Keys of `[snapshot]` that are settings of the tree, with their kinds.
const TREE_KEYS: [(&str, Form); 10] = [
    ("paths", Form::List),
    ("ignore", Form::List),
    ("include", Form::List),
    ("skip-regenerable", Form::Bool),
    ("max-files-per-dir", Form::Number),
    ("cross-mounts", Form::Bool),
    ("git", Form::Bool),
    ("sqlite", Form::Bool),
    ("strategy", Form::OneOf(&["auto", "copy", "reflink"])),
    ("times", Form::OneOf(&["now", "stored"])),
];

/// Nobody writes more by hand.
const MOST_BYTES: u64 = 1 << 20;

/// The text of the file at `path`; none when there is none. Only a regular file is
/// read: opening a pipe would wait for a writer, and a device may never end.
///
/// # Errors
/// When it is something else, too large, not UTF-8, or cannot be read.
pub fn read(path: &Path) -> Result<Option<String>> {
    use std::io::{ErrorKind, Read};
    use std::os::unix::fs::OpenOptionsExt;
    let wrong = |how: &str| {
        Err(Error::new(Kind::Invalid, format!("{} {how}", crate::error::show(path)))
            .hint("it is a small text file; move away what is there"))
    };
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return wrong("is not a regular file"),
        Ok(meta) if meta.len() > MOST_BYTES => return wrong("is too large"),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return if path.is_symlink() { wrong("is a link to nothing") } else { Ok(None) };
        }
        _ => {}
    }
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nonblock).open(path);
    let file = file.map_err(|error| Error::io(error, "could not read", path))?;
    let mut bytes = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::io(error, "could not read", path))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => wrong("is not UTF-8 text"),
    }
}

#[derive(Clone, Copy)]
enum Form {
    List,
    Bool,
    Number,
    OneOf(&'static [&'static str]),
}

/// What the project asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The targets to capture, the tree first.
    pub targets: Vec<Configured>,
    /// How often to snapshot during a run; zero: not at all.
    pub interval: Duration,
    /// A directory with components, relative to the project's root.
    pub plugins: Option<PathBuf>,
}

/// A target and where it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// What is captured and how.
    pub target: Target,
    /// Whether snapshots during a run (`--every`) take it too.
    pub every_interval: bool,
    /// The line of snapback.toml that it begins at, for messages; 0 for a default.
    pub line: usize,
    /// The line of each of its settings there.
    pub lines: BTreeMap<String, usize>,
}

impl Default for Config {
    fn default() -> Self {
        let tree = Target { name: TREE.into(), backend: TREE.into(), settings: BTreeMap::new() };
        let tree = Configured { target: tree, every_interval: true, line: 0, lines: BTreeMap::new() };
        Self { targets: vec![tree], interval: Duration::ZERO, plugins: None }
    }
}

impl Config {
    /// Reads the text of a snapback.toml.
    ///
    /// # Errors
    /// `Invalid` with the line, for anything that is not as documented.
    pub fn parse(text: &str) -> Result<Self> {
        let file = Text(text);
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| file.line(span.start));
            let message = error.message().trim().replace('\n', ", ");
            Error::new(Kind::Invalid, format!("{FILE}, line {line}: {message}"))
                .hint("the file is TOML; check quotes, brackets and commas there")
        })?;
        let mut config = Self::default();
        for (key, value) in table.get_ref() {
            match key.get_ref().as_ref() {
                "snapshot" => config.snapshot(file, value)?,
                "target" => config.targets(file, value)?,
                "plugins" => {
                    for (key, value) in file.table(value, "plugins")? {
                        match key.get_ref().as_ref() {
                            "dir" => config.plugins = Some(file.string(value, "dir")?.into()),
                            _ => return Err(file.unknown(key, ["dir"])),
                        }
                    }
                }
                _ => return Err(file.unknown(key, TOP)),
            }
        }
        Ok(config)
    }

    fn snapshot(&mut self, file: Text<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        let mut enabled = true;
        for (key, value) in file.table(value, "snapshot")? {
            let name = key.get_ref().as_ref();
            match name {
                "enabled" => enabled = file.bool(value, name)?,
                "interval" => {
                    let text = file.string(value, name)?;
                    self.interval = units::duration(text).map_err(|e| file.at(value, e))?;
                }
                _ => {
                    let known = TREE_KEYS.map(|(name, _)| name);
                    let Some((_, form)) = TREE_KEYS.iter().find(|(known, _)| *known == name) else {
                        let extra = ["enabled", "interval"];
                        return Err(file.unknown(key, known.into_iter().chain(extra)));
                    };
                    let text = file.setting(value, name, *form)?;
                    let tree = &mut self.targets[0];
                    tree.lines.insert(name.to_owned(), file.line(key.span().start));
                    tree.target.settings.insert(name.to_owned(), text);
                }
            }
        }
        if !enabled {
            self.targets.remove(0);
        }
        Ok(())
    }

    fn targets(&mut self, file: Text<'_>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        let DeValue::Array(items) = value.get_ref() else {
            return Err(file.wrong(value, "target", "written as [[target]]"));
        };
        for item in items {
            let configured = target(file, item)?;
            let Configured { target, .. } = &configured;
            if target.name == TREE || self.targets.iter().any(|c| c.target.name == target.name) {
                let why = format!("there are two targets called `{}`", target.name);
                let error = Error::new(Kind::Invalid, why).hint("give each [[target]] a `name` of its own");
                return Err(file.at(item, error));
            }
            if item.get_ref().get("enabled").and_then(|v| v.get_ref().as_bool()) != Some(false) {
                self.targets.push(configured);
            }
        }
        Ok(())
    }
}

fn target(file: Text<'_>, item: &Spanned<DeValue<'_>>) -> Result<Configured> {
    let (mut name, mut backend, mut every_interval) = (None, None, false);
    let (mut settings, mut lines) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in file.table(item, "target")? {
        let word = key.get_ref().as_ref();
        lines.insert(word.to_owned(), file.line(key.span().start));
        match word {
            "name" => name = Some(file.string(value, word)?.to_owned()),
            "backend" => backend = Some(file.string(value, word)?.to_owned()),
            "enabled" => drop(file.bool(value, word)?),
            "every-interval" => every_interval = file.bool(value, word)?,
            _ => {
                settings.insert(word.to_owned(), file.any_setting(value, word)?);
            }
        }
    }
    let Some(backend) = backend else {
        let error = Error::new(Kind::Invalid, "a [[target]] without `backend`")
            .hint("name one: `snapback backends` lists them");
        return Err(file.at(item, error));
    };
    let name = name.unwrap_or_else(|| backend.clone());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let why = format!("`{name}` cannot be the name of a target");
        let error = Error::new(Kind::Invalid, why).hint("use letters, digits, `-`, `_` and `.`");
        return Err(file.at(item, error));
    }
    let target = Target { name, backend, settings };
    Ok(Configured { target, every_interval, line: file.line(item.span().start), lines })
}

/// The keys that every `[[target]]` has, whatever its backend.
pub fn target_keys() -> &'static [&'static str] {
    &TARGET
}

/// The file's text, to turn places into lines.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

type Table<'v, 'i> = &'v DeTable<'i>;

impl Text<'_> {
    fn line(self, offset: usize) -> usize {
        self.0[..offset.min(self.0.len())].matches('\n').count() + 1
    }

    fn at<T>(self, place: &Spanned<T>, error: Error) -> Error {
        error.context(format_args!("{FILE}, line {}", self.line(place.span().start)))
    }

    fn wrong<T>(self, place: &Spanned<T>, key: &str, wanted: &str) -> Error {
        let error = Error::new(Kind::Invalid, format!("`{key}` must be {wanted}"));
        self.at(place, error.hint("correct that line; text stands in quotes, a list in brackets"))
    }

    fn unknown<'k, T: AsRef<str>>(self, key: &Spanned<T>, known: impl IntoIterator<Item = &'k str>) -> Error {
        let known: Vec<_> = known.into_iter().collect();
        let wrong = key.get_ref().as_ref();
        let error = Error::new(Kind::Invalid, format!("there is no key `{wrong}`"));
        let error = match nearest(wrong, known.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("known here: {}", known.join(", "))),
        };
        self.at(key, error)
    }

    fn table<'v, 'i>(self, value: &'v Spanned<DeValue<'i>>, key: &str) -> Result<Table<'v, 'i>> {
        let wrong = || self.wrong(value, key, &format!("a table, written as [{key}]"));
        value.get_ref().as_table().ok_or_else(wrong)
    }

    fn string<'v>(self, value: &'v Spanned<DeValue<'_>>, key: &str) -> Result<&'v str> {
        value.get_ref().as_str().ok_or_else(|| self.wrong(value, key, "text in quotes"))
    }

    fn bool(self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<bool> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong(value, key, "true or false"))
    }

    fn setting(self, value: &Spanned<DeValue<'_>>, key: &str, form: Form) -> Result<String> {
        match form {
            Form::Bool => Ok(self.bool(value, key)?.to_string()),
            Form::List if value.get_ref().is_array() => self.any_setting(value, key),
            Form::List => Err(self.wrong(value, key, "a list of texts: [\"...\"]")),
            Form::Number => match value.get_ref() {
                DeValue::Integer(n) if n.radix() == 10 && n.as_str().parse::<u64>().is_ok() => {
                    Ok(n.as_str().to_owned())
                }
                _ => Err(self.wrong(value, key, "a whole number, not negative")),
            },
            Form::OneOf(words) => {
                let text = self.string(value, key)?;
                if words.contains(&text) {
                    return Ok(text.to_owned());
                }
                Err(self.wrong(value, key, &format!("one of {}", words.join(", "))))
            }
        }
    }

    /// The text form of a setting whose kind only its backend knows.
    fn any_setting(self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Boolean(yes) => Ok(yes.to_string()),
            DeValue::Integer(n) if n.radix() == 10 => Ok(n.as_str().to_owned()),
            DeValue::Array(items) => {
                let mut lines = Vec::new();
                for item in items {
                    let text = self.string(item, key)?;
                    if text.contains('\n') {
                        return Err(self.wrong(item, key, "a list of texts of one line each"));
                    }
                    lines.push(text);
                }
                Ok(lines.join("\n"))
            }
            _ => Err(self.wrong(value, key, "text, a whole number, true, false or a list of texts")),
        }
    }
}

#[cfg(test)]
mod tests;

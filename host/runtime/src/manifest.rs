//! What a backend says about itself: name, version, settings.
//!
//! Written by whoever made the component, so nothing in it is trusted: names are
//! checked, texts are shortened, and a setting's kind decides what its value may open.

use serde::Deserialize;
use snapback_core::error::{Error, Kind as ErrorKind, Result};
use std::fmt;

/// Longest manifest that is read, in bytes.
const MAX_LEN: usize = 64 * 1024;
/// Longest text that is shown of it, in characters.
const MAX_TEXT: usize = 200;
/// Longest version, in characters.
const MAX_VERSION: usize = 64;
/// Most sentences about what it does not carry.
const MAX_LIMITS: usize = 20;

/// What a backend says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Manifest {
    /// The backend's name; its file has the same.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it covers, in a few words.
    #[serde(default)]
    pub summary: String,
    /// What it does not carry, for whoever has to know; one sentence each.
    #[serde(default)]
    pub limits: Vec<String>,
    /// Names of files that it would like to propose targets for.
    #[serde(default)]
    pub finds: Vec<String>,
    /// Its settings, in the order in which people read them.
    #[serde(default, rename = "setting")]
    pub settings: Vec<Setting>,
}

/// One setting of a backend.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Setting {
    /// Its key in snapback.toml.
    pub key: String,
    /// What its value is.
    pub kind: Kind,
    /// For kinds dir and file: what is done there.
    #[serde(default)]
    pub access: Access,
    /// Whether it holds any number of values.
    #[serde(default)]
    pub list: bool,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// The only values that it may have; any, when empty.
    #[serde(default)]
    pub one_of: Vec<String>,
    /// Its value when it is not given, in text form.
    #[serde(default, deserialize_with = "text_form")]
    pub default: Option<String>,
    /// For kind database: one that is found, and that nobody declared, becomes a target with
    /// this setting, and what a tree has of it is handed over as the part of this name.
    /// Only a backend that came inside the program is handed anything.
    #[serde(default)]
    pub found_as: Option<String>,
    /// Whether a snapshot keeps its value. One that says only how the work is done, and not
    /// what is captured, is none of the state: for an undo today's value holds.
    #[serde(default = "yes")]
    pub frozen: bool,
    /// What it does, in a few words.
    #[serde(default)]
    pub help: String,
}

fn yes() -> bool {
    true
}

/// What a setting's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number, 0 or more.
    Number,
    /// true or false.
    Bool,
    /// A time such as "30s".
    Duration,
    /// A number of bytes such as "64KiB".
    Size,
    /// A directory.
    Dir,
    /// A file.
    File,
    /// A database file.
    Database,
    /// A Docker volume.
    Volume,
    /// A host and port.
    Address,
    /// A variable of the environment.
    Env,
    /// A program to run.
    Program,
}

impl Kind {
    /// Whether a value of this kind opens something outside the component.
    pub fn is_authority(self) -> bool {
        !matches!(self, Self::Text | Self::Number | Self::Bool | Self::Duration | Self::Size)
    }

    /// The word for it in a manifest.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Bool => "bool",
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Dir => "dir",
            Self::File => "file",
            Self::Database => "database",
            Self::Volume => "volume",
            Self::Address => "address",
            Self::Env => "env",
            Self::Program => "program",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What is done with a directory or file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// It is only read.
    #[default]
    Read,
    /// It is read and written.
    Write,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// `Invalid`, with what is wrong and where.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| Error::new(ErrorKind::Invalid, format!("its manifest makes no sense: {why}"));
        if text.len() > MAX_LEN {
            return Err(wrong("it is longer than 64 KiB"));
        }
        let mut manifest: Self = toml::from_str(text).map_err(|e| wrong(&shorten(e.message())))?;
        if !is_name(&manifest.name) {
            return Err(wrong("`name` is not a name: lower-case letters, digits and hyphens"));
        }
        // It is shown where consent is asked, between words of the program's own.
        if !is_version(&manifest.version) {
            return Err(wrong(
                "`version` is not a version: digits first, then letters, digits, `.`, `-`, `+`",
            ));
        }
        for (i, setting) in manifest.settings.iter().enumerate() {
            let of = |why: &str| Err(wrong(&format!("setting `{}` {why}", shorten(&setting.key))));
            if !is_name(&setting.key) {
                return of("is not a name: lower-case letters, digits and hyphens");
            }
            if manifest.settings[..i].iter().any(|other| other.key == setting.key) {
                return of("comes twice");
            }
            if setting.list && setting.kind.is_authority() {
                return of("is a list, and each thing that is opened needs a setting of its own");
            }
            if setting.found_as.as_ref().is_some_and(|part| setting.kind != Kind::Database || !is_name(part))
            {
                return of("cannot be what is found: that is a database, and a part has a name");
            }
            if !setting.frozen && setting.kind.is_authority() {
                return of("opens something, and so is as it was when a snapshot was taken");
            }
            if let Some(default) = &setting.default
                && let Err(e) = crate::grant::check_value(setting, default)
            {
                return of(&format!("has a default that it may not have: {}", e.message()));
            }
        }
        manifest.summary = shorten(&manifest.summary);
        manifest.limits.truncate(MAX_LIMITS);
        for limit in &mut manifest.limits {
            *limit = shorten(limit);
        }
        for setting in &mut manifest.settings {
            setting.help = shorten(&setting.help);
        }
        Ok(manifest)
    }

    /// The setting called `key`.
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }
}

/// Whether `name` can name a backend or a setting.
pub fn is_name(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(inside)
}

/// Whether `text` can be a version, and nothing else.
fn is_version(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    text.len() <= MAX_VERSION && text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(inside)
}

/// A text of a stranger on one line, without what a terminal would act on.
pub fn shorten(text: &str) -> String {
    let mut out: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TEXT).collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        out.push('…');
    }
    out
}

/// A value of TOML as the contract passes settings: text, lists joined by newlines; none
/// for what no setting can be.
pub fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(values) => {
            let one = |value: &toml::Value| if value.is_array() { None } else { text_of(value) };
            values.iter().map(one).collect::<Option<Vec<_>>>().map(|values| values.join("\n"))
        }
        _ => None,
    }
}

/// A default in the text form of settings.
fn text_form<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    let value = toml::Value::deserialize(d)?;
    text_of(&value)
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("a default is text, a number, true, false or a list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trees_manifest_is_read() {
        let manifest = Manifest::parse(crate::builtin::ALL[0].manifest).unwrap();
        assert_eq!(manifest.name, "tree");
        let path = manifest.setting("path").unwrap();
        assert_eq!((path.kind, path.access, path.default.as_deref()), (Kind::Dir, Access::Write, Some(".")));
        assert_eq!(manifest.setting("ignore").unwrap().default.as_deref(), Some(""));
        assert_eq!(manifest.setting("max-files-per-dir").unwrap().default.as_deref(), Some("10000"));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let base = "name = \"x\"\nversion = \"1\"\n";
        for (text, part) in [
            ("version = \"1\"".to_owned(), "missing field `name`"),
            ("name = \"X\"\nversion = \"1\"".to_owned(), "`name` is not a name"),
            ("name = \"x\"\nversion = \"\"".to_owned(), "`version` is not a version"),
            ("name = \"x\"\nversion = \"v1\"".to_owned(), "`version` is not a version"),
            ("name = \"x\"\nversion = \"1 from built-in\"".to_owned(), "`version` is not a version"),
            ("name = \"x\"\nversion = \"1\\u001b[2J\"".to_owned(), "`version` is not a version"),
            (format!("name = \"x\"\nversion = \"1{}\"", "0".repeat(64)), "`version` is not a version"),
            (format!("{base}[[setting]]\nkey = \"a\"\nkind = \"pie\""), "unknown variant `pie`"),
            (format!("{base}[[setting]]\nkey = \"../a\"\nkind = \"text\""), "is not a name"),
            (
                format!(
                    "{base}[[setting]]\nkey = \"a\"\nkind = \"text\"\n[[setting]]\nkey = \"a\"\nkind = \"dir\""
                ),
                "`a` comes twice",
            ),
            (format!("{base}[[setting]]\nkey = \"a\"\nkind = \"dir\"\nlist = true"), "is a list"),
            (format!("{base}[[setting]]\nkey = \"a\"\nkind = \"env\"\nfrozen = false"), "opens something"),
            (format!("{base}[[setting]]\nkey = \"a\"\nkind = \"bool\"\ndefault = \"maybe\""), "may not have"),
            ("#".repeat(MAX_LEN + 1), "longer than 64 KiB"),
        ] {
            let error = Manifest::parse(&text).unwrap_err();
            assert!(error.message().contains(part), "{}", error.message());
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }

    #[test]
    fn texts_cannot_move_the_cursor() {
        let text = "name = \"x\"\nversion = \"1\"\nsummary = \"a\\u001b[2Jb\"\n";
        assert_eq!(Manifest::parse(text).unwrap().summary, "a [2Jb");
    }
}

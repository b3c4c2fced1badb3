//! A rule for directories that can be made again. The form, one rule a line:
//!
//! ```text
//! NAME                              whatever is called so
//! NAME holding FILE...              if one of the files is in it
//! NAME beside FILE...               if one of the files lies beside it
//! NAME ignored                      if git ignores it
//! NAME ignored else beside FILE...  the same; where there is no git, if one lies beside it
//! ```
//!
//! NAME and FILE are names, in which `*`, `?` and `[...]` mean what they mean to git.
//! A rule never matches anything but a directory. A `CACHEDIR.TAG` counts only with
//! the signature that its convention demands.

use crate::error::{Error, Kind, Result, show_bytes};
use crate::tree::ignore::Glob;
use crate::tree::node::is_name;

/// What the file `CACHEDIR.TAG` begins with (<https://bford.info/cachedir/>).
pub const CACHEDIR_TAG: (&str, &[u8]) = ("CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55");

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    name: Name,
    when: When,
}

/// What must hold beside the name.
#[derive(Debug, Clone)]
pub enum When {
    /// Nothing.
    Always,
    /// One of these is in it.
    Holding(Vec<Name>),
    /// One of these lies beside it.
    Beside(Vec<Name>),
    /// Git ignores it; where there is no git, one of these lies beside it.
    Ignored(Vec<Name>),
}

/// A name, or a pattern of names.
#[derive(Debug, Clone)]
pub enum Name {
    /// Exactly this.
    Exact(Vec<u8>),
    /// Whatever matches.
    Glob(Glob),
}

impl Name {
    fn parse(text: &str, rule: &str) -> Result<Self> {
        if !is_name(text.as_bytes()) {
            return Err(refuse(rule, &format!("{} is no name", show_bytes(text.as_bytes()))));
        }
        let special = text.contains(['*', '?', '[', '\\']);
        Ok(if special {
            Self::Glob(Glob::new(text.as_bytes()))
        } else {
            Self::Exact(text.as_bytes().to_vec())
        })
    }

    /// Whether `name` is it.
    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Glob(glob) => glob.matches(name),
        }
    }
}

impl Rule {
    /// Reads one line.
    ///
    /// # Errors
    /// `Invalid`, with the line and what is wrong in it.
    pub fn parse(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, rest) = words.split_first().ok_or_else(|| refuse(line, "it names nothing"))?;
        let name = Name::parse(name, line)?;
        let names = |words: &[&str]| -> Result<Vec<Name>> {
            if words.is_empty() {
                return Err(refuse(line, "a file is missing at its end"));
            }
            words.iter().map(|word| Name::parse(word, line)).collect()
        };
        let when = match rest {
            [] => When::Always,
            ["holding", files @ ..] => When::Holding(names(files)?),
            ["beside", files @ ..] => When::Beside(names(files)?),
            ["ignored"] => When::Ignored(Vec::new()),
            ["ignored", "else", "beside", files @ ..] => When::Ignored(names(files)?),
            [word, ..] => return Err(refuse(line, &format!("`{word}` is not understood"))),
        };
        Ok(Self { text: line.trim().to_owned(), name, when })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The files that it names, in words: one of them is the sign.
    pub fn files(&self) -> String {
        let files = ["holding", "beside"].iter().find_map(|word| self.text.split_once(&format!(" {word} ")));
        let files: Vec<&str> = files.map_or("", |(_, files)| files).split_whitespace().collect();
        match files.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// Whether the rule is about directories that are called `name`.
    pub fn is_about(&self, name: &[u8]) -> bool {
        self.name.matches(name)
    }

    /// What must hold beside the name.
    pub fn when(&self) -> &When {
        &self.when
    }
}

fn refuse(line: &str, why: &str) -> Error {
    Error::new(Kind::Invalid, format!("the rule `{line}` in `regenerable` makes no sense: {why}")).hint(
        "a rule is NAME, NAME holding FILE..., NAME beside FILE..., NAME ignored, or NAME ignored else beside FILE...",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        assert!(matches!(Rule::parse("node_modules").unwrap().when(), When::Always));
        let rule = Rule::parse(" target ignored else beside Cargo.toml *.csproj ").unwrap();
        assert_eq!(rule.text(), "target ignored else beside Cargo.toml *.csproj");
        assert!(rule.is_about(b"target") && !rule.is_about(b"targets"));
        let When::Ignored(files) = rule.when() else { panic!("{rule:?}") };
        assert!(files[1].matches(b"a.csproj") && !files[0].matches(b"a.csproj"));
        assert_eq!(rule.files(), "Cargo.toml or *.csproj");
        assert_eq!(Rule::parse("x beside a  b c").unwrap().files(), "a, b or c");
        assert_eq!(Rule::parse("venv holding pyvenv.cfg").unwrap().files(), "pyvenv.cfg");
        assert_eq!(Rule::parse("x ignored").unwrap().files(), "");
        assert!(Rule::parse("* holding CACHEDIR.TAG").unwrap().is_about(b"x"));
        assert!(
            matches!(Rule::parse("dist ignored").unwrap().when(), When::Ignored(files) if files.is_empty())
        );
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for line in [
            "",
            "a/b",
            "a holding",
            "a beside",
            "a ignored or",
            "a ignored else beside",
            "a ignored else",
            "..",
        ] {
            let error = Rule::parse(line).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid, "{line}");
            assert!(error.hint_text().is_some());
        }
    }
}

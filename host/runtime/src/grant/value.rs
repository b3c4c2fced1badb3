//! The value of a setting, and whether it is of its kind.

use crate::manifest::{Kind, Setting, shorten};
use snapback_core::error::{Error, Kind as ErrorKind, Result};
use snapback_core::project::units;
use std::collections::BTreeMap;

/// The value of `setting` among those that were `given`, else its default; none when it has
/// none and needs none.
///
/// # Errors
/// `Invalid`, naming the setting, what it is, and what it was given.
pub fn of<'v>(setting: &'v Setting, given: &'v BTreeMap<String, String>) -> Result<Option<&'v str>> {
    let value = given.get(&setting.key).or(setting.default.as_ref());
    match value {
        Some(value) => check_value(setting, value)?,
        None if setting.required => {
            let why = format!("the setting `{}` is missing", setting.key);
            return Err(Error::new(ErrorKind::Invalid, why).hint(about(setting)));
        }
        None => {}
    }
    Ok(value.map(String::as_str))
}

/// What a setting is, for who writes it.
fn about(setting: &Setting) -> String {
    let amount = if setting.list { "a list of values" } else { "one value" };
    let help = match setting.help.as_str() {
        "" => String::new(),
        help => format!(": {help}"),
    };
    format!("`{}` is {amount} of kind {}{help}", setting.key, setting.kind)
}

/// Refuses a value that the setting may not have.
///
/// # Errors
/// `Invalid`, naming the setting and the value.
pub fn check_value(setting: &Setting, value: &str) -> Result<()> {
    // An empty list has an empty text form; no other value is split.
    let values: Vec<&str> = match (setting.list, value) {
        (true, "") => Vec::new(),
        (true, text) => text.split('\n').collect(),
        (false, text) => vec![text],
    };
    for value in values {
        let (fits, what) = match setting.kind {
            Kind::Text => (!value.contains('\0'), "text without a zero byte"),
            Kind::Number => (value.parse::<u64>().is_ok(), "a number"),
            Kind::Bool => (matches!(value, "true" | "false"), "true or false"),
            Kind::Duration => (units::duration(value).is_ok(), "a time such as \"30s\""),
            Kind::Size => (units::size(value).is_ok(), "a size such as \"64KiB\""),
            _ => (!value.is_empty() && !value.contains(['\0', '\n']), "a name or path on one line"),
        };
        if !fits {
            return Err(wrong(setting, value, what));
        }
        if !setting.one_of.is_empty() && !setting.one_of.iter().any(|known| known == value) {
            return Err(wrong(setting, value, &format!("one of {}", setting.one_of.join(", "))));
        }
    }
    Ok(())
}

fn wrong(setting: &Setting, value: &str, what: &str) -> Error {
    let why = format!("`{}` is {what}, not `{}`", setting.key, shorten(value));
    Error::new(ErrorKind::Invalid, why).hint(about(setting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    #[test]
    fn values_of_a_kind_and_no_others() {
        for (kind, good, bad) in [
            ("text", &["", "a", "a\nb"][..], &["a\0"][..]),
            ("number", &["0", "18446744073709551615"], &["", "-1", "1.5", "many", "1 "]),
            ("bool", &["true", "false"], &["", "yes", "True"]),
            ("duration", &["500ms", "7d"], &["", "7", "soon"]),
            ("size", &["64KiB", "2GiB"], &["", "big"]),
            ("dir", &[".", "a b"], &["", "a\nb", "a\0"]),
            ("program", &["/bin/true"], &[""]),
        ] {
            let text = format!("name = \"x\"\nversion = \"1\"\n[[setting]]\nkey = \"k\"\nkind = \"{kind}\"");
            let manifest = Manifest::parse(&text).unwrap();
            let setting = manifest.setting("k").unwrap();
            for value in good {
                check_value(setting, value).unwrap_or_else(|e| panic!("{kind} {value:?}: {e}"));
            }
            for value in bad {
                let error = check_value(setting, value).expect_err(value);
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(error.message().starts_with("`k` is "), "{error}");
            }
        }
    }

    #[test]
    fn each_value_of_a_list_is_checked_and_an_empty_text_is_an_empty_list() {
        let text = "name = \"x\"\nversion = \"1\"\n[[setting]]\nkey = \"k\"\nkind = \"number\"\nlist = true";
        let manifest = Manifest::parse(text).unwrap();
        let setting = manifest.setting("k").unwrap();
        check_value(setting, "").unwrap();
        check_value(setting, "1\n2").unwrap();
        assert_eq!(check_value(setting, "1\nx").unwrap_err().message(), "`k` is a number, not `x`");
    }
}

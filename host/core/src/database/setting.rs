//! The path of a database as the value of a setting, which is text on one line.
//!
//! A path that is not (names are bytes) stands in it as it is shown everywhere: between
//! quotes, with `\xff`, `\n` and the like for what is no plain character. A value that is
//! written so and would not have to be means itself, quotes and all: so every path has
//! one value, and every value one path.

use std::borrow::Cow;

/// The value that stands for `path`.
pub fn to_setting(path: &[u8]) -> String {
    match plain(path) {
        Some(text) => text.to_owned(),
        None => format!("\"{}\"", path.escape_ascii()),
    }
}

/// The path that `value` stands for.
pub fn of_setting(value: &str) -> Cow<'_, [u8]> {
    unquoted(value).map_or(Cow::Borrowed(value.as_bytes()), Cow::Owned)
}

/// `path` as text that stands for itself.
fn plain(path: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(path).ok()?;
    (!text.contains(['\n', '\0']) && unquoted(text).is_none()).then_some(text)
}

/// What stands between the quotes of `value`, where that could not stand without them.
fn unquoted(value: &str) -> Option<Vec<u8>> {
    let inside = value.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let (mut path, mut rest) = (Vec::with_capacity(inside.len()), inside);
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, length) = match (byte, after.first()) {
            (b'\\', Some(b'x')) => {
                let digits = std::str::from_utf8(after.get(1..3)?).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, 3)
            }
            (b'\\', Some(b'n')) => (b'\n', 1),
            (b'\\', Some(b'r')) => (b'\r', 1),
            (b'\\', Some(b't')) => (b'\t', 1),
            (b'\\', Some(&plain @ (b'\\' | b'"' | b'\''))) => (plain, 1),
            (b'\\' | b'"', _) => return None,
            (byte, _) => (byte, 0),
        };
        path.push(byte);
        rest = &after[length..];
    }
    plain(&path).is_none().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_a_value_on_one_line_and_back() {
        for (path, value) in [
            (&b"data/app.db"[..], "data/app.db"),
            ("d/\u{e4}".as_bytes(), "d/\u{e4}"),
            (b"quo\"te", "quo\"te"),
            (b"\"quoted\"", "\"quoted\""),
            (b"back\\slash\\xff", "back\\slash\\xff"),
            (b"new\nline", "\"new\\nline\""),
            (b"d/\xff.db", "\"d/\\xff.db\""),
            (b"\"\xfe\\\"", "\"\\\"\\xfe\\\\\\\"\""),
            // What looks like the form of another one.
            (b"\"\\xff\"", "\"\\\"\\\\xff\\\"\""),
            (b"\"", "\""),
            (b"\"\"", "\"\""),
        ] {
            assert_eq!((to_setting(path), &*of_setting(value)), (value.to_owned(), path), "{value}");
        }
        for at in 0..20_000_u32 {
            // Short paths of what the form is made of.
            let of = |shift: u32| b"\"\\xfn\n\xff/"[(at >> shift & 7) as usize % 8];
            let path: Vec<u8> = (0..5).map(|n| of(n * 3)).collect();
            let value = to_setting(&path);
            assert_eq!(*of_setting(&value), path[..], "{value}");
            assert!(!value.contains('\n'));
        }
    }
}

//! gitignore: patterns in git's own form, with git's own meaning.
//!
//! Two users: the `ignore` and `include` options, which are one list of patterns
//! relative to the captured directory, and the rules that ask whether git ignores
//! a directory (`git`). That the meaning is git's is shown by a test that puts the
//! same questions to `git check-ignore`.

mod git;
mod glob;

pub use git::{Outer, Repository};
pub use glob::Glob;

/// Patterns from one place, in the order in which they were written: the last one
/// that matches decides.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    list: Vec<Pattern>,
    /// Whether some pattern looks at more than the last name of a path.
    paths: bool,
}

/// One pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    /// `!`: what matches is not ignored.
    negative: bool,
    /// A trailing `/`: directories only.
    directory: bool,
    /// No `/` inside: only the last name is looked at.
    name_only: bool,
    /// The part before the first special character.
    literal: Vec<u8>,
    /// What follows `literal`; `None` when nothing does.
    rest: Option<Glob>,
}

/// Files of patterns larger than this are not patterns (git has a limit like it).
pub const LARGEST_FILE: u64 = 1 << 20;

impl Patterns {
    /// The patterns of one file.
    pub fn parse(file: &[u8]) -> Self {
        let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        let mut all = Self::default();
        for line in file.split(|&b| b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            all.push(line.split(|&b| b == 0).next().unwrap_or_default());
        }
        all
    }

    /// Patterns that were given one by one.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        lines.into_iter().for_each(|line| all.push(line.as_bytes()));
        all
    }

    fn push(&mut self, line: &[u8]) {
        if line.is_empty() || line[0] == b'#' {
            return;
        }
        let pattern = Pattern::parse(without_trailing_spaces(line));
        self.paths |= !pattern.name_only;
        self.list.push(pattern);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether the path before the last name matters to some pattern.
    pub fn need_paths(&self) -> bool {
        self.paths
    }

    /// The patterns, as written.
    pub fn iter(&self) -> impl Iterator<Item = &Pattern> {
        self.list.iter()
    }

    /// The place of the last pattern that matches `path` (relative to where the
    /// patterns are from), and whether it ignores the path rather than keeps it.
    pub fn decide(&self, path: &[u8], directory: bool) -> Option<(usize, bool)> {
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
        let at = self.list.iter().rposition(|p| p.matches(path, name, directory))?;
        Some((at, !self.list[at].negative))
    }

    /// The same by those patterns alone that are about paths, not about a name anywhere.
    pub fn decide_by_path(&self, path: &[u8], directory: bool) -> Option<(usize, bool)> {
        let at = self.list.iter().rposition(|p| !p.name_only && p.matches(path, b"", directory))?;
        Some((at, !self.list[at].negative))
    }
}

impl Pattern {
    fn parse(line: &[u8]) -> Self {
        let text = String::from_utf8_lossy(line).into_owned();
        let (negative, body) = match line.strip_prefix(b"!") {
            Some(body) => (true, body),
            None => (false, line),
        };
        let (directory, body) = match body.strip_suffix(b"/") {
            Some(body) => (true, body),
            None => (false, body),
        };
        let name_only = !body.contains(&b'/');
        let body = body.strip_prefix(b"/").unwrap_or(body);
        let special = |b: &u8| matches!(b, b'*' | b'?' | b'[' | b'\\');
        let literal = body.iter().position(special).unwrap_or(body.len());
        let rest = (literal < body.len()).then(|| Glob::new(&body[literal..]));
        Self { text, negative, directory, name_only, literal: body[..literal].to_vec(), rest }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The one path that an anchored pattern without special characters means.
    pub fn literal_path(&self) -> Option<&[u8]> {
        (!self.negative && !self.name_only && self.rest.is_none()).then_some(&self.literal)
    }

    fn matches(&self, path: &[u8], name: &[u8], directory: bool) -> bool {
        if self.directory && !directory {
            return false;
        }
        let text = if self.name_only { name } else { path };
        let Some(text) = text.strip_prefix(self.literal.as_slice()) else { return false };
        match &self.rest {
            None => text.is_empty(),
            Some(glob) => glob.matches(text),
        }
    }
}

/// Spaces at the end do not count, unless a `\` stands before them.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let (mut at, mut end) = (0, 0);
    while at < line.len() {
        match line[at] {
            b' ' => at += 1,
            b'\\' if at + 1 == line.len() => return line,
            b'\\' => {
                at += 2;
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    &line[..end]
}

#[cfg(test)]
mod tests;

//! One glob of gitignore: `*`, `?`, `[...]`, `**/`, `/**`, `\` before a literal.
//!
//! A pattern becomes a short list of steps, and a text is matched by walking all
//! reachable steps at once: the time is bounded by pattern length times text
//! length whatever a hostile pattern holds. Bytes, not characters, as in git.

/// A compiled glob.
#[derive(Debug, Clone)]
pub struct Glob {
    steps: Vec<Step>,
    /// Bytes that a text has at least: the cheapest refusal.
    least: usize,
}

#[derive(Debug, Clone)]
enum Step {
    /// This byte.
    Byte(u8),
    /// Any byte but `/`.
    Any,
    /// Any bytes but `/`, none included.
    Star,
    /// Any bytes, none included.
    All,
    /// Begins `**/`: go on behind the next step, or into it.
    DirsBegin,
    /// Any bytes up to and including a `/`.
    Dirs,
    /// One of the bytes whose bit is set, never `/`.
    Class(Box<[u64; 4]>),
    /// Malformed: nothing matches from here on.
    Never,
}

impl Glob {
    /// Compiles `pattern`. Whatever it is, it compiles: a malformed one matches nothing.
    pub fn new(pattern: &[u8]) -> Self {
        let mut steps = Vec::new();
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            at += 1;
            match byte {
                b'?' => steps.push(Step::Any),
                b'*' => at = stars(pattern, at - 1, &mut steps),
                b'[' => match class(&pattern[at..]) {
                    Some((set, len)) => {
                        steps.push(Step::Class(Box::new(set)));
                        at += len;
                    }
                    None => {
                        steps.push(Step::Never);
                        break;
                    }
                },
                b'\\' => match pattern.get(at) {
                    Some(&byte) => {
                        steps.push(Step::Byte(byte));
                        at += 1;
                    }
                    None => steps.push(Step::Never),
                },
                byte => steps.push(Step::Byte(byte)),
            }
        }
        let one = |step: &&Step| matches!(step, Step::Byte(_) | Step::Any | Step::Class(_) | Step::Never);
        let least = steps.iter().filter(one).count();
        Self { steps, least }
    }

    /// Whether all of `text` matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        if text.len() < self.least {
            return false;
        }
        let mut now = vec![false; self.steps.len() + 1];
        let mut next = now.clone();
        self.reach(&mut now, 0);
        for &byte in text {
            next.fill(false);
            let mut any = false;
            for (at, step) in self.steps.iter().enumerate().filter(|(at, _)| now[*at]) {
                let (stay, go) = match step {
                    Step::Byte(wanted) => (false, *wanted == byte),
                    Step::Any => (false, byte != b'/'),
                    Step::Star => (byte != b'/', false),
                    Step::All => (true, false),
                    Step::Dirs => (true, byte == b'/'),
                    Step::Class(set) => (false, byte != b'/' && has(set, byte)),
                    Step::DirsBegin | Step::Never => (false, false),
                };
                any |= stay || go;
                if stay && matches!(step, Step::Dirs) {
                    next[at] = true;
                } else if stay {
                    self.reach(&mut next, at);
                }
                if go {
                    self.reach(&mut next, at + 1);
                }
            }
            if !any {
                return false;
            }
            std::mem::swap(&mut now, &mut next);
        }
        now[self.steps.len()]
    }

    /// Marks step `at` and all that is reached from it without a byte.
    fn reach(&self, marks: &mut [bool], mut at: usize) {
        loop {
            if std::mem::replace(&mut marks[at], true) {
                return;
            }
            match self.steps.get(at) {
                Some(Step::Star | Step::All) => at += 1,
                Some(Step::DirsBegin) => {
                    marks[at + 1] = true;
                    at += 2;
                }
                _ => return,
            }
        }
    }
}

/// The run of stars at `start`; returns where the pattern goes on.
fn stars(pattern: &[u8], start: usize, steps: &mut Vec<Step>) -> usize {
    let len = pattern[start..].iter().take_while(|&&b| b == b'*').count();
    let rest = &pattern[start + len..];
    let opens = start == 0 || pattern[start - 1] == b'/';
    if len == 1 || !opens {
        steps.push(Step::Star);
    } else if rest.first() == Some(&b'/') {
        steps.extend([Step::DirsBegin, Step::Dirs]);
        return start + len + 1;
    } else if rest.is_empty() || rest.starts_with(b"\\/") {
        steps.push(Step::All);
    } else {
        steps.push(Step::Star);
    }
    start + len
}

fn has(set: &[u64; 4], byte: u8) -> bool {
    set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
}

/// The class that begins behind its `[`: its bytes, and how long it is with its `]`.
fn class(text: &[u8]) -> Option<([u64; 4], usize)> {
    let mut set = [0u64; 4];
    let mut at = 0;
    let negated = matches!(text.first(), Some(b'!' | b'^'));
    if negated {
        at = 1;
    }
    let mut add = |from: u8, to: u8| {
        for byte in from..=to {
            set[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    };
    // The byte that a `-` after it would begin a range with.
    let mut from: Option<u8> = None;
    let begin = at;
    loop {
        let byte = *text.get(at)?;
        if byte == b']' && at > begin {
            break;
        }
        at += 1;
        match byte {
            b'\\' => {
                let byte = *text.get(at)?;
                at += 1;
                add(byte, byte);
                from = Some(byte);
            }
            b'-' if from.is_some() && text.get(at).is_some_and(|&b| b != b']') => {
                let mut to = text[at];
                at += 1;
                if to == b'\\' {
                    to = *text.get(at)?;
                    at += 1;
                }
                add(from.take()?, to);
            }
            b'[' if text.get(at) == Some(&b':') => {
                let end = at + text[at..].iter().position(|&b| b == b']')?;
                if end > at + 1 && text[end - 1] == b':' {
                    let inside = named(&text[at + 1..end - 1])?;
                    (0..=127u8).filter(inside).for_each(|byte| add(byte, byte));
                    at = end + 1;
                    from = None;
                } else {
                    add(b'[', b'[');
                    from = Some(b'[');
                }
            }
            byte => {
                add(byte, byte);
                from = Some(byte);
            }
        }
    }
    if negated {
        set.iter_mut().for_each(|word| *word = !*word);
    }
    Some((set, at + 1))
}

/// What `[:name:]` holds; ASCII only, as in git.
fn named(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |b| matches!(b, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |b| (b' '..=b'~').contains(b),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |b| b" \t\n\r\x0b\x0c".contains(b),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_git_matches_them() {
        let table: &[(&str, &str, bool)] = &[
            ("*.log", "a.log", true),
            ("*.log", "a.logs", false),
            ("a/*/c", "a/b/c", true),
            ("a/*/c", "a/b/b/c", false),
            ("a/**/c", "a/c", true),
            ("a/**/c", "a/b/b/c", true),
            ("a/**/c", "a/bc", false),
            ("**/c", "c", true),
            ("**/c", "a/b/c", true),
            ("**/c", "a/bc", false),
            ("a/**", "a/b/c", true),
            ("a/**", "a", false),
            ("a**b", "axxb", true),
            ("a**b", "ax/b", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]a]", "]", true),
            ("[[:digit:]]", "7", true),
            ("[[:digits:]]", "7", false),
            ("[a", "a", false),
            ("\\*", "*", true),
            ("a\\", "a", false),
            ("?", "/", false),
            ("[^a]", "/", false),
        ];
        for (pattern, text, wanted) in table {
            assert_eq!(Glob::new(pattern.as_bytes()).matches(text.as_bytes()), *wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_its_length() {
        let glob = Glob::new("a*".repeat(200).as_bytes());
        assert!(!glob.matches("a".repeat(199).as_bytes()));
        assert!(!glob.matches(format!("{}b", "a".repeat(199)).as_bytes()));
        assert!(glob.matches("a".repeat(250).as_bytes()));
        assert!(!Glob::new(format!("{}b", "a*".repeat(100)).as_bytes()).matches("a".repeat(2000).as_bytes()));
    }
}

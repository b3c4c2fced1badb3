//! The same questions to us and to `git check-ignore`.

use super::*;
use crate::testing::TempDir;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A small generator: the same cases in each run.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const NAMES: &[&str] =
    &["a", "b", "ab", "foo", "bar", "x.o", "a b", "!a", "#b", "[a]", "a\\b", "foo ", "é", "-", "*"];
const ATOMS: &[&str] = &[
    "a",
    "b",
    "ab",
    "foo",
    "bar",
    "x",
    ".o",
    "*",
    "*",
    "**",
    "?",
    "[a-c]",
    "[!a]",
    "[^b]",
    "[]a]",
    "[[:alpha:]]",
    "[a",
    "[[:x:]]",
    "[b-",
    "[\\]]",
    "[a-\\c]",
    "\\*",
    "\\",
    "\\#",
    "!",
    "#",
    " ",
    "\\ ",
    "é",
    "-",
    "[",
    "]",
    "***",
    "[[:",
    "[--a]",
];

fn pattern(rng: &mut Rng) -> String {
    let mut text = String::new();
    if rng.below(5) == 0 {
        text.push('!');
    }
    if rng.below(4) == 0 {
        text.push('/');
    }
    for level in 0..=rng.below(3) {
        if level > 0 {
            text.push('/');
        }
        for _ in 0..=rng.below(3) {
            text.push_str(rng.pick(ATOMS));
        }
    }
    text.push_str(["", "", "", "/", "/", " ", "\\ ", "\r", "/**", "//", "\t"][rng.below(11)]);
    text
}

/// Makes files three levels deep; returns all paths, with whether each is a directory.
fn corpus(root: &Path, rng: &mut Rng) -> Vec<(String, bool)> {
    let mut all = BTreeMap::new();
    for _ in 0..120 {
        let depth = 1 + rng.below(3);
        let path = (0..depth).map(|_| rng.pick(NAMES)).collect::<Vec<_>>().join("/");
        let made = if rng.below(2) == 0 {
            std::fs::create_dir_all(root.join(&path)).is_ok()
        } else {
            std::fs::create_dir_all(root.join(&path).parent().unwrap()).is_ok()
                && std::fs::write(root.join(&path), "").is_ok()
        };
        if made {
            let mut at = String::new();
            for part in path.split('/') {
                at = if at.is_empty() { part.to_owned() } else { format!("{at}/{part}") };
                let directory = root.join(&at).is_dir();
                all.insert(at.clone(), directory);
            }
        }
    }
    all.into_iter().collect()
}

fn git(root: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(["-c", "core.excludesFile="]).args(args);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", root).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let out = child.wait_with_output().unwrap();
    let _ = feeder.join();
    out.stdout
}

/// Whether we think that git ignores `path`; the last name may be a file.
fn ours(path: &str, directory: bool, files: &BTreeMap<String, Patterns>) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    let empty = Patterns::default();
    let mut decided = false;
    for k in 0..names.len() {
        let dir = directory || k + 1 < names.len();
        let verdict = (0..=k).rev().find_map(|j| {
            let list = files.get(&names[..j].join("/")).unwrap_or(&empty);
            list.decide(names[j..=k].join("/").as_bytes(), dir)
        });
        decided = matches!(verdict, Some((_, true)));
        if decided {
            return true;
        }
    }
    decided
}

fn has_git() -> bool {
    let has = Command::new("git").arg("--version").output().is_ok();
    assert!(has || std::env::var_os("CI").is_none(), "git is needed for this test");
    has
}

#[test]
fn a_file_of_patterns_is_read_as_git_reads_it() {
    if !has_git() {
        return;
    }
    let temp = TempDir::new();
    let root = temp.path();
    git(root, &["init", "-q"], b"");
    let input = NAMES.iter().map(|name| format!("./{name}\0")).collect::<String>();
    let mut ignored = 0;
    for text in [
        "\u{feff}a\nb",
        "a\n\u{feff}b",
        "#b",
        "\\#b",
        "a\0\nfoo\0bar\nb",
        "a\r\nb\r",
        "a  \nfoo\\ \nbar \\",
        "\n \n!a\nb\n!b",
        "*\n!a\n!b\nb",
    ] {
        std::fs::write(root.join(".gitignore"), text).unwrap();
        let files = BTreeMap::from([(String::new(), Patterns::parse(text.as_bytes()))]);
        let out = git(root, &["check-ignore", "--no-index", "-z", "--stdin"], input.as_bytes());
        let theirs: Vec<&str> = std::str::from_utf8(&out).unwrap().split_terminator('\0').collect();
        let ours: Vec<String> =
            NAMES.iter().filter(|name| ours(name, false, &files)).map(|name| format!("./{name}")).collect();
        assert_eq!(ours, theirs, "{text:?}");
        ignored += ours.len();
    }
    assert!(ignored > 20, "{ignored} ignored");
}

#[test]
fn patterns_mean_what_git_says_they_mean() {
    if !has_git() {
        return;
    }
    let mut rng = Rng(20_260_729);
    let (mut cases, mut ignored) = (0, 0);
    for round in 0..60 {
        let temp = TempDir::new();
        let root = temp.path();
        git(root, &["init", "-q"], b"");
        let paths = corpus(root, &mut rng);
        for _ in 0..3 {
            let mut files = BTreeMap::new();
            let dirs: Vec<&str> =
                paths.iter().filter(|(_, dir)| *dir).map(|(path, _)| path.as_str()).collect();
            for dir in ["", dirs[rng.below(dirs.len())], dirs[rng.below(dirs.len())]] {
                let lines: Vec<String> = (0..=rng.below(4)).map(|_| pattern(&mut rng)).collect();
                let text = lines.join("\n");
                std::fs::write(root.join(dir).join(".gitignore"), &text).unwrap();
                files.insert(dir.to_owned(), Patterns::parse(text.as_bytes()));
            }
            let input = paths.iter().map(|(path, _)| format!("./{path}\0")).collect::<String>();
            let args = ["check-ignore", "--no-index", "-z", "-v", "-n", "--stdin"];
            let out = git(root, &args, input.as_bytes());
            let out = String::from_utf8(out).unwrap();
            let fields: Vec<&str> = out.split_terminator('\0').collect();
            assert_eq!(fields.len(), paths.len() * 4, "git answered all questions");
            for (answer, (path, directory)) in fields.chunks(4).zip(&paths) {
                // Source, line, pattern, path; a negative pattern is printed too.
                let theirs = !answer[0].is_empty() && !answer[2].starts_with('!');
                let lists: BTreeMap<_, _> =
                    files.iter().map(|(k, v)| (k, v.iter().map(Pattern::text).collect::<Vec<_>>())).collect();
                assert_eq!(
                    ours(path, *directory, &files),
                    theirs,
                    "round {round}: {path:?} (directory: {directory}) under {lists:?}; git: {answer:?}"
                );
                cases += 1;
                ignored += usize::from(theirs);
            }
            for dir in files.keys() {
                std::fs::remove_file(root.join(dir).join(".gitignore")).unwrap();
            }
        }
    }
    assert!(cases > 5000 && ignored > 500, "{cases} cases, {ignored} ignored");
}

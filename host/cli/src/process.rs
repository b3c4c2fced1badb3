//! Processes, as `/proc/<pid>/stat` tells of them.
//!
//! What is read is of one moment: a number may be another process's in the next one, unless
//! the caller keeps it from being reaped. What cannot be read is not known, and said as that.

use snapback_core::history::Id;
use snapback_core::session::running;
use std::fs;

/// Generations between a process and its forebear that are gone through: more are no tree
/// of jobs but one that changes while it is looked at.
const GENERATIONS: usize = 1000;

/// What one line tells.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// `R`, `S`, `T` and so on.
    state: u8,
    /// The number of its parent.
    parent: i32,
    /// Its process group.
    group: i32,
    /// Its session.
    session: i32,
    /// The terminal of its session; 0 where that has none.
    terminal: i32,
}

impl Stat {
    /// Whether it is a job of `parent`, as a shell with job control has them.
    fn is_job_of(&self, parent: &Self) -> bool {
        self.terminal != 0 && self.session == parent.session && self.group != parent.group
    }

    /// Of the process `pid`; none when there is none, or none that may be looked at.
    fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The rest follows the name, which may hold anything, and its last parenthesis.
    fn parse(line: &[u8]) -> Option<Self> {
        let name_ends = line.iter().rposition(|&b| b == b')')?;
        let mut fields = std::str::from_utf8(&line[name_ends + 1..]).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let mut number = || fields.next()?.parse().ok();
        Some(Self { state, parent: number()?, group: number()?, session: number()?, terminal: number()? })
    }
}

/// Whether `pid` is stopped; none when that is not known.
pub fn is_stopped(pid: i32) -> Option<bool> {
    Stat::of(pid).map(|stat| stat.state == b'T')
}

/// Whether this process is a job of a shell that wakes what it sees stopped: that is in another
/// group of the same session, which has a terminal. The shell of a script is in the same group.
pub fn is_job() -> bool {
    let own = Stat::of(std::process::id() as i32);
    let parent = own.as_ref().and_then(|own| Stat::of(own.parent));
    own.zip(parent).is_some_and(|(own, parent)| own.is_job_of(&parent))
}

/// Whether `pid` is `forebear` or was started beneath it, as far as can be seen.
pub fn is_in_tree_of(pid: i32, forebear: i32) -> bool {
    descends(pid, forebear, |pid| Stat::of(pid).map(|stat| stat.parent))
}

/// The run that this process was started in, whatever its environment says: one of its forebears
/// is the snapback of a run that goes on. A process whose parent has ended is nobody's child any
/// more, and not known.
pub fn run_above() -> Option<Id> {
    let parent = |pid: &i32| Stat::of(*pid).map(|stat| stat.parent).filter(|&pid| pid > 0);
    let line = std::iter::successors(Some(std::process::id() as i32), parent);
    line.skip(1).take(GENERATIONS).find_map(run_of)
}

/// The run whose mark the process `pid` has open.
fn run_of(pid: i32) -> Option<Id> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).find_map(|path| running::of(&path))
}

fn descends(pid: i32, forebear: i32, parent: impl Fn(i32) -> Option<i32>) -> bool {
    let line = std::iter::successors(Some(pid), |&pid| parent(pid));
    // The parent of the first process of all is 0.
    line.take_while(|&pid| pid > 0).take(GENERATIONS).any(|pid| pid == forebear)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_line_is_read_behind_any_name() {
        let stat =
            |state, parent, group, session, terminal| Some(Stat { state, parent, group, session, terminal });
        assert_eq!(Stat::parse(b"12 (a) T b) S 1 12 13 34816 12"), stat(b'S', 1, 12, 13, 34816));
        assert_eq!(Stat::parse(b"12 (x) T 345 1 1 0\n"), stat(b'T', 345, 1, 1, 0));
        assert_eq!(Stat::parse(b"12 (\xff\n) R 0 0 0 0 -1 4"), stat(b'R', 0, 0, 0, 0));
        for bad in [&b""[..], b"12 (x)", b"12 (x) ", b"12 (x) S", b"12 (x) S y", b"12 (x) S 1 2 3 \xff"] {
            assert_eq!(Stat::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_job_is_in_a_group_of_its_own_in_a_session_with_a_terminal() {
        let of = |group, session, terminal| Stat { state: b'S', parent: 1, group, session, terminal };
        for (own, parent, is) in [
            (of(7, 5, 34816), of(5, 5, 34816), true),
            // In a script, without a terminal, and with a parent elsewhere.
            (of(5, 5, 34816), of(5, 5, 34816), false),
            (of(7, 5, 0), of(5, 5, 0), false),
            (of(7, 7, 34816), of(5, 5, 34816), false),
        ] {
            assert_eq!(own.is_job_of(&parent), is, "{own:?} of {parent:?}");
        }
    }

    #[test]
    fn the_way_up_ends_at_the_forebear_at_the_first_process_or_after_so_many() {
        // 1 - 5 - 6 - 7, 1 - 8; nobody knows 9, and 20 and 21 turn in a circle.
        let parents = [(1, 0), (5, 1), (6, 5), (7, 6), (8, 1), (20, 21), (21, 20)];
        let parent = |pid| parents.iter().find(|(child, _)| *child == pid).map(|(_, parent)| *parent);
        for (pid, forebear, is) in [
            (5, 5, true),
            (6, 5, true),
            (7, 5, true),
            (1, 5, false),
            (8, 5, false),
            (5, 7, false),
            (9, 5, false),
            (0, 5, false),
            (0, 0, false),
            (-1, 5, false),
            (20, 5, false),
            (20, 21, true),
        ] {
            assert_eq!(descends(pid, forebear, parent), is, "{pid} beneath {forebear}");
        }
        assert!(descends(1, GENERATIONS as i32, |pid| Some(pid + 1)));
        assert!(!descends(1, GENERATIONS as i32 + 1, |pid| Some(pid + 1)));
    }

    #[test]
    fn real_processes_are_found_beneath_those_that_started_them() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (own, shell_is) = (std::process::id() as i32, shell.id() as i32);
        let sleep: i32 = line.trim().parse().unwrap();
        let found = [
            is_in_tree_of(sleep, shell_is),
            is_in_tree_of(shell_is, shell_is),
            is_in_tree_of(sleep, own),
            is_in_tree_of(shell_is, sleep),
            is_in_tree_of(own, shell_is),
        ];
        let states = [is_stopped(sleep), is_stopped(-5)];
        let _ = Command::new("kill").arg(sleep.to_string()).status();
        shell.wait().unwrap();
        assert_eq!(found, [true, true, true, false, false]);
        assert_eq!(states, [Some(false), None]);
        assert!(!is_in_tree_of(sleep, shell_is), "it is gone");
    }
}

//! Processes that a run leaves behind: what they write after it has ended is no part of it.
//!
//! They are known by the run's ID in their environment, so one that cleared it, or that
//! another user owns, is not seen. Only the list of processes is read as long as nothing
//! was started since the command; nobody is touched.

use crate::child::RUN_ID;
use crate::render::{table, words};
use snapback_core::history::Id;
use snapback_core::text::Bytes;
use std::fs;
use std::time::Duration;

/// Numbers of processes are given out in a circle. In a run shorter than this it was not
/// closed, so that the numbers tell who came after the command.
const CIRCLE: Duration = Duration::from_secs(5);
/// Processes that a line names before it only counts.
const NAMED: usize = 3;
/// Columns of a command line that are shown.
const SHOWN: usize = 40;

/// A process that goes on.
#[derive(Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its number.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// The processes of the run `id` that go on, `since` its command was started as `command`.
pub fn of(id: &Id, command: u32, since: Duration) -> Vec<Survivor> {
    let last = fs::read_to_string("/proc/loadavg").ok();
    let last = last.and_then(|text| text.split_whitespace().last()?.parse().ok());
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let new = pids.filter(|&pid| since > CIRCLE || last.is_none_or(|last| is_between(pid, command, last)));
    let mark = format!("{RUN_ID}={id}");
    let mut found: Vec<Survivor> = new
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&b| b == 0).any(|variable| variable == mark.as_bytes())
        })
        .map(|pid| Survivor { pid, command: command_line(pid) })
        .collect();
    found.sort_by_key(|survivor| survivor.pid);
    found
}

/// Whether `pid` was given out after `first` and not after `last`.
fn is_between(pid: u32, first: u32, last: u32) -> bool {
    if first <= last { first < pid && pid <= last } else { first < pid || pid <= last }
}

fn command_line(pid: u32) -> String {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = text.strip_suffix(b"\0").unwrap_or(&text);
    let words: Vec<Bytes> = text.split(|&b| b == 0).map(|word| Bytes(word.to_vec())).collect();
    table::cut(&words::one_line(&words::command_line(&words)), SHOWN)
}

/// One line about `survivors`; none when there are none.
pub fn line(survivors: &[Survivor]) -> Option<String> {
    let one = |s: &Survivor| format!("`{}` ({})", s.command, s.pid);
    let named: Vec<String> = words::first(survivors.iter().map(one), NAMED).collect();
    let verb = if survivors.len() == 1 { "goes" } else { "go" };
    let what = match survivors.len() {
        1 => "process of the run".to_owned(),
        _ => "processes of the run".to_owned(),
    };
    let list = named.join(", ");
    let count = survivors.len();
    (count > 0).then(|| format!("{count} {what} {verb} on: {list}; what is changed now is no part of it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_out_in_a_circle() {
        for (pid, first, last, is) in [
            (5, 3, 9, true),
            (3, 3, 9, false),
            (9, 3, 9, true),
            (10, 3, 9, false),
            (99, 90, 4, true),
            (2, 90, 4, true),
            (50, 90, 4, false),
        ] {
            assert_eq!(is_between(pid, first, last), is, "{pid} in {first}..={last}");
        }
    }

    #[test]
    fn a_process_is_known_by_the_run_in_its_environment() {
        let id = Id::parse("20260102-030405-7f3a").unwrap();
        let start =
            |run: &str| std::process::Command::new("sleep").arg("600").env(RUN_ID, run).spawn().unwrap();
        let mut children = [start(id.as_str()), start("another")];
        let before = children[0].id() - 1;
        let found = loop {
            let found = of(&id, before, Duration::ZERO);
            // Until it has become the program, it is a copy of this one.
            if found.first().is_none_or(|survivor| survivor.command.starts_with("sleep")) && !found.is_empty()
            {
                break found;
            }
        };
        let all = of(&id, 0, CIRCLE * 2);
        children.iter_mut().for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        assert_eq!(found, [Survivor { pid: children[0].id(), command: "sleep 600".into() }]);
        assert_eq!(all, found);
        assert_eq!(of(&id, before, Duration::ZERO), []);
    }

    #[test]
    fn a_few_are_named_and_the_rest_is_counted() {
        let survivor = |pid| Survivor { pid, command: "sleep 9".into() };
        assert_eq!(line(&[]), None);
        assert_eq!(
            line(&[survivor(1)]).unwrap(),
            "1 process of the run goes on: `sleep 9` (1); what is changed now is no part of it"
        );
        let many: Vec<_> = (1..6).map(survivor).collect();
        let line = line(&many).unwrap();
        assert!(line.starts_with("5 processes of the run go on: `sleep 9` (1), "), "{line}");
        assert!(line.contains("`sleep 9` (3), 2 more; "), "{line}");
    }
}

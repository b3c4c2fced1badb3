//! The pager that long output goes through on a terminal: what SNAPBACK_PAGER or PAGER
//! names, else less, as people know it from git.
//!
//! Invariant: nothing is paged where standard output is no terminal. While the pager is
//! there, an interrupt is for it; this program ends when it does.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What less does unless the user says otherwise: colour, no screen of its own, and an end
/// when all fits on one.
const LESS: (&str, &str) = ("LESS", "FRX");
/// The same for lv.
const LV: (&str, &str) = ("LV", "-c");

/// A pager that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its name, or a line for the shell.
    named: OsString,
    /// What it finds in its environment besides.
    variables: Vec<(&'static str, &'static str)>,
}

/// The pager that the environment `variable` names; none when it is empty or shows things
/// as they are, and on a terminal that can do nothing, unless it is meant for this program.
pub fn chosen(variable: impl Fn(&str) -> Option<OsString>) -> Option<Chosen> {
    let is_dumb = || variable("TERM").is_some_and(|term| term == "dumb");
    let named = match variable("SNAPBACK_PAGER") {
        Some(named) => named,
        None if is_dumb() => return None,
        None => variable("PAGER").unwrap_or_else(|| "less".into()),
    };
    let variables = [LESS, LV].into_iter().filter(|(name, _)| variable(name).is_none()).collect();
    (!named.is_empty() && named != "cat").then_some(Chosen { named, variables })
}

/// A pager that is reading.
pub struct Pager {
    child: Child,
    input: Option<ChildStdin>,
}

impl Pager {
    /// Starts it; none when it cannot be.
    pub fn start(chosen: &Chosen) -> Option<Self> {
        let named = &chosen.named;
        let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+".contains(b);
        let mut command = match named.as_bytes().iter().all(is_plain) {
            true => Command::new(named),
            false => {
                let mut shell = Command::new("/bin/sh");
                shell.arg("-c").arg(named);
                shell
            }
        };
        command.envs(chosen.variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let input = child.stdin.take();
        // Noticed by whoever reads, which is the pager: this one ends with it.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)));
        Some(Self { child, input })
    }

    /// Lets it read to the end, and waits until the user has seen enough.
    pub fn end(mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |input| input.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_counts_and_nothing_means_none() {
        let of = |set: &[(&str, &str)]| {
            chosen(|name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into()))
        };
        let named = |set: &[(&str, &str)]| of(set).map(|chosen| chosen.named);
        assert_eq!(of(&[]), Some(Chosen { named: "less".into(), variables: vec![LESS, LV] }));
        assert_eq!(of(&[("LESS", "X")]).unwrap().variables, [LV]);
        assert_eq!(named(&[("PAGER", "more")]), Some("more".into()));
        assert_eq!(named(&[("SNAPBACK_PAGER", "most"), ("PAGER", "more")]), Some("most".into()));
        assert_eq!(named(&[("SNAPBACK_PAGER", ""), ("PAGER", "more")]), None);
        assert_eq!(named(&[("PAGER", "cat")]), None);
        assert_eq!(named(&[("TERM", "dumb"), ("PAGER", "more")]), None);
        assert_eq!(named(&[("TERM", "dumb"), ("SNAPBACK_PAGER", "more")]), Some("more".into()));
    }
}

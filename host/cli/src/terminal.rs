//! The terminal, when there is one: how wide it is, whether it gets colour, questions.
//!
//! A question is answered by a whole line; what interrupts it ends the program.

use crate::args::Colour;
use snapback_core::error::escaped;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a question stands on the terminal.
static ASKING: AtomicBool = AtomicBool::new(false);

/// What standard output and standard error are.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Columns of the terminal that standard output is; none when it is something else.
    pub width: Option<usize>,
    /// Whether standard output gets colour.
    pub colour_out: bool,
    /// Whether standard error is a terminal.
    pub err: bool,
}

/// What a text means, so that colour can help to see it. The text alone says it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// New.
    Added,
    /// Gone.
    Deleted,
    /// Changed.
    Modified,
    /// Less important.
    Aside,
}

impl Terminal {
    /// Looks.
    pub fn look(colour: Colour, no_color: bool) -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        let width = is_terminal
            .then(|| rustix::termios::tcgetwinsize(&out).ok())
            .flatten()
            .map(|size| usize::from(size.ws_col))
            .filter(|&columns| columns > 0);
        let colour_out = match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => is_terminal && !no_color,
        };
        Self { width, colour_out, err: io::stderr().is_terminal() }
    }

    /// `text` for standard output, in the colour of `tone` if it gets colour.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.colour_out || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Added => "32",
            Tone::Deleted => "31",
            Tone::Modified => "33",
            Tone::Aside => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Whether somebody can be asked.
    pub fn can_ask(&self) -> bool {
        self.controlling().is_some()
    }

    fn controlling(&self) -> Option<File> {
        let is_watched = self.err && io::stdin().is_terminal();
        is_watched.then(|| File::options().read(true).write(true).open("/dev/tty").ok()).flatten()
    }

    /// Asks on the controlling terminal; none when there is nobody to ask.
    ///
    /// Standard input is not touched: it may belong to a command that is yet to start,
    /// so no byte more than the answer is read from the terminal either.
    pub fn ask(&self, question: &str) -> Option<bool> {
        let mut tty = self.controlling()?;
        ASKING.store(true, Ordering::SeqCst);
        let asked = write!(tty, "{} [y/N] ", escaped(question));
        let answer = asked.ok().map(|()| line(&mut tty));
        ASKING.store(false, Ordering::SeqCst);
        answer.map(|line| line.is_some_and(|line| matches!(&*line.trim().to_lowercase(), "y" | "yes")))
    }
}

/// Whether a question stands on the terminal: nothing is at work that would have to end well.
pub fn is_asking() -> bool {
    ASKING.load(Ordering::SeqCst)
}

/// A line from `from`; none when that ends before the line does.
fn line(from: &mut impl Read) -> Option<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        match from.read(&mut byte) {
            Ok(1) if byte[0] == b'\n' => return Some(String::from_utf8_lossy(&line).into_owned()),
            Ok(1) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_only_where_it_is_wanted() {
        let with = |colour_out| Terminal { width: None, colour_out, err: false };
        assert_eq!(with(false).paint(Tone::Added, "A"), "A");
        assert_eq!(with(true).paint(Tone::Added, "A"), "\x1b[32mA\x1b[0m");
        assert!(!Terminal::look(Colour::Never, false).colour_out);
        assert!(Terminal::look(Colour::Always, true).colour_out);
    }

    #[test]
    fn an_answer_is_a_whole_line() {
        for (typed, answer) in [("y\nx", Some("y")), ("\n", Some("")), ("y", None), ("", None)] {
            assert_eq!(line(&mut typed.as_bytes()).as_deref(), answer, "{typed:?}");
        }
    }

    #[test]
    fn nobody_is_asked_where_nobody_is() {
        assert_eq!(Terminal { width: None, colour_out: false, err: false }.ask("really?"), None);
    }
}

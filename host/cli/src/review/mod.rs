//! The review: going through what changed, and deciding what is kept and what goes back.
//!
//! Invariant: nothing is touched here; what was decided is handed over as one choice, or
//! none when the user leaves without an end.

pub mod choice;
mod rows;
mod screen;
mod view;

use choice::{Choice, Item, Verdict};
use ratatui::Terminal;
use rows::Row;
use screen::{Key, Screen};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use snapback_core::error::{Error, Result};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Lines that a step in the diff goes on by.
const STEP: usize = 5;

/// What is shown, and where the user is in it.
pub struct Review<'a> {
    choice: Choice,
    rows: Vec<Row>,
    head: String,
    /// The line that is selected.
    at: usize,
    /// What is shown of it, and from which line on.
    detail: Vec<String>,
    scroll: usize,
    /// Whether the summary is asked about.
    asks: bool,
    detail_of: &'a dyn Fn(usize) -> Vec<String>,
}

/// What follows a key.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Go,
    Suspend,
    Done,
    Quit,
}

/// Goes through `choice` on the terminal; none when the user left without an end. `head`
/// says what is compared, `detail` what differs in the change of a number.
///
/// # Errors
/// When there is no terminal, or it is gone.
pub fn review(choice: Choice, head: String, detail: &dyn Fn(usize) -> Vec<String>) -> Result<Option<Choice>> {
    let failed = |error| Error::io(error, "could not use", "the terminal");
    let minding = Minding::begin().map_err(failed)?;
    let mut terminal = Terminal::new(Screen::enter().map_err(failed)?).map_err(failed)?;
    let mut review = Review::new(choice, head, detail);
    let mut first = 0;
    while !minding.0.ended.load(Ordering::SeqCst) {
        let height = usize::from(terminal.size().map_err(failed)?.height).saturating_sub(2).max(1);
        first = first.clamp((review.at + 1).saturating_sub(height), review.at);
        terminal.draw(|frame| view::draw(frame, &review, first)).map_err(failed)?;
        for key in terminal.backend_mut().keys().map_err(failed)? {
            match review.key(key, height) {
                Next::Go => {}
                Next::Suspend => {
                    terminal.backend_mut().suspend().map_err(failed)?;
                    terminal.clear().map_err(failed)?;
                }
                Next::Done => return Ok(Some(review.choice)),
                Next::Quit => return Ok(None),
            }
        }
    }
    Ok(None)
}

/// Signals end the review, and not the program before the terminal is as it was.
struct Signals {
    ended: Arc<AtomicBool>,
    /// No review is going on: they do what they do by themselves.
    idle: Arc<AtomicBool>,
}

static SIGNALS: OnceLock<Signals> = OnceLock::new();

/// As long as it is there, signals are minded.
struct Minding(&'static Signals);

impl Minding {
    fn begin() -> io::Result<Self> {
        if SIGNALS.get().is_none() {
            let signals = Signals { ended: Arc::default(), idle: Arc::default() };
            for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
                flag::register_conditional_default(signal, signals.idle.clone())?;
                flag::register(signal, signals.ended.clone())?;
            }
            let _ = SIGNALS.set(signals);
        }
        let signals = SIGNALS.get().ok_or(io::ErrorKind::Other)?;
        signals.ended.store(false, Ordering::SeqCst);
        signals.idle.store(false, Ordering::SeqCst);
        Ok(Self(signals))
    }
}

impl Drop for Minding {
    fn drop(&mut self) {
        self.0.idle.store(true, Ordering::SeqCst);
    }
}

impl<'a> Review<'a> {
    fn new(choice: Choice, head: String, detail_of: &'a dyn Fn(usize) -> Vec<String>) -> Self {
        let rows = rows::rows(&choice.items);
        let detail = Vec::new();
        let mut review = Self { choice, rows, head, at: 0, detail, scroll: 0, asks: false, detail_of };
        review.select(0);
        review
    }

    fn select(&mut self, at: usize) {
        self.at = at.min(self.rows.len().saturating_sub(1));
        self.scroll = 0;
        self.detail = match self.rows.get(self.at) {
            Some(Row::Change(number)) => (self.detail_of)(*number),
            _ => Vec::new(),
        };
    }

    fn decide(&mut self, verdict: Verdict) {
        let Some(row) = self.rows.get(self.at).cloned() else { return };
        let items = self.choice.items.iter().enumerate();
        let about: Vec<usize> = items
            .filter(|(number, item)| row.is_about(*number, item, &self.choice))
            .map(|(n, _)| n)
            .collect();
        about.iter().for_each(|&number| self.choice.items[number].verdict = verdict);
        if matches!(row, Row::Change(_)) {
            self.select(self.at + 1);
        }
    }

    fn key(&mut self, key: Key, height: usize) -> Next {
        if self.asks {
            match key {
                Key::Enter | Key::Char('y') => return Next::Done,
                Key::Escape | Key::Char('n') => self.asks = false,
                Key::Char('q') | Key::Control('c') => return Next::Quit,
                _ => {}
            }
            return Next::Go;
        }
        let all = |_: &Item| true;
        match key {
            Key::Char('q') | Key::Control('c') => return Next::Quit,
            Key::Control('z') => return Next::Suspend,
            Key::Up | Key::Char('k') => self.select(self.at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.select(self.at + 1),
            Key::PageUp => self.select(self.at.saturating_sub(height)),
            Key::PageDown => self.select(self.at + height),
            Key::Home | Key::Char('g') => self.select(0),
            Key::End | Key::Char('G') => self.select(usize::MAX),
            Key::Char('J') => self.scroll = (self.scroll + STEP).min(self.detail.len().saturating_sub(1)),
            Key::Char('K') => self.scroll = self.scroll.saturating_sub(STEP),
            Key::Char('a') => self.decide(Verdict::Accepted),
            Key::Char('r') => self.decide(Verdict::Rejected),
            Key::Char('u') => self.decide(Verdict::Open),
            Key::Char('A') => drop(self.choice.decide(Verdict::Accepted, all)),
            Key::Char('R') => drop(self.choice.decide(Verdict::Rejected, all)),
            Key::Enter => self.asks = true,
            Key::Escape | Key::Char(_) | Key::Control(_) => {}
        }
        Next::Go
    }
}

#[cfg(test)]
mod tests {
    use super::choice::tests::of;
    use super::*;

    #[test]
    fn keys_move_decide_and_end() {
        let detail = |number: usize| vec![format!("{number}"); 20];
        let mut review = Review::new(of(&["a", "src/b", "src/c"]), String::new(), &detail);
        assert!(review.detail.is_empty(), "a target has none");
        let mut press = |keys: &[Key]| keys.iter().map(|key| review.key(*key, 3)).last().unwrap();
        let c = Key::Char;
        assert_eq!(press(&[Key::Down, c('a'), c('r')]), Next::Go);
        assert_eq!(press(&[Key::End, c('u'), c('J'), c('J'), c('K')]), Next::Go);
        assert_eq!(press(&[Key::Enter, Key::Escape, Key::Enter, c('n')]), Next::Go);
        assert_eq!(press(&[Key::Control('z')]), Next::Suspend);
        assert_eq!(press(&[Key::Enter, Key::Enter]), Next::Done);
        assert_eq!((review.scroll, review.at), (5, 4));
        let verdicts: Vec<Verdict> = review.choice.items.iter().map(|item| item.verdict).collect();
        assert_eq!(verdicts, [Verdict::Accepted, Verdict::Rejected, Verdict::Open]);
        review.asks = false;
        assert_eq!(review.key(c('q'), 3), Next::Quit);
        review.key(c('R'), 3);
        assert_eq!(review.choice.count(Verdict::Rejected), 3);
        review.key(Key::Home, 3);
        review.key(c('A'), 3);
        assert_eq!((review.at, review.choice.count(Verdict::Accepted)), (0, 3));
    }
}

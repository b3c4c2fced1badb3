//! The terminal as a screen: its own buffer, keys as they are pressed, and everything as
//! it was when this is dropped.
//!
//! Invariant: what a name or a file holds never reaches the terminal as a control
//! character: cells with one show a mark instead.

use ratatui::backend::{Backend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Modifier};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::File;
use std::io::{self, Read, Write};

/// Begins a screen of its own, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Shows again what was there before.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// Tenths of a second that a key is waited for before the size is looked at.
const WAIT: u8 = 1;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A letter or a sign.
    Char(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// A page towards the beginning.
    PageUp,
    /// A page towards the end.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Yes, go on.
    Enter,
    /// Back.
    Escape,
    /// Ctrl and a letter.
    Control(char),
}

/// The controlling terminal.
pub struct Screen {
    tty: File,
    before: Termios,
    out: Vec<u8>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When there is none.
    pub fn enter() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&tty)?;
        let mut screen = Self { tty, before, out: Vec::new() };
        screen.take()?;
        Ok(screen)
    }

    fn take(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = WAIT;
        tcsetattr(&self.tty, OptionalActions::Flush, &raw)?;
        self.tty.write_all(ENTER)
    }

    fn leave(&mut self) {
        let _ = self.tty.write_all(LEAVE);
        let _ = tcsetattr(&self.tty, OptionalActions::Flush, &self.before);
    }

    /// Stops as any program does at Ctrl-Z, and goes on when it is woken.
    ///
    /// # Errors
    /// When the terminal is gone by then.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.leave();
        let _ = kill_process(getpid(), Signal::TSTP);
        self.take()
    }

    /// The keys that were pressed since the last time; waits a moment for one.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn keys(&mut self) -> io::Result<Vec<Key>> {
        let mut bytes = [0; 256];
        match self.tty.read(&mut bytes) {
            Ok(length) => Ok(keys(&bytes[..length])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// What was pressed, as terminals tell it.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = &*text;
    let mut keys = Vec::new();
    while let Some(first) = rest.chars().next() {
        let sequences = [
            ("\x1b[A", Key::Up),
            ("\x1bOA", Key::Up),
            ("\x1b[B", Key::Down),
            ("\x1bOB", Key::Down),
            ("\x1b[5~", Key::PageUp),
            ("\x1b[6~", Key::PageDown),
            ("\x1b[H", Key::Home),
            ("\x1bOH", Key::Home),
            ("\x1b[1~", Key::Home),
            ("\x1b[F", Key::End),
            ("\x1bOF", Key::End),
            ("\x1b[4~", Key::End),
        ];
        if let Some((after, key)) = sequences.iter().find_map(|(s, key)| Some((rest.strip_prefix(s)?, *key)))
        {
            (rest, _) = (after, keys.push(key));
            continue;
        }
        if let Some(unknown) = rest.strip_prefix("\x1b[") {
            let end = unknown.find(|c: char| c.is_ascii_alphabetic() || c == '~');
            rest = end.map_or("", |end| &unknown[end + 1..]);
            continue;
        }
        rest = &rest[first.len_utf8()..];
        keys.push(match first {
            '\r' | '\n' => Key::Enter,
            '\x1b' => Key::Escape,
            c @ '\x01'..='\x1a' => Key::Control(char::from(c as u8 + b'a' - 1)),
            c => Key::Char(c),
        });
    }
    keys
}

fn colour(color: Color, base: u8) -> String {
    let number = match color {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        _ => 9,
    };
    (base + number).to_string()
}

fn style(cell: &Cell) -> String {
    let mut codes = vec!["0".to_owned(), colour(cell.fg, 30), colour(cell.bg, 40)];
    for (modifier, code) in [(Modifier::BOLD, "1"), (Modifier::DIM, "2"), (Modifier::REVERSED, "7")] {
        if cell.modifier.contains(modifier) {
            codes.push(code.to_owned());
        }
    }
    format!("\x1b[{}m", codes.join(";"))
}

impl Backend for Screen {
    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let mut next = None;
        let mut styled = String::new();
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.out.extend(format!("\x1b[{};{}H", y + 1, x + 1).into_bytes());
            }
            let style = style(cell);
            if style != styled {
                self.out.extend(style.as_bytes());
                styled = style;
            }
            let symbol = cell.symbol();
            let symbol = if symbol.chars().any(char::is_control) { "?" } else { symbol };
            self.out.extend(symbol.as_bytes());
            // What is wider than a column moves on by more: told anew then.
            next = (symbol.len() == 1).then_some((x + 1, y));
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, _position: P) -> io::Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.out.extend(b"\x1b[0m\x1b[2J");
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(&self.tty)?;
        Ok(Size::new(size.ws_col, size.ws_row))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tty.write_all(&self.out)?;
        self.out.clear();
        self.tty.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let pressed = "aé\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[1;5Cq\r\x03\x1b";
        assert_eq!(
            keys(pressed.as_bytes()),
            [
                Key::Char('a'),
                Key::Char('é'),
                Key::Up,
                Key::Down,
                Key::PageUp,
                Key::PageDown,
                Key::Char('q'),
                Key::Enter,
                Key::Control('c'),
                Key::Escape,
            ]
        );
        assert_eq!(keys(b""), []);
    }
}

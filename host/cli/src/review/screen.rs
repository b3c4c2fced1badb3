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

/// What a sequence begins with, and a key of its own.
const ESC: u8 = 0x1b;

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
    /// What was read and is no whole key yet.
    typed: Vec<u8>,
    /// The first byte of a sequence came alone, and was taken for the key.
    escaped: bool,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When there is none.
    pub fn enter() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&tty)?;
        let mut screen = Self { tty, before, out: Vec::new(), typed: Vec::new(), escaped: false };
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
            Ok(0) if self.typed == [ESC] => {
                self.typed.clear();
                self.escaped = true;
                Ok(vec![Key::Escape])
            }
            Ok(length) => {
                let read = &bytes[..length];
                if !read.is_empty() && std::mem::take(&mut self.escaped) && matches!(read[0], b'[' | b'O') {
                    self.typed.push(ESC);
                }
                self.typed.extend(read);
                Ok(keys(&mut self.typed))
            }
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

/// Takes what was pressed out of `typed`, as terminals tell it: what is not whole yet stays
/// there, and what is unknown means nothing, in none of its parts.
fn keys(typed: &mut Vec<u8>) -> Vec<Key> {
    let (mut keys, mut at) = (Vec::new(), 0);
    while let Some(length) = whole(&typed[at..]) {
        keys.extend(key(&typed[at..at + length]));
        at += length;
    }
    typed.drain(..at);
    keys
}

/// How many of `bytes` are the first key; none when more of it is to come.
fn whole(bytes: &[u8]) -> Option<usize> {
    let letter = |rest: &[u8]| {
        let length = match rest.first()? {
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        (length <= rest.len()).then_some(length)
    };
    match bytes {
        [ESC] => None,
        [ESC, ESC, ..] => Some(1),
        // As the console tells its F1.
        [ESC, b'[', b'[', rest @ ..] => letter(rest).map(|length| 3 + length),
        [ESC, b'[' | b'O', rest @ ..] => {
            let end = rest.iter().position(|byte| matches!(*byte, ESC | b'@'..=b'~'))?;
            Some(2 + end + usize::from(rest[end] != ESC))
        }
        [ESC, rest @ ..] => letter(rest).map(|length| 1 + length),
        _ => letter(bytes),
    }
}

/// The key that `bytes` are.
fn key(bytes: &[u8]) -> Option<Key> {
    Some(match bytes {
        b"\x1b[A" | b"\x1bOA" => Key::Up,
        b"\x1b[B" | b"\x1bOB" => Key::Down,
        b"\x1b[5~" => Key::PageUp,
        b"\x1b[6~" => Key::PageDown,
        b"\x1b[H" | b"\x1bOH" | b"\x1b[1~" => Key::Home,
        b"\x1b[F" | b"\x1bOF" | b"\x1b[4~" => Key::End,
        [ESC] => Key::Escape,
        [ESC, ..] => return None,
        b"\r" | b"\n" => Key::Enter,
        [byte @ 1..=26] => Key::Control(char::from(byte + b'a' - 1)),
        _ => Key::Char(std::str::from_utf8(bytes).ok()?.chars().next()?),
    })
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

    /// All keys of `bytes`, and what is left.
    fn of(bytes: &[u8]) -> (Vec<Key>, Vec<u8>) {
        let mut typed = bytes.to_vec();
        (keys(&mut typed), typed)
    }

    #[test]
    fn keys_are_told_apart() {
        let pressed = "aé\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[1;5Cq\r\x03\x1b\x1b[B";
        let told = vec![
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
            Key::Down,
        ];
        assert_eq!(of(pressed.as_bytes()), (told.clone(), vec![]));
        // Wherever it is cut.
        for cut in 0..=pressed.len() {
            let (before, after) = pressed.as_bytes().split_at(cut);
            let (mut first, mut typed) = of(before);
            typed.extend(after);
            first.extend(keys(&mut typed));
            assert_eq!((first, typed), (told.clone(), vec![]), "cut at {cut}");
        }
        assert_eq!(of(b""), (vec![], vec![]));
        assert_eq!(of(b"\x1b"), (vec![], vec![ESC]));
    }

    #[test]
    fn an_unknown_key_means_nothing_in_none_of_its_parts() {
        let others = ["\x1bOP", "\x1bOR", "\x1bO5A", "\x1b[[A", "\x1b[15~", "\x1b[1;2R", "\x1bR", "\x1bé"];
        for other in others {
            assert_eq!(of(other.as_bytes()), (vec![], vec![]), "{other:?}");
            assert_eq!(of(format!("{other}a").as_bytes()).0, [Key::Char('a')], "{other:?}");
        }
        // One that is given up for another one.
        assert_eq!(of(b"\x1b[1;\x1b[A").0, [Key::Up]);
        assert_eq!(of(b"\xff\xc3").0, []);
    }
}

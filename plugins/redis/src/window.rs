//! Reading through a buffer that can be made to hold more: what is looked at stays where it is,
//! in one piece and however long it is, until it is consumed.

use std::io::{BufRead, Read, Result};

/// Bytes that are asked for at once.
const CHUNK: usize = 64 * 1024;

/// What was read from `R` and is not consumed yet.
pub struct Window<R> {
    input: R,
    /// Held are those from `start` to `end`.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl<R> Window<R> {
    /// Holds nothing yet.
    pub fn new(input: R) -> Self {
        Self { input, bytes: Vec::new(), start: 0, end: 0 }
    }

    /// Holds `bytes` already.
    pub fn holding(bytes: Vec<u8>, input: R) -> Self {
        Self { input, start: 0, end: bytes.len(), bytes }
    }

    /// Where it reads from; what is held is not there any more.
    pub fn input(&mut self) -> &mut R {
        &mut self.input
    }

    /// What is held.
    pub fn held(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The same, to be changed.
    pub fn held_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }
}

impl<R: Read> Window<R> {
    /// Holds more than before; whether there was more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn more(&mut self) -> Result<bool> {
        if self.bytes.len() - self.end < CHUNK {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= std::mem::take(&mut self.start);
            // Doubled, so that what is long is moved few times.
            self.bytes.resize((self.end + CHUNK).max(2 * self.end), 0);
        }
        let read = self.input.read(&mut self.bytes[self.end..])?;
        self.end += read;
        Ok(read > 0)
    }
}

impl<R: Read> Read for Window<R> {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let read = self.fill_buf()?.read(buf)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: Read> BufRead for Window<R> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        if self.start == self.end {
            self.more()?;
        }
        Ok(self.held())
    }

    fn consume(&mut self, amount: usize) {
        self.start = (self.start + amount).min(self.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stays_in_one_piece_until_it_is_consumed() {
        let all: Vec<u8> = (0..500_000u32).map(|at| (at / 3) as u8).collect();
        let mut window = Window::new(&all[..]);
        let mut seen = 0;
        for step in [0, 1, 70_000, 5, 200_000, 3] {
            while window.held().len() < step + 10 {
                assert!(window.more().unwrap());
            }
            assert_eq!(window.held()[..step + 10], all[seen..seen + step + 10]);
            window.consume(step);
            seen += step;
        }
        let mut rest = Vec::new();
        window.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, all[seen..]);
        assert!(!window.more().unwrap() && window.held().is_empty());
    }
}

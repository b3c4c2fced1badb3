//! The first bytes of a database file: by them it is known, whatever its name is.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a header.
pub const LENGTH: usize = 100;
/// What every SQLite database begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// What is needed of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of a page.
    pub page_size: u32,
    /// Whether whoever opens it writes ahead to a log.
    pub wal: bool,
    /// Counts changes of the schema.
    pub cookie: u32,
    /// Pages, as far as it can be relied on.
    pub pages: Option<u32>,
}

impl Header {
    /// The header that `bytes` begin with; none when it is not that of a database that
    /// SQLite reads. What is encrypted may keep the magic, but not all of what follows.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..LENGTH)?;
        let page_size = match u16::from_be_bytes([bytes[16], bytes[17]]) {
            1 => 65536,
            size => u32::from(size),
        };
        let fits = page_size.is_power_of_two() && (512..=65536).contains(&page_size);
        let versions = [1, 2].contains(&bytes[18]) && [1, 2].contains(&bytes[19]);
        // The three fractions of a page that the format fixes.
        if !bytes.starts_with(MAGIC) || !fits || !versions || bytes[21..24] != [64, 32, 32] {
            return None;
        }
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        // Old versions of SQLite did not keep it up to date.
        let pages = Some(number(28)).filter(|_| number(24) == number(92));
        Some(Self { page_size, wal: bytes[19] == 2, cookie: number(40), pages })
    }

    /// Bytes of the database in a file of `length` bytes with this header: the pages that SQLite
    /// counts. What lies behind them is room that was set aside, or nobody's. None when the
    /// file was cut short.
    pub fn image(&self, length: u64) -> Option<u64> {
        let size = u64::from(self.page_size);
        match self.pages.filter(|pages| *pages > 0) {
            Some(pages) => Some(u64::from(pages) * size).filter(|image| *image <= length),
            None => Some(length).filter(|length| length.is_multiple_of(size)),
        }
    }

    /// Whether a file of `length` bytes with this header was cut short.
    pub fn is_cut(&self, length: u64) -> bool {
        self.image(length).is_none()
    }

    /// The page that no database uses: the locks are at its offset.
    pub fn locked_page(&self) -> u32 {
        0x4000_0000 / self.page_size + 1
    }
}

/// The header of the open `file`; none when it is not that of a database.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &File) -> io::Result<Option<Header>> {
    let (mut begin, mut done) = ([0; LENGTH], 0);
    while done < LENGTH {
        match file.read_at(&mut begin[done..], done as u64)? {
            0 => break,
            more => done += more,
        }
    }
    Ok(Header::parse(&begin[..done]))
}

/// Writes the schema cookie into a first page.
pub fn set_cookie(page: &mut [u8], cookie: u32) {
    page[40..44].copy_from_slice(&cookie.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_known_by_more_than_its_first_bytes() {
        let mut good = vec![0; LENGTH];
        good[..16].copy_from_slice(MAGIC);
        good[16..24].copy_from_slice(&[0x10, 0, 1, 2, 0, 64, 32, 32]);
        set_cookie(&mut good, 7);
        let header = Header::parse(&good).unwrap();
        assert_eq!(header, Header { page_size: 4096, wal: true, cookie: 7, pages: Some(0) });
        good[28..32].copy_from_slice(&3u32.to_be_bytes());
        let header = Header::parse(&good).unwrap();
        assert_eq!(
            [8192, 12287, 12288, 12289, 16384].map(|n| header.image(n)),
            [None, None, Some(12288), Some(12288), Some(12288)]
        );
        good[24] = 1;
        let old = Header::parse(&good).unwrap();
        assert_eq!([4096, 4097].map(|n| old.image(n)), [Some(4096), None], "an old version wrote it");
        assert_eq!(header.locked_page(), 262_145);
        good[16..18].copy_from_slice(&[0, 1]);
        assert_eq!(Header::parse(&good).unwrap().page_size, 65536);
        for (at, byte) in [(0, 0), (16, 3), (18, 3), (19, 0), (21, 63), (23, 0)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(Header::parse(&bad), None, "byte {at}");
        }
        assert_eq!(Header::parse(&good[..99]), None);
    }
}

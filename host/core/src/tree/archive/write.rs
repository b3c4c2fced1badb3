//! Writing an archive: one member after the other, in the form that POSIX has, with records
//! for what its fixed fields cannot say.

use super::{BLOCK, DEVICE, Member, What, pax};
use crate::error::{Error, Result};
use std::io::Write;

/// The largest number that eleven octal digits are.
const LARGEST: u64 = (1 << 33) - 1;

/// An archive that is written.
pub(crate) struct Writer<W> {
    output: W,
    /// Bytes of the present member that are still to come, and those that fill its last block.
    left: u64,
    padding: usize,
}

impl<W: Write> Writer<W> {
    /// One that goes into `output`.
    pub fn new(output: W) -> Self {
        Self { output, left: 0, padding: 0 }
    }

    /// Begins a member; the bytes of a file follow by [`Self::put`].
    ///
    /// # Errors
    /// When nobody takes it.
    pub fn add(&mut self, member: &Member) -> Result<()> {
        self.pad()?;
        let (kind, size, linked, device): (u8, u64, &[u8], _) = match &member.what {
            What::File(size) => (b'0', *size, b"", (0, 0)),
            What::Link(to) => (b'1', 0, to, (0, 0)),
            What::Symlink(to) => (b'2', 0, to, (0, 0)),
            What::CharDevice(major, minor) => (b'3', 0, b"", (*major, *minor)),
            What::BlockDevice(major, minor) => (b'4', 0, b"", (*major, *minor)),
            What::Dir => (b'5', 0, b"", (0, 0)),
            What::Fifo => (b'6', 0, b"", (0, 0)),
        };
        let mut records = Vec::new();
        let is_plain = |text: &[u8]| text.len() <= 100 && text.is_ascii() && !text.contains(&0);
        if !is_plain(&member.path) {
            pax::put(&mut records, b"path", &member.path);
        }
        if !is_plain(linked) {
            pax::put(&mut records, b"linkpath", linked);
        }
        for (key, number, most) in [
            (&b"size"[..], size, LARGEST),
            (b"uid", u64::from(member.uid), 0o7_777_777),
            (b"gid", u64::from(member.gid), 0o7_777_777),
        ] {
            if number > most {
                pax::put(&mut records, key, number.to_string().as_bytes());
            }
        }
        let plain_time = u64::try_from(member.mtime.sec).ok().filter(|sec| *sec <= LARGEST);
        if plain_time.is_none() || member.mtime.nsec > 0 {
            pax::put(&mut records, b"mtime", pax::time_text(member.mtime).as_bytes());
        }
        member.xattrs.iter().for_each(|xattr| pax::put_xattr(&mut records, xattr));
        if !records.is_empty() {
            let mut head = [0; BLOCK];
            self.say(fields(&mut head, b"records", b'x', records.len() as u64))?;
            self.expect(records.len() as u64);
            self.put(&records)?;
            self.pad()?;
        }
        let mut head = [0; BLOCK];
        // What does not fit is in the records.
        fields(&mut head, &member.path[..member.path.len().min(100)], kind, size.min(LARGEST));
        octal(&mut head[100..108], u64::from(member.mode));
        octal(&mut head[108..116], u64::from(member.uid).min(0o7_777_777));
        octal(&mut head[116..124], u64::from(member.gid).min(0o7_777_777));
        octal(&mut head[136..148], plain_time.unwrap_or(0));
        let linked = &linked[..linked.len().min(100)];
        head[157..157 + linked.len()].copy_from_slice(linked);
        octal(&mut head[329..337], u64::from(device.0.min(DEVICE)));
        octal(&mut head[337..345], u64::from(device.1.min(DEVICE)));
        self.say(&mut head)?;
        self.expect(size);
        Ok(())
    }

    /// More bytes of the present member.
    ///
    /// # Errors
    /// When nobody takes them, or there are more than was said.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| Error::corrupt("a file is longer than it is stored to be"))?;
        self.output.write_all(bytes).map_err(refused)
    }

    /// So many zeros of the present member.
    ///
    /// # Errors
    /// As [`Self::put`] has them.
    pub fn zeros(&mut self, mut count: u64) -> Result<()> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        while count > 0 {
            let part = count.min(ZEROS.len() as u64);
            self.put(&ZEROS[..part as usize])?;
            count -= part;
        }
        Ok(())
    }

    /// Ends it.
    ///
    /// # Errors
    /// When nobody takes it.
    pub fn finish(mut self) -> Result<()> {
        self.pad()?;
        self.output.write_all(&[0; 2 * BLOCK]).and_then(|()| self.output.flush()).map_err(refused)
    }

    fn say(&mut self, head: &mut [u8; BLOCK]) -> Result<()> {
        head[148..156].fill(b' ');
        let sum: u64 = head.iter().map(|&b| u64::from(b)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.output.write_all(head).map_err(refused)
    }

    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = (BLOCK - (size % BLOCK as u64) as usize) % BLOCK;
    }

    /// Fills the last block of the present member.
    fn pad(&mut self) -> Result<()> {
        if self.left > 0 {
            return Err(Error::corrupt("a file is shorter than it is stored to be"));
        }
        let padding = std::mem::take(&mut self.padding);
        self.output.write_all(&[0; BLOCK][..padding]).map_err(refused)
    }
}

fn fields<'h>(head: &'h mut [u8; BLOCK], path: &[u8], kind: u8, size: u64) -> &'h mut [u8; BLOCK] {
    head[..path.len()].copy_from_slice(path);
    octal(&mut head[124..136], size);
    head[156] = kind;
    head[257..265].copy_from_slice(b"ustar\x0000");
    head
}

fn octal(field: &mut [u8], number: u64) {
    let digits = field.len() - 1;
    field[..digits].copy_from_slice(format!("{number:0digits$o}").as_bytes());
}

fn refused(error: std::io::Error) -> Error {
    Error::io(error, "could not write", "the archive")
}

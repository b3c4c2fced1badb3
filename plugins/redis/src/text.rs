//! The forms in which an RDB file has strings: plain, as numbers, and packed with LZF.

/// The decimal digits of a number of one, two or four bytes, the lowest first.
pub fn number(bytes: &[u8]) -> Vec<u8> {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide).to_string().into_bytes()
}

/// What was packed, `length` bytes; nothing when it cannot be unpacked to that.
pub fn decompress(packed: &[u8], length: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok()?;
    let mut out = Vec::new();
    let mut rest = packed.iter().map(|byte| usize::from(*byte));
    while let Some(control) = rest.next() {
        if control < 32 {
            for _ in 0..=control {
                out.push(u8::try_from(rest.next()?).ok()?);
            }
        } else {
            let more = if control >> 5 == 7 { rest.next()? } else { 0 };
            let count = (control >> 5) + more + 2;
            let back = ((control & 0x1f) << 8) + rest.next()? + 1;
            let from = out.len().checked_sub(back)?;
            for at in from..from + count {
                out.push(out[at]);
            }
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

/// Appends a string as a file has it.
pub fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a length.
pub fn length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        _ => {
            out.push(0x81);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits() {
        assert_eq!(number(&[5]), b"5");
        assert_eq!(number(&[0xff]), b"-1");
        assert_eq!(number(&[0, 1]), b"256");
        assert_eq!(number(&[0, 0, 0, 0x80]), b"-2147483648");
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        assert_eq!(decompress(&[1, b'a', b'b', 0x20, 1], 5), Some(b"ababa".to_vec()));
        for (packed, length) in
            [(&[1, b'a'][..], 2), (&[0x20, 9], 3), (&[0xe0], 9), (&[0, b'a'], 2), (&[0, b'a'], 0)]
        {
            assert_eq!(decompress(packed, length), None, "{packed:?}");
        }
    }
}

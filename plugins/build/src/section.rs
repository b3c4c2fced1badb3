//! The custom section in which a component says what it was made from.

/// Its name.
const NAME: &str = "snapback:sources";
/// What every component starts with: magic, version, layer.
const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

/// `component` with a section that records `digest`.
pub fn with_digest(mut component: Vec<u8>, digest: &str) -> Vec<u8> {
    let mut body = Vec::new();
    leb(&mut body, NAME.len());
    body.extend_from_slice(NAME.as_bytes());
    body.extend_from_slice(digest.as_bytes());
    component.push(0);
    leb(&mut component, body.len());
    component.extend_from_slice(&body);
    component
}

/// The digest that a component records; `None` when it records none or is none.
pub fn recorded_digest(component: &[u8]) -> Option<String> {
    let mut rest = component.strip_prefix(HEADER)?;
    while let Some((&id, after)) = rest.split_first() {
        let (len, after) = take_leb(after)?;
        let (body, after) = after.split_at_checked(len)?;
        rest = after;
        if id != 0 {
            continue;
        }
        let (len, body) = take_leb(body)?;
        let (name, payload) = body.split_at_checked(len)?;
        if name == NAME.as_bytes() {
            return String::from_utf8(payload.to_vec()).ok();
        }
    }
    None
}

fn leb(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_leb(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0usize;
    for (i, &byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_read() {
        let component = with_digest(HEADER.to_vec(), "abc");
        assert_eq!(recorded_digest(&component).as_deref(), Some("abc"));
        let long = "x".repeat(300);
        assert_eq!(recorded_digest(&with_digest(HEADER.to_vec(), &long)), Some(long));
    }

    #[test]
    fn what_is_no_component_records_nothing() {
        for bytes in [&b""[..], b"\0asm\x01\0\0\0", HEADER, b"\0asm\x0d\0\x01\0\0\xff\xff", &[0xff; 64]] {
            assert_eq!(recorded_digest(bytes), None, "{bytes:?}");
        }
    }
}

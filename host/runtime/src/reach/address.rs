//! Hosts and ports: what a name leads to, and what class of address that is.
//!
//! A name is resolved once for a call; the component gets these addresses and no others.
//! The class is part of what the user agrees to, so that a name that answers a loopback
//! address tomorrow opens nothing on this machine.

use snapback_core::error::{Error, Kind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// Says which addresses a name has now; none when it has none.
pub type Resolver = Arc<dyn Fn(&str, u16) -> Vec<SocketAddr> + Send + Sync>;

/// The system's own.
pub fn system() -> Resolver {
    Arc::new(|host, port| (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default())
}

/// The host in "host:port", without the brackets of an IPv6 address.
pub fn host(value: &str) -> Option<&str> {
    let (host, port) = value.rsplit_once(':')?;
    let bare = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').filter(|inner| inner.contains(':'))?,
        None if host.contains(':') => return None,
        None => host,
    };
    let port_is_one = port.parse::<u16>().is_ok_and(|port| port > 0);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    (port_is_one && !bare.is_empty() && bare.chars().all(plain)).then_some(bare)
}

/// The addresses that `value`, "host:port", has now, as `resolver` says.
///
/// # Errors
/// `Invalid` when it is not of that form, `NotFound` when the name has none.
pub fn resolve(key: &str, value: &str, resolver: &Resolver) -> Result<Vec<SocketAddr>> {
    let wrong = || {
        let why = format!("the setting `{key}` is a host and a port, not `{value}`");
        Error::new(Kind::Invalid, why).hint("write \"localhost:5432\" or \"[::1]:5432\"")
    };
    let host = host(value).ok_or_else(wrong)?;
    let port = value.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).ok_or_else(wrong)?;
    let found: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        Err(_) => resolver(host, port),
    };
    if found.is_empty() {
        let why = format!("the name `{host}` (setting `{key}`) has no address");
        return Err(Error::new(Kind::NotFound, why).hint("is it spelt right, and does the network work?"));
    }
    Ok(found)
}

/// The classes of `addresses`, in words.
pub fn classes(addresses: &[SocketAddr]) -> String {
    let mut classes: Vec<&str> = addresses.iter().map(|address| class(address.ip())).collect();
    classes.sort_unstable();
    classes.dedup();
    classes.join(", ")
}

/// What an address stands for. An IPv4 address inside an IPv6 one counts as itself.
fn class(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(v4) => class_of_4(v4),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| class_of_6(v6), class_of_4),
    }
}

fn class_of_4(address: Ipv4Addr) -> &'static str {
    let [a, b, ..] = address.octets();
    match (a, b) {
        // The whole network "this", which systems take for this machine.
        (127 | 0, _) => "this machine",
        (169, 254) => "link-local",
        (10, _) | (192, 168) | (172, 16..=31) | (100, 64..=127) => "private",
        (224..=255, _) => "multicast or reserved",
        _ => "public",
    }
}

fn class_of_6(address: Ipv6Addr) -> &'static str {
    match address.segments()[0] {
        _ if address.is_loopback() || address.is_unspecified() => "this machine",
        0xfe80..=0xfebf => "link-local",
        0xfc00..=0xfdff | 0xfec0..=0xfeff => "private",
        0xff00..=0xffff => "multicast or reserved",
        // These carry an IPv4 address that somebody on the way takes out.
        0x2002 | 0x0064 | 0x0000 => "translated",
        _ => "public",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_read() {
        for (value, expected) in [
            ("localhost:5432", Some("localhost")),
            ("127.0.0.1:1", Some("127.0.0.1")),
            ("[::1]:5432", Some("::1")),
            ("db.example:65535", Some("db.example")),
            ("db", None),
            ("db:", None),
            (":5432", None),
            ("db:0", None),
            ("db:65536", None),
            ("::1:5432", None),
            ("[db]:5432", None),
            ("[::1:5432", None),
            ("a b:1", None),
            ("/run/x.sock:1", None),
        ] {
            assert_eq!(host(value), expected, "{value}");
        }
        let resolve = |value: &str| resolve("address", value, &system());
        assert_eq!(resolve("[::1]:80").unwrap(), ["[::1]:80".parse().unwrap()]);
        assert_eq!(resolve("db").unwrap_err().kind(), Kind::Invalid);
        assert_eq!(resolve("no-such-host.invalid:1").unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn each_address_has_a_class() {
        for (address, expected) in [
            ("127.0.0.1", "this machine"),
            ("127.255.0.9", "this machine"),
            ("0.0.0.0", "this machine"),
            ("::1", "this machine"),
            ("::", "this machine"),
            ("::ffff:127.0.0.1", "this machine"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.32.0.1", "public"),
            ("192.168.1.1", "private"),
            ("100.64.0.1", "private"),
            ("fd00::1", "private"),
            ("169.254.169.254", "link-local"),
            ("fe80::1", "link-local"),
            ("::ffff:169.254.169.254", "link-local"),
            ("224.0.0.1", "multicast or reserved"),
            ("255.255.255.255", "multicast or reserved"),
            ("64:ff9b::7f00:1", "translated"),
            ("2002:7f00:1::", "translated"),
            ("::7f00:1", "translated"),
            ("8.8.8.8", "public"),
            ("2606:4700::1", "public"),
        ] {
            assert_eq!(class(address.parse().unwrap()), expected, "{address}");
        }
        let both = ["127.0.0.1:1", "8.8.8.8:1", "127.0.0.2:1"].map(|a| a.parse().unwrap());
        assert_eq!(classes(&both), "public, this machine");
    }
}

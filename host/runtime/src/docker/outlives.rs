//! Which files go with their volume when it is removed, and where the others lie.
//!
//! Only what the engine's own driver keeps in its own directory, or in memory, is certain to
//! go. Other drivers do as they like, and with the options of a mount a volume is another name
//! for what lies elsewhere: there is never a reason to remove such files with it.

use bollard::models::Volume as Found;
use std::collections::BTreeMap;

/// The engine's own driver.
pub const LOCAL: &str = "local";

/// Whether the files of a volume stay where they are when it is removed, as far as is known.
pub fn outlives(found: &Found) -> bool {
    let options = found.options.clone().into_iter().collect();
    found.driver != LOCAL
        || elsewhere(&options).is_some()
        || options.contains_key("device") && !is_memory(&options)
}

/// The path on the engine's machine that a volume with these options is another name for.
pub fn elsewhere(options: &BTreeMap<String, String>) -> Option<&str> {
    let device = options.get("device").map(String::as_str)?;
    let kind = options.get("type").map_or("", String::as_str);
    (is_bound(options) || !matches!(kind, "tmpfs" | "nfs" | "nfs4" | "cifs")).then_some(device)
}

/// The directory that a volume with these options is another name for.
pub fn directory(options: &BTreeMap<String, String>) -> Option<&str> {
    options.get("device").map(String::as_str).filter(|_| is_bound(options))
}

/// Whether what is mounted beneath that directory is part of it.
pub fn is_recursive(options: &BTreeMap<String, String>) -> bool {
    words(options).any(|word| word == "rbind")
}

fn is_bound(options: &BTreeMap<String, String>) -> bool {
    words(options).any(|word| matches!(word, "bind" | "rbind"))
}

/// Whether a volume with these options lies in memory: its files are there only while a container
/// runs with it.
pub fn is_memory(options: &BTreeMap<String, String>) -> bool {
    !is_bound(options) && options.get("type").is_some_and(|kind| kind == "tmpfs")
}

fn words(options: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    options.get("o").into_iter().flat_map(|o| o.split(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options, and of a volume of the engine's own driver that has them: the path that may not
    /// be reached unasked, whether that is a directory, whether the files outlive it.
    const CASES: [(&str, Option<&str>, bool, bool); 9] = [
        ("", None, false, false),
        ("size=1g", None, false, false),
        ("type=tmpfs device=tmpfs", None, false, false),
        ("type=tmpfs device=tmpfs o=size=1m", None, false, false),
        ("type=nfs device=:/x o=addr=h", None, false, true),
        ("type=none device=/etc o=bind", Some("/etc"), true, true),
        ("device=/etc o=ro,rbind", Some("/etc"), true, true),
        ("type=ext4 device=/dev/sda1", Some("/dev/sda1"), false, true),
        ("type=tmpfs device=/etc o=bind", Some("/etc"), true, true),
    ];

    #[test]
    fn what_lies_elsewhere_is_told_from_what_is_the_volumes_own() {
        for (text, path, is_directory, stays) in CASES {
            let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
            let options: BTreeMap<String, String> =
                pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            assert_eq!(elsewhere(&options), path, "{text}");
            assert_eq!(directory(&options), path.filter(|_| is_directory), "{text}");
            let found = |driver: &str| Found {
                driver: driver.into(),
                options: options.clone().into_iter().collect(),
                ..Found::default()
            };
            assert_eq!(outlives(&found(LOCAL)), stays, "{text}");
            assert!(outlives(&found("other")), "{text}: nobody knows what another driver does");
        }
    }
}

//! Which process made something on the engine, so that what a killed one left can be told
//! from what one still needs.

use std::fs;

/// A process, in words that no other is called by: machine, start of the system, namespace
/// of its number, number, start.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    machine: String,
    boot: String,
    space: String,
    pid: u32,
    start: String,
}

/// This process.
pub fn me() -> String {
    here().map(|owner| owner.text()).unwrap_or_default()
}

/// Whether the process that is called so is certainly gone. One of another machine, or
/// whose number means another here, is not known to be.
pub fn is_gone(text: &str) -> bool {
    let Some(owner) = Owner::parse(text) else { return false };
    let Some(me) = here() else { return false };
    owner.machine == me.machine
        && (owner.boot != me.boot
            || owner.space == me.space && start_of(owner.pid).is_none_or(|start| start != owner.start))
}

impl Owner {
    fn text(&self) -> String {
        let Self { machine, boot, space, pid, start } = self;
        format!("{machine} {boot} {space} {pid} {start}")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ').map(str::to_owned);
        let (machine, boot, space) = (words.next()?, words.next()?, words.next()?);
        let (pid, start) = (words.next()?.parse().ok()?, words.next()?);
        Some(Self { machine, boot, space, pid, start })
    }
}

fn here() -> Option<Owner> {
    let id = line("/etc/machine-id").filter(|id| !id.is_empty());
    let machine = id.or_else(|| line("/proc/sys/kernel/hostname"))?;
    let space = fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
    let pid = std::process::id();
    Some(Owner { machine, boot: line("/proc/sys/kernel/random/boot_id")?, space, pid, start: start_of(pid)? })
}

/// When the process of that number started; none when there is none, or it has ended and
/// nobody asked yet how.
fn start_of(pid: u32) -> Option<String> {
    let stat = line(&format!("/proc/{pid}/stat"))?;
    // After the name, which may hold anything, comes its state; the start is the twentieth.
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = words.next()?;
    words.nth(18).filter(|_| !matches!(state, "Z" | "X")).map(str::to_owned)
}

fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certainly_gone_is() {
        assert!(!is_gone(&me()));
        let mine = || Owner::parse(&me()).unwrap();
        assert_eq!(mine().text(), me());
        assert!(is_gone(&Owner { start: "1".into(), ..mine() }.text()), "another had the number before");
        assert!(is_gone(&Owner { boot: "x".into(), ..mine() }.text()), "the system was started again");
        for other in [Owner { machine: "x".into(), ..mine() }, Owner { space: "x".into(), ..mine() }] {
            assert!(!is_gone(&Owner { start: "1".into(), ..other }.text()));
        }
        assert!(!is_gone("") && !is_gone("a b"));
        // One that has ended and that nobody waits for holds nothing any more.
        let mut child =
            std::process::Command::new("true").stdout(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        std::io::Read::read_to_end(&mut child.stdout.take().unwrap(), &mut Vec::new()).unwrap();
        while fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().split(' ').nth(2) != Some("Z") {
            std::thread::yield_now();
        }
        assert_eq!(start_of(pid), None);
        child.wait().unwrap();
    }
}

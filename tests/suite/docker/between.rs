//! Somebody between a user and an engine, who passes everything on, but some words of one or the
//! other as others of the same length. Of the user's words those that come in one piece.

use super::Engine;
use super::engine::until;
use snapback_tests::Running;
use std::path::PathBuf;
use std::process::Command;

/// Listens at the second path, and speaks to the first; the words follow in pairs, after how
/// often each is put for the other.
const BETWEEN: &str = r#"
import os, socket, sys, threading
ahead, here, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
words = [word.encode() for word in sys.argv[4:]]
swaps, left, lock = list(zip(words[::2], words[1::2])), {}, threading.Lock()
def begun(data):
    return max(n for old, _ in swaps for n in range(len(old)) if data.endswith(old[:n]))
def swap(data):
    for old, new in swaps:
        with lock:
            found = min(data.count(old), left.setdefault(old, times))
            left[old] -= found
        data = data.replace(old, new, found)
    return data
def pump(a, b, told):
    rest = b''
    try:
        while data := a.recv(1 << 16):
            if told:
                data = swap(rest + data)
                cut = len(data) - begun(data)
                data, rest = data[:cut], data[cut:]
            else:
                data = swap(data)
            b.sendall(data)
        b.sendall(rest)
    except OSError: pass
    try: b.shutdown(socket.SHUT_WR)
    except OSError: pass
listener = socket.socket(socket.AF_UNIX)
listener.bind(here)
os.chmod(here, 0o777)
listener.listen(64)
while True:
    near, _ = listener.accept()
    far = socket.socket(socket.AF_UNIX)
    far.connect(ahead)
    for ends in ((near, far, False), (far, near, True)):
        threading.Thread(target=pump, args=ends, daemon=True).start()
"#;

/// There while it lives.
pub struct Between {
    /// Where it listens.
    pub socket: PathBuf,
    _process: Running,
}

impl Between {
    /// Puts the second of each pair for the first, so many `times`.
    pub fn start(engine: &Engine, name: &str, times: u32, swaps: &[(String, String)]) -> Self {
        let socket = engine.socket().with_file_name(format!("{name}.sock"));
        let mut python = Command::new("python3");
        python.args(["-c", BETWEEN]).arg(engine.socket()).arg(&socket).arg(times.to_string());
        swaps.iter().for_each(|(old, new)| {
            assert_eq!(old.len(), new.len());
            python.args([old, new]);
        });
        let process = Running::of(&mut python);
        until("who stands between", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        Self { socket, _process: process }
    }
}

//! A Docker engine of the tests' own: its data, its socket, nothing of the network.
//!
//! One for the whole test process, and one alone for a test that ends it, or gives it drivers:
//! an engine asks each that it ever knew, and waits for those that are gone. A shell waits for the
//! test process to end, however it ends, and then ends the engine and removes its data. What a test
//! made on one goes when the test ends: the data lies in memory, and one test may fill a gigabyte.

pub use snapback_tests::until;
use snapback_tests::{PATIENCE, have, is_root, say, scratch, skip};
use std::fmt::{Display, Formatter};
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// The image that containers of the tests are made from: a busybox and nothing else.
pub const IMAGE: &str = "box";
/// Starts an engine in the directory that it is given, again each time that it is told to,
/// until its input ends. One that somebody killed is started once more, for it to end its
/// containers: their file systems would stay mounted.
const KEEPER: &str = r#"
cd "$1"
trap : INT HUP TERM
engine() {
    dockerd --iptables=false --ip6tables=false --bridge=none --data-root "$1/data" --exec-root "$1/exec" \
        --pidfile "$1/pid" -H "unix://$1/sock" -G 65534 >>"$1/log" 2>&1 </dev/null &
}
engine "$1"
while read -r word; do
    kill -TERM $!; wait $!
    engine "$1"
done
kill -0 $! || engine "$1"
for _ in 1 2 3 4 5 6 7 8 9; do docker --host "unix://$1/sock" version && break; sleep 1; done >/dev/null 2>&1
docker --host "unix://$1/sock" ps -aq | xargs -r docker --host "unix://$1/sock" rm -f >/dev/null
kill -TERM $!; wait $!
umount "$1/data" 2>/dev/null
rm -rf "$1"
"#;
/// The same for a podman, of whoever runs this; none is started again. It may not raise limits here,
/// which it does for containers of root, so its runtime is told of none. Without ranges of numbers of its
/// own, all that is in the containers of an ordinary user belongs to that user.
const PODMAN: &str = r#"
cd "$1"
mkdir home run tmp
chmod 700 run
export HOME="$1/home" XDG_RUNTIME_DIR="$1/run" TMPDIR="$1/tmp"
cat > storage.conf <<END
[storage]
driver = "vfs"
runroot = "$1/run"
graphroot = "$1/data"
rootless_storage_path = "$1/data"
[storage.options.vfs]
ignore_chown_errors = "true"
END
printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n[engine.runtimes]\nrunc = ["%s/runc"]\n' \
    "$1" > containers.conf
cat > runc <<'END'
#!/usr/bin/python3
import json, os, sys
words = sys.argv[1:]
if 'create' in words and '--bundle' in words:
    path = words[words.index('--bundle') + 1] + '/config.json'
    config = json.load(open(path))
    config['process'].pop('rlimits', None)
    json.dump(config, open(path, 'w'))
os.execvp('runc', ['runc'] + words)
END
chmod +x runc
export CONTAINERS_CONF="$1/containers.conf" CONTAINERS_STORAGE_CONF="$1/storage.conf"
podman system service --time 0 "unix://$1/sock" >>log 2>&1 </dev/null &
until [ -S sock ]; do sleep 0.1; done
if [ "$(id -u)" = 0 ]; then chown 0:65534 sock; fi
chmod 660 sock
while read -r word; do :; done
podman rm -f -a -t 0 >>log 2>&1
kill -TERM $!; wait $!
# The process that keeps an ordinary user's namespace.
if [ -e run/libpod/tmp/pause.pid ]; then kill "$(cat run/libpod/tmp/pause.pid)"; fi
if [ "$(id -u)" = 0 ]; then rm -rf "$1"; fi
"#;
/// Where an engine looks for drivers, whatever its own directories are.
const DRIVERS: &str = "/run/docker/plugins";

/// An engine that answers.
pub struct Engine {
    dir: PathBuf,
    keeper: Mutex<(Child, Option<ChildStdin>)>,
}

impl Engine {
    /// The one that tests share; none, and that is said, where there can be none.
    pub fn shared() -> Option<&'static Self> {
        static ENGINE: OnceLock<Option<Engine>> = OnceLock::new();
        ENGINE.get_or_init(|| Self::start("shared", &["sh"], KEEPER)).as_ref()
    }

    /// One for a test that ends it, with drivers of its own.
    pub fn alone() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let own =
            format!(r#"mkdir -p {DRIVERS} "$4/drivers"; mount --bind "$4/drivers" {DRIVERS}; exec sh "$@""#);
        let within = ["unshare", "--mount", "sh", "-c", &own, "drivers"];
        Self::start(&format!("alone{}", NEXT.fetch_add(1, Ordering::Relaxed)), &within, KEEPER)
    }

    /// One alone, whose containers are run by the script `runtime`.
    pub fn frail(runtime: &str) -> Option<Self> {
        let write = r#"printf %s "$1" > "$5/frail"; chmod +x "$5/frail"; shift; exec sh "$@""#;
        let with = r#"--add-runtime frail="$1/frail" --default-runtime frail -H "#;
        Self::start("frail", &["sh", "-c", write, "frail", runtime], &KEEPER.replace("-H ", with))
    }

    /// A podman; none, and that is said, where it is not installed.
    pub fn podman() -> Option<Self> {
        Self::has_podman().then(|| Self::start("podman", &["sh"], PODMAN))?
    }

    /// A podman of uid 65534, who has no rights of root and no numbers but its own.
    pub fn rootless() -> Option<Self> {
        // What the tests themselves put there is root's, who removes it.
        let ordinary = r#"chown 65534:65534 "$4"
            setpriv --reuid 65534 --regid 65534 --clear-groups sh "$@"
            rm -rf "$4""#;
        Self::has_podman().then(|| Self::start("rootless", &["sh", "-c", ordinary, "rootless"], PODMAN))?
    }

    fn has_podman() -> bool {
        let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
        let has = is_there("podman") && is_there("runc");
        if !has {
            say("podman or runc is not installed: only its words are tested");
        }
        has
    }

    /// Starts one by the shell that the first words are, which keeps it by that script.
    fn start(name: &str, shell: &[&str], script: &str) -> Option<Self> {
        if !is_root() {
            skip("only root can start a Docker engine");
            return None;
        }
        if !["dockerd", "docker", "busybox"].iter().all(|program| have(program)) {
            return None;
        }
        // A short path: that of a socket may not be long.
        let base = Some(scratch()).filter(|dir| dir.as_os_str().len() <= 30);
        let base = base.unwrap_or_else(|| "/tmp".into());
        let dir = base.join(format!("snapback-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for the engine");
        let mut keeper = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", script, "keeper"])
            .arg(&dir)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let input = keeper.stdin.take();
        let engine = Self { dir, keeper: Mutex::new((keeper, input)) };
        engine.answers();
        engine.sh("mkdir root; mkdir root/bin; cp $(command -v busybox) root/bin/busybox; tar -C root -c . | docker import - box");
        Some(engine)
    }

    /// Ends the engine as its machine's shutdown would, and starts it again.
    pub fn restart(&self) {
        let old = std::fs::read_to_string(self.dir.join("pid")).unwrap_or_default();
        writeln!(self.keeper.lock().unwrap().1.as_ref().unwrap(), "again").unwrap();
        until("another engine", || std::fs::read_to_string(self.dir.join("pid")).is_ok_and(|pid| pid != old));
        self.answers();
    }

    fn answers(&self) {
        until("the engine's answer", || self.try_docker(&["version"]).is_some());
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("sock")
    }

    /// Where the sockets of its drivers are looked for, when it is alone.
    pub fn drivers(&self) -> PathBuf {
        self.dir.join("drivers")
    }

    /// Where the files of a volume lie.
    pub fn files(&self, volume: &str) -> PathBuf {
        self.dir.join("data/volumes").join(volume).join("_data")
    }

    /// Runs `docker` and returns what it printed.
    #[track_caller]
    pub fn docker(&self, words: &[&str]) -> String {
        self.try_docker(words).unwrap_or_else(|| panic!("docker {words:?} failed"))
    }

    pub fn try_docker(&self, words: &[&str]) -> Option<String> {
        let output =
            Command::new("docker").args(words).env("DOCKER_HOST", self.host()).output().expect("docker");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs a shell script as root, where the engine's data is.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(&self.dir).env("DOCKER_HOST", self.host());
        let output = command.output().expect("a shell");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Starts a container that runs `script` with the volume at /v.
    #[track_caller]
    pub fn run(&self, name: &str, volume: &str, script: &str) {
        let mount = format!("{volume}:/v");
        self.docker(&[
            "run",
            "-d",
            "--network",
            "none",
            "--stop-signal",
            "KILL",
            "--name",
            name,
            "-v",
            &mount,
            IMAGE,
            "/bin/busybox",
            "sh",
            "-c",
            script,
        ]);
    }

    /// Whether the container runs, stands still, or has ended, in docker's word.
    pub fn state(&self, container: &str) -> String {
        self.docker(&["inspect", "-f", "{{.State.Status}}", container])
    }

    /// Looks out for what happens to a container, in docker's word.
    pub fn expect(&self, container: &str, event: &str) -> Expected {
        self.listen(&format!("container={container}"), event)
    }

    /// Looks out for what happens to those containers that `filter` means.
    pub fn listen(&self, filter: &str, event: &str) -> Expected {
        let since = self.sh("date +%s.%N");
        let filters = [filter.to_owned(), format!("event={event}")];
        let mut events = Command::new("docker")
            .args(["events", "--since", &since, "--filter", &filters[0], "--filter", &filters[1]])
            .env("DOCKER_HOST", self.host())
            .stdout(Stdio::piped())
            .spawn()
            .expect("docker");
        let output = events.stdout.take().expect("it is piped");
        let (told, heard) = channel();
        std::thread::spawn(move || told.send(BufReader::new(output).lines().next().is_some()));
        Expected { events, heard }
    }

    /// What happened to a container, in docker's words, since it was made.
    pub fn events(&self, container: &str) -> Vec<String> {
        let until = self.sh("date +%s.%N");
        let filter = format!("container={container}");
        let text = self.docker(&[
            "events",
            "--since",
            "0",
            "--until",
            &until,
            "--filter",
            &filter,
            "--format",
            "{{.Action}}",
        ]);
        text.lines().map(str::to_owned).collect()
    }

    /// Removes what a test made: the volumes of that name, alone or before a dash, and the
    /// containers that use them.
    fn forget(&self, name: &str) {
        let is_its = |other: &&str| {
            other.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let volumes = self.try_docker(&["volume", "ls", "-q"]).unwrap_or_default();
        for volume in volumes.lines().filter(is_its) {
            let users = self.try_docker(&["ps", "-aq", "--filter", &format!("volume={volume}")]);
            for container in users.unwrap_or_default().lines() {
                self.try_docker(&["rm", "-f", container]);
            }
            self.try_docker(&["volume", "rm", "-f", volume]);
        }
    }

    /// Containers that snapback made for a volume and that are still there.
    pub fn leftovers(&self, volume: &str) -> String {
        self.docker(&["ps", "-aq", "--filter", &format!("label=dev.snapback.volume={volume}")])
    }

    fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let (keeper, input) = self.keeper.get_mut().unwrap();
        drop(input.take());
        let _ = keeper.wait();
    }
}

/// The name of a volume, or the beginning of the names of some, that one test has for itself.
pub struct Name<'a> {
    engine: &'a Engine,
    name: String,
}

impl<'a> Name<'a> {
    /// A name that nothing on the engine has.
    pub fn fresh(engine: &'a Engine) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self { engine, name: format!("v{}", NEXT.fetch_add(1, Ordering::Relaxed)) }
    }
}

impl Deref for Name<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for Name<'_> {
    fn drop(&mut self) {
        self.engine.forget(&self.name);
    }
}

/// Something that is to happen on an engine.
pub struct Expected {
    events: Child,
    heard: Receiver<bool>,
}

impl Expected {
    /// Waits for it, and goes on in the moment that it happens.
    #[track_caller]
    pub fn comes(&self) {
        assert_eq!(self.heard.recv_timeout(PATIENCE), Ok(true), "it did not happen");
    }

    /// Whether it has happened by now; an engine tells at once.
    pub fn came(&self) -> bool {
        self.heard.recv_timeout(Duration::from_secs(1)) == Ok(true)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let _ = self.events.kill();
        let _ = self.events.wait();
    }
}

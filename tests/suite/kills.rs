//! The program is killed at random moments, again and again. Whatever it was doing, the
//! next command goes on by itself: the project is as it was before or as it was to be,
//! every snapshot that is listed holds what it should, and the store is whole.
//!
//! What each snapshot should hold is known from records of the project that other
//! people's tools took. SNAPBACK_KILLS sets the number of rounds, SNAPBACK_SEED what
//! happens in them.

use rustix::process::Signal;
use serde_json::Value;
use snapback_tests::{Chance, Record, Running, Sandbox, User, say, times, users};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// Rounds, unless SNAPBACK_KILLS says otherwise.
const ROUNDS: u64 = 200;
/// Files of the project: a restore takes long enough to be hit.
const FILES: u64 = 60;
/// The history is bounded, so that dropping and collecting are hit as well.
const KEEP: usize = 14;

/// What a round may do.
const VERBS: [&str; 7] = ["snap", "run", "run", "undo", "undo", "redo", "gc"];
/// How long each may take at most before it is killed: as long as it took when it was not.
type Longest = BTreeMap<&'static str, Duration>;

struct World {
    s: Sandbox,
    chance: Chance,
    /// What each snapshot should hold.
    known: BTreeMap<String, Record>,
    /// What the project is.
    now: Record,
    round: u64,
    killed: u64,
    unfinished: u64,
}

impl World {
    fn new(user: User) -> Self {
        let s = Sandbox::new(crate::PROGRAM, user);
        std::fs::create_dir_all(s.config().parent().unwrap()).unwrap();
        std::fs::write(s.config(), format!("[retention]\nkeep = {KEEP}\n")).unwrap();
        s.sh(&format!(
            "mkdir d e; for f in $(seq {FILES}); do head -c 3000 /dev/urandom > d/f$f; done
             ln -s d/f1 link; ln d/f2 e/hard; mkfifo pipe; chmod 600 d/f3; mkdir empty"
        ));
        let now = Record::take(&s.project());
        let chance = Chance::new("kills", 20_260_102);
        Self { s, chance, known: BTreeMap::new(), now, round: 0, killed: 0, unfinished: 0 }
    }

    /// What goes wrong here can be repeated.
    fn place(&self) -> String {
        format!("round {} with SNAPBACK_SEED={}", self.round, self.chance.seed())
    }

    fn json(&self, verb: &str) -> Value {
        self.s.ok([verb, "--json"]).json()
    }

    fn ids(&self) -> Vec<String> {
        let list = self.json("list");
        list.as_array().unwrap().iter().map(|snap| snap["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Snapshots that are new hold `state`.
    fn learn(&mut self, state: &Record) {
        for id in self.ids() {
            self.known.entry(id).or_insert_with(|| state.clone());
        }
    }

    fn edits(&mut self) -> String {
        let mut script = String::new();
        for _ in 0..6 {
            let f = self.chance.below(FILES) + 1;
            script.push_str(&match self.chance.below(9) {
                0 => format!("rm -f d/f{f}\n"),
                1 => format!("rm -rf empty; printf {f} > empty\n"),
                2 => "rm -rf empty; mkdir -p empty/deep; date > empty/deep/f\n".to_owned(),
                3 => format!("chmod $((600 + {})) d/f1 || true\n", f % 8 * 10),
                4 => format!("ln -sfn d/f{f} link\n"),
                5 => format!("mv d/f{f} e/moved 2>/dev/null || true\n"),
                _ => format!("head -c {} /dev/urandom > d/f{f}\n", f * 100),
            });
        }
        script
    }

    /// The words of a command, and the state that an undo or a redo goes to.
    fn words(&mut self, verb: &str, status: &Value) -> (Vec<String>, Option<Record>) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match verb {
            "run" => {
                let script = self.edits();
                (words(&["run", "--", "sh", "-c", &script]), None)
            }
            "gc" => (words(&["gc", "--keep", "6"]), None),
            "snap" => {
                let script = self.edits();
                self.s.sh(&script);
                self.now = Record::take(&self.s.project());
                (words(&["snap"]), None)
            }
            verb => {
                let goal = status[verb]["to"].as_str().map(|to| self.known[to].clone());
                (words(&[verb]), goal)
            }
        }
    }

    fn round(&mut self, longest: &Longest) {
        let status = self.json("status");
        let verb = *self.chance.of(&VERBS);
        let (words, goal) = self.words(verb, &status);
        let (before, listed) = (self.now.clone(), self.ids());
        let mut child = Running::of(self.s.program().args(&words));
        std::thread::sleep(self.chance.moment(longest[verb]));
        let _ = rustix::process::kill_process_group(child.pid(), Signal::KILL);
        self.killed += u64::from(child.wait().signal() == Some(9));
        drop(child);
        let half = Record::take(&self.s.project());
        // Looking goes on, and nothing is lost from the list but what is out of bounds.
        self.learn(&before);
        let now = self.ids();
        let lost = listed.iter().filter(|id| !now.contains(id)).count();
        assert!(lost == 0 || verb == "gc" || listed.len() + 1 > KEEP, "{}: {lost} lost", self.place());
        let pending = self.json("status")["pending"].is_object();
        self.unfinished += u64::from(pending);
        match verb {
            "snap" | "gc" => assert!(before.is_like(&half), "{}: {verb} touched something", self.place()),
            "run" => {}
            _ if pending => {
                self.looks_go_on(&half);
                self.go_on(verb, [&before, &half], goal.as_ref());
            }
            _ => {
                let is_one = before.is_like(&half) || goal.is_some_and(|goal| goal.is_like(&half));
                assert!(is_one, "{}: {verb} left half of it", self.place());
            }
        }
        self.now = Record::take(&self.s.project());
    }

    /// Commands that only look do so while a step is unfinished, and touch nothing.
    fn looks_go_on(&mut self, half: &Record) {
        let id = self.chance.of(&self.ids()).clone();
        let looks: [&[&str]; 6] =
            [&["status"], &["list"], &["show", &id], &["diff", &id], &["verify"], &["cat", &id, "d/f3"]];
        let look = *self.chance.of(&looks);
        let code = self.s.snapback(look).code();
        // A file may not be in that snapshot.
        assert!(code == 0 || code == 1 && look[0] == "cat", "{}: {look:?} ended with {code}", self.place());
        let now = Record::take(&self.s.project());
        assert!(half.is_like(&now), "{}: {look:?} touched something", self.place());
        assert!(self.json("status")["pending"].is_object(), "{}: {look:?} ended the step", self.place());
    }

    /// The next command after an undo or a redo that was cut short.
    fn go_on(&mut self, verb: &str, [before, half]: [&Record; 2], goal: Option<&Record>) {
        let goal = goal.expect("what was begun goes somewhere");
        let (words, want): (&[&str], &Record) = match self.chance.below(7) {
            0 => (&["undo", "--resume"], goal),
            1 => (&["undo", "--take-back"], before),
            2 => (&["snap"], goal),
            3 => (&["run", "--", "true"], goal),
            4 => (&["undo", "--abandon", "tree"], half),
            _ => (&[verb], goal),
        };
        self.s.snapback(words).exits(0);
        let now = Record::take(&self.s.project());
        assert!(want.is_like(&now), "{}: {words:?} after {verb}", self.place());
        let pending = self.json("status")["pending"].is_object();
        assert!(!pending, "{}: {words:?} after {verb} left it unfinished", self.place());
        self.learn(&now);
    }

    /// Everything is whole, and a snapshot holds what it should.
    fn look(&mut self) {
        self.s.ok(["verify"]);
        let ids = self.ids();
        if ids.is_empty() {
            return;
        }
        let id = self.chance.of(&ids).clone();
        let before = self.now.clone();
        self.s.ok(["restore", &id]);
        self.now = Record::take(&self.s.project());
        let is_like = self.known[&id].is_like(&self.now);
        assert!(is_like, "{}: {id} does not hold what it should", self.place());
        self.learn(&before);
    }

    /// How long each command takes.
    fn measure(&mut self) -> Longest {
        let mut longest = Longest::new();
        for verb in ["snap", "run", "undo", "redo", "gc"] {
            let status = self.json("status");
            let (words, _) = self.words(verb, &status);
            let (before, started) = (self.now.clone(), Instant::now());
            self.s.snapback(&words).exits(0);
            longest.insert(verb, started.elapsed());
            self.learn(&before);
            self.now = Record::take(&self.s.project());
        }
        longest
    }
}

#[test]
fn killed_at_any_moment_the_next_command_goes_on() {
    for user in users() {
        let mut world = World::new(user);
        let longest = world.measure();
        for round in 1..=times("SNAPBACK_KILLS", ROUNDS) {
            world.round = round;
            world.round(&longest);
            if round.is_multiple_of(10) {
                world.look();
            }
        }
        let World { round, killed, unfinished, .. } = world;
        say(&format!("{user:?}: {round} rounds, {killed} were killed, {unfinished} left a step unfinished"));
        assert!(killed > round / 10 && unfinished > 0, "{killed} killed, {unfinished} unfinished");
    }
}

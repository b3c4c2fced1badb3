//! A program that goes on while the test does something else.

use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A child in a process group of its own: the whole group is killed when this is dropped,
/// so that a test that fails leaves nothing behind.
pub struct Running(Child);

impl Running {
    /// Starts `command`, silent.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn of(command: &mut Command) -> Self {
        Self::heard(command.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Starts `command`, which says what it says where the command has it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn heard(command: &mut Command) -> Self {
        use std::os::unix::process::CommandExt;
        command.process_group(0);
        Self(command.spawn().unwrap_or_else(|e| panic!("could not start {command:?}: {e}")))
    }

    /// The child, which is also its process group.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Sends `signal` to the child alone.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it is there");
    }

    /// Whether it has ended.
    ///
    /// # Panics
    /// When that cannot be found out.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child can be waited for").is_some()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When that cannot be done.
    pub fn wait(&mut self) -> ExitStatus {
        self.0.wait().expect("a child can be waited for")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group may outlive its leader: a killed snapback leaves its command behind.
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

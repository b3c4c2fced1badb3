//! A volume's files reached through the engine: this program in a container that has the
//! volume and nothing more, no network, no shell, told what to do through its standard
//! input, and heard through its output.
//!
//! What comes out is kept as it comes, so memory does not grow with the volume. It is
//! believed as little as what comes from a disk: an object is named by its own bytes.

use super::daemon::Daemon;
use super::pipe::{self, Done, Order, Told, What};
use super::{fault, image, marker, mount};
use bollard::Docker;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error as Fault;
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount};
use bollard::query_parameters::{AttachContainerOptions, StartContainerOptions};
use futures_util::StreamExt;
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::Key;
use snapback_core::store::{Lane, Writer};
use snapback_core::tree::statcache::carry;
use std::collections::HashMap;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How often is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);
/// As much of what a container says of its own failure as is kept, in bytes.
const WORDS: usize = 4096;
/// Where in a container is what a restore works with.
const STORE: &str = "/store";

/// A volume that is reached through the engine.
pub struct Remote {
    daemon: Daemon,
    name: String,
    setting: String,
    /// What is mounted.
    mount: Mount,
    /// Directories that are in no capture: a volume may be another name for one around them.
    own: Vec<(u64, u64)>,
}

impl Remote {
    /// The volume `name`, which `setting` names and `mount` brings.
    ///
    /// # Errors
    /// When the engine does not say where it runs.
    pub fn new(daemon: &Daemon, name: &str, setting: &str, mount: Mount) -> Result<Self> {
        // On another machine these are others.
        let own = if daemon.is_here()? { daemon.lent().own.to_vec() } else { Vec::new() };
        let (name, setting) = (name.to_owned(), setting.to_owned());
        Ok(Self { daemon: daemon.clone(), name, setting, mount, own })
    }

    /// Stores its files.
    ///
    /// # Errors
    /// As core's capture has them, and when the engine refuses.
    pub fn capture(&self, call: &Call, previous: Option<&Key>) -> Result<Key> {
        let order = Order {
            previous: previous.map(Key::to_string),
            huge: call.huge.map(|huge| (huge.files, huge.bytes)),
            ..self.order(call)
        };
        match self.converse(call, &order)? {
            Done::Captured(key) => Key::parse(&key),
            _ => Err(Error::corrupt("a capture in a container ended as something else")),
        }
    }

    /// Puts them back; how many were left as they are.
    ///
    /// # Errors
    /// As core's restore has them, and when the engine refuses.
    pub fn restore(&self, call: &Call, stored: &Key, current: &Key) -> Result<usize> {
        let order = Order {
            restore: Some((stored.to_string(), current.to_string())),
            only: call.only.to_vec(),
            partial: call.partial,
            ..self.order(call)
        };
        match self.converse(call, &order)? {
            Done::Restored(left) => Ok(left),
            _ => Err(Error::corrupt("a restore in a container ended as something else")),
        }
    }

    /// That the engine does not start a container of the `image` with this program.
    fn not_started(&self, answer: &Fault, image: &str) -> Error {
        let doing = format!("start snapback's own container with the volume `{}`", self.name);
        let error = self.daemon.explain(&doing, answer);
        if fault::is_away(answer) {
            return error;
        }
        let hint = format!(
            "`docker image rm --force {image}` has its image made anew; if that is not it, the engine's log says more \
             (`journalctl -u docker`), and `--skip NAME` goes on without the volume"
        );
        Error::new(Kind::Other, error.message()).hint(hint)
    }

    fn order(&self, call: &Call) -> Order {
        Order {
            target: call.target.name.clone(),
            setting: self.setting.clone(),
            path: mount::place(&self.name),
            own: self.own.clone(),
            ..Order::default()
        }
    }

    /// Has the order carried out in a container, which is removed in any case.
    fn converse(&self, call: &Call, order: &Order) -> Result<Done> {
        let container = Container::make(&self.daemon, &self.name, self.mount.clone())?;
        let (target, setting) = (&call.target.name, &self.setting);
        let cache = call.store().ok().and_then(|store| carry::fetch(store.path(), target, setting));
        let order = serde_json::to_vec(order).expect("an order can be written");
        let begin =
            [pipe::frame(What::Order, &order), pipe::frame(What::Cache, &cache.unwrap_or_default())].concat();
        let mut other = Other { call, setting, lane: None, begun: 0 };
        let done = self.daemon.try_ask(async |client| {
            let ends = container.start(client).await?;
            Ok(talk(ends, begin, &mut other).await)
        });
        (0..other.begun).for_each(|_| call.report.end());
        match done?.map_err(|answer| self.not_started(&answer, &container.image))?? {
            Done::Failed(kind, message, hint) => Err(pipe::error(kind, &message, hint.as_deref())),
            done => Ok(done),
        }
    }
}

/// A container of our own, gone with this value.
struct Container<'a> {
    daemon: &'a Daemon,
    id: String,
    /// What it was made from.
    image: String,
}

impl<'a> Container<'a> {
    fn make(daemon: &'a Daemon, volume: &str, mount: Mount) -> Result<Self> {
        let shut = image::container(daemon, marker::labels(volume), mount)?;
        let body = ContainerCreateBody {
            stdin_once: Some(true),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            host_config: shut.host_config.map(|host| HostConfig {
                tmpfs: Some(HashMap::from([(STORE.to_owned(), "mode=0700".to_owned())])),
                // Who has a file open can be asked for with that.
                cap_add: Some(vec!["LEASE".into()]),
                // What goes through its output is not for a log.
                log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
                ..host
            }),
            ..shut
        };
        let image = body.image.clone().unwrap_or_default();
        Ok(Self { daemon, id: marker::create(daemon, body)?, image })
    }

    async fn start(&self, client: &Docker) -> Result<AttachContainerResults, Fault> {
        let options = AttachContainerOptions {
            stream: true,
            stdin: true,
            stdout: true,
            stderr: true,
            ..Default::default()
        };
        let ends = client.attach_container(&self.id, Some(options)).await?;
        client.start_container(&self.id, None::<StartContainerOptions>).await?;
        Ok(ends)
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        // What stays is removed by the next command.
        let _ = marker::remove(self.daemon, &self.id);
    }
}

/// Says `begin`, and then answers until all is done.
async fn talk(mut ends: AttachContainerResults, begin: Vec<u8>, other: &mut Other<'_>) -> Result<Done> {
    let lost = |e: std::io::Error| Error::io(e, "could not write to", "the container");
    ends.input.write_all(&begin).await.map_err(lost)?;
    ends.input.flush().await.map_err(lost)?;
    let (mut heard, mut words, mut stopped) = (Vec::new(), Vec::new(), false);
    loop {
        if !stopped && other.call.cancel.is_cancelled() {
            stopped = true;
            ends.input.write_all(&pipe::frame(What::Cancel, b"")).await.map_err(lost)?;
            ends.input.flush().await.map_err(lost)?;
        }
        match tokio::time::timeout(LOOK, ends.output.next()).await {
            Err(_) => continue,
            Ok(Some(Ok(LogOutput::StdErr { message }))) => {
                words.extend_from_slice(&message[..message.len().min(WORDS.saturating_sub(words.len()))]);
            }
            Ok(Some(Ok(output))) => heard.extend_from_slice(&output.into_bytes()),
            Ok(None | Some(Err(_))) => {
                let said = crate::component::one_line(&String::from_utf8_lossy(&words));
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                let why = format!("what was to reach the files in a container ended too early{said}");
                return Err(
                    Error::new(Kind::Other, why).hint("the engine's log says more (`journalctl -u docker`)")
                );
            }
        }
        let mut at = 0;
        while let Some(head) = heard[at..].first_chunk::<{ pipe::HEAD }>() {
            let (what, length) = pipe::parse(*head)?;
            let Some(bytes) = heard[at + pipe::HEAD..].get(..length) else { break };
            match other.hear(what, bytes)? {
                Heard::Nothing => {}
                Heard::Answer(answer) => {
                    ends.input.write_all(&answer).await.map_err(lost)?;
                    ends.input.flush().await.map_err(lost)?;
                }
                Heard::End(done) => return Ok(done),
            }
            at += pipe::HEAD + length;
        }
        heard.drain(..at);
    }
}

/// What is to be done about a frame.
enum Heard {
    Nothing,
    Answer(Vec<u8>),
    End(Done),
}

/// This end of the line.
struct Other<'a> {
    call: &'a Call,
    setting: &'a str,
    lane: Option<Lane<'a>>,
    begun: u32,
}

impl<'a> Other<'a> {
    fn hear(&mut self, what: What, bytes: &[u8]) -> Result<Heard> {
        match what {
            What::Put => {
                let (key, bytes) = pipe::key(bytes)?;
                let writer = self.writer()?;
                self.lane.get_or_insert_with(|| writer.lane()).put(key.kind(), bytes)?;
            }
            What::Get => {
                let (key, _) = pipe::key(bytes)?;
                self.publish()?;
                let answer = match self.call.source()?.read(&key) {
                    Ok(bytes) => [&[1][..], &bytes].concat(),
                    Err(error) if error.kind() == Kind::NotFound => Vec::new(),
                    Err(error) => return Err(error),
                };
                return Ok(Heard::Answer(pipe::frame(What::Object, &answer)));
            }
            What::Has => {
                let (key, _) = pipe::key(bytes)?;
                let there = match &self.call.writer {
                    Some(writer) => writer.contains(&key)?,
                    None => self.call.store()?.contains(&key)?,
                };
                return Ok(Heard::Answer(pipe::frame(What::Whether, &[u8::from(there)])));
            }
            What::Cache => self.keep(bytes),
            What::Tell => self.tell(bytes),
            What::Done => {
                self.publish()?;
                let wrong = |_| Error::corrupt("what came out of the container has no end");
                return Ok(Heard::End(serde_json::from_slice(bytes).map_err(wrong)?));
            }
            What::Order | What::Object | What::Whether | What::Cancel => {
                return Err(Error::corrupt("what came out of the container is what goes into it"));
            }
        }
        Ok(Heard::Nothing)
    }

    fn writer(&self) -> Result<&'a Writer> {
        let writer = self.call.writer.as_deref();
        writer.ok_or_else(|| Error::new(Kind::Other, "a restore stores nothing"))
    }

    /// Has what was put where it can be read.
    fn publish(&mut self) -> Result<()> {
        self.lane.take().map_or(Ok(()), Lane::publish)
    }

    fn keep(&self, bytes: &[u8]) {
        // What a scratch holds is gone when the next capture comes.
        if let Some(writer) = self.call.writer.as_ref().filter(|writer| !writer.is_scratch()) {
            carry::keep(writer.store(), &self.call.target.name, self.setting, bytes.to_vec());
        }
    }

    fn tell(&mut self, bytes: &[u8]) {
        let (target, report) = (&self.call.target.name, &self.call.report);
        let line = crate::component::one_line;
        match serde_json::from_slice(bytes) {
            Ok(Told::Log(level, message)) => report.log(target, &level, &line(&message)),
            Ok(Told::Omitted(subject, reason)) => report.omitted(target, &subject, &line(&reason)),
            Ok(Told::Refused(subject, reason)) => report.refused(target, &subject, &line(&reason)),
            Ok(Told::Begin(title, total, unit)) => {
                self.begun += 1;
                report.begin(&line(&title), total, &unit);
            }
            Ok(Told::Advance(by)) => report.advance(by),
            Ok(Told::End) => {
                self.begun = self.begun.saturating_sub(1);
                report.end();
            }
            Err(_) => {}
        }
    }
}

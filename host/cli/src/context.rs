//! What every command works with: flags, environment, the way to the project.
//!
//! Invariant: nothing is opened before a command asks for it, and what is lent to the
//! core is all it gets: it reads no environment and no configuration of the user's.

use crate::args::Global;
use crate::beside;
use crate::contents;
use crate::exit::Code;
use crate::output::Out;
use crate::places::{self, Places};
use crate::process;
use crate::progress::Progress;
use crate::talk::Talk;
use crate::terminal::Terminal;
use crate::usage;
use snapback_core::backend::Cancel;
use snapback_core::disk::Disk;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::history::Snapshot;
use snapback_core::history::clock::{Clock, System};
use snapback_core::pace::Pace;
use snapback_core::project::STORE;
use snapback_core::project::config::{self, Config};
use snapback_core::project::registry::Registry as Roots;
use snapback_core::project::root;
use snapback_core::project::user::User;
use snapback_core::session::{Environment, Project};
use snapback_core::text::Bytes;
use snapback_runtime::reach::{Surroundings, address, volume};
use snapback_runtime::trust::Trust;
use snapback_runtime::{Registry, Setup, Slow, builtin_names};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What a command works with.
pub struct Context {
    /// The flags that every command takes.
    pub global: Global,
    /// What the environment says.
    pub places: Places,
    /// Where the user is, or says to be with `-C`; absolute, perhaps gone.
    pub here: PathBuf,
    /// Where things are said.
    pub talk: Talk,
    /// What standard output is.
    pub terminal: Terminal,
    /// Where data goes.
    pub out: Out,
    /// Looked at by every long loop.
    pub cancel: Cancel,
    /// How the wrapped command ended, once it has.
    pub ended: Option<Code>,
    /// The fifo that a report goes to, whose reader would see its end if it was let go.
    pub fifo: Option<File>,
    /// The backends, once they are asked for, and the root they are for.
    registry: OnceLock<(PathBuf, Arc<Registry>)>,
}

impl Context {
    /// For a command with these flags.
    pub fn new(global: Global) -> Self {
        let places = Places::read();
        let here = match &global.directory {
            Some(directory) => places::resolve(&places.here, directory),
            None => places.here.clone(),
        };
        Self {
            talk: Talk::new(global.quiet, global.verbose, global.json),
            terminal: Terminal::look(global.color, places.no_color || places.dumb),
            out: Out::new(),
            cancel: Cancel::default(),
            ended: None,
            fifo: None,
            registry: OnceLock::new(),
            global,
            here,
            places,
        }
    }

    /// Opens the project, to change it or its history.
    ///
    /// # Errors
    /// When it cannot be used, its store is foreign, or a configuration is wrong.
    pub fn open(&self) -> Result<Project> {
        let project = Project::open(self.environment()?)?;
        project.need_own()?;
        Ok(project)
    }

    /// Opens the project to look at its history, and says so when that is foreign, or not
    /// where it should be.
    ///
    /// # Errors
    /// When it cannot be used, or a configuration is wrong.
    pub fn look(&self) -> Result<Project> {
        let project = Project::open(self.environment()?)?;
        self.tell_outlived(&project);
        if let Some(foreign) = project.foreign() {
            let store = project.root().join(STORE);
            self.talk.say(format_args!("the store {} {}", show(&store), foreign.words()));
            self.talk.detail(foreign.hint(&store));
        }
        Ok(project)
    }

    /// Says so when the history of `project` is not where it should be.
    pub fn tell_outlived(&self, project: &Project) {
        if let Some(place) = project.outlived() {
            let (root, place) = (show(project.root()), show(place));
            self.talk.say(format_args!("{root} has lost its history, which is read from {place}"));
        }
    }

    /// What is lent to the core.
    ///
    /// # Errors
    /// When the user's configuration is wrong.
    pub fn environment(&self) -> Result<Environment> {
        if self.places.is_lost && self.global.root.is_none() && self.global.directory.is_none() {
            let why = "the current directory is gone, and nothing says where it was";
            return Err(Error::new(Kind::NotFound, why).hint("`-C DIR` or `--root DIR` names the project"));
        }
        if self.here.exists() && !self.here.is_dir() {
            let why = format!("{} is not a directory", show(&self.here));
            let known = Roots::new(&self.places.state).get(&self.here).is_some();
            return Err(Error::new(Kind::Invalid, why).hint(match known {
                true => "the project that was there has its history still: move away what is there now, and try again",
                false => "`-C` takes the directory to work in",
            }));
        }
        let (root, user) = (self.root(), self.user()?);
        Ok(Environment {
            state: self.places.state.clone(),
            home: self.places.home.clone(),
            clock: Arc::new(System),
            backends: self.backends(&root),
            report: Arc::new(Progress::new(
                self.talk,
                self.terminal.err && !self.places.dumb && !self.global.quiet,
            )),
            cancel: self.cancel.clone(),
            inside: self.places.run_id.clone(),
            pace: Pace::default(),
            recent: Arc::default(),
            disk: Disk::default().with_sync(user.sync),
            user,
            root,
        })
    }

    /// The project's root: as `--root` says, else found from here.
    pub fn root(&self) -> PathBuf {
        if let Some(root) = &self.global.root {
            return places::resolve(&self.here, root);
        }
        let (home, uid) = (self.places.home.as_deref(), self.places.uid);
        let found = root::find(&self.here, home, uid, &Roots::new(&self.places.state));
        for marker in &found.passed_over {
            self.talk.say(format_args!("passed over {}: it belongs to another user", show(marker)));
        }
        found.root
    }

    /// The backends for the project at `root`. Nothing is read before one is needed.
    pub fn backends(&self, root: &Path) -> Arc<Registry> {
        let make = || Arc::new(Registry::new(self.setup(root)));
        let (of, registry) = self.registry.get_or_init(|| (root.to_owned(), make()));
        if of == root { registry.clone() } else { make() }
    }

    fn setup(&self, root: &Path) -> Setup {
        let places = &self.places;
        let mut folders = vec![places.data.join("plugins")];
        let shared = plugins_of(root);
        folders.extend(shared.clone());
        folders.extend(places.plugin_path.iter().cloned());
        let mut own =
            [&places.state, &places.cache, &places.config, &places.spare].map(Clone::clone).to_vec();
        own.extend(folders.iter().cloned());
        let roots = Roots::new(&places.state);
        let own = move || {
            let stores = roots.all().into_iter().map(|known| known.root.path().join(STORE));
            own.iter().cloned().chain(stores).collect()
        };
        Setup {
            cache: vec![places.cache.join("components"), places.spare.clone()],
            folders,
            shared,
            trust: Trust::new(Some(places.state.clone()), places.trusted.clone()),
            around: Surroundings {
                variables: places::variable,
                programs: places.path.clone(),
                names: address::system(),
                volumes: volume::system(places::variable),
                scratch: std::env::temp_dir(),
                own: Arc::new(own),
                private: vec![places.state.clone(), places.cache.clone()],
                git: Arc::new(places.git.clone()),
                itself: std::env::current_exe().ok(),
                helper: beside::helper,
            },
            slow: Some(self.slow()),
        }
    }

    /// Says what is being compiled, when that takes its time. What came inside the program is small.
    fn slow(&self) -> Slow {
        let talk = self.talk;
        Arc::new(move |name| {
            if builtin_names().all(|own| own != name) {
                talk.say(format_args!("compiling the backend `{name}`, which is done once"));
            }
        })
    }

    /// What settings are looked up in, in the project at `root`.
    pub fn surroundings(&self, root: &Path) -> Surroundings {
        self.setup(root).around
    }

    /// The user's own settings.
    fn user(&self) -> Result<User> {
        let path = self.places.config.join("config.toml");
        match config::read(&path)? {
            Some(text) => User::parse(&text)
                .map_err(|error| error.context(format_args!("in {}", show(&self.places.config)))),
            None => Ok(User::default()),
        }
    }

    /// `paths`, as they were typed, as paths inside the project.
    ///
    /// # Errors
    /// `Invalid` for one that lies outside.
    pub fn inside(&self, project: &Project, paths: &[PathBuf]) -> Result<Vec<Bytes>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let newest = project.ids().ok().and_then(|ids| project.load(ids.first()?).ok());
        let inside = |path: &PathBuf| {
            let named = Bytes::from(&**path);
            // A path in a volume is no path from here.
            match newest.as_ref().and_then(|newest| contents::in_volume(newest, &named.0)) {
                Some((target, inside)) => Ok(contents::path_in_volume(target, inside)),
                None => places::inside(project.root(), &self.here, path),
            }
        };
        paths.iter().map(inside).collect()
    }

    /// The snapshot that `text` names for the command `verb`, which takes paths by a flag.
    ///
    /// # Errors
    /// When there is none or there are several.
    pub fn find(&self, project: &Project, verb: &str, text: &str) -> Result<Snapshot> {
        project.find(text).map_err(|error| {
            let hint = usage::path_for_id(verb, text, &self.here).filter(|_| error.kind() == Kind::NotFound);
            hint.into_iter().fold(error, Error::hint)
        })
    }

    /// The present, in milliseconds since 1970.
    pub fn now(&self) -> i64 {
        System.now().as_millisecond()
    }

    /// Sends standard output through the pager, where it is a terminal: there may be much.
    pub fn page(&mut self) {
        if !self.global.json {
            self.out.page(self.places.pager.as_ref());
        }
    }

    /// Asks, unless `--yes` answers; none when there is nobody to ask.
    pub fn confirm(&self, question: &str) -> Option<bool> {
        if self.global.yes { Some(true) } else { self.terminal.ask(question) }
    }

    /// Refuses `what` inside a run: a command must not be able to drop its own way back.
    ///
    /// # Errors
    /// `Denied` inside a run.
    pub fn refuse_inside_run(&self, what: &str) -> Result<()> {
        let run = self.places.run_id.clone().or_else(|| process::run_above().map(|id| id.to_string()));
        let Some(run) = run else { return Ok(()) };
        let run = show(Path::new(&run));
        let why = format!("`snapback {what}` is refused inside a run (this is inside {run})");
        Err(Error::new(Kind::Denied, why)
            .hint("a command must not decide over the history that it is wrapped in; do it from outside"))
    }
}

/// The directory with components that the project asks for. A snapback.toml that is
/// wrong says so when the project is opened.
fn plugins_of(root: &Path) -> Option<PathBuf> {
    let text = config::read(&root.join(config::FILE)).ok()??;
    Some(root.join(Config::parse(&text).ok()?.plugins?))
}

//! `snapback trust` for targets: what they reach outside the project, those of
//! snapback.toml and those in the snapshots of this project.

use crate::consent;
use crate::context::Context;
use crate::exit::Code;
use crate::render::words::count;
use snapback_core::backend::Target;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::project::consents::{Consent, Consents};
use snapback_core::project::{STORE, nearest};
use snapback_core::session::{Project, Session};
use snapback_runtime::trust::Question;

/// Asks for each that was not agreed to.
///
/// # Errors
/// When there is nobody to ask, or the user says no to one.
pub fn run(context: &mut Context) -> Result<Code> {
    let session = open(context)?;
    let mut now = asked(context, &session)?;
    // Only what was looked at tells what it asks for.
    while now.questions.iter().any(Question::only_looks) {
        let looks = now.questions.iter().filter(|question| question.only_looks());
        let mut unasked = Vec::new();
        for question in looks {
            match consent::ask(context, &session, question)? {
                Some(true) => {}
                Some(false) => return Err(consent::no(question)),
                None => unasked.push(question),
            }
        }
        if !unasked.is_empty() {
            return Err(consent::nobody("nobody can be asked about", &unasked));
        }
        now = asked(context, &session)?;
    }
    let Asked { questions, unknown } = now;
    if questions.is_empty() && unknown.is_none() {
        context.talk.say(NOTHING);
        return Ok(Code::DONE);
    }
    let (mut refused, mut unasked) = (None, Vec::new());
    for question in &questions {
        match consent::ask(context, &session, question)? {
            Some(true) => {}
            Some(false) => refused = refused.or(Some(question)),
            // All are shown: who reads them agrees to each by its digest.
            None => unasked.push(question),
        }
    }
    if !unasked.is_empty() {
        return Err(consent::nobody("nobody can be asked about", &unasked));
    }
    match (refused, unknown) {
        (Some(question), _) => Err(consent::no(question)),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(Code::DONE),
    }
}

/// Agrees to the question with this digest.
///
/// # Errors
/// When nothing that has it is asked for.
pub fn agree(context: &mut Context, digest: &str) -> Result<Code> {
    let session = open(context)?;
    let Asked { questions, unknown } = asked(context, &session)?;
    let Some(question) = questions.iter().find(|question| question.digest() == digest) else {
        let asked: Vec<String> =
            questions.iter().map(|q| format!("{} (target `{}`)", q.digest(), q.target)).collect();
        let error = Error::new(Kind::NotFound, format!("nothing with the digest {digest} is asked for here"));
        return Err(match asked.is_empty() {
            true if unknown.is_some() => error.hint("a target that could not be looked at is named above"),
            true => error.hint(NOTHING),
            false => error.hint(format!("asked for is: {}; look before you agree", asked.join(", "))),
        });
    };
    consent::agree(context, &session, question)?;
    consent::show(context, question);
    context.talk.say(format_args!("the target `{}` may do that from now on", question.target));
    Ok(Code::DONE)
}

/// Takes back all that was agreed to for this project, and that its store was trusted; with
/// `targets`, what these were allowed and nothing else.
///
/// # Errors
/// `NotFound` for a target that was allowed nothing here; when it cannot be written.
pub fn revoke(context: &mut Context, targets: &[String]) -> Result<Code> {
    let project = context.look()?;
    let store = project.store().and_then(|store| store.id().ok());
    let consents = Consents::new(&context.places.state);
    let of_this = |(key, consent): (String, Option<Consent>)| {
        let is_of_this = |c: &Consent| Some(&c.store) == store.as_ref() || c.root.path() == project.root();
        Some((key, consent.filter(is_of_this)?.target))
    };
    let mut given: Vec<_> = consents.all().into_iter().filter_map(of_this).collect();
    if let Some(name) = targets.iter().find(|name| given.iter().all(|(_, target)| target != *name)) {
        let why = format!("nothing was agreed to here for the target `{name}`");
        let near = nearest(name, given.iter().map(|(_, target)| &**target));
        let hint = near.map_or_else(
            || "`snapback trust --list` has all that was".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Error::new(Kind::NotFound, why).hint(hint));
    }
    given.retain(|(_, target)| targets.is_empty() || targets.contains(target));
    given.iter().try_for_each(|(key, _)| consents.remove(project.disk(), key))?;
    let store = show(&project.root().join(STORE));
    let distrusted = targets.is_empty() && project.distrust()?;
    context.talk.say(format_args!("{} taken back", count(given.len() as u64, "consent")));
    if distrusted {
        context.talk.say(format_args!(
            "the store {store} is foreign again: only read, until `snapback trust --store`"
        ));
    }
    Ok(Code::DONE)
}

/// The project with its store, whose identity a consent is for.
fn open(context: &Context) -> Result<Session> {
    let project = context.open()?;
    project.config()?;
    project.lock()
}

/// What is said when nothing is asked for.
const NOTHING: &str = "no target reaches more than you have agreed to";

/// What was not agreed to yet.
struct Asked {
    /// Of targets of snapback.toml first, then of those of snapshots.
    questions: Vec<Question>,
    /// That there are targets of snapback.toml of which it is not known what they reach.
    unknown: Option<Error>,
}

/// What was not agreed to yet. A target whose backend cannot be used, or that leads nowhere,
/// asks for nothing until it can: that is said.
fn asked(context: &Context, project: &Project) -> Result<Asked> {
    let registry = context.backends(project.root());
    let store = project.need_store()?.id()?;
    let configured = project.config()?.targets.iter().map(|configured| (configured.target.clone(), true));
    let stored = project.list()?.0.into_iter().flat_map(|listing| listing.snapshot.targets);
    let stored = stored.map(|captured| (project.of_today(&captured.target).into_owned(), false));
    let mut seen: Vec<Target> = Vec::new();
    let (mut questions, mut unknown): (Vec<Question>, Vec<String>) = (Vec::new(), Vec::new());
    for (target, is_configured) in configured.chain(stored) {
        if seen.contains(&target) {
            continue;
        }
        match registry.question(project.root(), Some(store.clone()), &target) {
            Ok(Some(question)) if questions.iter().all(|known| known.digest() != question.digest()) => {
                questions.push(question);
            }
            Ok(_) => {}
            Err(error) if error.kind() == Kind::Denied => {
                let refused = registry.trust().take_refused().into_iter();
                questions.extend(
                    refused
                        .filter(|new| questions.iter().all(|q| q.digest() != new.digest()))
                        .collect::<Vec<_>>(),
                );
            }
            Err(error) => {
                context.talk.say(format_args!("the target `{}`: {error}", target.name));
                unknown.extend(is_configured.then(|| format!("`{}`", target.name)));
            }
        }
        seen.push(target);
    }
    let unknown = (!unknown.is_empty()).then(|| {
        let why = format!("what is reached is not known of {}", unknown.join(", "));
        Error::new(Kind::Invalid, why).hint("mend what is said of it above, and ask again")
    });
    Ok(Asked { questions, unknown })
}

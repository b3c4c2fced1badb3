//! `snapback trust` for targets: what they reach outside the project, those of
//! snapback.toml and those in the snapshots of this project.

use crate::consent;
use crate::context::Context;
use crate::exit::Code;
use crate::render::words::count;
use snapback_core::backend::Target;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::project::STORE;
use snapback_core::project::consents::Consents;
use snapback_core::session::{Project, Session};
use snapback_runtime::trust::Question;

/// Asks for each that was not agreed to.
///
/// # Errors
/// When there is nobody to ask, or the user says no to one.
pub fn run(context: &mut Context) -> Result<Code> {
    let session = open(context)?;
    let questions = questions(context, &session)?;
    if questions.is_empty() {
        context.talk.say("no target reaches more than you have agreed to");
        return Ok(Code::DONE);
    }
    let mut refused = None;
    for question in &questions {
        match consent::ask(context, &session, question)? {
            Some(true) => {}
            Some(false) => refused = refused.or(Some(question)),
            None => {
                let why = format!("nobody can be asked about the target `{}`", question.target);
                let digest = question.digest();
                return Err(Error::new(Kind::Denied, why)
                    .hint(format!("`snapback trust --digest {digest}` agrees to what is shown above")));
            }
        }
    }
    refused.map_or(Ok(Code::DONE), |question| Err(consent::no(question)))
}

/// Agrees to the question with this digest.
///
/// # Errors
/// When nothing that has it is asked for.
pub fn agree(context: &mut Context, digest: &str) -> Result<Code> {
    let session = open(context)?;
    let questions = questions(context, &session)?;
    let Some(question) = questions.iter().find(|question| question.digest() == digest) else {
        let asked: Vec<String> =
            questions.iter().map(|q| format!("{} (target `{}`)", q.digest(), q.target)).collect();
        let error = Error::new(Kind::NotFound, format!("nothing with the digest {digest} is asked for here"));
        return Err(match asked.is_empty() {
            true => error.hint("no target reaches more than you have agreed to"),
            false => error.hint(format!("asked for is: {}; look before you agree", asked.join(", "))),
        });
    };
    consent::agree(context, &session, question)?;
    consent::show(context, question);
    context.talk.say(format_args!("the target `{}` may do that from now on", question.target));
    Ok(Code::DONE)
}

/// Takes back all that was agreed to for this project, and that its store was trusted.
///
/// # Errors
/// When it cannot be written.
pub fn revoke(context: &mut Context) -> Result<Code> {
    let project = context.look()?;
    let store = project.store().and_then(|store| store.id().ok());
    let consents = Consents::new(&context.places.state);
    let mut revoked = 0;
    for (key, consent) in consents.all() {
        let is_of_this = |c: &snapback_core::project::consents::Consent| {
            Some(&c.store) == store.as_ref() || c.root.path() == project.root()
        };
        if consent.as_ref().is_some_and(is_of_this) {
            consents.remove(project.disk(), &key)?;
            revoked += 1;
        }
    }
    let store = show(&project.root().join(STORE));
    let distrusted = project.distrust()?;
    context.talk.say(format_args!("{} taken back", count(revoked, "consent")));
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

/// What was not agreed to yet: of snapback.toml first, then of snapshots. A target whose
/// backend cannot be used asks for nothing until it can.
fn questions(context: &Context, project: &Project) -> Result<Vec<Question>> {
    let registry = context.backends(project.root());
    let store = project.need_store()?.id()?;
    let configured = project.config()?.targets.iter().map(|configured| configured.target.clone());
    let stored = project.list()?.0.into_iter().flat_map(|listing| listing.snapshot.targets);
    let mut seen: Vec<Target> = Vec::new();
    let mut found: Vec<Question> = Vec::new();
    for target in configured.chain(stored.map(|captured| captured.target)) {
        if seen.contains(&target) {
            continue;
        }
        match registry.question(project.root(), Some(store.clone()), &target) {
            Ok(Some(question)) if found.iter().all(|known| known.digest() != question.digest()) => {
                found.push(question);
            }
            Ok(_) => {}
            Err(error) => context.talk.say(format_args!("the target `{}`: {error}", target.name)),
        }
        seen.push(target);
    }
    Ok(found)
}

//! Asking the user to agree to what a target reaches outside the project.
//!
//! Nothing is asked ahead of time: what is refused for want of consent is asked for, and
//! done again after a yes. `--yes` is no answer to this; who agrees in a script names
//! what to by its digest.

use crate::context::Context;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::history::clock::{Clock, Moment, System};
use snapback_core::project::consents::{Consent, Consents};
use snapback_core::session::Project;
use snapback_core::text::Bytes;
use snapback_runtime::trust::Question;

/// Does `work`, and asks for what it is refused for want of consent.
///
/// # Errors
/// Whatever keeps it from being done, a no among them.
pub fn with<R>(context: &Context, project: &Project, mut work: impl FnMut() -> Result<R>) -> Result<R> {
    loop {
        let error = match work() {
            Err(error) if error.kind() == Kind::Denied => error,
            done => return done,
        };
        let refused = context.backends(project.root()).trust().take_refused();
        if refused.is_empty() {
            return Err(error);
        }
        for question in &refused {
            match ask(context, project, question)? {
                Some(true) => {}
                Some(false) => return Err(no(question)),
                None => return Err(error),
            }
        }
    }
}

/// Shows `question` and keeps a yes; none when there is nobody to ask.
///
/// # Errors
/// When the user wants to stop, or the consent cannot be kept.
pub fn ask(context: &Context, project: &Project, question: &Question) -> Result<Option<bool>> {
    // Who wants to stop is not asked any more.
    context.cancel.check()?;
    show(context, question);
    let words = format!("snapback: let the target `{}` do that, here?", question.target);
    let answer = context.terminal.ask(&words);
    if answer == Some(true) {
        agree(context, project, question)?;
    }
    Ok(answer)
}

/// Says what is asked for.
pub fn show(context: &Context, question: &Question) {
    let (target, backend) = (&question.target, &question.asker.name);
    context.talk.say(format_args!("the target `{target}` (backend {backend}) reaches outside the project"));
    question.reaches().iter().for_each(|line| context.talk.detail(line));
    context.talk.detail(format_args!("digest {}", question.digest()));
}

/// Keeps the user's consent to `question`.
///
/// # Errors
/// When it cannot be kept.
pub fn agree(context: &Context, project: &Project, question: &Question) -> Result<()> {
    let key = context.backends(project.root()).trust().key(question)?;
    let consent = Consent {
        store: question.store().unwrap_or_default().to_owned(),
        root: Bytes::from(project.root()),
        target: question.target.clone(),
        backend: question.asker.name.clone(),
        reaches: question.reaches(),
        given: Moment::of(System.now()),
    };
    Consents::new(&context.places.state).put(project.disk(), &key, &consent)
}

/// That the user said no.
pub fn no(question: &Question) -> Error {
    Error::new(Kind::Denied, format!("the target `{}` was not agreed to", question.target))
        .hint(format!("`--skip {}` goes on without it", question.target))
}

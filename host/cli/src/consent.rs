//! Asking the user to agree to what a target reaches outside the project.
//!
//! Nothing is asked ahead of time: what is refused for want of consent is asked for, and
//! done again after a yes. `--yes` is no answer to this; who agrees in a script names
//! what to by its digest.

use crate::context::Context;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::history::Snapshot;
use snapback_core::history::clock::{Clock, Moment, System};
use snapback_core::project::consents::{Consent, Consents};
use snapback_core::session::{Present, Project};
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
        let mut unasked = Vec::new();
        for question in &refused {
            match ask(context, project, question)? {
                Some(true) => {}
                Some(false) => return Err(no(question)),
                None => unasked.push(question),
            }
        }
        match unasked[..] {
            [] => {}
            [_] => return Err(error),
            _ => return Err(nobody("you have not agreed to what is reached by", &unasked)),
        }
    }
}

/// The present state of the targets of `like`; where the user does not agree to what one reaches, of
/// the others.
///
/// # Errors
/// When it cannot be captured.
pub fn present(context: &Context, project: &Project, like: &Snapshot, content: bool) -> Result<Present> {
    match with(context, project, || project.present(like, content)) {
        Err(error) if error.kind() == Kind::Denied => {
            let done = project.present_in_part(like, content);
            drop(context.backends(project.root()).trust().take_refused());
            done
        }
        done => done,
    }
}

/// That there is nobody to ask about these targets: `why` comes before their names.
pub fn nobody(why: &str, unasked: &[&Question]) -> Error {
    let names: Vec<String> = unasked.iter().map(|question| format!("`{}`", question.target)).collect();
    let s = if names.len() == 1 { "" } else { "s" };
    let agree = |question: &&Question| format!("`snapback trust --digest {}`", question.digest());
    let each: Vec<String> = unasked.iter().map(agree).collect();
    Error::new(Kind::Denied, format!("{why} the target{s} {}", names.join(", ")))
        .hint(format!("{} agrees to what is shown above", each.join(" and ")))
}

/// Shows `question` and keeps a yes; none when there is nobody to ask.
///
/// # Errors
/// When the user wants to stop, or the consent cannot be kept.
pub fn ask(context: &Context, project: &Project, question: &Question) -> Result<Option<bool>> {
    // Who wants to stop is not asked any more.
    context.cancel.check()?;
    show(context, question);
    let words = match question.only_looks() {
        true => "snapback: look at it? What it then asks for is asked again".to_owned(),
        false => format!("snapback: let the target `{}` do that, here?", question.target),
    };
    let answer = context.terminal.ask(&words);
    if answer == Some(true) {
        agree(context, project, question)?;
    }
    Ok(answer)
}

/// Says what is asked for.
pub fn show(context: &Context, question: &Question) {
    let (target, backend) = (&question.target, &question.asker.name);
    if question.only_looks() {
        context
            .talk
            .say(format_args!("the backend `{backend}` came with the project, and was never used here"));
        question.reaches().iter().for_each(|line| context.talk.detail(line));
        return context.talk.detail(format_args!("digest {}", question.digest()));
    }
    let what = match question.is_outside() {
        true => "reaches outside the project",
        false => "is in the care of a component that did not come with snapback",
    };
    context.talk.say(format_args!("the target `{target}` (backend {backend}) {what}"));
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

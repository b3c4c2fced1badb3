//! `snapback verify`: read everything that is stored, check it, and name who is
//! concerned by what is damaged.

use crate::context::Context;
use crate::exit::Code;
use crate::json;
use crate::render::words::count;
use serde::Serialize;
use snapback_core::error::Result;
use snapback_core::project::units::human;
use snapback_core::session::{Mended, Verification};

/// What was found, in words.
#[derive(Serialize)]
struct Findings {
    whole: bool,
    packs: u64,
    objects: u64,
    bytes: u64,
    /// What is damaged.
    problems: Vec<String>,
    /// Snapshots that cannot be restored whole, and why.
    concerned: Vec<Concerned>,
}

#[derive(Serialize)]
struct Concerned {
    id: String,
    problem: String,
}

/// Does it. The exit code is 1 when anything is damaged.
///
/// # Errors
/// When the store cannot be read at all.
pub fn run(context: &mut Context) -> Result<Code> {
    let project = context.look()?;
    let verification = project.verify()?;
    let findings = Findings::of(&verification);
    if !findings.whole && project.foreign().is_none() {
        // Later snapshots then store again what they find whole in the project.
        match project.lock_unrecovered().and_then(|session| session.mend(&verification)) {
            Ok(mended) => say_mended(context, mended),
            Err(error) => context.talk.say(format_args!("what is damaged could not be marked: {error}")),
        }
    }
    tell(context, &findings)?;
    Ok(if findings.whole { Code::DONE } else { Code::FAILED })
}

fn say_mended(context: &Context, mended: Mended) {
    let Mended { packs, records } = mended;
    let whole = [(packs, "pack"), (records, "record")].into_iter().filter(|(number, _)| *number > 0);
    let whole: Vec<String> = whole.map(|(number, what)| count(number as u64, what)).collect();
    if !whole.is_empty() {
        let whole = whole.join(" and ");
        context.talk.say(format_args!("{whole} came back whole from the copy outside the project"));
    }
}

impl Findings {
    fn of(found: &Verification) -> Self {
        let mut problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
        if found.timeline > 0 {
            let lines = count(found.timeline as u64, "line");
            problems.push(format!("the timeline is damaged: {lines} cannot be read"));
        }
        problems.extend(found.journal.iter().map(ToString::to_string));
        let lacks = found.concerned.iter().map(|(id, lost)| {
            let names: Vec<String> = lost.iter().map(ToString::to_string).collect();
            Concerned { id: id.to_string(), problem: format!("it lacks {}", names.join(", ")) }
        });
        let records = found.records.iter();
        let records = records.map(|d| Concerned { id: d.id.to_string(), problem: d.error.to_string() });
        Self {
            whole: found.is_whole(),
            packs: found.packs,
            objects: found.objects,
            bytes: found.bytes,
            problems,
            concerned: lacks.chain(records).collect(),
        }
    }
}

fn tell(context: &mut Context, findings: &Findings) -> Result<()> {
    if context.global.json {
        return json::write(&mut context.out, findings);
    }
    for problem in &findings.problems {
        context.out.line(&format!("damaged    {problem}"))?;
    }
    for concerned in &findings.concerned {
        context.out.line(&format!("concerned  {}: {}", concerned.id, concerned.problem))?;
    }
    let outcome = match findings.whole {
        true => "all is whole".to_owned(),
        false => {
            let problems = count(findings.problems.len() as u64, "problem");
            format!("{problems}, {} concerned", count(findings.concerned.len() as u64, "snapshot"))
        }
    };
    context.out.line(&format!(
        "{} in {}, {}: {outcome}",
        count(findings.objects, "object"),
        count(findings.packs, "pack"),
        human(findings.bytes)
    ))?;
    context.out.flush()
}

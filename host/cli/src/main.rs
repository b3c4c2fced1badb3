//! snapback: undo for any command. This is the command line: words in, text and an exit
//! code out; everything else is done by the core and the runtime.
//!
//! Rooms: `args` (what is typed), `complete` (what the shell offers), `commands` (what is
//! done), `places` (the environment), `render` and `json` (what is shown), `talk`, `progress`,
//! `output` and `pager` (where it is shown), `beside` (the program for containers), `review`, `terminal`, `child`, `process`, `umask`, `inherited`,
//! `signals`, `caught`, `witness`, `survivors`, `interval` and `reported` (the wrapped command), `exit` (the codes).
//!
//! Invariant: a fault of this program ends as a sentence and a code, like any error.

mod args;
mod beside;
mod caught;
mod child;
mod commands;
mod complete;
mod consent;
mod contents;
mod context;
mod exit;
mod faults;
mod inherited;
mod interval;
mod json;
mod output;
mod pager;
mod places;
mod process;
mod progress;
mod render;
mod reported;
mod review;
mod signals;
mod survivors;
mod talk;
mod terminal;
mod umask;
mod usage;
mod witness;

use args::{Cli, Command};
use clap::Parser;
use context::Context;
use exit::Code;
use snapback_core::error::Result;
use std::process::ExitCode;

fn main() -> ExitCode {
    faults::in_words();
    umask::spare_owner();
    if let Some(code) = commands::inside::run().or_else(complete::answered) {
        return code.end();
    }
    let code = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => usage::tell(&error),
    };
    code.end()
}

fn run(cli: Cli) -> Code {
    let mut context = Context::new(cli.global);
    let (wraps, exact) = match &cli.command {
        Command::Run(_) => (true, false),
        Command::Diff(diff) => (false, diff.exit_code),
        _ => (false, false),
    };
    let done = faults::caught(|| dispatch(&mut context, &cli.command));
    let closed = context.out.closed();
    context.out.end();
    match done {
        Some(Ok(code)) => code,
        // The reader has what it wanted.
        Some(Err(_)) if closed => Code::DONE,
        Some(Err(error)) => {
            context.talk.error(&error);
            if exact { Code::USAGE } else { Code::of_error(&error) }
        }
        None => match context.ended {
            Some(code) => code,
            None if wraps => Code::NOT_STARTED,
            None if exact => Code::USAGE,
            None => Code::FAILED,
        },
    }
}

fn dispatch(context: &mut Context, command: &Command) -> Result<Code> {
    match command {
        Command::Run(args) => Ok(commands::run::run(context, args)),
        Command::Snap(args) => commands::snap::run(context, args),
        Command::Undo(args) => commands::undo::run(context, args),
        Command::Redo(args) => commands::redo::run(context, args),
        Command::Restore(args) => commands::restore::run(context, args),
        Command::Review(args) => commands::review::run(context, args),
        Command::List(args) => commands::list::run(context, args),
        Command::Show(args) => commands::show::run(context, args),
        Command::Diff(args) => commands::diff::run(context, args),
        Command::Cat(args) => commands::cat::run(context, args),
        Command::Status => commands::status::run(context),
        Command::Gc(args) => commands::gc::run(context, args),
        Command::Forget(args) => commands::forget::run(context, args),
        Command::Verify => commands::verify::run(context),
        Command::Trust(args) => commands::trust::run(context, args),
        Command::Init => commands::init::run(context),
        Command::Completions(args) => commands::completions::run(context, args),
        Command::Man(args) => commands::completions::man(context, args),
        Command::Backends(args) => commands::backends::run(context, args),
    }
}

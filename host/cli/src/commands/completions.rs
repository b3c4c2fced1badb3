//! `snapback completions` and `snapback man`: what shells and readers of manuals want to
//! have of the command line, made from its definition.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::complete;
use crate::context::Context;
use crate::exit::Code;
use clap::CommandFactory;
use snapback_core::error::{Error, Kind, Result, show};

/// Writes the script that makes a shell complete.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(context: &mut Context, args: &CompletionsArgs) -> Result<Code> {
    context.out.bytes(&complete::script(args.shell.name())?)?;
    context.out.flush()?;
    Ok(Code::DONE)
}

/// Writes the manual: its first page, or all of them into a directory.
///
/// # Errors
/// When they cannot be written.
pub fn man(context: &mut Context, args: &ManArgs) -> Result<Code> {
    let Some(dir) = &args.pages else {
        let mut page = Vec::new();
        let made = clap_mangen::Man::new(Cli::command()).render(&mut page);
        made.map_err(|error| Error::io(error, "could not make", "the manual"))?;
        context.out.bytes(&page)?;
        context.out.flush()?;
        return Ok(Code::DONE);
    };
    let dir = crate::places::resolve(&context.here, dir);
    if !dir.is_dir() {
        let why = format!("{} is not a directory", show(&dir));
        return Err(
            Error::new(Kind::Invalid, why).hint("name one that is there, such as ~/.local/share/man/man1")
        );
    }
    clap_mangen::generate_to(Cli::command(), &dir)
        .map_err(|error| Error::io(error, "could not write the manual into", &dir))?;
    Ok(Code::DONE)
}

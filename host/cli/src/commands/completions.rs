//! `snapback completions` and `snapback man`: what shells and readers of manuals want to
//! have of the command line, made from its definition.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::complete;
use crate::context::Context;
use crate::exit::Code;
use clap::{Arg, ArgAction, Command, CommandFactory};
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
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    let whole = with_values(whole);
    let Some(dir) = &args.pages else {
        let mut page = Vec::new();
        let made = clap_mangen::Man::new(whole).render(&mut page);
        made.map_err(|error| Error::io(error, "could not make", "the manual"))?;
        context.out.bytes(&page)?;
        context.out.flush()?;
        return Ok(Code::DONE);
    };
    let dir = crate::places::resolve(&context.here, dir);
    if dir.exists() && !dir.is_dir() {
        let why = format!("{} is not a directory", show(&dir));
        return Err(Error::new(Kind::Invalid, why).hint("name one, such as ~/.local/share/man/man1"));
    }
    let failed = |error| Error::io(error, "could not write the manual into", &dir);
    std::fs::create_dir_all(&dir).and_then(|()| clap_mangen::generate_to(whole, &dir)).map_err(failed)?;
    Ok(Code::DONE)
}

/// `command` with a line of usage that names the values of options, which a manual has none of
/// by itself.
fn with_values(command: Command) -> Command {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let options = command.get_arguments().filter(|argument| !argument.is_positional()).map(option);
    let positional = command.get_positionals().map(ToString::to_string);
    let inner: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let choice = (!inner.is_empty()).then(|| "<COMMAND>".to_owned());
    let usage: Vec<String> = [name].into_iter().chain(options).chain(positional).chain(choice).collect();
    let command = command.override_usage(usage.join(" "));
    inner.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_values))
}

/// An option as it is written.
fn option(argument: &Arg) -> String {
    let short = argument.get_short().filter(|_| argument.get_long().is_some());
    let short = short.map(|short| format!("-{short}|")).unwrap_or_default();
    let again = if matches!(argument.get_action(), ArgAction::Append) { "..." } else { "" };
    format!("[{short}{}]{again}", argument.to_string().trim_end_matches("..."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_names_the_values_of_options() {
        let mut whole = Cli::command();
        whole.build();
        let whole = with_values(whole);
        let page = |command: &Command| {
            let mut page = Vec::new();
            clap_mangen::Man::new(command.clone()).render_synopsis_section(&mut page).unwrap();
            String::from_utf8(page).unwrap().replace('\\', "")
        };
        let first = page(&whole);
        assert!(first.contains("[-C <DIR>]") && first.contains("[--color <WHEN>]"), "{first}");
        assert!(first.contains("<COMMAND>"), "{first}");
        let undo = page(whole.find_subcommand("undo").unwrap());
        for part in ["[--path <P>]...", "[--target <NAME>]...", "[-n|--dry-run]", "[--abandon <TARGET>]"] {
            assert!(undo.contains(part), "{part}: {undo}");
        }
        assert!(page(whole.find_subcommand("cat").unwrap()).contains("<ID> <PATH>"));
    }
}

//! What is said of a command line that makes no sense, and what help is.

use crate::exit::Code;
use crate::json::Problem;
use clap::error::ErrorKind;
use std::io::Write;

/// Says `error`, or shows the help that was asked for.
pub fn tell(error: &clap::Error) -> Code {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that went away has seen enough.
            let _ = std::io::stdout().write_all(text.as_bytes());
            Code::DONE
        }
        _ => {
            let text = in_our_words(&text);
            let mut words = std::env::args_os().skip(1).take_while(|word| word != "--");
            let text = if words.any(|word| word == "--json") { as_json(&text) } else { text };
            let _ = std::io::stderr().write_all(text.as_bytes());
            Code::USAGE
        }
    }
}

/// The same form as any other error.
fn in_our_words(text: &str) -> String {
    let mut ours = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("error: ") {
            ours.push_str(&format!("snapback: {rest}\n"));
        } else if let Some(rest) = line.trim_start().strip_prefix("tip: ") {
            ours.push_str(&format!("hint: {rest}\n"));
        } else {
            ours.push_str(line);
            ours.push('\n');
        }
    }
    ours
}

/// The same for programs, who asked for that before anything was wrong.
fn as_json(ours: &str) -> String {
    let told = |what| ours.lines().find_map(|line| line.strip_prefix(what)).map(str::trim_end);
    let message = told("snapback: ").or_else(|| ours.lines().next()).unwrap_or_default();
    let hint = told("hint: ").unwrap_or("`--help` shows what is accepted");
    format!("{}\n", Problem::usage(message, hint).line())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_our_form() {
        assert_eq!(
            in_our_words(
                "error: unrecognized subcommand 'unod'\n\n  tip: a similar one exists\n\nUsage: x\n"
            ),
            "snapback: unrecognized subcommand 'unod'\n\nhint: a similar one exists\n\nUsage: x\n"
        );
    }

    #[test]
    fn programs_are_told_the_same() {
        assert_eq!(
            as_json("snapback: unrecognized subcommand 'unod'\n\nhint: a similar one exists\n\nUsage: x\n"),
            "{\"error\":{\"kind\":\"invalid\",\"message\":\"unrecognized subcommand 'unod'\",\
             \"hint\":\"a similar one exists\"}}\n"
        );
        assert!(as_json("snapback: bad\n").contains("`--help` shows"));
    }
}

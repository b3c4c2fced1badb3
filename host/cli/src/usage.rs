//! What is said of a command line that makes no sense, and what help is.

use crate::exit::Code;
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
            let _ = std::io::stderr().write_all(in_our_words(&text).as_bytes());
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
}

//! What is said of a command line that makes no sense, and what help is.

mod habits;

pub use habits::path_for_id;

use crate::exit::Code;
use crate::json::Problem;
use clap::error::ErrorKind;
use std::ffi::OsString;
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
            let words: Vec<OsString> = std::env::args_os().skip(1).take_while(|word| word != "--").collect();
            let text = with_hint(in_our_words(&text), habits::hint(error, &words));
            let text = if words.iter().any(|word| word == "--json") { as_json(&text) } else { text };
            let _ = std::io::stderr().write_all(text.as_bytes());
            Code::USAGE
        }
    }
}

/// `ours` with `hint` in the place of the one that it has, or before the usage.
fn with_hint(ours: String, hint: Option<String>) -> String {
    let Some(hint) = hint else { return ours };
    let (mut lines, mut said) = (Vec::new(), false);
    for line in ours.lines() {
        let (is_hint, is_usage) = (line.starts_with("hint: "), line.starts_with("Usage: "));
        if (is_hint || is_usage) && !said {
            lines.push(format!("hint: {hint}"));
            lines.extend(is_usage.then(String::new));
            said = true;
        }
        if !is_hint {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n") + "\n"
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
    let mut lines = ours.lines().skip_while(|line| !line.starts_with("snapback: "));
    let first = lines.next().and_then(|line| line.strip_prefix("snapback: "));
    let first = first.or_else(|| ours.lines().next()).unwrap_or_default().trim_end();
    // What a sentence that ends with a colon lists.
    let listed: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    let message = format!("{first} {}", listed.join(", "));
    let hint = ours.lines().find_map(|line| line.strip_prefix("hint: ")).map(str::trim_end);
    format!(
        "{}\n",
        Problem::usage(message.trim_end(), hint.unwrap_or("`--help` shows what is accepted")).line()
    )
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
        let missing =
            "snapback: the following required arguments were not provided:\n  <ID>\n  <PATH>\n\nUsage: x\n";
        assert!(as_json(missing).contains("were not provided: <ID>, <PATH>\""), "{}", as_json(missing));
    }

    #[test]
    fn a_better_hint_stands_where_the_other_would() {
        let hint = || Some("`snapback list`".to_owned());
        assert_eq!(
            with_hint("snapback: no\n\nhint: 'lit'\n\nUsage: x\n".into(), hint()),
            "snapback: no\n\nhint: `snapback list`\n\nUsage: x\n"
        );
        assert_eq!(
            with_hint("snapback: no\n\nUsage: x\n".into(), hint()),
            "snapback: no\n\nhint: `snapback list`\n\nUsage: x\n"
        );
        assert_eq!(with_hint("snapback: no\n".into(), None), "snapback: no\n");
    }
}

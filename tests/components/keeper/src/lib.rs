//! A backend that keeps copies of a file beside it and stores only their names: how the
//! tests see what is let go of, and what differs in a backend's own words, line by line.

use snapback_sdk::fs::Dir;
use snapback_sdk::{
    Backend, Change, Error, ErrorKind, Explain, Object, Part, Reader, Release, Result, Target, Writer,
    take_part,
};
use std::io::{Read, Write};

struct Keeper;

const STATE: &str = "state";
const PART: &str = "copy";

impl Backend for Keeper {
    const MANIFEST: &'static str = include_str!("../manifest.toml");

    fn snapshot(_target: &Target, previous: Vec<Part>) -> Result<Vec<Part>> {
        let room = Dir::open("room")?;
        let state = room.read(STATE)?;
        // Nothing is copied again when nothing changed.
        if let Some(part) = previous.into_iter().next()
            && lines(&part.content)?.1.as_bytes() == state
        {
            return Ok(vec![part]);
        }
        let taken =
            room.entries("")?.iter().filter_map(|(name, _)| name.strip_prefix("copy-")?.parse().ok()).max();
        let name = format!("copy-{}", taken.unwrap_or(0) + 1);
        room.write(&name, &mut &state[..])?;
        let mut writer = Writer::new()?;
        writeln!(writer, "{name}")?;
        writer.write_all(&state)?;
        Ok(vec![Part { name: PART.into(), content: writer.finish()? }])
    }

    fn restore(_target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        let room = Dir::open("room")?;
        let (name, stored) = lines(&take_part(parts, PART)?)?;
        let (now, known) = (room.read(STATE)?, lines(&take_part(current, PART)?)?.1);
        if now != known.as_bytes() && now != stored.as_bytes() {
            return Err(Error::new(ErrorKind::Changed, "somebody wrote to `state`"));
        }
        room.write("state~", &mut &room.read(&name)?[..])?;
        room.rename("state~", STATE)
    }
}

impl Release for Keeper {
    fn discard(target: &Target, parts: Vec<Part>) -> Result<()> {
        let room = Dir::open("room")?;
        if room.read("stuck").is_ok() {
            return Err(Error::new(ErrorKind::Busy, "the room is stuck").with_hint("remove `stuck`"));
        }
        for part in parts {
            match room.remove_file(&lines(&part.content)?.0) {
                Err(error)
                    if error.kind == ErrorKind::NotFound
                        && target.setting("forgets").as_deref() != Some("false") => {}
                done => done?,
            }
        }
        Ok(())
    }
}

impl Explain for Keeper {
    fn compare(_target: &Target, before: Vec<Part>, after: Vec<Part>) -> Result<Vec<Change>> {
        let (before, after) = (lines(&take_part(before, PART)?)?.1, lines(&take_part(after, PART)?)?.1);
        if before.contains("unspeakable") || after.contains("unspeakable") {
            return Err(Error::new(ErrorKind::Other, "there are no words for it"));
        }
        let one = |kind: &str, line: &str| Change {
            kind: kind.into(),
            subject: line.as_bytes().to_vec(),
            detail: Some(format!("{} bytes\u{1b}[2J", line.len())),
        };
        let gone = before.lines().filter(|line| !after.lines().any(|other| other == *line));
        let new = after.lines().filter(|line| !before.lines().any(|other| other == *line));
        Ok(gone.map(|line| one("deleted", line)).chain(new.map(|line| one("added", line))).collect())
    }
}

/// The name of the copy that a part stands for, and what is in it.
fn lines(object: &Object) -> Result<(String, String)> {
    let mut text = String::new();
    Reader::new(object)?.read_to_string(&mut text)?;
    let (name, state) = text.split_once('\n').unwrap_or((&text, ""));
    Ok((name.to_owned(), state.to_owned()))
}

snapback_sdk::export!(Keeper, explain, release);

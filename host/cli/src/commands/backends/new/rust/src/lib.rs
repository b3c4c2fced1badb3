//! Keeps one file. Make it keep what you want kept: README.md says how to build and try it.

use snapback_sdk::file::File;
use snapback_sdk::{Backend, Error, ErrorKind, Part, Reader, Result, Target, Writer, splice};
use std::io::Read;

struct Keep;

impl Backend for Keep {
    const MANIFEST: &'static str = r#"
        name = "@NAME@"
        version = "0.1.0"
        summary = "Keeps one file"

        [[setting]]
        key = "file"
        kind = "file"
        access = "write"
        required = true
        help = "the file"
    "#;

    fn snapshot(target: &Target, _previous: Vec<Part>) -> Result<Vec<Part>> {
        let Some(content) = File::open(target, "file")?.read()? else { return Ok(Vec::new()) };
        let writer = Writer::new()?;
        splice(content.stream(), writer.stream())?;
        Ok(vec![Part { name: "content".into(), content: writer.finish()? }])
    }

    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        let file = File::open(target, "file")?;
        let now = file.read()?.map(whole).transpose()?;
        // Another than both: somebody wrote to it. A restore that was cut short may have
        // done its work already.
        if now != content(&parts)? && now != content(&current)? {
            let error = Error::new(ErrorKind::Changed, "somebody wrote to the file");
            return Err(error.with_hint("try again"));
        }
        let Some(part) = parts.first() else { return file.remove() };
        let new = file.replace()?;
        splice(Reader::new(&part.content)?.stream(), new.stream())?;
        new.finish()
    }
}

fn content(parts: &[Part]) -> Result<Option<Vec<u8>>> {
    parts.first().map(|part| whole(Reader::new(&part.content)?)).transpose()
}

fn whole(mut reader: Reader) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}

snapback_sdk::export!(Keep);

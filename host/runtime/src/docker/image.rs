//! The images that this program makes itself: nothing is pulled.
//!
//! One is empty. The other holds a small program that does what is done in containers, or, where
//! that is not there, this program; without what only debuggers look at, and with the libraries
//! that it runs with here if it needs any. There is nothing else in it, no shell above all. It is
//! made once for each build of the program; those of other builds are removed then.

use super::daemon::Daemon;
use super::{elf, fault, inside};
use crate::digest;
use bollard::models::{ContainerCreateBody, HostConfig, Mount};
use bollard::query_parameters::{CreateImageOptions, ListImagesOptions, RemoveImageOptions, TagImageOptions};
use bytes::Bytes;
use futures_util::TryStreamExt;
use snapback_core::error::{Error, Kind, Result};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The image without anything in it.
pub const EMPTY: &str = "snapback/empty:1";
/// The images with a program of ours in it.
const HELPER: &str = "snapback/helper";
/// Where things are in it.
const PROGRAM: &str = "snapback";
const LOADER: &str = "loader";
const LIBRARIES: &str = "lib";
/// Bytes of a block of a tar archive.
const BLOCK: usize = 512;

/// An image that can be started.
pub struct Image {
    /// How the engine knows it.
    pub name: String,
    /// What is started in it, before the word that says what for.
    pub command: Vec<String>,
    /// With these variables.
    pub variables: Vec<String>,
}

/// Makes the empty image, unless it is there; how the engine knows it.
///
/// # Errors
/// When the engine refuses.
pub fn empty(daemon: &Daemon) -> Result<String> {
    match is_there(daemon, EMPTY)? {
        true => Ok(EMPTY.to_owned()),
        // The end of an archive: two empty blocks.
        false => import(daemon, EMPTY, vec![0; 2 * BLOCK].into()),
    }
}

/// What a container with this program in it is made from: it has `mount` and nothing else, no
/// network above all, and reads what it is told.
///
/// # Errors
/// As [`helper`] has them.
pub fn container(
    daemon: &Daemon,
    labels: HashMap<String, String>,
    mount: Mount,
) -> Result<ContainerCreateBody> {
    let image = helper(daemon)?;
    Ok(ContainerCreateBody {
        image: Some(image.name),
        entrypoint: Some(image.command),
        cmd: Some(vec![inside::WORD.into()]),
        env: Some(image.variables),
        user: Some("0:0".into()),
        labels: Some(labels),
        network_disabled: Some(true),
        open_stdin: Some(true),
        host_config: Some(HostConfig {
            mounts: Some(vec![mount]),
            network_mode: Some("none".into()),
            readonly_rootfs: Some(true),
            security_opt: Some(vec!["no-new-privileges".into()]),
            ..Default::default()
        }),
        ..Default::default()
    })
}

/// Makes the image with a program of ours, unless it is there.
///
/// # Errors
/// When the program cannot be read or run there, or the engine refuses.
pub fn helper(daemon: &Daemon) -> Result<Image> {
    let program = daemon.lent().program.clone();
    let program =
        program.ok_or_else(|| Error::new(Kind::Other, "this program does not know its own file"))?;
    // What was started, whatever stands at its path by now.
    let running = Path::new("/proc/self/exe");
    let small = (daemon.lent().helper)();
    let file = small.as_deref().unwrap_or(if running.exists() { running } else { &program });
    let stat = fs::metadata(file).map_err(|e| Error::io(e, "could not look at", &program))?;
    let build = format!(
        "{} {} {} {}",
        stat.dev(),
        stat.ino(),
        stat.len(),
        stat.mtime_nsec() + stat.mtime() * 1_000_000_000
    );
    let mut name = format!("{HELPER}:{}", &digest::of(build.as_bytes())[..12]);
    let read = |path: &Path| fs::read(path).map_err(|e| Error::io(e, "could not read", path));
    let there = is_there(daemon, &name)?;
    // Its head alone says what loads it.
    let found = if there { elf::loader_of(file)? } else { None };
    let (loader, archive) = if there {
        (found, None)
    } else {
        let found = elf::loaded(read(file)?)?;
        let mut archive = Vec::new();
        add(&mut archive, PROGRAM, &found.bytes);
        (found.loader, Some(archive))
    };
    let libraries = loader.as_deref().map_or(Ok(Vec::new()), elf::libraries)?;
    let inside =
        |path: &Path| format!("{LIBRARIES}/{}", path.file_name().unwrap_or_default().to_string_lossy());
    if let Some(mut archive) = archive {
        if let Some(loader) = &loader {
            add(&mut archive, LOADER, &read(loader)?);
        }
        for library in &libraries {
            add(&mut archive, &inside(library), &read(library)?);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        remove_others(daemon);
        name = import(daemon, &name, archive.into())?;
    }
    let preload: Vec<String> = libraries.iter().map(|library| format!("/{}", inside(library))).collect();
    let loader = loader.map(|_| format!("/{LOADER}"));
    Ok(Image {
        name,
        command: loader.into_iter().chain([format!("/{PROGRAM}")]).collect(),
        // The loader knows by this where they are, whatever their names.
        variables: if preload.is_empty() {
            Vec::new()
        } else {
            vec![format!("LD_PRELOAD={}", preload.join(":"))]
        },
    })
}

/// Adds a program to an archive in the form of tar.
fn add(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let mut head = [0; BLOCK];
    let mut put = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000755\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", bytes.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = head.iter().map(|&b| u32::from(b)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive.extend_from_slice(&head);
    archive.extend_from_slice(bytes);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

/// Removes the images of other builds, as far as nothing uses them.
fn remove_others(daemon: &Daemon) {
    let filters = [("reference".to_owned(), vec![HELPER.to_owned()])].into();
    let options = ListImagesOptions { filters: Some(filters), ..Default::default() };
    let found = daemon.try_ask(async |client| client.list_images(Some(options)).await);
    for tag in found.into_iter().flatten().flatten().flat_map(|image| image.repo_tags) {
        let _ = daemon.try_ask(async |client| {
            client.remove_image(&tag, None::<RemoveImageOptions>, None).await.map(drop)
        });
    }
}

fn is_there(daemon: &Daemon, name: &str) -> Result<bool> {
    match daemon.try_ask(async |client| client.inspect_image(name).await)? {
        Ok(_) => Ok(true),
        Err(answer) if fault::is_missing(&answer) => Ok(false),
        Err(answer) => Err(daemon.explain(&format!("look at the image `{name}`"), &answer)),
    }
}

/// Makes an image of `archive` that is to be called `name`; how the engine knows it.
fn import(daemon: &Daemon, name: &str, archive: Bytes) -> Result<String> {
    let (repo, tag) = name.split_once(':').unwrap_or((name, "1"));
    let options = CreateImageOptions {
        from_src: Some("-".into()),
        repo: Some(repo.into()),
        tag: Some(tag.into()),
        ..Default::default()
    };
    let told = daemon.ask(&format!("make the image `{name}`"), async |client| {
        let told = client.create_image(Some(options), Some(bollard::body_full(archive)), None);
        told.try_collect::<Vec<_>>().await
    })?;
    if is_there(daemon, name)? {
        return Ok(name.to_owned());
    }
    // Some podmans do not take the tag: it is given to what they say they made.
    let said = told.into_iter().rev().flat_map(|told| [told.id, told.status]).flatten();
    let id = said.map(|said| said.trim().to_owned()).find(|said| is_id(said));
    let id = id.ok_or_else(|| {
        Error::new(
            Kind::Other,
            format!("the engine made the image `{name}` and does not say what it is called"),
        )
    })?;
    let options = TagImageOptions { repo: Some(repo.into()), tag: Some(tag.into()) };
    daemon.ask(&format!("name the image `{name}`"), async |client| {
        client.tag_image(&id, Some(options)).await
    })?;
    Ok(id)
}

/// Whether an engine knows an image by that: the digest of it, in hexadecimal.
fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::process::Command;

    #[test]
    fn an_image_is_known_by_its_digest_alone() {
        let digits = "0123456789abcdef".repeat(4);
        assert!(is_id(&digits) && is_id(&format!("sha256:{digits}")));
        for other in ["", "Importing", &digits[1..], &format!("sha512:{digits}")] {
            assert!(!is_id(other), "{other}");
        }
    }

    #[test]
    fn tar_reads_what_is_added() {
        let scratch = Scratch::new();
        let mut archive = Vec::new();
        add(&mut archive, "lib/a", &[7; 1000]);
        add(&mut archive, "b", b"");
        archive.resize(archive.len() + 2 * BLOCK, 0);
        fs::write(scratch.path().join("x.tar"), archive).unwrap();
        let tar = Command::new("tar").args(["-xf", "x.tar"]).current_dir(scratch.path()).status().unwrap();
        assert!(tar.success());
        assert_eq!(fs::read(scratch.path().join("lib/a")).unwrap(), [7; 1000]);
        let mode = fs::metadata(scratch.path().join("b")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o755);
    }
}

//! What compose calls the project of a folder, by the rules that it has for that: the variable
//! of the environment, or of the file `.env`; the name that its files give it; else the name of the
//! folder, in the letters that compose keeps.
//!
//! A name that only compose can work out, with a variable in it, is none here. Which files and
//! which name were said on compose's command line nobody knows afterwards.

use super::compose;
use crate::propose;
use snapback_core::project::config;
use std::path::Path;

/// The variable with the name.
const VARIABLE: &str = "COMPOSE_PROJECT_NAME";
/// The file with variables of a project's own.
const VARIABLES: &str = ".env";
/// The files that compose reads: the first of the former that is there, and of the latter.
const FILES: [[&str; 4]; 2] = [
    ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
    [
        "compose.override.yml",
        "compose.override.yaml",
        "docker-compose.override.yml",
        "docker-compose.override.yaml",
    ],
];

/// A name that is given; none inside where only compose can tell it.
type Given = Option<String>;

/// What compose calls the folder's project. `variables`: those of the environment.
pub fn of(folder: &Path, variables: fn(&str) -> Option<String>) -> Option<String> {
    let environment = variables(VARIABLE).filter(|name| !name.is_empty()).map(Some);
    let given = environment
        .or_else(|| variable(&read(folder, VARIABLES)?))
        .or_else(|| FILES.iter().rev().find_map(|names| named_by(folder, names)));
    given.unwrap_or_else(|| Some(plain(&folder.file_name()?.to_string_lossy())))
}

/// The same of the folders below it that have a file of compose, which `init` finds as well.
pub fn below(folder: &Path, variables: fn(&str) -> Option<String>) -> Vec<String> {
    let files = propose::files(folder, &FILES[0].map(str::to_owned));
    let folders = files.iter().filter_map(|file| Path::new(file).parent());
    let below = folders.filter(|below| !below.as_os_str().is_empty());
    below.filter_map(|below| of(&folder.join(below), variables)).collect()
}

/// The name that the first of the files called `names` gives it.
fn named_by(folder: &Path, names: &[&str]) -> Option<Given> {
    let text = names.iter().find_map(|name| read(folder, name))?;
    let given = compose::name(&text)?.map(|name| plain(&name));
    // What comes down to nothing is not given.
    (given.as_deref() != Some("")).then_some(given)
}

fn read(folder: &Path, name: &str) -> Option<String> {
    config::read(&folder.join(name)).ok().flatten()
}

/// What the text of a file of variables says of the name.
fn variable(text: &str) -> Option<Given> {
    let value = |line: &str| {
        let line = line.trim();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        (name.trim() == VARIABLE).then(|| value.trim().to_owned())
    };
    let value = text.lines().filter_map(value).next_back()?;
    let quoted = |quote: char| Some(value.strip_prefix(quote)?.split_once(quote)?.0);
    let bare = || value.split(" #").next().unwrap_or_default().trim();
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or_else(bare);
    (!value.is_empty()).then(|| Some(value.to_owned()).filter(|value| !value.contains('$')))
}

/// A name in the letters that compose keeps.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    let kept = lower.chars().filter(|&c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
    kept.collect::<String>().trim_start_matches(['_', '-']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::fs;

    const NONE: fn(&str) -> Option<String> = |_| None;

    /// What a folder called `name` with these files is called.
    #[track_caller]
    fn called(name: &str, files: &[(&str, &str)], expected: Option<&str>) {
        let scratch = Scratch::new();
        let folder = scratch.path().join(name);
        fs::create_dir(&folder).unwrap();
        files.iter().for_each(|(file, text)| fs::write(folder.join(file), text).unwrap());
        assert_eq!(of(&folder, NONE).as_deref(), expected, "{name} {files:?}");
    }

    #[test]
    fn a_folder_is_called_by_its_name_in_the_letters_that_compose_keeps() {
        for (name, expected) in [
            ("shop", "shop"),
            ("My Shop", "myshop"),
            ("my-shop_2.0", "my-shop_20"),
            ("_-_.Shop", "shop"),
            ("2shops", "2shops"),
            ("caf\u{e9}", "caf"),
        ] {
            called(name, &[], Some(expected));
            called(name, &[("compose.yaml", "services:\n  name: other\n")], Some(expected));
        }
    }

    #[test]
    fn the_name_in_a_file_comes_before_that_of_the_folder() {
        let one = |text: &'static str, expected| called("dir", &[("compose.yaml", text)], expected);
        one("name: shop\nservices:\n", Some("shop"));
        one("services:\n  db:\n    name: x\nname: \"Shop\" # ours\n", Some("shop"));
        one("name: ''\n", Some("dir"));
        one("name:\n", Some("dir"));
        one("name: ...\n", Some("dir"));
        one("name: ${SHOP:-shop}\n", None);
        let both = |files: &[(&str, &str)], expected| called("dir", files, Some(expected));
        both(&[("compose.yml", "name: b\n"), ("compose.yaml", "name: a\n")], "a");
        both(&[("docker-compose.yaml", "name: b\n"), ("docker-compose.yml", "name: a\n")], "a");
        both(&[("compose.yaml", "name: a\n"), ("compose.override.yml", "name: b\n")], "b");
        both(&[("compose.yaml", "name: a\n"), ("compose.override.yml", "services:\n")], "a");
    }

    #[test]
    fn variables_come_before_all() {
        let file = ("compose.yaml", "name: shop\n");
        for (text, expected) in [
            ("COMPOSE_PROJECT_NAME=bank\n", Some("bank")),
            ("A=1\n export COMPOSE_PROJECT_NAME = 'bank' # ours\n", Some("bank")),
            ("COMPOSE_PROJECT_NAME=a\nCOMPOSE_PROJECT_NAME=\"bank\"\n", Some("bank")),
            ("COMPOSE_PROJECT_NAME=bank # ours\r\n", Some("bank")),
            ("COMPOSE_PROJECT_NAME=$X\n", None),
            ("COMPOSE_PROJECT_NAME=\n", Some("shop")),
            ("#COMPOSE_PROJECT_NAME=bank\nMY_COMPOSE_PROJECT_NAME=x\nCOMPOSE_PROJECT_NAME\n", Some("shop")),
        ] {
            called("dir", &[file, (".env", text)], expected);
        }
        let scratch = Scratch::new();
        fs::write(scratch.path().join(".env"), "COMPOSE_PROJECT_NAME=bank\n").unwrap();
        let set = |name: &str| (name == VARIABLE).then(|| "set".to_owned());
        let empty = |name: &str| (name == VARIABLE).then(String::new);
        assert_eq!(of(scratch.path(), set).as_deref(), Some("set"));
        assert_eq!(of(scratch.path(), empty).as_deref(), Some("bank"));
    }

    #[test]
    fn folders_below_that_have_a_file_are_projects_of_their_own() {
        let scratch = Scratch::new();
        for (file, text) in [
            ("compose.yaml", "name: top\n"),
            ("a/compose.yaml", ""),
            ("b/docker-compose.yml", "name: shop\n"),
            ("c/other.yaml", ""),
            ("node_modules/compose.yaml", ""),
        ] {
            let path = scratch.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(below(scratch.path(), NONE), ["a", "shop"]);
    }
}

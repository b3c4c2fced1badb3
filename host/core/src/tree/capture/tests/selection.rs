//! What is captured and what is left out.

use super::*;
use crate::tree::select::CACHEDIR_TAG;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

fn paths(taken: &Taken) -> Vec<&str> {
    let mut paths = taken.paths();
    paths.retain(|path| !matches!(taken.entry(path).node, Node::Dir(_)));
    paths
}

#[test]
fn only_ignore_leaves_out_files_and_git_does_not() {
    let mut world = World::new();
    for path in [".gitignore", ".env", "a.log", "keep.log", "logs/x", "src/a.log", "src/logs/y", "uploads/z"]
    {
        world.write(path, path);
    }
    world.write(".gitignore", ".env\nuploads/\n*.log\n");
    world.mkdir(".git");
    let taken = world.capture();
    assert_eq!(paths(&taken).len(), 8, "git's rules leave nothing out");
    world.options = vec![("ignore", "*.log\n!keep.log\n/logs".into())];
    let taken = world.capture();
    assert_eq!(paths(&taken), [".env", ".gitignore", "keep.log", "src/logs/y", "uploads/z"]);
    assert_eq!(taken.root.ignored, [("*.log".to_owned(), 2)]);
    assert_eq!(taken.left_out(), [(".git".into(), Why::Git, ""), ("logs".into(), Why::Ignored, "/logs")]);
    assert!(taken.omitted.is_empty(), "what a rule leaves out is no hole");
}

#[test]
fn include_wins_over_every_rule() {
    let mut world = World::new();
    let files = "a.log b.log c.log sub/b.txt sub/c.txt node_modules/mine/a node_modules/minor/b \
                 node_modules/other/c node/d out/x cache/CACHEDIR.TAG .git/HEAD";
    for path in files.split_whitespace() {
        world.write(path, path);
    }
    world.write("cache/CACHEDIR.TAG", CACHEDIR_TAG.1);
    world.options = vec![
        ("ignore", "*.log\n*.txt".into()),
        ("regenerable", "node_modules\nnode\nout\n* holding CACHEDIR.TAG".into()),
        // As in `ignore`, the last one that matches decides.
        ("include", "?.log\n!a.log\n!c.log\nsub/b.txt\nout\ncache\n".into()),
        ("include", "node_modules/mine\nnode_modules/min*\n!node_modules/minor".into()),
    ];
    let taken = world.capture();
    let wanted = ["b.log", "cache/CACHEDIR.TAG", "node_modules/mine/a", "out/x", "sub/b.txt"];
    assert_eq!(paths(&taken), wanted);
    let again = |path: &str, rule| (path.to_owned(), Why::Regenerable, rule);
    assert_eq!(
        taken.left_out(),
        [
            (".git".into(), Why::Git, ""),
            again("node", "node"),
            again("node_modules/minor", "node_modules"),
            again("node_modules/other", "node_modules"),
        ]
    );
}

#[test]
fn paths_narrow_what_is_captured() {
    let mut world = World::new();
    for path in ["src/a", "docs/api/b", "docs/other/c", "top", "srcs/d", "alone", "other"] {
        world.write(path, path);
    }
    // Whoever names files does not have them counted.
    world.options =
        vec![("paths", "src\ndocs/api\nmissing\nalone\nother".into()), ("max-files-per-dir", "1".into())];
    let taken = world.capture();
    assert_eq!(paths(&taken), ["alone", "docs/api/b", "other", "src/a"]);
    assert_eq!(taken.warned, ["missing is among `paths` and is not there"]);
    let outside: Vec<_> = taken.left_out().into_iter().map(|(path, why, _)| (path, why)).collect();
    assert_eq!(outside, ["docs/other", "srcs", "top"].map(|path| (path.to_owned(), Why::Outside)));
}

#[test]
fn what_can_be_made_again_is_left_out_by_its_sign() {
    let mut world = World::new();
    for path in [
        "node_modules/x/y",
        ".venv/pyvenv.cfg",
        "venv/mine",
        "cache/CACHEDIR.TAG",
        "fake/CACHEDIR.TAG",
        "rust/Cargo.toml",
        "rust/target/x",
        "plain/target/x",
        "cs/a.csproj",
        "cs/obj/x",
    ] {
        world.write(path, path);
    }
    world.write("cache/CACHEDIR.TAG", [CACHEDIR_TAG.1, b"\n# more"].concat());
    // Neither a file nor a link is a directory that can be made again.
    world.write("file/node_modules", "a file");
    world.options = vec![(
        "regenerable",
        "node_modules\n.venv holding conda-meta pyvenv.cfg\nvenv holding pyvenv.cfg\n\
         * holding CACHEDIR.TAG\ntarget ignored else beside Cargo.toml pom.xml\nobj beside *.csproj *.fsproj"
            .into(),
    )];
    // Whether all files are taken as they come, or each name is looked at.
    for ignore in [None, Some("nothing-like-it")] {
        world.options.extend(ignore.map(|pattern| ("ignore", pattern.into())));
        let taken = world.capture();
        let left: Vec<_> = taken.left_out().into_iter().map(|(path, why, _)| (path, why)).collect();
        let wanted = [".venv", "cache", "cs/obj", "node_modules", "rust/target"];
        assert_eq!(left, wanted.map(|path| (path.to_owned(), Why::Regenerable)));
        for path in ["plain/target/x", "venv/mine", "fake/CACHEDIR.TAG", "file/node_modules"] {
            assert!(taken.entries.contains_key(path), "{path}");
        }
    }
}

#[test]
fn a_repository_that_is_covered_is_covered_whole() {
    let mut world = World::new();
    let git = [".git/HEAD", ".git/logs/HEAD", ".git/refs/heads/build/x", ".git/refs/heads/node_modules/y"];
    for path in
        git.into_iter().chain([".git/lfs/large", "logs/x", "build/x", ".gitignore", "sub/.git/logs/z"])
    {
        world.write(path, path);
    }
    for at in 0..30 {
        world.write(&format!(".git/objects/{at}"), "x");
    }
    world.write(".gitignore", "build\n");
    world.options = vec![
        ("git", "true".into()),
        ("max-files-per-dir", "20".into()),
        ("regenerable", "node_modules\nbuild ignored".into()),
        ("ignore", "logs\n/.git/lfs\n/.git/refs\n!/.git/refs\n".into()),
    ];
    let taken = world.capture();
    let left: Vec<_> = taken.left_out().into_iter().map(|(path, why, _)| (path, why)).collect();
    let (again, ignored) = (Why::Regenerable, Why::Ignored);
    assert_eq!(
        left,
        [(".git/lfs", ignored), ("build", again), ("logs", ignored)].map(|(p, w)| (p.to_owned(), w))
    );
    assert!(git.iter().all(|path| taken.entries.contains_key(*path)), "names in it mean something else");
    assert!(taken.entries.contains_key(".git/objects/29") && taken.entries.contains_key("sub/.git/logs/z"));
    // Whoever names it means all of it, too; a part of it is not it, and HEAD is recorded.
    world.options[0] = ("include", ".git".into());
    assert_eq!(world.capture().paths(), taken.paths());
    world.options[0] = ("include", ".git/logs".into());
    let part = world.capture();
    assert!(part.entries.contains_key(".git/logs/HEAD") && !part.entries.contains_key(".git/HEAD"));
    assert!(part.root.git.is_some() && taken.root.git.is_none());
}

fn git(at: &Path, args: &[&str]) {
    let done =
        Command::new("git").arg("-C").arg(at).args(args).env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn where_there_is_git_it_decides_what_build_output_is() {
    let mut world = World::new();
    let files = [
        "a/dist/x",
        "b/dist/x",
        "b/package.json",
        "c/d/dist/x",
        "n/dist/x",
        "n/package.json",
        "e/dist/x",
        "w/dist/x",
    ];
    for path in files {
        world.write(path, path);
    }
    world.write(".gitignore", "/a/dist\n");
    world.write("c/.gitignore", "dist/\n!d/dist\nw\n");
    world.write("c/d/.gitignore", "dist\n");
    git(&world.path(""), &["init", "-q"]);
    world.write(".git/info/exclude", "/e/dist\n");
    // A nested repository has rules of its own, a submodule's are found where `.git` points.
    git(&world.path("n"), &["init", "-q"]);
    world.write("w/.git", "gitdir: ../.git/modules/w\n");
    world.write(".git/modules/w/HEAD", "ref: refs/heads/main\n");
    world.write(".git/modules/w/info/exclude", "dist\n");
    world.options = vec![("regenerable", "dist ignored else beside package.json".into())];
    let taken = world.capture();
    let left: Vec<_> = taken.left_out().into_iter().map(|(path, why, _)| (path, why)).collect();
    let (git, again) = (Why::Git, Why::Regenerable);
    let wanted = [
        (".git", git),
        ("a/dist", again),
        ("c/d/dist", again),
        ("e/dist", again),
        ("n/.git", git),
        ("w/.git/HEAD", git),
        ("w/dist", again),
    ];
    assert_eq!(left, wanted.map(|(path, why)| (path.to_owned(), why)));
    // A file of that name is one like any other; what it leads to is only looked at.
    assert!(taken.entries.contains_key("w/.git"));
    // Beside its maker's file, but git keeps it.
    assert!(taken.entries.contains_key("b/dist/x") && taken.entries.contains_key("n/dist/x"));
    world.options.push(("git", "true".into()));
    let taken = world.capture();
    assert!(taken.entries.contains_key(".git/HEAD") && taken.entries.contains_key("w/.git"));
}

#[test]
fn a_repository_around_the_directory_is_asked_as_well() {
    let world = World::new();
    for path in ["sub/pkg/dist/x", "sub/pkg/build/x", "sub/pkg/keep"] {
        world.write(path, path);
    }
    git(&world.path(""), &["init", "-q"]);
    world.write(".gitignore", "dist\n");
    world.write("sub/.gitignore", "/pkg/build\n");
    let options = Options::parse(&[("regenerable", "dist ignored\nbuild ignored")]).unwrap();
    let walk = |value: &str| {
        let directory = Directory::open(&world.path(""), "path", value, &options).unwrap();
        let measure = crate::tree::measure(&directory, u64::MAX, u64::MAX, &Cancel::default()).unwrap();
        measure.files
    };
    assert_eq!(walk("sub/pkg"), 1);
    assert_eq!(walk("sub"), 2);
}

#[test]
fn the_guard_counts_a_directory_s_own_files_that_are_captured() {
    let mut world = World::new();
    for at in 0..30 {
        world.write(&format!("output/{at}"), "x");
        world.write(&format!("src/node_modules/{at}"), "x");
        world.write(&format!("logs/{at}.log"), "x");
        world.mkdir(&format!("dirs/{at}"));
    }
    world.write("src/main", "m");
    world.options = vec![
        ("max-files-per-dir", "20".into()),
        ("regenerable", "node_modules".into()),
        ("ignore", "*.log".into()),
    ];
    let taken = world.capture();
    let left: Vec<_> = taken.left_out();
    assert_eq!(
        left,
        [
            ("output".into(), Why::TooManyFiles, "more than 20"),
            ("src/node_modules".into(), Why::Regenerable, "node_modules")
        ]
    );
    assert_eq!(taken.root.left_out[0].files, Some(30));
    assert_eq!(taken.omitted, [("output".into(), "too many files: more than 20".into())]);
    assert_eq!(paths(&taken), ["src/main"]);
    assert_eq!(
        taken.root.ignored,
        [("*.log".to_owned(), 30)],
        "what lies in what is left out is not counted"
    );
    // Named by the user, it is captured.
    world.options.push(("include", "output".into()));
    assert_eq!(world.capture().root.files, 31);
    // So is what of it is named, and nothing else of it.
    *world.options.last_mut().unwrap() = ("include", "output/3".into());
    assert_eq!(paths(&world.capture()), ["output/3", "src/main"]);
    // The directory itself cannot be left out: that is said.
    for at in 0..30 {
        world.write(&format!("{at}"), "x");
    }
    let error = world.try_capture(true).unwrap_err();
    assert!(error.message().contains("directly holds 30 files"), "{error}");
    assert!(error.hint_text().unwrap().contains("max-files-per-dir"));
}

#[test]
fn the_guard_is_exact_and_what_is_left_out_never_counts() {
    let world = World::new();
    let files = |ignore: &str| {
        let options = Options::parse(&[("ignore", ignore), ("regenerable", "node_modules")]).unwrap();
        let directory = Directory::open(&world.path(""), "path", ".", &options).unwrap();
        crate::tree::measure(&directory, u64::MAX, u64::MAX, &Cancel::default()).unwrap().files
    };
    for at in 0..9_998 {
        world.write(&format!("d/{at}"), "");
    }
    // Neither what is no file, nor what is left out, nor what is in either.
    for path in ["d/node_modules/a", "d/node_modules/b", "d/.git/HEAD", "d/sub/c", "d/sub/d"] {
        world.write(path, "");
    }
    for at in 0..3 {
        std::os::unix::fs::symlink("0", world.path(&format!("d/link{at}"))).unwrap();
    }
    for (last, wanted) in [(9_999, Some(9_999)), (10_000, Some(10_000)), (10_001, None)] {
        world.write(&format!("d/{last}"), "");
        // Whether all files are taken as they come, or each name is looked at.
        for ignore in ["", "nothing-like-it"] {
            assert_eq!(files(ignore), wanted.map_or(0, |files| files + 2 + 3), "{last} {ignore}");
        }
    }
}

#[test]
fn stores_are_known_by_what_is_in_them() {
    let mut world = World::new();
    for path in ["sub/.snapback", "moved"] {
        world.mkdir("sub");
        Store::create(&world.path(path), Disk::default()).unwrap();
    }
    world.write("other/.snapback/format", "my own format\n");
    world.options = vec![("include", "moved\n.snapback".into())];
    let taken = world.capture();
    assert_eq!(
        taken.left_out(),
        [("moved".into(), Why::Store, ""), ("sub/.snapback".into(), Why::Store, "")]
    );
    assert_eq!(paths(&taken), ["other/.snapback/format"]);
    // A store is called one whatever rule leaves it out.
    world.options = vec![("ignore", ".snapback".into())];
    let left: Vec<_> = world.capture().left_out().into_iter().map(|(path, why, _)| (path, why)).collect();
    let wanted = [("moved", Why::Store), ("other/.snapback", Why::Ignored), ("sub/.snapback", Why::Store)];
    assert_eq!(left, wanted.map(|(path, why)| (path.to_owned(), why)));
}

#[test]
fn what_is_snapbacks_own_is_in_no_capture_whatever_the_rules_say() {
    let mut world = World::new();
    world.write("state/snapback/consents/c", "yes");
    world.write("state/other", "x");
    let before = world.capture();
    assert_eq!(paths(&before), ["state/other", "state/snapback/consents/c"]);
    let own = world.path("state/snapback").metadata().unwrap();
    world.own = vec![(own.dev(), own.ino())];
    world.options = vec![("include", "state/snapback/consents/c\nsnapback".into())];
    let taken = world.capture();
    let said = "where snapback keeps its own files";
    assert_eq!(taken.left_out(), [("state/snapback".into(), Why::Store, said)]);
    assert_eq!(paths(&taken), ["state/other"]);
    // By whatever name, and also where an older snapshot has it.
    std::fs::rename(world.path("state"), world.path("moved")).unwrap();
    world.write("state/other", "x");
    std::fs::create_dir(world.path("state/snapback")).unwrap();
    world.cover = vec![Part { name: "tree".into(), content: before.key }];
    let covering = world.capture();
    assert_eq!(covering.left_out(), [("moved/snapback".into(), Why::Store, said)]);
    assert_eq!(paths(&covering), ["moved/other", "state/other"]);
}

#[test]
fn another_file_system_is_entered_only_when_asked_to() {
    let mut world = World::new();
    world.write("file", "x");
    world.mkdir("mnt");
    let mount =
        |args: &[&str]| Command::new("mount").args(args).output().is_ok_and(|out| out.status.success());
    let at = world.path("mnt").to_str().unwrap().to_owned();
    if !mount(&["-t", "tmpfs", "none", &at]) {
        return; // Not permitted here.
    }
    world.write("mnt/inside", "y");
    // A bind mount has the same device.
    world.mkdir("bound");
    let bound = world.path("bound").to_str().unwrap().to_owned();
    let file = world.path("file").to_str().unwrap().to_owned();
    world.write("over", "under");
    let over = world.path("over").to_str().unwrap().to_owned();
    let binds =
        mount(&["--bind", world.store.path().to_str().unwrap(), &bound]) && mount(&["--bind", &file, &over]);
    let taken = world.capture();
    world.options = vec![("cross-mounts", "true".into())];
    let crossed = world.capture();
    for path in [&at, &bound, &over] {
        let _ = Command::new("umount").arg(path).output();
    }
    assert!(binds);
    let left: Vec<_> = taken.left_out().into_iter().map(|(path, why, _)| (path, why)).collect();
    assert_eq!(left, ["bound", "mnt", "over"].map(|path| (path.to_owned(), Why::Mount)));
    assert_eq!(paths(&taken), ["file"]);
    assert_eq!(paths(&crossed), ["file", "mnt/inside", "over"]);
    assert_eq!(crossed.left_out(), [("bound".into(), Why::Store, "")]);
}

#[test]
fn what_a_restore_will_go_to_is_covered_whatever_the_rules_say_now() {
    let mut world = World::new();
    git(&world.path(""), &["init", "-q"]);
    for path in ["src/a", "dist/b", "gen/c.log", "old"] {
        world.write(path, path);
    }
    world.write(".gitignore", "nothing\n");
    world.options = vec![("regenerable", "dist ignored\nnode_modules\nbuild ignored".into())];
    let before = world.capture();
    assert!(before.entries.contains_key("dist/b"));
    // The run changes the rules, makes new things, and puts a directory where a file was.
    world.write(".gitignore", "dist\nbuild\n");
    world.write("dist/new", "n");
    world.write("build/new", "n");
    world.write("node_modules/x", "x");
    std::fs::remove_file(world.path("old")).unwrap();
    world.write("old/node_modules/deep", "d");
    world.options.push(("ignore", "*.log\ngen".into()));
    world.options.push(("max-files-per-dir", "1".into()));
    world.options.push(("paths", "src\ndist".into()));
    world.cover = vec![Part { name: "tree".into(), content: before.key }];
    let taken = world.capture();
    assert_eq!(
        paths(&taken),
        [".gitignore", "dist/b", "dist/new", "gen/c.log", "old/node_modules/deep", "src/a"]
    );
    world.options.truncate(1);
    let taken = world.capture();
    let left: Vec<_> = taken.left_out().into_iter().map(|(path, why, _)| (path, why)).collect();
    assert_eq!(left, [(".git".to_owned(), Why::Git), ("node_modules".to_owned(), Why::Regenerable)]);
    assert!(taken.entries.contains_key("build/new"), "the frozen `.gitignore` decides");
    // Nor is it refused because of how many files are in it by now.
    world.write("one", "1");
    world.options = vec![("max-files-per-dir", "1".into())];
    assert!(world.capture().entries.contains_key("one"));
}

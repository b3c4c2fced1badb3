//! What can be made again, and so is left out unless the user wants it.
//!
//! A name alone is enough only where nobody gives it to anything else. Names that
//! people also use for their own work need a sign: git ignores them, or, without
//! git, the file of the tool that makes them lies beside.

/// The rules, one a line, in the host's form. An empty line separates kinds of sign.
pub const RULES: &str = "\
node_modules
__pycache__

* holding CACHEDIR.TAG
.venv holding pyvenv.cfg
venv holding pyvenv.cfg

target ignored else beside Cargo.toml pom.xml build.sbt
dist ignored else beside package.json pyproject.toml setup.py
build ignored else beside package.json pyproject.toml setup.py build.gradle build.gradle.kts CMakeLists.txt
out ignored else beside package.json
.cache ignored else beside package.json
.next ignored else beside package.json
.nuxt ignored else beside package.json
.svelte-kit ignored else beside package.json
.parcel-cache ignored else beside package.json
.turbo ignored else beside package.json turbo.json
.gradle ignored else beside build.gradle build.gradle.kts settings.gradle settings.gradle.kts
.pytest_cache ignored else beside pyproject.toml setup.py setup.cfg pytest.ini tox.ini
.mypy_cache ignored else beside pyproject.toml setup.py setup.cfg mypy.ini
.tox ignored else beside tox.ini pyproject.toml
.nox ignored else beside noxfile.py
.zig-cache ignored else beside build.zig
zig-out ignored else beside build.zig
_build ignored else beside mix.exs dune-project
.dart_tool ignored else beside pubspec.yaml
obj ignored else beside *.csproj *.fsproj *.vbproj
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_people_use_too_needs_a_sign() {
        let alone: Vec<&str> = RULES.lines().filter(|line| !line.is_empty() && !line.contains(' ')).collect();
        assert_eq!(alone, ["node_modules", "__pycache__"]);
        for line in RULES.lines().filter(|line| line.contains(" ignored")) {
            assert!(line.contains(" else beside "), "{line}");
        }
    }
}

//! The README says what the program does by default.

use crate::root;
use std::fs;

#[test]
fn the_readme_names_everything_that_is_left_out_as_made_again() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let rules = fs::read_to_string(root().join("plugins/tree/src/regenerable.rs")).expect("it has the rules");
    let rules: Vec<&str> = rules.lines().filter(|line| line.contains(" ignored else beside ")).collect();
    assert!(rules.len() > 15, "{rules:?}");
    for name in rules.iter().filter_map(|rule| rule.split(' ').next()) {
        assert!(readme.contains(&format!("`{name}`")), "{name} is named");
    }
}

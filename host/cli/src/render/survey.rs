//! What a snapshot would hold and leave out, as `status` shows it.

use super::words::{count, first, one_line};
use super::{beyond, left_out};
use snapback_core::error::show_bytes;
use snapback_core::project::units::human;
use snapback_core::tree::{Precious, Survey};

/// Things of one kind that are named before they are only counted.
const NAMED: usize = 20;

/// Rows about `survey`: name, value. `asks` says that such a snapshot would be asked for.
pub fn rows(survey: &Survey, asks: bool) -> Vec<(&'static str, String)> {
    let more = if survey.holds.complete { "" } else { "more than " };
    let mut covers = format!("{more}{}, {}", count(survey.holds.files, "file"), human(survey.holds.bytes));
    if asks {
        covers.push_str(
            "; a first snapshot of that asks before it is taken (`snapback run --allow-huge` insists)",
        );
    }
    let mut rows = vec![("covers", covers)];
    if !survey.databases.is_empty() {
        let named: Vec<String> = first(survey.databases.iter().map(|path| show_bytes(path)), NAMED).collect();
        rows.push(("databases", format!("{} (found: each is a target of its own)", named.join(", "))));
    }
    rows.extend(first(left_out::surveyed(survey).into_iter(), NAMED).map(|line| ("left out", line)));
    if !survey.precious.is_empty() {
        let named: Vec<String> = first(survey.precious.iter().map(precious), NAMED).collect();
        rows.push(("precious", format!("ignored by git, and covered: {}", named.join(", "))));
    }
    if let Some(git) = &survey.git {
        rows.push(("git", beyond::recorded(&git.position, git.whole)));
    }
    rows
}

fn precious(item: &Precious) -> String {
    match item.directory {
        true => format!("{}/ ({})", show_bytes(&item.path), count(item.files, "file")),
        false => one_line(&show_bytes(&item.path)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use snapback_core::tree::Measure;
    use snapback_core::tree::root::{LeftOut, Why};

    pub fn left(path: &str, why: Why, files: Option<u64>) -> LeftOut {
        LeftOut { path: path.into(), why, detail: String::new(), files, stamp: None }
    }

    #[test]
    fn a_survey_has_a_row_for_each_thing() {
        let precious = |path: &str, directory, files| Precious { path: path.into(), directory, files };
        let mut survey = Survey {
            holds: Measure { files: 1200, bytes: 2048, complete: true, ..Measure::default() },
            left_out: vec![
                left(".git", Why::Git, Some(7)),
                left(".snapback", Why::Store, None),
                left("node_modules", Why::Regenerable, Some(60_000)),
            ],
            ignored: vec![("*.log".into(), 3)],
            precious: vec![precious(".env", false, 1), precious("uploads", true, 12)],
            databases: vec![b"app.db".to_vec(), b"d/\xff".to_vec()],
            git: None,
        };
        let text = |survey: &Survey, asks| {
            rows(survey, asks).iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
        };
        let want = [
            "covers: 1,200 files, 2.0 kB",
            "databases: app.db, \"d/\\xff\" (found: each is a target of its own)",
            "left out: .git  git, 7 files",
            "left out: node_modules  regenerable, 60,000 files",
            "left out: 3 files  ignored by `*.log`",
            "precious: ignored by git, and covered: .env, uploads/ (12 files)",
        ];
        assert_eq!(text(&survey, false), want);
        survey.precious = (0..30).map(|n| precious(&format!("f{n}"), false, 1)).collect();
        survey.holds.complete = false;
        let rows = text(&survey, true);
        assert!(rows[0].starts_with("covers: more than 1,200 files") && rows[0].contains("--allow-huge"));
        assert!(rows[5].ends_with("f19, 10 more"), "{}", rows[5]);
    }
}

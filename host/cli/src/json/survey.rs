//! What a snapshot would hold and leave out, in JSON.

use super::beyond::Place;
use super::names::{Named, path};
use crate::render::left_out::is_told;
use serde::{Serialize, Serializer};
use snapback_core::text::Bytes;
use snapback_core::tree::Survey;

/// Things of one kind that are named; how many there are is said besides.
const NAMED: usize = 1000;

/// What a snapshot of one target would hold and leave out.
#[derive(Serialize)]
pub struct SurveyItem {
    target: String,
    files: u64,
    bytes: u64,
    /// Whether all was counted.
    complete: bool,
    excluded: Vec<Item>,
    excluded_count: usize,
    /// What git ignores and is covered all the same.
    precious: Vec<Item>,
    precious_count: usize,
    /// Databases that would be targets of their own, by their paths.
    databases: Vec<Found>,
    git: Option<Repository>,
}

/// A path and what it is.
struct Item {
    path: Bytes,
    reason: Option<&'static str>,
    files: Option<u64>,
}

/// The path of a database.
struct Found(Bytes);

/// A repository of which only a record would be in the snapshot.
#[derive(Serialize)]
struct Repository {
    #[serde(flatten)]
    place: Place,
    whole: bool,
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            #[serde(flatten)]
            path: Named<'a, 1>,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'static str>,
            files: Option<u64>,
        }
        Form { path: path(&self.path), reason: self.reason, files: self.files }.serialize(s)
    }
}

impl Serialize for Found {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        path(&self.0).serialize(s)
    }
}

impl From<&(String, Survey)> for SurveyItem {
    fn from((target, survey): &(String, Survey)) -> Self {
        let left_out = survey.left_out.iter().filter(|item| is_told(item)).map(|item| Item {
            path: Bytes(item.path.clone()),
            reason: Some(item.why.word()),
            files: item.files,
        });
        let ignored = survey.ignored.iter().map(|(pattern, files)| Item {
            path: Bytes(pattern.clone().into_bytes()),
            reason: Some("ignored"),
            files: Some(*files),
        });
        let mut excluded: Vec<Item> = left_out.chain(ignored).collect();
        let precious = survey.precious.iter().take(NAMED).map(|item| Item {
            path: Bytes(item.path.clone()),
            reason: None,
            files: Some(item.files),
        });
        let excluded_count = excluded.len();
        excluded.truncate(NAMED);
        Self {
            target: target.clone(),
            files: survey.holds.files,
            bytes: survey.holds.bytes,
            complete: survey.holds.complete,
            excluded,
            excluded_count,
            precious: precious.collect(),
            precious_count: survey.precious.len(),
            databases: survey.databases.iter().map(|path| Found(Bytes(path.clone()))).collect(),
            git: (survey.git.as_ref())
                .map(|git| Repository { place: Place::of(&git.position), whole: git.whole }),
        }
    }
}

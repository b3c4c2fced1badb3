//! The list of a review: changes grouped by target and directory.

use super::choice::{Choice, Item};

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A target, by its name.
    Target(String),
    /// A directory of a target, by its place.
    Dir(String, Vec<u8>),
    /// The change of this number.
    Change(usize),
}

impl Row {
    /// Whether a verdict about this line is one about `item`, which has this number.
    pub fn is_about(&self, number: usize, item: &Item, choice: &Choice) -> bool {
        match self {
            Self::Target(target) => item.target == *target,
            Self::Dir(target, place) => item.is_in(target, place),
            Self::Change(own) => {
                let own_item = &choice.items[*own];
                number == *own || item.is_in(&own_item.target, &own_item.place)
            }
        }
    }
}

/// All lines about `items`, which stand in the order of targets and paths.
pub fn rows(items: &[Item]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut at: Option<(&str, &[u8])> = None;
    for (number, item) in items.iter().enumerate() {
        if at.is_none_or(|(target, _)| target != item.target) {
            rows.push(Row::Target(item.target.clone()));
            at = Some((&item.target, b""));
        }
        let dir = item.place.iter().rposition(|&b| b == b'/').map_or(&b""[..], |slash| &item.place[..slash]);
        if at.is_some_and(|(_, of)| of != dir) {
            if !dir.is_empty() {
                rows.push(Row::Dir(item.target.clone(), dir.to_vec()));
            }
            at = Some((&item.target, dir));
        }
        rows.push(Row::Change(number));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::choice::Verdict;
    use super::super::choice::tests::of;
    use super::*;

    #[test]
    fn changes_stand_beneath_their_target_and_their_directory() {
        let choice = of(&["a", "src/", "src/b", "src/deep/c", "z"]);
        let dir = |place: &str| Row::Dir("tree".into(), place.into());
        assert_eq!(
            rows(&choice.items),
            [
                Row::Target("tree".into()),
                Row::Change(0),
                Row::Change(1),
                dir("src"),
                Row::Change(2),
                dir("src/deep"),
                Row::Change(3),
                Row::Change(4),
            ]
        );
    }

    #[test]
    fn a_verdict_about_a_group_is_one_about_all_in_it() {
        let mut choice = of(&["a", "src/", "src/b", "src/deep/c", "z"]);
        for (row, count) in [
            (Row::Target("tree".into()), 5),
            (Row::Dir("tree".into(), b"src".to_vec()), 3),
            (Row::Dir("tree".into(), b"src/deep".to_vec()), 1),
            (Row::Change(1), 3),
            (Row::Change(0), 1),
        ] {
            let about: Vec<bool> =
                choice.items.iter().enumerate().map(|(n, item)| row.is_about(n, item, &choice)).collect();
            assert_eq!(about.iter().filter(|is| **is).count(), count, "{row:?}");
        }
        choice.decide(Verdict::Accepted, |item| item.is_in("tree", b"src"));
        assert_eq!(choice.count(Verdict::Accepted), 3);
    }
}

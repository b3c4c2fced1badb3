//! The main job on a real source tree: a destructive command, undo, redo, and the chain
//! of two runs, each state compared with a record that other tools took.

use crate::each_user;
use snapback_tests::{Record, Restores, corpus};

const FILES: usize = 20_000;

/// Deletes a third of the files, rewrites others (some to the same size), renames
/// directories, changes modes, turns files into directories and the other way round.
const FIRST: &str = r"
    export LC_ALL=C
    files() { find . -path ./.snapback -prune -o -type f -print | sort; }
    pick() { awk -v of=$1 -v at=$2 'NR % of == at' | tr '\n' '\0'; }
    files | pick 3 0 | xargs -0 rm -f
    files | pick 9 1 | xargs -0 -n 500 sed -i '1s/^/rewritten /'
    files | pick 9 2 | xargs -0 -n 500 sed -i 'y/abcdef/fedcba/'
    files | pick 7 3 | xargs -0 chmod 600
    files | pick 40 4 | xargs -0 setfattr -n user.seen -v yes
    for d in web-sys aws-sdk-iam openssl-src; do mv $d renamed-$d; done
    find . -path ./.snapback -prune -o -type d -name types -print | pick 2 0 | xargs -0 chmod 750
    f=$(files | sed -n 5p); rm $f; mkdir $f; echo inside > $f/file
    d=$(find ./libc -mindepth 1 -maxdepth 1 -type d | sort | sed -n 1p); rm -r $d; echo file > $d
    f=$(files | sed -n 9p); ln $f hard; ln -s $f soft
";

/// What a second command does to what the first one left.
const SECOND: &str = r"
    export LC_ALL=C
    for d in renamed-*; do mv $d ${d#renamed-}; done
    mkdir -p new/empty/dir
    cp -r aws-sdk-rds/src new/copy
    find aws-sdk-ec2 -name '*.rs' -type f | sort | awk 'NR % 2' | tr '\n' '\0' | xargs -0 rm -f
    rm hard soft
    chmod 700 .
";

#[test]
fn a_real_tree_comes_back_from_every_state_of_two_runs() {
    each_user(|s| {
        let project = s.project();
        corpus(&project);
        s.user().own_all(&project);
        let take = || Record::take(&project);

        let start = take();
        assert!(start.files() >= FILES);
        s.run(FIRST);
        let after_first = take();
        assert!(after_first.files() < start.files() * 7 / 10, "the command deletes a third");

        let mut restores = Restores::default();
        let mut goes = |verb: &str, from: &Record, to: &Record| {
            s.ok([verb]).says(&project.to_string_lossy());
            let now = take();
            restores.assert_back(to, from, &now);
            now
        };
        let now = goes("undo", &after_first, &start);
        goes("redo", &now, &after_first);

        s.run(SECOND);
        let after_second = take();
        assert!(after_second.files() < after_first.files());
        let now = goes("undo", &after_second, &after_first);
        let now = goes("undo", &now, &start);
        let now = goes("redo", &now, &after_first);
        goes("redo", &now, &after_second);

        s.snapback(["redo"]).fails(1, &["nothing to redo"]);
        s.ok(["verify"]);
    });
}

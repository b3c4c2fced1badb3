//! A backend that holds the containers of a volume, and gives up in the middle when it is
//! told to: how the tests see that they are let go of all the same. It proposes a target
//! for each file that lists volumes.

use snapback_sdk::docker::Volume;
use snapback_sdk::{Backend, Find, Finding, Part, Result, Target, take_part};

struct Holder;

const VOLUME: &str = "volume";

impl Backend for Holder {
    const MANIFEST: &'static str = include_str!("../manifest.toml");

    fn snapshot(target: &Target, _previous: Vec<Part>) -> Result<Vec<Part>> {
        let volume = Volume::open(target, VOLUME)?;
        let _held = volume.quiesce("pause", "stop")?;
        let content = volume.capture(None)?;
        give_up(target, "snapshot");
        Ok(vec![Part { name: VOLUME.into(), content }])
    }

    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        let volume = Volume::open(target, VOLUME)?;
        let _held = volume.quiesce("pause", "stop")?;
        give_up(target, "restore");
        volume.restore(&take_part(parts, VOLUME)?, &take_part(current, VOLUME)?)
    }
}

impl Find for Holder {
    fn discover(matches: Vec<String>) -> Vec<Finding> {
        let finding = |path: String| Finding {
            name: "listed".into(),
            settings: vec![(VOLUME.into(), path.replace('/', "_"))],
        };
        matches.into_iter().map(finding).collect()
    }
}

fn give_up(target: &Target, during: &str) {
    assert!(target.setting("gives-up").as_deref() != Some(during), "told to give up during {during}");
}

snapback_sdk::export!(Holder, find);

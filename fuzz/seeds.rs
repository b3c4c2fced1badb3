//! Writes what our encoders made into `corpus/`, a folder for each target: where libFuzzer
//! begins.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    for target in snapback_core::fuzz::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        fs::create_dir_all(&folder)?;
        for (n, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{n}")), seed)?;
        }
    }
    Ok(())
}

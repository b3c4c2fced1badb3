//! `snapback backends remove`: a component out of the user's own folder of backends.
//! Snapshots that it made stay; to restore them it is needed again.

use super::add::folder;
use super::unknown;
use crate::context::Context;
use crate::exit::Code;
use snapback_core::disk::{Dir, Disk};
use snapback_core::error::{Error, Kind, Result, show};

/// Does it.
///
/// # Errors
/// When it is not there, or came from elsewhere.
pub fn run(context: &mut Context, name: &str) -> Result<Code> {
    context.refuse_inside_run("backends remove")?;
    let registry = context.backends(&context.root());
    let folder = folder(context);
    let file = format!("{name}.wasm");
    let all = registry.list();
    if !folder.join(&file).symlink_metadata().is_ok_and(|meta| meta.is_file() || meta.is_symlink()) {
        return Err(match all.iter().find(|info| info.name == name) {
            None => unknown(name, all.iter().map(|info| &*info.name)),
            Some(info) if info.origin == "built-in" => {
                Error::new(Kind::Invalid, format!("the backend `{name}` came inside the program"))
                    .hint("`enabled = false` keeps a target from being captured")
            }
            Some(info) => {
                let why = format!("the backend `{name}` is not in your own folder, but {}", info.origin);
                Error::new(Kind::Invalid, why).hint("remove that file, or its folder from the settings")
            }
        });
    }
    Disk::default().unlink(&Dir::open(&folder)?, file.as_bytes())?;
    context.talk.say(format_args!("removed {}", show(&folder.join(&file))));
    context.talk.detail("snapshots that it made stay, and need it to be restored");
    Ok(Code::DONE)
}

//! `sqlite`: databases, which `crate::sqlite` captures and restores.

use super::bindings::snapback::plugin::sqlite;
use super::{Object, Target, stale, to_write};
use crate::component::State;
use crate::manifest::{Access, Kind};
use crate::reach::place::Place;
use crate::sqlite as driver;
use snapback_core::backend::Call;
use snapback_core::database::to_setting;
use snapback_core::disk::Dir;
use snapback_core::error::Result;
use snapback_core::object::ObjectKind;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmtime::component::Resource;

/// A database that was granted.
pub struct Database {
    inner: Arc<driver::Database>,
    access: Access,
    /// The directory outside the project that holds it: named by this handle, it stays
    /// the one that was agreed to.
    _above: Option<Dir>,
    _counted: Arc<()>,
}

impl sqlite::Host for State {}

impl sqlite::HostDatabase for State {
    async fn open(
        &mut self,
        _: Resource<Target>,
        key: String,
        options: Vec<(String, String)>,
    ) -> Result<Resource<Database>> {
        let (value, access) = self.grants.open(&key, Kind::Database)?;
        let (value, root) = (value.to_owned(), self.call()?.root.clone());
        let (place, counted) = (self.reach.place(&key)?.0.clone(), self.one_more_file()?);
        let (inner, above) = self
            .bulk(move || match place.leaves {
                None => Ok((driver::Database::open(&root, &key, &value, &options)?, None)),
                Some(_) => {
                    let (above, path, name) = outside(&key, &place)?;
                    Ok((driver::Database::open(&path, &key, &name, &options)?, Some(above)))
                }
            })
            .await?;
        let database = Database { inner: Arc::new(inner), access, _above: above, _counted: counted };
        self.table.push(database).map_err(stale)
    }

    async fn capture(
        &mut self,
        database: Resource<Database>,
        previous: Option<Resource<Object>>,
    ) -> Result<Option<Resource<Object>>> {
        let (database, _, call) = self.database(&database)?;
        let previous =
            previous.map(|object| self.captured(&object, ObjectKind::Database, "database")).transpose()?;
        let key = self.bulk(move || database.capture(&call, previous.as_ref())).await?;
        key.map(|key| self.table.push(Object::new(key)).map_err(stale)).transpose()
    }

    async fn restore(
        &mut self,
        database: Resource<Database>,
        stored: Option<Resource<Object>>,
        current: Option<Resource<Object>>,
    ) -> Result<()> {
        let (database, access, call) = self.database(&database)?;
        to_write(access, database.setting())?;
        let stored =
            stored.map(|object| self.captured(&object, ObjectKind::Database, "database")).transpose()?;
        let current =
            current.map(|object| self.captured(&object, ObjectKind::Database, "database")).transpose()?;
        self.bulk(move || database.restore(&call, stored.as_ref(), current.as_ref())).await
    }

    fn drop(&mut self, database: Resource<Database>) -> wasmtime::Result<()> {
        self.table.delete(database)?;
        Ok(())
    }
}

/// The directory outside the project that the user agreed to, a path that leads to no
/// other for as long as it is open, and the setting for the name in it.
fn outside(key: &str, place: &Place) -> Result<(Dir, PathBuf, String)> {
    let (above, name) = (place.path.parent().unwrap_or(Path::new("/")), place.path.file_name());
    let dir = Dir::from_fd(place.open(key)?, above.to_owned());
    let path = PathBuf::from(format!("/proc/self/fd/{}/.", dir.as_fd().as_raw_fd()));
    Ok((dir, path, to_setting(name.unwrap_or_default().as_bytes())))
}

impl State {
    fn database(&self, database: &Resource<Database>) -> Result<(Arc<driver::Database>, Access, Call)> {
        let database = self.table.get(database).map_err(stale)?;
        Ok((database.inner.clone(), database.access, self.call()?.clone()))
    }
}

//! What differs between two stored databases: objects of the schema, and in each table
//! rows that came, changed or went, by rowid or primary key.
//!
//! Both are private copies that are only read; either may be missing, which is an empty
//! one. Nothing of what a schema says is evaluated: of tables the stored columns are read,
//! generated ones aside, and virtual tables are told by the tables that they keep.

use super::fault;
use super::open::compared;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use snapback_core::backend::Cancel;
use snapback_core::database::{fill_file, header};
use snapback_core::error::{Error, Kind, Result};
use snapback_core::store::{Source, Store};
use snapback_core::tree::compare::ChangeKind;
use snapback_core::tree::node::{Entry, Node};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What differs between two databases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Objects of the schema.
    pub schema: Vec<Object>,
    /// Tables in which rows differ, by name.
    pub tables: Vec<Table>,
}

/// An object of the schema that came, changed or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What happened to it.
    pub kind: ChangeKind,
    /// `table`, `index`, `trigger` or `view`.
    pub what: String,
    /// Its name.
    pub name: String,
}

/// A table in which rows differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Rows that came.
    pub added: u64,
    /// Rows of which a column that both have changed.
    pub modified: u64,
    /// Rows that went.
    pub deleted: u64,
    /// The first of them.
    pub rows: Vec<Change>,
}

/// A row that came, changed or went, its columns as text on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it was.
    pub before: Option<String>,
    /// What it is.
    pub after: Option<String>,
}

impl Table {
    /// How many rows differ.
    pub fn rows(&self) -> u64 {
        self.added + self.modified + self.deleted
    }
}

/// Compares the databases that `before` and `after` are in `source`; of each table, at
/// most `rows` rows are returned. None when one of them is no database.
///
/// # Errors
/// When one of them cannot be read.
pub fn compare(
    store: &Arc<Store>,
    source: &dyn Source,
    (before, after): (Option<&Entry>, Option<&Entry>),
    rows: usize,
    cancel: &Cancel,
) -> Result<Option<Comparison>> {
    let workspace = store.workspace()?;
    let mut names = [None, None];
    for ((name, file), entry) in names.iter_mut().zip(["before", "after"]).zip([before, after]) {
        if let Some(entry) = entry {
            if !matches!(entry.node, Node::File { .. }) {
                return Ok(None);
            }
            let size = fill_file(store.disk(), workspace.dir(), file.as_bytes(), source, entry, cancel)?;
            let file_is = header::read(&workspace.dir().open_file(file.as_bytes())?);
            if size > 0 && !matches!(file_is, Ok(Some(_))) {
                return Ok(None);
            }
            *name = (size > 0).then_some(file);
        }
    }
    let told = |error: rusqlite::Error| match cancel.check() {
        Err(cancelled) => cancelled,
        Ok(()) => {
            let text =
                format!("what is in the two databases could not be compared: {}", fault::words(&error));
            Error::new(Kind::Corrupt, text)
        }
    };
    let connection = compared(workspace.dir(), names, cancel).map_err(told)?;
    Sides { connection, rows }.compare().map(Some).map_err(told)
}

/// Both databases, attached as `before` and `after`.
struct Sides {
    connection: Connection,
    rows: usize,
}

/// The objects of a schema, by what they are and their name: SQL text, whether it is a
/// table with rows.
type Objects = BTreeMap<(String, String), (Option<String>, bool)>;

/// How the rows of a table are told apart.
struct Shape {
    /// Columns by which a row is known, as SQL.
    key: Vec<String>,
    /// Columns that are stored, by name.
    columns: Vec<String>,
}

impl Sides {
    fn compare(&self) -> rusqlite::Result<Comparison> {
        let (old, new) = (self.objects("before")?, self.objects("after")?);
        let mut found = Comparison::default();
        for (key, (sql, _)) in &new {
            let kind = match old.get(key) {
                None => ChangeKind::Added,
                Some((other, _)) if other != sql => ChangeKind::Modified,
                Some(_) => continue,
            };
            found.schema.push(Object { kind, what: key.0.clone(), name: key.1.clone() });
        }
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            found.schema.push(Object { kind: ChangeKind::Deleted, what: key.0.clone(), name: key.1.clone() });
        }
        found.schema.sort_by(|a, b| (&a.what, &a.name).cmp(&(&b.what, &b.name)));
        let tables = |objects: &Objects| -> Vec<String> {
            objects.iter().filter(|(_, (_, has_rows))| *has_rows).map(|((_, name), _)| name.clone()).collect()
        };
        let (old, new) = (tables(&old), tables(&new));
        let mut names: Vec<&String> =
            old.iter().chain(new.iter().filter(|name| !old.contains(name))).collect();
        names.sort();
        for name in names {
            let before = if old.contains(name) { Some(self.shape("before", name)?) } else { None };
            let after = if new.contains(name) { Some(self.shape("after", name)?) } else { None };
            let table = self.table(name, before, after)?;
            if table.rows() > 0 {
                found.tables.push(table);
            }
        }
        Ok(found)
    }

    fn objects(&self, side: &str) -> rusqlite::Result<Objects> {
        let sql = format!(
            "SELECT type, name, sql, type = 'table' AND rootpage > 0 FROM {side}.sqlite_schema \
             WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows =
            statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?))))?;
        rows.collect()
    }

    fn shape(&self, side: &str, table: &str) -> rusqlite::Result<Shape> {
        let sql = format!("PRAGMA {side}.table_xinfo({})", quoted(table));
        let mut statement = self.connection.prepare(&sql)?;
        let mut all: Vec<(String, i64, i64)> = Vec::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            all.push((row.get("name")?, row.get("pk")?, row.get("hidden")?));
        }
        let columns =
            all.iter().filter(|(_, _, hidden)| *hidden == 0).map(|(name, ..)| name.clone()).collect();
        let hidden = ["rowid", "_rowid_", "oid"]
            .into_iter()
            .find(|alias| all.iter().all(|(name, ..)| !name.eq_ignore_ascii_case(alias)));
        let rowid = hidden.filter(|alias| {
            let sql = format!("SELECT {alias} FROM {side}.{} LIMIT 0", quoted(table));
            self.connection.prepare(&sql).is_ok()
        });
        let key = match rowid {
            Some(alias) => vec![alias.to_owned()],
            None => {
                let mut key: Vec<_> = all.iter().filter(|(_, pk, _)| *pk > 0).collect();
                key.sort_by_key(|(_, pk, _)| *pk);
                key.into_iter().map(|(name, ..)| quoted(name)).collect()
            }
        };
        Ok(Shape { key, columns })
    }

    fn table(&self, name: &str, before: Option<Shape>, after: Option<Shape>) -> rusqlite::Result<Table> {
        let mut table = Table { name: name.to_owned(), ..Table::default() };
        let (old, new) = (format!("before.{}", quoted(name)), format!("after.{}", quoted(name)));
        match (&before, &after) {
            (Some(before), Some(after)) if before.key == after.key && !before.key.is_empty() => {
                let same: Vec<String> = before.key.iter().map(|k| format!("o.{k} = n.{k}")).collect();
                let same = same.join(" AND ");
                let lacks = |here: &str, there: &str, other: &str| {
                    format!(
                        "{here} NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM {there} {other} NOT INDEXED WHERE {same})"
                    )
                };
                let went = lacks(&format!("{old} o"), &new, "n");
                let came = lacks(&format!("{new} n"), &old, "o");
                let common: Vec<String> = before
                    .columns
                    .iter()
                    .filter(|column| after.columns.contains(column))
                    .map(|c| quoted(c))
                    .collect();
                let differ: Vec<String> = common
                    .iter()
                    .map(|c| format!("o.{c} IS NOT n.{c} COLLATE BINARY OR typeof(o.{c}) <> typeof(n.{c})"))
                    .collect();
                table.deleted = self.count(&went)?;
                table.added = self.count(&came)?;
                self.some(&mut table, &listed("o", &before.columns), &went, |text| (Some(text), None))?;
                if !differ.is_empty() {
                    let both = format!(
                        "{old} o NOT INDEXED JOIN {new} n NOT INDEXED ON {same} WHERE {}",
                        any(&differ)
                    );
                    table.modified = self.count(&both)?;
                    self.pairs(&mut table, (&before.columns, &after.columns), &both)?;
                }
                self.some(&mut table, &listed("n", &after.columns), &came, |text| (None, Some(text)))?;
            }
            // Rows that nothing tells apart but what is in them.
            (Some(before), Some(after)) if before.key == after.key && before.columns == after.columns => {
                let columns = &before.columns;
                let went = without(&old, &new, columns);
                let came = without(&new, &old, columns);
                table.deleted = self.count(&format!("{went} o"))?;
                table.added = self.count(&format!("{came} n"))?;
                let (from, to) = (format!("{went} o"), format!("{came} n"));
                self.some(&mut table, &listed("o", columns), &from, |text| (Some(text), None))?;
                self.some(&mut table, &listed("n", columns), &to, |text| (None, Some(text)))?;
            }
            _ => {
                if let Some(before) = &before {
                    table.deleted = self.count(&format!("{old} o"))?;
                    let from = format!("{old} o");
                    self.some(&mut table, &listed("o", &before.columns), &from, |text| (Some(text), None))?;
                }
                if let Some(after) = &after {
                    table.added = self.count(&format!("{new} n"))?;
                    let from = format!("{new} n");
                    self.some(&mut table, &listed("n", &after.columns), &from, |text| (None, Some(text)))?;
                }
            }
        }
        Ok(table)
    }

    fn count(&self, from: &str) -> rusqlite::Result<u64> {
        let count: i64 =
            self.connection.query_row(&format!("SELECT count(*) FROM {from}"), [], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// The first rows of `from`.
    fn some(
        &self,
        table: &mut Table,
        columns: &str,
        from: &str,
        change: impl Fn(String) -> (Option<String>, Option<String>),
    ) -> rusqlite::Result<()> {
        let room = self.rows.saturating_sub(table.rows.len());
        if room == 0 {
            return Ok(());
        }
        let mut statement = self.connection.prepare(&format!("SELECT {columns} FROM {from} LIMIT {room}"))?;
        let names = columns_of(&statement);
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (before, after) = change(text(row, &names, 0)?);
            table.rows.push(Change { before, after });
        }
        Ok(())
    }

    /// The first rows of `both` that are not the same, as they were and as they are.
    fn pairs(
        &self,
        table: &mut Table,
        (old, new): (&[String], &[String]),
        both: &str,
    ) -> rusqlite::Result<()> {
        let room = self.rows.saturating_sub(table.rows.len());
        if room == 0 {
            return Ok(());
        }
        let [old, new] = [old, new].map(|columns| &columns[..columns.len().min(LISTED)]);
        let columns = format!("{}, {}", listed("o", old), listed("n", new));
        let mut statement = self.connection.prepare(&format!("SELECT {columns} FROM {both} LIMIT {room}"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (before, after) = (text(row, old, 0)?, text(row, new, old.len())?);
            table.rows.push(Change { before: Some(before), after: Some(after) });
        }
        Ok(())
    }
}

fn columns_of(statement: &rusqlite::Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}

/// Columns of the table that is called `of` in a query.
fn listed(of: &str, columns: &[String]) -> String {
    let all: Vec<String> = columns.iter().map(|c| format!("{of}.{} AS {}", quoted(c), quoted(c))).collect();
    if all.is_empty() { "NULL".to_owned() } else { all.join(", ") }
}

/// Whether one of `conditions` holds: as a tree, since SQLite takes no deep ones.
fn any(conditions: &[String]) -> String {
    match conditions {
        [only] => only.clone(),
        all => {
            let (left, right) = all.split_at(all.len() / 2);
            format!("({} OR {})", any(left), any(right))
        }
    }
}

/// The rows of `table` that are not in `other`, each as often as it is there more often.
fn without(table: &str, other: &str, columns: &[String]) -> String {
    let all = columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ");
    let counted = |of: &str| format!("SELECT {all}, row_number() OVER (PARTITION BY {all}) FROM {of}");
    format!("({} EXCEPT {})", counted(table), counted(other))
}

/// A name as SQL has it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Columns of each side of a row that are shown: twice as many are all that SQLite gives at once.
const LISTED: usize = 1000;
/// Bytes and characters of one value that are shown.
const SHOWN: usize = 60;

/// The columns of a row from `start`, called `names`, on one line.
fn text(row: &Row<'_>, names: &[String], start: usize) -> rusqlite::Result<String> {
    let mut parts = Vec::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        parts.push(format!("{}={}", fault::plain(name), value(row.get_ref(start + at)?)));
    }
    Ok(parts.join(" "))
}

fn value(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => format!("{number:?}"),
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let shown: String =
                text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
            let more = if text.chars().nth(SHOWN).is_some() { "..." } else { "" };
            format!("'{}'{more}", shown.replace('\'', "''"))
        }
        ValueRef::Blob(bytes) => {
            let shown: String = bytes.iter().take(SHOWN / 4).map(|byte| format!("{byte:02x}")).collect();
            let more =
                if bytes.len() > SHOWN / 4 { format!("... ({} bytes)", bytes.len()) } else { String::new() };
            format!("x'{shown}'{more}")
        }
    }
}

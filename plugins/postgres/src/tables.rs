//! What is said about tables: a line each, with what it is made of and how much is in it, so
//! that two snapshots can be compared without the server.

use crate::wire::{Fault, Wire};
use snapback_sdk::Change;
use std::collections::BTreeMap;

/// The part that says it.
pub const TABLES: &str = "tables";
/// Bytes of a table whose rows are counted. Of a larger one the size has to do: counting
/// reads it all.
const COUNTED: u64 = 64 << 20;
/// Tables that one question counts.
const AT_ONCE: usize = 200;

/// Each table, view and the like, with a digest of what it is made of; then its size, and
/// whether we may count its rows.
const QUESTION: &str = "SELECT format('%I.%I', n.nspname, c.relname), c.relkind, md5(concat_ws('|', c.relkind, \
     (SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, \
     pg_get_expr(d.adbin, d.adrelid)), ',' ORDER BY a.attnum) FROM pg_attribute a LEFT JOIN pg_attrdef d \
     ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), \
     (SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), ',' ORDER BY conname) FROM pg_constraint WHERE conrelid = c.oid), \
     (SELECT string_agg(pg_get_indexdef(indexrelid), ',' ORDER BY pg_get_indexdef(indexrelid)) FROM pg_index WHERE indrelid = c.oid), \
     (SELECT string_agg(pg_get_triggerdef(oid), ',' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal), \
     CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END)), \
     CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid)::text END, \
     (has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE') \
     AND NOT (c.relkind = 'm' AND NOT c.relispopulated))::text \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't' \
     AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%' ORDER BY 1";

/// What there is in the database that `wire` is in.
///
/// # Errors
/// When the server does not say.
pub fn read(wire: &mut Wire) -> Result<String, Fault> {
    let mut tables = BTreeMap::new();
    let mut count = Vec::new();
    for row in wire.ask(QUESTION)? {
        let [Some(name), Some(_), Some(digest), size, may] = &row[..] else { continue };
        let size: Option<u64> = size.as_ref().and_then(|size| size.parse().ok());
        let much = match size {
            Some(size) if size <= COUNTED && may.as_deref() == Some("true") => {
                count.push(name.clone());
                String::new()
            }
            Some(size) => format!("{size} bytes"),
            None => String::new(),
        };
        tables.insert(name.clone(), (digest.clone(), much));
    }
    for some in count.chunks(AT_ONCE) {
        let each = |(at, name): (usize, &String)| format!("SELECT {at}, count(*) FROM ONLY {name}");
        let question = some.iter().enumerate().map(each).collect::<Vec<_>>().join(" UNION ALL ");
        for row in wire.ask(&question)? {
            let [Some(at), Some(rows)] = &row[..] else { continue };
            let name = at.parse().ok().and_then(|at: usize| some.get(at));
            if let Some((_, much)) = name.and_then(|name| tables.get_mut(name)) {
                *much = format!("{rows} rows");
            }
        }
    }
    Ok(tables
        .iter()
        .map(|(name, (digest, much))| format!("{}\t{digest}\t{much}\n", name.replace(['\t', '\n'], " ")))
        .collect())
}

/// What differs from `before` to `after`.
pub fn compare(before: &str, after: &str) -> Vec<Change> {
    let parse = |text: &str| -> BTreeMap<String, (String, String)> {
        let line = |line: &str| {
            let mut fields = line.split('\t').map(str::to_owned);
            Some((fields.next()?, (fields.next()?, fields.next()?)))
        };
        text.lines().filter_map(line).collect()
    };
    let (old, new) = (parse(before), parse(after));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &&String| {
        let (kind, detail) = match (old.get(*name), new.get(*name)) {
            (None, Some((_, much))) => ("added", much.clone()),
            (Some((_, much)), None) => ("deleted", much.clone()),
            (Some(old), Some(new)) if old != new => ("modified", words(old, new)),
            _ => return None,
        };
        let detail = (!detail.is_empty()).then_some(detail);
        Some(Change { kind: kind.into(), subject: name.as_bytes().to_vec(), detail })
    };
    names.iter().filter_map(change).collect()
}

fn words((old, old_much): &(String, String), (new, new_much): &(String, String)) -> String {
    let mut words = Vec::new();
    if old != new {
        words.push("another definition".to_owned());
    }
    if old_much != new_much {
        words.push(format!("{old_much}, then {new_much}"));
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_differ_are_told() {
        let before = "public.a\tx\t5 rows\npublic.b\tx\t1 rows\npublic.c\tx\t0 rows\npublic.e\tx\t\n";
        let after = "public.b\ty\t1 rows\npublic.c\tx\t2 rows\npublic.d\tx\t9 rows\npublic.e\tx\t\n";
        let told: Vec<(String, String, Option<String>)> = compare(before, after)
            .into_iter()
            .map(|change| (change.kind, String::from_utf8(change.subject).unwrap(), change.detail))
            .collect();
        let expected = [
            ("deleted", "public.a", "5 rows"),
            ("modified", "public.b", "another definition"),
            ("modified", "public.c", "0 rows, then 2 rows"),
            ("added", "public.d", "9 rows"),
        ];
        assert_eq!(
            told,
            expected.map(|(kind, name, detail)| (kind.to_owned(), name.to_owned(), Some(detail.to_owned())))
        );
        assert!(compare(before, before).is_empty());
    }
}

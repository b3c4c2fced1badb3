//! What belongs to a database as a whole and no copy takes over: owner, rights, settings,
//! limit of connections, comment, whether it is a template. Kept as facts, a line each; the
//! statements that bring them about are made when they are needed, so that what is stored is
//! never run as it is.

use crate::wire::{Fault, Wire, ident, literal};
use snapback_sdk::{Error, ErrorKind, Result};

/// The part that holds them.
pub const ATTRIBUTES: &str = "attributes";
/// Settings that are lists of names, which are quoted one by one.
const LISTS: [&str; 6] = [
    "search_path",
    "temp_tablespaces",
    "session_preload_libraries",
    "shared_preload_libraries",
    "local_preload_libraries",
    "unix_socket_directories",
];

/// The facts about `database`.
///
/// # Errors
/// When the server does not say.
pub fn read(wire: &mut Wire, database: &str) -> Result<String, Fault> {
    let text = literal(database);
    let questions = [
        format!(
            "SELECT 'owner', pg_get_userbyid(datdba) FROM pg_database WHERE datname = {text} \
             UNION ALL SELECT 'limit', datconnlimit::text FROM pg_database WHERE datname = {text} \
             UNION ALL SELECT 'comment', shobj_description(oid, 'pg_database') FROM pg_database \
             WHERE datname = {text} \
             UNION ALL SELECT 'template', 'true' FROM pg_database WHERE datname = {text} AND datistemplate \
             UNION ALL SELECT 'rights', 'own' FROM pg_database WHERE datname = {text} AND datacl IS NOT NULL"
        ),
        format!(
            "SELECT 'grant', a.privilege_type, CASE a.grantee WHEN 0 THEN NULL ELSE pg_get_userbyid(a.grantee) END, \
             a.is_grantable::text FROM pg_database d, aclexplode(d.datacl) WITH ORDINALITY \
             AS a(grantor, grantee, privilege_type, is_grantable, place) WHERE d.datname = {text} ORDER BY a.place"
        ),
        format!(
            "SELECT 'set', r.rolname, split_part(s.setting, '=', 1), \
             substr(s.setting, strpos(s.setting, '=') + 1) \
             FROM pg_db_role_setting c JOIN pg_database d ON d.oid = c.setdatabase \
             LEFT JOIN pg_roles r ON r.oid = c.setrole, unnest(c.setconfig) AS s(setting) \
             WHERE d.datname = {text} ORDER BY 2, 3"
        ),
    ];
    let mut facts = String::new();
    for question in questions {
        for row in wire.ask(&question)? {
            let fields: Vec<String> = row.iter().map(|field| escape(field.as_deref())).collect();
            facts.push_str(&fields.join("\t"));
            facts.push('\n');
        }
    }
    Ok(facts)
}

/// The statements that give these facts to `database`.
///
/// # Errors
/// `Incompatible` when they are none.
pub fn statements(facts: &str, database: &str) -> Result<String> {
    let name = ident(database);
    let (mut out, mut owner_name) = (String::new(), "CURRENT_USER".to_owned());
    for line in facts.lines() {
        let fields: Vec<Option<String>> = line.split('\t').map(unescape).collect();
        let fields: Vec<Option<&str>> = fields.iter().map(Option::as_deref).collect();
        let statement = match fields[..] {
            [Some("owner"), Some(owner)] => {
                owner_name = ident(owner);
                format!("ALTER DATABASE {name} OWNER TO {owner_name}")
            }
            [Some("limit"), Some(limit)] if limit.parse::<i64>().is_ok() => {
                format!("ALTER DATABASE {name} CONNECTION LIMIT {limit}")
            }
            [Some("comment"), comment] => {
                let comment = comment.map_or_else(|| "NULL".to_owned(), literal);
                format!("COMMENT ON DATABASE {name} IS {comment}")
            }
            [Some("template"), Some("true")] => format!("ALTER DATABASE {name} IS_TEMPLATE true"),
            [Some("rights"), Some("own")] => {
                format!("REVOKE ALL ON DATABASE {name} FROM PUBLIC, {owner_name}")
            }
            [Some("grant"), Some(right), to, Some(grantable)]
                if right.bytes().all(|b| b.is_ascii_uppercase()) =>
            {
                let to = to.map_or_else(|| "PUBLIC".to_owned(), ident);
                let option = if grantable == "true" && to != "PUBLIC" { " WITH GRANT OPTION" } else { "" };
                format!("GRANT {right} ON DATABASE {name} TO {to}{option}")
            }
            [Some("set"), role, Some(key), Some(value)] => {
                let of = role.map_or_else(String::new, |role| format!("ROLE {} IN ", ident(role)));
                let key_name = key.split('.').map(ident).collect::<Vec<_>>().join(".");
                format!("ALTER {of}DATABASE {name} SET {key_name} TO {}", setting(key, value))
            }
            _ => {
                return Err(Error::new(
                    ErrorKind::Incompatible,
                    "what is stored about the database makes no sense",
                )
                .with_hint("it was made by another version of this backend"));
            }
        };
        out.push_str(&statement);
        out.push_str(";\n");
    }
    Ok(out)
}

/// A value as a statement has it.
fn setting(key: &str, value: &str) -> String {
    if !LISTS.contains(&key) || value.is_empty() {
        return literal(value);
    }
    let (mut names, mut name, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = value.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.next_if_eq(&'"').is_some() => name.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => names.push(std::mem::take(&mut name)),
            ' ' if !quoted => {}
            c => name.push(c),
        }
    }
    names.push(name);
    names.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ")
}

/// A field as a line has it.
pub fn escape(field: Option<&str>) -> String {
    match field {
        None => "\\N".into(),
        Some(text) => {
            text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
        }
    }
}

/// What a field of a line says.
pub fn unescape(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let mut text = String::new();
    let mut rest = field.chars();
    while let Some(c) = rest.next() {
        text.push(match c {
            '\\' => match rest.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                _ => '\\',
            },
            c => c,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_become_statements() {
        let facts = "owner\tjo\"e\nlimit\t-1\ncomment\t\\N\ntemplate\ttrue\nrights\town\ngrant\tCONNECT\t\\N\tfalse\n\
                     grant\tCREATE\tann\ttrue\nset\t\\N\tsearch_path\t\"$user\", public\nset\tann\tmy.key\tit's\n";
        let expected = "ALTER DATABASE \"d\" OWNER TO \"jo\"\"e\";\nALTER DATABASE \"d\" CONNECTION LIMIT -1;\n\
             COMMENT ON DATABASE \"d\" IS NULL;\n\
             ALTER DATABASE \"d\" IS_TEMPLATE true;\n\
             REVOKE ALL ON DATABASE \"d\" FROM PUBLIC, \"jo\"\"e\";\n\
             GRANT CONNECT ON DATABASE \"d\" TO PUBLIC;\n\
             GRANT CREATE ON DATABASE \"d\" TO \"ann\" WITH GRANT OPTION;\n\
             ALTER DATABASE \"d\" SET \"search_path\" TO '$user', 'public';\n\
             ALTER ROLE \"ann\" IN DATABASE \"d\" SET \"my\".\"key\" TO 'it''s';\n";
        assert_eq!(statements(facts, "d").unwrap(), expected);
    }

    #[test]
    fn what_is_stored_is_never_a_statement_of_its_own() {
        for facts in ["DROP TABLE x", "owner", "limit\t1; DROP", "grant\tALL; X\t\\N\tfalse"] {
            assert!(statements(facts, "d").is_err(), "{facts}");
        }
        assert_eq!(setting("search_path", "a; DROP TABLE x; --"), "'a;DROPTABLEx;--'");
    }

    #[test]
    fn fields_come_back() {
        for text in ["", "a\tb", "\\N", "line\nline\\", "\\t"] {
            assert_eq!(unescape(&escape(Some(text))).as_deref(), Some(text));
        }
        assert_eq!(unescape(&escape(None)), None);
    }
}

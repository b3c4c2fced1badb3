//! What somebody made who may more than the user, and nobody but such a one can make again.
//! Settings of the database an undo leaves out, and names them; what is in a dump it could not load.
//! A snapshot says both beforehand.

use crate::attributes::unescape;
use crate::wire::{Fault, Wire, literal};
use snapback_sdk::report;

/// The lines of `facts` that the user may not bring about.
///
/// # Errors
/// When the server does not say.
pub fn find(wire: &mut Wire, facts: &str) -> Result<Vec<String>, Fault> {
    let mut beyond = Vec::new();
    for line in facts.lines() {
        if let Some((role, key)) = set(line)
            && wire.one(&question(role.as_deref(), &key, wire.version))?.as_deref() == Some("false")
        {
            beyond.push(line.to_owned());
        }
    }
    Ok(beyond)
}

/// The facts without these.
pub fn without(facts: &str, beyond: &[String]) -> String {
    let kept = facts.lines().filter(|line| !beyond.iter().any(|one| one == line));
    kept.map(|line| format!("{line}\n")).collect()
}

/// Tells the user of a snapshot what an undo of it leaves out.
///
/// # Errors
/// When the server does not say.
pub fn forewarn(wire: &mut Wire, facts: &str) -> Result<(), Fault> {
    for line in find(wire, facts)? {
        report::log("warn", &format!("an undo leaves out {}", words(&line)));
    }
    Ok(())
}

/// Tells the user of a dump of the database that `inside` is in for what an undo of it would be refused.
///
/// # Errors
/// When the server does not say.
pub fn forewarn_of_load(inside: &mut Wire) -> Result<(), Fault> {
    let names: Vec<String> =
        inside.ask(LOADED)?.into_iter().filter_map(|row| row.into_iter().next()?).collect();
    if let Some(first) = names.first() {
        let more = names.len() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        report::log(
            "warn",
            &format!("an undo is refused as it is: only a superuser could load {first}{more} from a dump"),
        );
    }
    Ok(())
}

/// What a dump has that the user could not make: extensions, and what belongs to roles that the user
/// is none of. What is asked of `j` is not there in all versions.
const LOADED: &str = "SELECT 'the extension ' || e.extname FROM pg_extension e \
     JOIN pg_available_extension_versions v ON v.name = e.extname AND v.version = e.extversion, to_jsonb(v) AS j, \
     pg_roles u WHERE u.rolname = current_user AND NOT u.rolsuper AND e.extname <> 'plpgsql' AND v.superuser \
     AND coalesce(j->>'trusted', 'false') = 'false' \
     UNION ALL SELECT 'what belongs to ' || pg_get_userbyid(c.relowner) FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT pg_has_role(current_user, c.relowner, 'MEMBER') \
     AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT FROM pg_depend d \
     WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e') GROUP BY c.relowner ORDER BY 1";

/// Tells that they were left out of `database`.
pub fn tell(database: &str, beyond: &[String]) {
    for line in beyond {
        report::refused(database.as_bytes(), &format!("without {}", words(line)));
    }
}

/// What a line sets, in words.
fn words(line: &str) -> String {
    let (role, key) = set(line).unwrap_or_default();
    let of = role.map_or_else(String::new, |role| format!(" for the role {role}"));
    format!("the setting {key}{of}, which the user may not make: who made it can make it again")
}

/// The role and the key of a setting.
fn set(line: &str) -> Option<(Option<String>, String)> {
    let mut fields = line.strip_prefix("set\t")?.split('\t').map(unescape);
    Some((fields.next()?, fields.next()??))
}

/// Asks whether the user may set `key`, for `role` where that is given.
fn question(role: Option<&str>, key: &str, version: u32) -> String {
    let key = literal(key);
    let granted = match version {
        15.. => format!("has_parameter_privilege({key}, 'SET')"),
        _ => "false".to_owned(),
    };
    let mut right = format!(
        "(NOT EXISTS (SELECT FROM pg_settings WHERE name = lower({key}) AND context LIKE 'superuser%') OR {granted})"
    );
    if let Some(role) = role {
        let role = literal(role);
        let over = match version {
            16.. => format!("pg_has_role(current_user, {role}, 'MEMBER WITH ADMIN OPTION')"),
            _ => format!("NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {role} AND rolsuper)"),
        };
        right.push_str(&format!(" AND ({role} = current_user OR u.rolcreaterole AND {over})"));
    }
    format!("SELECT (u.rolsuper OR {right})::text FROM pg_roles u WHERE u.rolname = current_user")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_apart_and_left_out() {
        let facts = "owner\tann\nset\t\\N\twork_mem\t1MB\nset\tbob\tlog_statement\tall\n";
        let beyond = ["set\tbob\tlog_statement\tall".to_owned()];
        assert_eq!(without(facts, &beyond), "owner\tann\nset\t\\N\twork_mem\t1MB\n");
        assert_eq!(set(&beyond[0]), Some((Some("bob".into()), "log_statement".into())));
        assert_eq!(set("set\t\\N\twork_mem\t1MB"), Some((None, "work_mem".into())));
        assert_eq!(set("owner\tann"), None);
        assert!(words(&beyond[0]).starts_with("the setting log_statement for the role bob"));
    }

    #[test]
    fn what_a_version_does_not_know_is_not_asked_of_it() {
        assert!(!question(Some("bob"), "k", 14).contains("has_parameter_privilege"));
        assert!(!question(Some("bob"), "k", 15).contains("ADMIN"));
        assert!(question(Some("bob"), "k", 16).contains("ADMIN"));
    }
}

//! Statements in messages for people.

/// The subject of an error about a statement.
pub(super) fn subject(sql: &str) -> String {
    format!("statement {}", shortened(sql))
}

/// SQL in one short line, without the password that some statements set.
pub(super) fn shortened(sql: &str) -> String {
    const LONGEST: usize = 60;
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = line.to_ascii_lowercase();
    // MySQL's GRANT and CREATE USER: IDENTIFIED BY '…'.
    let secrets = ["password", "identified"].into_iter();
    if let Some(end) = secrets.filter_map(|word| Some(lower.find(word)? + word.len())).min() {
        return format!("{}…", &line[..end]);
    }
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Why a statement was given up that a frozen server never answered.
pub(super) fn unanswered(statement: &str) -> String {
    format!("it stopped answering, on this connection and on a new one, in the middle of: {statement}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_in_a_message_is_one_short_line_without_a_password() {
        assert_eq!(shortened("select 1,\n   2"), "select 1, 2");
        assert_eq!(shortened(&"x".repeat(70)), format!("{}…", "x".repeat(60)));
        assert_eq!(shortened("create role u PASSWORD 'secret'"), "create role u PASSWORD…");
        assert_eq!(shortened("create user u identified by 'my password'"), "create user u identified…");
    }
}

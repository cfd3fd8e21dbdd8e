//! Prepares statements and servers' messages for display to users.

use std::borrow::Cow;

/// Returns the subject of an error about a statement.
pub(super) fn subject(sql: &str) -> String {
    format!("statement {}", shortened(sql))
}

/// Shortens SQL to one line, without the password that some statements set.
pub(super) fn shortened(sql: &str) -> String {
    const LONGEST: usize = 60;
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = line.to_ascii_lowercase();
    // Passwords also appear in MySQL's GRANT and CREATE USER, as IDENTIFIED BY '…'.
    let secrets = ["password", "identified"].into_iter();
    if let Some(end) = secrets.filter_map(|word| Some(lower.find(word)? + word.len())).min() {
        return format!("{}…", &line[..end]);
    }
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Error for a reply that belongs to no request. The connection is closed, because this reply could be mistaken for the
/// reply to the next request.
pub const UNEXPECTED: &str = "the server sent an unexpected answer";

/// Maximum length of a server's message in bytes. PostgreSQL may send up to 8 MiB.
const LONGEST_TEXT: usize = 4000;

/// Cleans a server's message for display. The result is UTF-8 of limited length. The result contains no control
/// characters, because they could move a terminal's cursor.
pub(super) fn said(text: &[u8]) -> String {
    let cut = text.len() > LONGEST_TEXT;
    let kept = String::from_utf8_lossy(&text[..text.len().min(LONGEST_TEXT)]);
    let harmless = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let clean = if kept.chars().all(harmless) {
        kept
    } else {
        Cow::Owned(
            kept.chars().map(|letter| if harmless(letter) { letter } else { char::REPLACEMENT_CHARACTER }).collect(),
        )
    };
    if cut { format!("{clean}…") } else { clean.into_owned() }
}

/// Returns an error's SQLSTATE if it is five letters or digits.
pub(super) fn sqlstate(code: &[u8; 5]) -> Option<&str> {
    std::str::from_utf8(code).ok().filter(|code| code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Returns the message for a statement that exceeded its time limit.
pub(super) fn late(statement: &str) -> String {
    format!("no answer within the time limit: {statement}")
}

/// Returns the message for a statement that a hung server never answered.
pub(super) fn unanswered(statement: &str) -> String {
    format!("the server stopped answering, on this connection and on a new one, during: {statement}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_text_is_cut_and_moves_no_cursor() {
        assert_eq!(said("naïve\n".as_bytes()), "naïve\n");
        assert_eq!(said(b"\x1b[31mred\x07 \xff"), "\u{fffd}[31mred\u{fffd} \u{fffd}");
        assert_eq!(said(&[b'x'; 10 << 20]).len(), LONGEST_TEXT + "…".len());
        assert_eq!((sqlstate(b"42P01"), sqlstate(b"\x1b[31m"), sqlstate(b"42\xff01")), (Some("42P01"), None, None));
    }

    #[test]
    fn a_statement_in_a_message_is_one_short_line_without_a_password() {
        assert_eq!(shortened("select 1,\n   2"), "select 1, 2");
        assert_eq!(shortened(&"x".repeat(70)), format!("{}…", "x".repeat(60)));
        assert_eq!(shortened("create role u PASSWORD 'secret'"), "create role u PASSWORD…");
        assert_eq!(shortened("create user u identified by 'my password'"), "create user u identified…");
    }
}

//! Removes passwords from statements and parameters, before they reach any other module.

use memchr::memmem;

use crate::scan::{Dialect, Kind, Scan};

/// Text that the capture contains instead of a password.
const HIDDEN: &[u8] = b"***";
/// Maximum depth of dollar-quoted code inside other code. Deeper code is hidden as a whole.
const MAX_DEPTH: usize = 4;

/// Returns the statement without its passwords. Returns None if it contains no password. A password follows the keyword
/// PASSWORD, is inside a connection string, or is part of a statement that the code of DO or of a function runs.
pub fn without_passwords(text: &[u8]) -> Option<Vec<u8>> {
    without_passwords_at(text, 0)
}

/// Does the same for code at this depth of dollar quotes.
fn without_passwords_at(text: &[u8], depth: usize) -> Option<Vec<u8>> {
    if !is_suspicious(text) {
        return None;
    }
    let (mut kept, mut copied) = (Vec::with_capacity(text.len()), 0);
    let (mut after_password, mut builds_password) = (false, false);
    for token in Scan::new(text) {
        let bytes = &text[token.at.clone()];
        let replacement = match token.kind {
            Kind::String if after_password || builds_password => Some([b"'", HIDDEN, b"'"].concat()),
            Kind::String if bytes.starts_with(b"$") => without_passwords_in_code(bytes, depth + 1),
            Kind::String | Kind::Comment => without_pairs(bytes),
            _ => None,
        };
        builds_password |= token.kind == Kind::String && ends_before_password(bytes);
        builds_password &= !(token.kind == Kind::Mark && bytes == b";");
        if let Some(replacement) = replacement {
            kept.extend_from_slice(&text[copied..token.at.start]);
            kept.extend_from_slice(&replacement);
            copied = token.at.end;
        }
        after_password =
            token.kind == Kind::Word && is_name_of_secret(bytes) || token.kind == Kind::Comment && after_password;
    }
    (copied > 0).then(|| {
        kept.extend_from_slice(&text[copied..]);
        kept
    })
}

/// Removes the passwords from a dollar-quoted string, which may contain code.
fn without_passwords_in_code(quoted: &[u8], depth: usize) -> Option<Vec<u8>> {
    if !is_suspicious(quoted) {
        return None;
    }
    let tag = memchr::memchr(b'$', &quoted[1..]).map_or(quoted.len(), |end| end + 2);
    let (tag, rest) = quoted.split_at(tag);
    let (body, end) = rest.strip_suffix(tag).map_or((rest, &b""[..]), |body| (body, tag));
    if depth > MAX_DEPTH {
        return Some([tag, HIDDEN, end].concat());
    }
    let without_pairs = without_pairs(body);
    let without_both = without_passwords_at(without_pairs.as_deref().unwrap_or(body), depth);
    without_both.or(without_pairs).map(|body| [tag, &body, end].concat())
}

/// Whether a string is the part of a statement before a password, such as `'alter role a password '` and
/// `'alter role a password %L'`. Code appends the password to such a string.
fn ends_before_password(quoted: &[u8]) -> bool {
    (0..quoted.len()).any(|at| {
        let Some(end) = end_of_name(quoted, at) else { return false };
        let rest = quoted[end..].trim_ascii_start();
        let rest = &rest[rest.iter().take_while(|&&byte| byte == b'\'').count()..];
        rest.len() < quoted.len() - end && (rest.is_empty() || rest.starts_with(b"%")) && is_space(quoted, end)
    })
}

fn is_space(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(u8::is_ascii_whitespace)
}

/// Does the same as `without_passwords` for a statement of MySQL, where passwords have several places. All strings of a
/// statement about passwords are removed.
pub fn without_mysql_passwords(text: &[u8]) -> Option<Vec<u8>> {
    let tokens = || Scan::of(text, Dialect::Mysql);
    let names_secret = |word: &[u8]| {
        let lower = word.to_ascii_lowercase();
        memmem::find(&lower, b"password").is_some() || lower == b"identified"
    };
    let hides_all = tokens().any(|token| match token.kind {
        Kind::Word => names_secret(&text[token.at]),
        Kind::String | Kind::Comment => contains_account_statement(&text[token.at]),
        _ => false,
    });
    let (mut kept, mut copied) = (Vec::with_capacity(text.len()), 0);
    for token in tokens() {
        let bytes = &text[token.at.clone()];
        let replacement = match token.kind {
            Kind::String if hides_all => Some([b"'", HIDDEN, b"'"].concat()),
            Kind::Comment if hides_all => Some(b" ".to_vec()),
            Kind::String | Kind::Comment if is_suspicious(bytes) => without_pairs(bytes),
            _ => None,
        };
        if let Some(replacement) = replacement {
            kept.extend_from_slice(&text[copied..token.at.start]);
            kept.extend_from_slice(&replacement);
            copied = token.at.end;
        }
    }
    (copied > 0).then(|| {
        kept.extend_from_slice(&text[copied..]);
        kept
    })
}

/// Whether a string or comment contains `IDENTIFIED BY`, `SET PASSWORD` or a similar part of a statement of MySQL about
/// accounts. Such a statement can be in the string of a PREPARE, or in a comment that the server executes.
fn contains_account_statement(text: &[u8]) -> bool {
    const PARTS: &[(&[u8], &[&[u8]])] = &[(b"identified", &[b"by", b"with", b"via", b"as"]), (b"set", &[b"password"])];
    PARTS.iter().any(|(first, seconds)| {
        memchr::memchr2_iter(first[0], first[0].to_ascii_uppercase(), text).any(|at| {
            let rest = &text[at..];
            starts_with(rest, first)
                && is_space(rest, first.len())
                && seconds.iter().any(|second| starts_with(rest[first.len()..].trim_ascii_start(), second))
        })
    })
}

/// Hides the passwords of connection strings in the value of a parameter. Returns None if it contains no password.
pub fn without_password(value: &[u8]) -> Option<Vec<u8>> {
    if is_suspicious(value) { without_pairs(value) } else { None }
}

/// Checks quickly whether the text may contain a password. If this returns false, the full search would find none.
fn is_suspicious(text: &[u8]) -> bool {
    let mut words = memchr::memchr2_iter(b'p', b'P', text);
    words.any(|at| {
        let rest = &text[at..];
        starts_with(rest, b"passw") || starts_with(rest, b"pwd") || starts_with(rest, b"passphrase")
    }) || memmem::find(text, b"://").is_some()
}

fn is_name_of_secret(word: &[u8]) -> bool {
    let names: [&[u8]; 4] = [b"password", b"passwd", b"pwd", b"passphrase"];
    names.iter().any(|name| word.eq_ignore_ascii_case(name))
}

fn starts_with(text: &[u8], word: &[u8]) -> bool {
    text.len() >= word.len() && text[..word.len()].eq_ignore_ascii_case(word)
}

/// Hides the values of `password=…` and `password '…'`, and the passwords of `scheme://user:password@host`.
fn without_pairs(text: &[u8]) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(text.len());
    let (mut at, mut found) = (0, false);
    while at < text.len() {
        let secret = secret_of_pair(text, at).or_else(|| secret_of_address(text, at));
        if let Some((start, end)) = secret {
            kept.extend_from_slice(&text[at..start]);
            kept.extend_from_slice(HIDDEN);
            (at, found) = (end, true);
        } else {
            kept.push(text[at]);
            at += 1;
        }
    }
    found.then_some(kept)
}

/// Returns the end of the name if the name of a password starts at `at`.
fn end_of_name(text: &[u8], at: usize) -> Option<usize> {
    if !matches!(text[at], b'p' | b'P') {
        return None;
    }
    let rest = &text[at..];
    let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
    is_name_of_secret(&rest[..length]).then_some(at + length)
}

/// Returns the range of the value if a pair such as `password=value` or `password 'value'` starts at `at`.
fn secret_of_pair(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let end = end_of_name(text, at)?;
    let skip = |from: usize| from + text[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let equals = skip(end);
    if equals > end && matches!(text.get(equals), Some(b'\'' | b'\\')) {
        // Inside a string literal, the quotes of the password are doubled, or have a backslash.
        let quotes = text[equals..].iter().take_while(|&&byte| matches!(byte, b'\'' | b'\\')).count();
        let start = equals + quotes;
        let length = memmem::find(&text[start..], &text[equals..start]).unwrap_or(text.len() - start);
        return (length > 0).then_some((start, start + length));
    }
    if text.get(equals) != Some(&b'=') {
        return None;
    }
    let start = skip(equals + 1);
    // Inside a string literal, the quotes of a connection string are doubled.
    let quotes = text[start..].iter().take_while(|&&byte| byte == b'\'').count();
    let value = &text[start + quotes..];
    let end = if quotes == 0 {
        value.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'\'' | b'&' | b';' | b'$' | b'"'))
    } else {
        memmem::find(value, &text[start..start + quotes])
    };
    let end = end.unwrap_or(value.len());
    (end > 0).then(|| (start + quotes, start + quotes + end))
}

/// Returns the range of the password if `://user:password@` starts at `at`.
fn secret_of_address(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = text[at..].strip_prefix(b"://")?;
    let ends = rest.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'\'' | b'"' | b','));
    let authority = &rest[..ends.unwrap_or(rest.len())];
    let authority = &authority[..memchr::memrchr(b'@', authority)?];
    let colon = memchr::memchr(b':', authority)?;
    let (start, end) = (at + 3 + colon + 1, at + 3 + authority.len());
    (end > start).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_roles_and_connection_strings_are_hidden() {
        for (text, expected) in [
            ("ALTER ROLE a PASSWORD 'hunter2'", "ALTER ROLE a PASSWORD '***'"),
            (
                "create user a encrypted password /* c */ E'hun\\'ter2' valid",
                "create user a encrypted password /* c */ '***' valid",
            ),
            ("alter user a password $x$hunter2$x$", "alter user a password '***'"),
            (
                "create user mapping for a server s options (user 'a', password 'hunter2')",
                "create user mapping for a server s options (user 'a', password '***')",
            ),
            (
                "select dblink('host=h password=hunter2 port=1', 'q')",
                "select dblink('host=h password=*** port=1', 'q')",
            ),
            (
                "select dblink('host=h password = ''hunter 2'' port=1')",
                "select dblink('host=h password = ''***'' port=1')",
            ),
            (
                "create subscription s connection 'postgresql://u:hunter2@h/d'",
                "create subscription s connection 'postgresql://u:***@h/d'",
            ),
            ("do $$ begin execute 'x' using 'pwd=hunter2'; end $$", "do $$ begin execute 'x' using 'pwd=***'; end $$"),
            ("alter role a password 'hunter2", "alter role a password '***'"),
            (
                "do $$ begin create role a login password 'hunter2'; end $$",
                "do $$ begin create role a login password '***'; end $$",
            ),
            (
                "create function f() as $f$ begin execute $$alter role a password 'hunter2'$$; end $f$",
                "create function f() as $f$ begin execute $$alter role a password '***'$$; end $f$",
            ),
            (
                "do 'begin create role a login password ''hunter2''; end'",
                "do 'begin create role a login password ''***''; end'",
            ),
            (r"do E'begin alter role a password \'hunter2\'; end'", r"do E'begin alter role a password \'***\'; end'"),
            (
                "do $$ begin execute format('alter role a password %L', 'hunter2'); perform 'b'; end $$",
                "do $$ begin execute format('alter role a password %L', '***'); perform 'b'; end $$",
            ),
            (
                "select dblink_exec('alter role a password ' || quote_literal('hunter2'))",
                "select dblink_exec('alter role a password ' || quote_literal('***'))",
            ),
            (
                "select 'alter role a password ''' || 'hunter2' || ''''",
                "select 'alter role a password ''' || '***' || '***'",
            ),
            ("/* alter role a password 'hunter2' */ select 1", "/* alter role a password '***' */ select 1"),
        ] {
            let found = without_passwords(text.as_bytes()).expect(text);
            assert_eq!(String::from_utf8(found).unwrap(), expected);
        }
    }

    #[test]
    fn deeply_quoted_code_is_hidden_as_a_whole() {
        let text: String = (0..100_000).map(|number| format!("$a{number}$ password 'hunter2' ")).collect();
        let found = without_passwords(format!("do {text}").as_bytes()).unwrap();
        assert!(memmem::find(&found, b"hunter2").is_none());
    }

    #[test]
    fn a_statement_of_mysql_about_passwords_contains_no_string() {
        for text in [
            "prepare s from 'create user a identified by ''hunter2'''",
            "execute immediate concat('alter user a IDENTIFIED  BY ', quote('hunter2'))",
            "prepare s from \"set password for a = 'hunter2'\"",
            "/*!50000 create user a identified by 'hunter2' */",
            "create user a identified by 'hunter2'",
            "alter user a identified with mysql_native_password as \"hunter2\"",
            "SET PASSWORD FOR a = PASSWORD('hun\\'hunter2')",
            "change master to master_user = 'r', master_password = 'hunter2' # hunter2",
            "insert into t values ('mysql://u:hunter2@h/d')",
        ] {
            let found = String::from_utf8(without_mysql_passwords(text.as_bytes()).expect(text)).unwrap();
            assert!(!found.contains("hunter2"), "{found}");
        }
        assert_eq!(without_mysql_passwords(b"select `password` from users where name = 'a'"), None);
    }

    #[test]
    fn other_statements_stay_as_they_are() {
        for text in [
            "select password from users where id = 1",
            "select 'https://example.com/a:b'",
            "update users set password = $1",
            "select 'password: please'",
            "insert into field (name, kind) values ('password', 'text')",
        ] {
            assert_eq!(without_passwords(text.as_bytes()), None, "{text}");
        }
        assert_eq!(without_password(b"plain"), None);
        assert_eq!(without_password(b"host=h passwd=x").unwrap(), b"host=h passwd=***");
    }
}

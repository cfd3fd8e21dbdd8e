//! Rows in the text format of PostgreSQL's COPY (PostgreSQL 18 documentation, COPY, "Text Format").

/// Returns an INSERT statement for rows of `fields` fields. If `sql` is a COPY, the INSERT uses its table. An INSERT is
/// returned unchanged. Returns None for other statements.
pub fn insert_for(sql: &str, fields: usize) -> Option<String> {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    let (verb, rest) = sql.split_once(char::is_whitespace)?;
    if verb.eq_ignore_ascii_case("insert") {
        return Some(sql.to_owned());
    }
    if !verb.eq_ignore_ascii_case("copy") {
        return None;
    }
    let upper = rest.to_ascii_uppercase();
    let table = rest[..upper.find(" FROM STDIN")?].trim();
    let places: Vec<String> = (1..=fields.max(1)).map(|place| format!("?{place}")).collect();
    Some(format!("INSERT INTO {table} VALUES ({})", places.join(", ")))
}

/// Returns the field's bytes. Returns None for NULL. Bytes with escapes are decoded into `buffer`.
pub fn unescape<'a>(raw: &'a [u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    if raw == b"\\N" {
        return None;
    }
    if !raw.contains(&b'\\') {
        return Some(raw);
    }
    buffer.clear();
    let mut bytes = raw.iter();
    while let Some(&byte) = bytes.next() {
        let plain = match byte {
            b'\\' => match bytes.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                Some(&other) => other,
                None => b'\\',
            },
            other => other,
        };
        buffer.push(plain);
    }
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_becomes_an_insert_of_as_many_fields() {
        assert_eq!(insert_for("COPY t FROM STDIN", 2).unwrap(), "INSERT INTO t VALUES (?1, ?2)");
        assert_eq!(insert_for("copy s.t (a, b) from stdin;", 2).unwrap(), "INSERT INTO s.t (a, b) VALUES (?1, ?2)");
        assert_eq!(insert_for("INSERT INTO t VALUES (?1)", 1).unwrap(), "INSERT INTO t VALUES (?1)");
        assert_eq!(insert_for("DELETE FROM t", 1), None);
    }

    #[test]
    fn escapes_are_undone() {
        let mut buffer = Vec::new();
        assert_eq!(unescape(b"a\\tb\\\\c\\n", &mut buffer).unwrap(), b"a\tb\\c\n");
        assert_eq!(unescape(b"plain", &mut buffer).unwrap(), b"plain");
        assert_eq!(unescape(b"\\N", &mut buffer), None);
    }
}

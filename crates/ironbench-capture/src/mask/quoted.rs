//! String literals of MySQL, in single or double quotes and with backslash escapes (MySQL 8.4 Reference Manual, "String
//! Literals").

/// Replaces the value of a literal, and keeps its quotes. The literal may lack its closing quote.
pub fn replaced(source: &str, replace: impl FnOnce(&str) -> String) -> String {
    let Some(quote) = source.chars().next() else { return String::new() };
    let (value, is_closed) = value(source);
    let mut out = String::with_capacity(source.len());
    out.push(quote);
    for letter in replace(&value).chars() {
        match letter {
            '\0' => out.push_str("\\0"),
            '\x1a' => out.push_str("\\Z"),
            '\\' => out.push_str("\\\\"),
            _ if letter == quote => out.extend([quote, quote]),
            _ => out.push(letter),
        }
    }
    if is_closed {
        out.push(quote);
    }
    out
}

/// Returns the value of a literal, and whether the literal has its closing quote.
pub fn value(source: &str) -> (String, bool) {
    let mut value = String::with_capacity(source.len());
    let (mut letters, mut is_closed) = (source.chars().peekable(), false);
    let quote = letters.next();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('0') => value.push('\0'),
                Some('b') => value.push('\x08'),
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some('Z') => value.push('\x1a'),
                // The backslash before these wildcards of LIKE is part of the value.
                Some(wildcard @ ('%' | '_')) => value.extend(['\\', wildcard]),
                Some(other) => value.push(other),
                None => {}
            },
            _ if Some(letter) == quote && letters.next_if_eq(&letter).is_none() => is_closed = true,
            _ => value.push(letter),
        }
    }
    (value, is_closed)
}

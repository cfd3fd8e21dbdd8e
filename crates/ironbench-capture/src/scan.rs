//! Splits SQL into tokens, as PostgreSQL's lexer does with `standard_conforming_strings = on`, or as MySQL's lexer does
//! by default. The scanner works on bytes, because logs contain statements in the encoding of their database.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or an unquoted identifier.
    Word,
    /// A double-quoted identifier.
    Identifier,
    /// A string in single quotes, with its prefix (`E`, `B`, `X`, `N`, `U&`), or in dollar quotes.
    String,
    Number,
    /// A parameter, such as `$1`; in MySQL `?`.
    Parameter,
    Operator,
    /// One of `( ) [ ] , ; : .`, or `::`.
    Mark,
    Comment,
}

/// The lexer whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    #[default]
    Postgres,
    /// MySQL and MariaDB: double quotes enclose strings, backticks enclose identifiers, strings contain backslash
    /// escapes, and `#` starts a comment.
    Mysql,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub at: Range<usize>,
}

/// Yields the tokens of a statement. A string or comment that is not closed extends to the end.
pub struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    dialect: Dialect,
    /// Whether the text is in a comment that MySQL executes. Such comments are not nested.
    in_comment: bool,
}

/// A comment whose contents MySQL or MariaDB executes: `/*! … */`, `/*!50100 … */` or `/*M! … */`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedComment {
    pub body: Range<usize>,
    pub end: usize,
    /// Whether some servers skip the comment.
    pub is_conditional: bool,
    /// Whether the end depends on whether the server executes or skips the comment, because `*/` is also in a string or
    /// in a comment inside. The comment then extends to the end of the text.
    pub is_ambiguous: bool,
}

impl ExecutedComment {
    /// Returns the comment that starts at `start`, or None if no such comment starts there.
    pub fn at(text: &[u8], start: usize) -> Option<Self> {
        let rest = &text[start..];
        let (opening, is_mariadb) = if rest.starts_with(b"/*!") {
            (3, false)
        } else if rest.starts_with(b"/*M!") {
            (4, true)
        } else {
            return None;
        };
        let version = rest[opening..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let version = if matches!(version, 5 | 6) { version } else { 0 };
        let body = start + opening + version;
        // MariaDB skips comments for MySQL 5.7 and newer.
        let is_new = version == 6 || version == 5 && &text[body - 5..body] >= b"50700".as_slice();
        let mut scan = Scan { text, at: body, dialect: Dialect::Mysql, in_comment: true };
        loop {
            Scan::skip_while(&mut scan, |byte| byte.is_ascii_whitespace() || byte == 0x0b);
            let at = scan.at;
            let is_closed = text[at..].starts_with(b"*/");
            let token = if is_closed { None } else { scan.next() };
            let Some(token) = token else {
                let end = if is_closed { at + 2 } else { text.len() };
                return Some(Self { body: body..at, end, is_conditional: is_mariadb || is_new, is_ambiguous: false });
            };
            let is_block = text[token.at.clone()].starts_with(b"/*");
            let is_line = token.kind == Kind::Comment && !is_block;
            let is_quoted = matches!(token.kind, Kind::String | Kind::Identifier);
            if (is_line || is_quoted && (is_mariadb || version > 0))
                && memchr::memmem::find(&text[token.at], b"*/").is_some()
            {
                return Some(Self {
                    body: body..text.len(),
                    end: text.len(),
                    is_conditional: true,
                    is_ambiguous: true,
                });
            }
        }
    }
}

impl<'a> Scan<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self::of(text, Dialect::Postgres)
    }

    /// Yields the tokens in a comment that MySQL executes.
    pub fn in_comment(text: &'a [u8]) -> Self {
        Self { text, at: 0, dialect: Dialect::Mysql, in_comment: true }
    }

    pub fn of(text: &'a [u8], dialect: Dialect) -> Self {
        Self { text, at: 0, dialect, in_comment: false }
    }

    /// Returns the kind of a token that MySQL's lexer reads differently, and skips the token.
    fn skip_of_mysql(&mut self, byte: u8) -> Option<Kind> {
        match byte {
            b'\'' | b'"' => {
                self.skip_quoted(byte, true);
                Some(Kind::String)
            }
            b'`' => {
                self.skip_quoted(byte, false);
                Some(Kind::Identifier)
            }
            b'#' => {
                self.skip_while(|byte| byte != b'\n');
                Some(Kind::Comment)
            }
            b'-' if self.peek(1) == b'-' && !self.peek(2).is_ascii_whitespace() && self.peek(2) != 0 => {
                self.at += 1;
                Some(Kind::Operator)
            }
            b'/' if self.peek(1) == b'*' => {
                self.at = match ExecutedComment::at(self.text, self.at) {
                    Some(comment) if !self.in_comment => comment.end,
                    _ => {
                        let rest = &self.text[self.at + 2..];
                        self.at + 2 + memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2)
                    }
                };
                Some(Kind::Comment)
            }
            b'?' => {
                self.at += 1;
                Some(Kind::Parameter)
            }
            b'$' => {
                self.skip_while(is_inside_word);
                Some(Kind::Word)
            }
            _ if is_inside_word(byte) && !byte.is_ascii_digit() => {
                self.skip_while(is_inside_word);
                Some(Kind::Word)
            }
            _ => None,
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.at < self.text.len() && wanted(self.text[self.at]) {
            self.at += 1;
        }
    }

    /// Skips a quoted text whose opening quote is at the current position.
    fn skip_quoted(&mut self, quote: u8, backslash: bool) {
        self.at += 1;
        while self.at < self.text.len() {
            let byte = self.text[self.at];
            self.at += 1;
            if byte == b'\\' && backslash {
                self.at = (self.at + 1).min(self.text.len());
            } else if byte == quote {
                if self.peek(0) != quote {
                    return;
                }
                self.at += 1;
            }
        }
    }

    /// Skips a dollar-quoted string. Returns false if none starts here.
    fn skip_dollar_quoted(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some(tag) = rest.iter().skip(1).position(|&byte| byte == b'$' || !is_inside_word(byte)) else {
            return false;
        };
        let tag = &rest[..tag + 2];
        if tag[tag.len() - 1] != b'$' || tag.get(1).is_some_and(u8::is_ascii_digit) {
            return false;
        }
        let body = &rest[tag.len()..];
        let length = memchr::memmem::find(body, tag).map_or(body.len(), |end| end + tag.len());
        self.at += tag.len() + length;
        true
    }

    fn skip_comment(&mut self) {
        if self.peek(0) == b'-' {
            return self.skip_while(|byte| byte != b'\n');
        }
        let mut depth = 0;
        while self.at < self.text.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', b'/') => (depth, self.at) = (depth - 1, self.at + 2),
                _ => self.at += 1,
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Whether the current byte belongs to the operator before it.
    #[inline]
    fn continues_operator(&self) -> bool {
        match (self.peek(0), self.peek(1)) {
            (b'-', b'-') | (b'/', b'*') => false,
            (b'*', b'/') if self.in_comment => false,
            (b'#' | b'`' | b'?', _) if self.dialect == Dialect::Mysql => false,
            (byte, _) => is_operator(byte),
        }
    }

    fn skip_number(&mut self) {
        let based = self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X' | b'o' | b'O' | b'b' | b'B');
        if based {
            self.at += 2;
            return self.skip_while(|byte| byte.is_ascii_hexdigit() || byte == b'_');
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'_';
        self.skip_while(is_digit);
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            self.at += 1;
            self.skip_while(is_digit);
        }
        let signed = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + signed).is_ascii_digit() {
            self.at += 1 + signed;
            self.skip_while(is_digit);
        }
    }

    fn skip_word_or_prefixed(&mut self) -> Kind {
        let prefix = match (self.peek(0).to_ascii_lowercase(), self.peek(1), self.peek(2)) {
            (b'e' | b'b' | b'x' | b'n', b'\'', _) => 1,
            (b'u', b'&', b'\'') => 2,
            (b'u', b'&', b'"') => {
                self.at += 2;
                self.skip_quoted(b'"', false);
                return Kind::Identifier;
            }
            _ => {
                self.skip_while(is_inside_word);
                return Kind::Word;
            }
        };
        let backslash = self.peek(0).eq_ignore_ascii_case(&b'e');
        self.at += prefix;
        self.skip_quoted(b'\'', backslash);
        Kind::String
    }
}

impl Iterator for Scan<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_while(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
        let start = self.at;
        let byte = *self.text.get(start)?;
        if self.dialect == Dialect::Mysql
            && let Some(kind) = self.skip_of_mysql(byte)
        {
            return Some(Token { kind, at: start..self.at });
        }
        let kind = match byte {
            b'\'' => {
                self.skip_quoted(b'\'', false);
                Kind::String
            }
            b'"' => {
                self.skip_quoted(b'"', false);
                Kind::Identifier
            }
            b'$' if self.peek(1).is_ascii_digit() => {
                self.at += 1;
                self.skip_while(|byte| byte.is_ascii_digit());
                Kind::Parameter
            }
            b'$' if self.skip_dollar_quoted() => Kind::String,
            b'-' if self.peek(1) == b'-' => {
                self.skip_comment();
                Kind::Comment
            }
            b'/' if self.peek(1) == b'*' => {
                self.skip_comment();
                Kind::Comment
            }
            b'0'..=b'9' => {
                self.skip_number();
                Kind::Number
            }
            b'.' if self.peek(1).is_ascii_digit() => {
                self.skip_number();
                Kind::Number
            }
            b'(' | b')' | b'[' | b']' | b',' | b';' | b'.' => {
                self.at += 1;
                Kind::Mark
            }
            b':' => {
                self.at += if self.peek(1) == b':' { 2 } else { 1 };
                Kind::Mark
            }
            _ if is_operator(byte) => {
                self.at += 1;
                while self.continues_operator() {
                    self.at += 1;
                }
                Kind::Operator
            }
            _ if is_inside_word(byte) && byte != b'$' => self.skip_word_or_prefixed(),
            _ => {
                self.at += 1;
                Kind::Operator
            }
        };
        Some(Token { kind, at: start..self.at })
    }
}

#[inline]
fn is_operator(byte: u8) -> bool {
    matches!(
        byte,
        b'+' | b'-'
            | b'*'
            | b'/'
            | b'<'
            | b'>'
            | b'='
            | b'~'
            | b'!'
            | b'@'
            | b'#'
            | b'%'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
    )
}

#[inline]
fn is_inside_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &str) -> Vec<(Kind, &str)> {
        Scan::new(text.as_bytes()).map(|token| (token.kind, &text[token.at])).collect()
    }

    #[test]
    fn literals_end_where_the_server_ends_them() {
        use Kind::{Comment, Identifier, Mark, Number, Operator, Parameter, String, Word};
        for (text, expected) in [
            ("'it''s'", vec![(String, "'it''s'")]),
            (r"E'a\'b' x", vec![(String, r"E'a\'b'"), (Word, "x")]),
            (r"'a\' x", vec![(String, r"'a\'"), (Word, "x")]),
            ("$$a;b$$ $t$ $$ $t$", vec![(String, "$$a;b$$"), (String, "$t$ $$ $t$")]),
            ("$12a", vec![(Parameter, "$12"), (Word, "a")]),
            ("1.5e-3 .5 1..2", vec![(Number, "1.5e-3"), (Number, ".5"), (Number, "1"), (Mark, "."), (Number, ".2")]),
            ("a->>'b'", vec![(Word, "a"), (Operator, "->>"), (String, "'b'")]),
            (
                "a+/* c /* d */ */1--x",
                vec![(Word, "a"), (Operator, "+"), (Comment, "/* c /* d */ */"), (Number, "1"), (Comment, "--x")],
            ),
            ("\"A \"\"b\"::t", vec![(Identifier, "\"A \"\"b\""), (Mark, "::"), (Word, "t")]),
            ("'open", vec![(String, "'open")]),
            ("größe", vec![(Word, "größe")]),
        ] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_become_tokens_in_order(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut end = 0;
            for token in Scan::new(&bytes) {
                prop_assert!(token.at.start >= end && token.at.end > token.at.start && token.at.end <= bytes.len());
                end = token.at.end;
            }
        }
    }
}

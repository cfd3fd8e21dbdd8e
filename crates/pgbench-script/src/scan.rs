//! Finds where SQL commands end.
//! For PostgreSQL, quotes, comments and parentheses are parsed like in psql's lexer,
//! with `standard_conforming_strings` on.
//! Source: psql's reference, "SQL interpolation", and PostgreSQL's "Lexical Structure".
//! For MySQL and MariaDB they are parsed like in the server, with the given SQL mode.
//! Source: MySQL 8.4 Reference Manual, 11.1.1 "String Literals", 11.7 "Comments".

use super::Dialect;
use super::lexer::{begins_name, continues_name};
use super::locate::Fault;
use std::ops::Range;

/// Text of one SQL command, without leading blanks and `--` comments.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RawSql {
    pub text: String,
    /// Offset in the script at which the text begins.
    pub offset: usize,
    /// Ranges of `text` that are comments or quoted texts, including their quotes.
    pub protected: Vec<Protected>,
    /// Number of statements in the text. If there are several, they are joined by `\;`.
    pub statements: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    pub range: Range<usize>,
    pub comment: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Semicolon,
    /// The position is after the backslash of a meta-command.
    Backslash,
    EndOfText,
}

pub struct Scanner<'a> {
    text: &'a str,
    pub at: usize,
    dialect: Dialect,
}

impl Dialect {
    fn is_mysql(self) -> bool {
        matches!(self, Self::Mysql(_))
    }

    /// Whether `rest` begins with a comment that ends at the end of the line.
    fn begins_line_comment(self, rest: &[u8]) -> bool {
        let dashes = rest.starts_with(b"--");
        match self {
            Self::Postgres => dashes,
            // In MySQL, `--` starts a comment only if white space follows, so `5--1` is 6.
            Self::Mysql(_) => {
                let blank = |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control();
                rest.starts_with(b"#") || dashes && rest.get(2).is_none_or(blank)
            }
        }
    }

    /// Returns the length of the opening of a comment whose text the server executes. The opening is `/*!`, or `/*M!`
    /// for MariaDB only, and may continue with a version. Returns 0 if there is no such opening.
    fn executed_opening(self, rest: &[u8]) -> usize {
        let opening = [&b"/*!"[..], b"/*M!"].into_iter().find(|opening| rest.starts_with(opening));
        let Some(opening) = opening.filter(|_| self.is_mysql()) else { return 0 };
        opening.len() + rest[opening.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    }
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str, dialect: Dialect) -> Self {
        // A byte order mark is not part of the script.
        Self { text, at: if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }, dialect }
    }

    /// Returns the next SQL command, if there is one before the stop.
    pub fn next_command(&mut self) -> Result<(Option<RawSql>, Stop), Fault> {
        self.skip_leading();
        let mut command = Command::new(self.text, self.at, self.dialect);
        let stop = command.scan()?;
        self.at = command.at;
        let ends_at = command.at - usize::from(stop == Stop::Backslash);
        let raw = command.finish(ends_at);
        // A comment alone is skipped, because it is not worth a round trip. A semicolon alone is not skipped, because
        // it is an empty query, which users may want to measure.
        let wanted = stop == Stop::Semicolon || raw.statements > 0;
        Ok((wanted.then_some(raw), stop))
    }

    fn skip_leading(&mut self) {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            if is_space(bytes[self.at]) {
                self.at += 1;
            } else if self.dialect.begins_line_comment(&bytes[self.at..]) {
                self.at = line_end(bytes, self.at);
            } else {
                return;
            }
        }
    }
}

/// The state of scanning one command.
struct Command<'a> {
    bytes: &'a [u8],
    text: &'a str,
    dialect: Dialect,
    at: usize,
    start: usize,
    /// Offset up to which the script's text has been copied to `out`.
    copied: usize,
    out: String,
    protected: Vec<Protected>,
    parentheses: usize,
    statements: usize,
    in_statement: bool,
    /// Whether the position is inside a comment whose text the server executes.
    in_executed: bool,
    body: Body,
}

impl<'a> Command<'a> {
    fn new(text: &'a str, at: usize, dialect: Dialect) -> Self {
        Self {
            bytes: text.as_bytes(),
            text,
            dialect,
            at,
            start: at,
            copied: at,
            out: String::new(),
            protected: Vec::new(),
            parentheses: 0,
            statements: 0,
            in_statement: false,
            in_executed: false,
            body: Body::default(),
        }
    }

    fn finish(mut self, ends_at: usize) -> RawSql {
        self.out.push_str(self.text[self.copied..ends_at].trim_end());
        RawSql { text: self.out, offset: self.start, protected: self.protected, statements: self.statements }
    }

    fn scan(&mut self) -> Result<Stop, Fault> {
        while let Some(&byte) = self.bytes.get(self.at) {
            let next = self.bytes.get(self.at + 1).copied();
            let rest = &self.bytes[self.at..];
            match (byte, next) {
                (b'-' | b'#', _) if self.dialect.begins_line_comment(rest) => {
                    self.protect(line_end(self.bytes, self.at), true);
                }
                (b'/', Some(b'*')) => match self.dialect.executed_opening(rest) {
                    0 => {
                        let end = self.comment_end()?;
                        self.protect(end, true);
                    }
                    length => {
                        self.in_executed = true;
                        self.at += length;
                    }
                },
                (b'*', Some(b'/')) if self.in_executed => {
                    self.in_executed = false;
                    self.at += 2;
                }
                (b'\\', Some(joined @ (b';' | b':'))) => self.unescape(joined),
                (b'\\', _) => {
                    self.at += 1;
                    return Ok(Stop::Backslash);
                }
                (b';', _) if self.parentheses == 0 && !self.body.is_open() => {
                    self.at += 1;
                    return Ok(Stop::Semicolon);
                }
                _ if is_space(byte) => self.at += 1,
                _ => self.token(byte, next)?,
            }
        }
        Ok(Stop::EndOfText)
    }

    /// Processes a colon. In psql, `:{?name}` tests whether a variable is defined. pgbench uses psql's lexer without
    /// access to variables, so the result is always FALSE.
    fn colon(&mut self) {
        let name = self.run_from(self.at + 3, continues_name);
        if self.bytes[self.at..].starts_with(b":{?") && name > self.at + 3 && self.bytes.get(name) == Some(&b'}') {
            self.out.push_str(&self.text[self.copied..self.at]);
            self.out.push_str("FALSE");
            self.copied = name + 1;
            self.at = name + 1;
        } else {
            self.at += 1;
        }
    }

    /// Replaces `\;` by a semicolon that does not end the command, and `\:` by a colon.
    fn unescape(&mut self, joined: u8) {
        self.out.push_str(&self.text[self.copied..self.at]);
        self.copied = self.at + 1;
        self.at += 2;
        if joined == b';' {
            self.in_statement = false;
            self.body.identifiers.clear();
        }
    }

    fn token(&mut self, byte: u8, next: Option<u8>) -> Result<(), Fault> {
        if !self.in_statement {
            self.in_statement = true;
            self.statements += 1;
        }
        match byte {
            b'\'' | b'"' => self.quoted(byte)?,
            b'`' if self.dialect.is_mysql() => self.quoted(byte)?,
            b'$' if self.dialect.is_mysql() => self.at += 1,
            b'$' if next.is_some_and(|next| next.is_ascii_digit()) => self.at += 2,
            b'$' => self.dollar_quoted()?,
            b':' => self.colon(),
            b'(' => {
                self.parentheses += 1;
                self.at += 1;
            }
            b')' => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.at += 1;
            }
            _ if byte.is_ascii_digit() => self.at = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            _ if begins_name(byte) => {
                let end = self.run(|byte| begins_name(byte) || byte.is_ascii_digit() || byte == b'$');
                let word = &self.text[self.at..end];
                let escapes = self.dialect == Dialect::Postgres && word.eq_ignore_ascii_case("e");
                if escapes && self.bytes.get(end) == Some(&b'\'') {
                    self.at = end;
                    return self.escape_quoted();
                }
                self.body.note(word, self.parentheses == 0);
                self.at = end;
            }
            _ => self.at += 1,
        }
        Ok(())
    }

    fn run(&self, belongs: impl Fn(u8) -> bool) -> usize {
        self.at + self.bytes[self.at..].iter().take_while(|byte| belongs(**byte)).count()
    }

    /// Marks the text from here to `end` as protected, and continues at `end`. The marked range refers to the output
    /// text.
    fn protect(&mut self, end: usize, comment: bool) {
        let shift = |offset: usize| self.out.len() + offset - self.copied;
        self.protected.push(Protected { range: shift(self.at)..shift(end), comment });
        self.at = end;
    }

    /// Skips a quoted string or name. A doubled quote is treated as the end of one text and the start of another, which
    /// makes no difference here. In MySQL, a backslash in a string is an escape, unless `sql_mode` says otherwise.
    fn quoted(&mut self, quote: u8) -> Result<(), Fault> {
        let (is_name, escapes) = match self.dialect {
            Dialect::Postgres => (quote == b'"', false),
            Dialect::Mysql(mode) => (quote == b'`' || quote == b'"' && mode.ansi_quotes, mode.escapes(quote)),
        };
        let mut at = self.at + 1;
        loop {
            match self.bytes.get(at) {
                None => {
                    let what = if is_name { "quoted identifier" } else { "quoted string" };
                    return Err(Fault::new(self.at, format!("this {what} is not closed")));
                }
                Some(b'\\') if escapes => at += 2,
                Some(byte) if *byte == quote => break,
                Some(_) => at += 1,
            }
        }
        self.protect(at + 1, false);
        Ok(())
    }

    /// Skips `E'…'`, in which a backslash is an escape. Also skips further parts of the string on the following lines.
    fn escape_quoted(&mut self) -> Result<(), Fault> {
        let mut at = self.at + 1;
        loop {
            match self.bytes.get(at) {
                None => return Err(Fault::new(self.at, "this quoted string is not closed")),
                Some(b'\\') => at += 2,
                Some(b'\'') => match continued_quote(self.bytes, at + 1) {
                    Some(next) => at = next,
                    None => break,
                },
                Some(_) => at += 1,
            }
        }
        self.protect(at + 1, false);
        Ok(())
    }

    fn dollar_quoted(&mut self) -> Result<(), Fault> {
        let tag_end = self.run_from(self.at + 1, |byte| begins_name(byte) || byte.is_ascii_digit());
        if self.bytes.get(tag_end) != Some(&b'$') {
            self.at += 1;
            return Ok(());
        }
        let mark = &self.text[self.at..=tag_end];
        let Some(length) = self.text[tag_end + 1..].find(mark) else {
            return Err(Fault::new(self.at, format!("this dollar-quoted string is not closed with {mark}")));
        };
        self.protect(tag_end + 1 + length + mark.len(), false);
        Ok(())
    }

    fn run_from(&self, from: usize, belongs: impl Fn(u8) -> bool) -> usize {
        from + self.bytes[from.min(self.bytes.len())..].iter().take_while(|byte| belongs(**byte)).count()
    }

    /// Returns the end of the comment. PostgreSQL's comments nest.
    fn comment_end(&self) -> Result<usize, Fault> {
        if self.dialect.is_mysql() {
            let length = self.text[self.at + 2..].find("*/");
            return length.map(|length| self.at + length + 4).ok_or_else(|| self.open_comment());
        }
        let mut depth = 0usize;
        let mut at = self.at;
        while at < self.bytes.len() {
            let rest = &self.bytes[at..];
            if rest.starts_with(b"/*") {
                depth += 1;
                at += 2;
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Ok(at);
                }
            } else {
                at += 1;
            }
        }
        Err(self.open_comment())
    }

    fn open_comment(&self) -> Fault {
        Fault::new(self.at, "this comment is not closed")
    }
}

/// The body of `CREATE [OR REPLACE] FUNCTION|PROCEDURE … BEGIN ATOMIC … END`. Semicolons in it do not end the command.
#[derive(Default)]
struct Body {
    /// Initials of the statement's first words. The initials end before the first word that is not one of the five
    /// keywords.
    identifiers: Vec<u8>,
    depth: usize,
}

impl Body {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn note(&mut self, word: &str, outside_parentheses: bool) {
        const WORDS: [&str; 5] = ["create", "or", "replace", "function", "procedure"];
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        if self.identifiers.len() < 4 {
            let known = WORDS.iter().find(|known| is(known));
            self.identifiers.push(known.map_or(0, |known| known.as_bytes()[0]));
        }
        let creates = matches!(self.identifiers[..], [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p', ..]);
        if !creates || !outside_parentheses {
            return;
        }
        if is("begin") || (is("case") && self.is_open()) {
            self.depth += 1;
        } else if is("end") {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(bytes.len(), |length| from + length)
}

/// If another part of a string follows, returns the offset after its opening quote. In SQL, quoted strings that are
/// separated by a newline are parts of one string.
fn continued_quote(bytes: &[u8], mut at: usize) -> Option<usize> {
    if bytes.get(at) == Some(&b'\'') {
        return Some(at + 1);
    }
    let mut newline = false;
    loop {
        match bytes.get(at)? {
            b'\'' if newline => return Some(at + 1),
            b'-' if bytes[at..].starts_with(b"--") => at = line_end(bytes, at),
            byte if is_space(*byte) => {
                newline |= matches!(byte, b'\n' | b'\r');
                at += 1;
            }
            _ => return None,
        }
    }
}

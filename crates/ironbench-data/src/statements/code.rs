//! Finds the ends of statements, in text that is outside literals and comments.

use super::{BYTE_ORDER_MARK, Dialect, Kind, Scanner, State};

/// The first line of newer dumps. This line forbids the client mariadb to run programs.
const SANDBOX: &[u8] = b"/*M!999999\\-";

/// Maximum length of a delimiter. The client mariadb ignores the rest of a longer one (`delimiter` in client/mysql.cc).
const LONGEST_DELIMITER: usize = 15;

/// State of the current statement.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// Offset of the statement's first word or symbol.
    pub begins: Option<usize>,
    /// First word of the statement, in capitals.
    pub first: Vec<u8>,
    words: usize,
    parentheses: usize,
    /// Initials of the first words, if they are words of `create [or replace] function` or `procedure`. The body of
    /// these statements (`begin … end`) may contain semicolons.
    initials: [u8; 4],
    bodies: usize,
    after_from: bool,
    from_stdin: bool,
}

impl Statement {
    /// Counts a word like psql (psqlscan.l, rule `{identifier}`).
    fn word(&mut self, word: &[u8]) {
        let word = word.to_ascii_uppercase();
        if self.words == 0 {
            self.first.clone_from(&word);
        }
        if self.words < 4 && matches!(&word[..], b"CREATE" | b"FUNCTION" | b"PROCEDURE" | b"OR" | b"REPLACE") {
            self.initials[self.words] = word[0];
        }
        self.words += 1;
        let function = matches!(&self.initials, [b'C', b'F' | b'P', ..] | [b'C', b'O', b'R', b'F' | b'P']);
        if function && self.parentheses == 0 {
            match &word[..] {
                b"BEGIN" => self.bodies += 1,
                b"CASE" if self.bodies > 0 => self.bodies += 1,
                b"END" => self.bodies = self.bodies.saturating_sub(1),
                _ => {}
            }
        }
        self.from_stdin |= self.after_from && word == b"STDIN" && self.first == b"COPY";
        self.after_from = word == b"FROM";
    }
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn continues_word(byte: u8) -> bool {
    begins_word(byte) || byte == b'$'
}

impl Scanner {
    /// Records that the statement begins at the scanner's position.
    fn begun(&mut self) {
        self.statement.begins.get_or_insert(self.at);
    }

    /// Skips a byte order mark at the start of the file, or white space. Neither belongs to a statement.
    fn blank(&mut self) -> bool {
        if self.line == 1 && self.at == self.from && self.text[self.at..].starts_with(BYTE_ORDER_MARK) {
            self.at += BYTE_ORDER_MARK.len();
            return true;
        }
        let blank = self.text[self.at].is_ascii_whitespace();
        self.at += usize::from(blank);
        blank
    }

    /// Whether the next `width` bytes are available, or no more bytes will arrive.
    fn in_sight(&self, width: usize, last: bool) -> bool {
        last || self.text.len() - self.at >= width
    }

    /// Returns the end of the word that begins here. Returns None if the next bytes may continue the word.
    fn word_end(&self, last: bool) -> Option<usize> {
        let end = self.find(|byte| !continues_word(byte));
        end.or(last.then_some(self.text.len()))
    }

    /// Returns the position at which the word ends or a delimiter begins. A delimiter such as `$$` consists of word
    /// characters, and may follow the word directly.
    fn word_or_delimiter(&self, last: bool) -> Option<usize> {
        let rest = &self.text[self.at..];
        let inside = continues_word(self.delimiter[0]);
        let end = rest.iter().enumerate().position(|(offset, &byte)| {
            !continues_word(byte) || (inside && rest[offset..].starts_with(&self.delimiter))
        });
        end.map(|end| self.at + end).or(last.then_some(self.text.len()))
    }

    pub(super) fn postgres(&mut self, last: bool) -> bool {
        while self.at < self.text.len() {
            if !self.in_sight(3, last) {
                return false;
            }
            if self.blank() {
                continue;
            }
            let rest = &self.text[self.at..];
            match rest[0] {
                b'-' if rest.starts_with(b"--") => {
                    self.open(State::LineComment, 2);
                    return true;
                }
                b'/' if rest.starts_with(b"/*") => {
                    self.open(State::BlockComment { depth: 1 }, 2);
                    return true;
                }
                b'\\' => {
                    if matches!(rest.get(1), Some(b';' | b':')) {
                        self.begun();
                        self.at += 2;
                        continue;
                    }
                    if self.statement.begins.is_some() {
                        self.flush(Kind::Sql, self.at);
                    }
                    self.begun();
                    self.state = State::Command;
                    return true;
                }
                _ => {}
            }
            self.begun();
            match self.text[self.at] {
                b'\'' => {
                    let escapes = !self.standard;
                    self.open(State::Quoted { quote: b'\'', escapes }, 1);
                    return true;
                }
                b'"' => {
                    self.open(State::Quoted { quote: b'"', escapes: false }, 1);
                    return true;
                }
                b'$' => match self.tag(last) {
                    None => return false,
                    Some(0) => self.at += 1,
                    Some(width) => {
                        let tag = self.text[self.at..self.at + width].to_vec();
                        self.open(State::Dollar(tag), width);
                        return true;
                    }
                },
                b'(' => {
                    self.statement.parentheses += 1;
                    self.at += 1;
                }
                b')' => {
                    self.statement.parentheses = self.statement.parentheses.saturating_sub(1);
                    self.at += 1;
                }
                b';' => {
                    self.at += 1;
                    if self.statement.parentheses == 0 && self.statement.bodies == 0 {
                        return self.semicolon();
                    }
                }
                byte if begins_word(byte) => {
                    let Some(end) = self.word_end(last) else { return false };
                    let word = &self.text[self.at..end];
                    if word.eq_ignore_ascii_case(b"e") && self.text.get(end) == Some(&b'\'') {
                        self.at = end;
                        self.open(State::Quoted { quote: b'\'', escapes: true }, 1);
                        return true;
                    }
                    self.statement.word(word);
                    self.at = end;
                }
                _ => self.at += 1,
            }
        }
        false
    }

    fn semicolon(&mut self) -> bool {
        if self.statement.from_stdin {
            self.state = State::BeforeRows;
            return true;
        }
        if self.statement.first == b"SET" {
            self.set();
        }
        self.flush(Kind::Sql, self.at);
        true
    }

    fn set(&mut self) {
        let text = String::from_utf8_lossy(&self.text[self.from..self.at]).to_ascii_lowercase();
        if let Some((_, value)) = text.split_once("standard_conforming_strings") {
            self.standard = !value.contains("off") && !value.contains("false") && !value.contains('0');
        }
    }

    /// Returns the width of the dollar-quote tag here. Returns 0 if there is no tag. Returns None if more bytes are
    /// needed to decide.
    fn tag(&self, last: bool) -> Option<usize> {
        let rest = &self.text[self.at + 1..];
        let end = rest.iter().position(|&byte| !begins_word(byte));
        match end {
            Some(end) if rest[end] == b'$' && !rest[0].is_ascii_digit() => Some(end + 2),
            None if !last => None,
            _ => Some(0),
        }
    }

    pub(super) fn mariadb(&mut self, last: bool) -> bool {
        while self.at < self.text.len() {
            if !self.in_sight(self.delimiter.len().max(4), last) {
                return false;
            }
            let before = if self.at > 0 { self.text[self.at - 1] } else { self.before };
            if before == b'\n' && self.statement.begins.is_none() {
                let Some(end) = self.find(|byte| byte == b'\n').or(last.then_some(self.text.len())) else {
                    return false;
                };
                if self.client_command(end) {
                    continue;
                }
            }
            if self.blank() {
                continue;
            }
            let rest = &self.text[self.at..];
            if rest.starts_with(&self.delimiter) {
                let text_end = self.at;
                self.finish(text_end, self.delimiter.len());
                continue;
            }
            match rest {
                [b'#', ..] => {
                    self.open(State::LineComment, 1);
                    return true;
                }
                [b'-', b'-', after, ..] if after.is_ascii_whitespace() => {
                    self.open(State::LineComment, 2);
                    return true;
                }
                [b'-', b'-'] => {
                    self.open(State::LineComment, 2);
                    return true;
                }
                [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => {}
                [b'/', b'*', ..] => {
                    self.open(State::BlockComment { depth: 1 }, 2);
                    return true;
                }
                [b'\\', b'g' | b'G', ..] => {
                    let text_end = self.at;
                    self.finish(text_end, 2);
                    continue;
                }
                _ => {}
            }
            self.begun();
            match self.text[self.at] {
                quote @ (b'\'' | b'"' | b'`') => {
                    self.open(State::Quoted { quote, escapes: self.mode.escapes(quote) }, 1);
                    return true;
                }
                byte if begins_word(byte) => {
                    let Some(end) = self.word_or_delimiter(last) else { return false };
                    let word = self.text[self.at..end].to_vec();
                    self.statement.word(&word);
                    self.at = end;
                }
                _ => self.at += 1,
            }
        }
        false
    }

    /// Outputs a statement without its delimiter.
    fn finish(&mut self, text_end: usize, width: usize) {
        if self.statement.begins.is_some() {
            // The statement may be inside a comment that the server executes. In this case, its first word is the
            // marker of the comment: a version such as `40101`, or the M of `/*M!`.
            let first = &self.statement.first[..];
            if first == b"SET" || first == b"M" || first.iter().all(u8::is_ascii_digit) {
                self.set_mode(text_end);
            }
            self.flush(Kind::Sql, text_end);
        }
        self.skip(text_end + width);
    }

    fn skip(&mut self, end: usize) {
        self.line += super::newlines(&self.text[self.from..end]);
        self.from = end;
        self.at = end;
    }

    /// Handles a line that may be a client command and ends at `end` (`find_command` in client/mysql.cc). A line that
    /// contains a delimiter is sent as SQL, unless the command is DELIMITER itself.
    fn client_command(&mut self, end: usize) -> bool {
        let line = self.text[self.at..end].trim_ascii();
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.starts_with(SANDBOX) {
            self.skip((end + 1).min(self.text.len()));
            return true;
        }
        let width = line.iter().position(|&byte| !byte.is_ascii_alphabetic()).unwrap_or(line.len());
        let command = line[..width].to_ascii_lowercase();
        let parameter = line[width..].trim_ascii();
        let begins_parameter = line.get(width).is_some_and(u8::is_ascii_whitespace) && !parameter.is_empty();
        match &command[..] {
            b"delimiter" if begins_parameter => {
                let width = parameter.iter().position(u8::is_ascii_whitespace).unwrap_or(parameter.len());
                let quoted = &parameter[..width];
                let bare = match quoted {
                    [b'\'' | b'"' | b'`', inner @ .., _] if !inner.is_empty() => inner,
                    _ => quoted,
                };
                self.delimiter = bare[..bare.len().min(LONGEST_DELIMITER)].to_vec();
                self.skip((end + 1).min(self.text.len()));
                true
            }
            b"use" | b"source" | b"system" | b"tee" | b"connect" | b"pager"
                if begins_parameter && !line.windows(self.delimiter.len()).any(|part| part == &self.delimiter[..]) =>
            {
                while self.blank() {}
                self.begun();
                self.flush(Kind::Client, (end + 1).min(self.text.len()));
                true
            }
            _ => false,
        }
    }
}

impl Dialect {
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "postgres" => Some(Self::Postgres),
            "mariadb" => Some(Self::Mariadb),
            _ => None,
        }
    }
}

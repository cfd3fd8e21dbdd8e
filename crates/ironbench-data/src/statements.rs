//! Splits SQL files into statements, like the servers' own clients.
//!
//! `Dialect::Postgres` follows psql (`src/fe_utils/psqlscan.l` and `src/bin/psql/mainloop.c` of PostgreSQL 18).
//! `Dialect::Mariadb` follows the client mariadb (`read_and_execute`
//! and `add_line` in `client/mysql.cc` of MariaDB 11).
//! The scanner reads a file once, piece by piece, and keeps one statement in memory.
//! Time is linear in the size of the file.

mod code;
mod mode;

use std::mem;

use code::Statement;
use pgbench_script::SqlMode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Postgres,
    Mariadb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A statement. For PostgreSQL it includes the semicolon, and for MariaDB it does not include the delimiter.
    Sql,
    /// Several statements in one piece. The caller has requested this for statements with certain first words.
    Merged,
    /// A client command, such as psql's backslash commands, or `use` and `source` of mariadb.
    Client,
    /// Rows of a COPY, as whole lines.
    Rows,
    /// The line `\.` after the rows.
    RowsEnd,
    /// The file ends inside a literal or comment.
    OpenText,
    /// The file ends inside the rows of a COPY.
    OpenRows,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    /// Line of the file in which `text` begins, from 1.
    pub line: u64,
    /// Offset of the first word, after white space and comments.
    pub begins: usize,
    /// Text of the piece. For PostgreSQL, the concatenated texts of all pieces are the whole file.
    pub text: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Code,
    Quoted {
        quote: u8,
        escapes: bool,
    },
    LineComment,
    BlockComment {
        depth: usize,
    },
    Dollar(Vec<u8>),
    /// A client command, up to the end of the line.
    Command,
    /// The part after the semicolon of COPY … FROM STDIN, before the rows.
    BeforeRows,
    Rows,
}

/// Merged statements are output as soon as they have this size in bytes.
const MERGED_BYTES: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub struct Scanner {
    dialect: Dialect,
    /// First words, in capitals, of the statements that are merged.
    merged: Vec<Vec<u8>>,
    text: Vec<u8>,
    /// The byte before `text`.
    before: u8,
    /// Start of the current statement in `text`.
    from: usize,
    at: usize,
    /// Start of the open literal or comment.
    opened: usize,
    line: u64,
    state: State,
    statement: Statement,
    /// PostgreSQL's `standard_conforming_strings`, as set by the file.
    standard: bool,
    /// MariaDB's `sql_mode`, as set by the file.
    mode: SqlMode,
    /// Variables in which the file has saved the mode.
    saved_modes: Vec<(Vec<u8>, SqlMode)>,
    delimiter: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Scanner {
    #[must_use]
    pub fn new(dialect: Dialect, merged: &[String]) -> Self {
        Self {
            dialect,
            merged: merged.iter().map(|word| word.to_ascii_uppercase().into_bytes()).collect(),
            text: Vec::new(),
            before: b'\n',
            from: 0,
            at: 0,
            opened: 0,
            line: 1,
            state: State::Code,
            statement: Statement::default(),
            standard: true,
            mode: SqlMode::default(),
            saved_modes: Vec::new(),
            delimiter: b";".to_vec(),
            pieces: Vec::new(),
        }
    }

    /// Scans the next bytes of the file, and returns the pieces that end in them. With `last`, there are no more bytes,
    /// so the rest of the file is a piece too.
    pub fn feed(&mut self, bytes: &[u8], last: bool) -> Vec<Piece> {
        if self.from > 0 {
            self.before = self.text[self.from - 1];
        }
        self.text.drain(..self.from);
        self.at -= self.from;
        self.opened = self.opened.saturating_sub(self.from);
        self.statement.begins = self.statement.begins.map(|begins| begins - self.from);
        self.from = 0;
        self.text.extend_from_slice(bytes);
        while self.advance(last) {}
        if last {
            self.end();
        }
        mem::take(&mut self.pieces)
    }

    /// Scans a part of the text. Returns false if more bytes are needed to continue.
    fn advance(&mut self, last: bool) -> bool {
        match self.state {
            State::Code => match self.dialect {
                Dialect::Postgres => self.postgres(last),
                Dialect::Mariadb => self.mariadb(last),
            },
            State::Quoted { quote, escapes } => self.quoted(quote, escapes, last),
            State::LineComment => self.line_comment(),
            State::BlockComment { depth } => self.block_comment(depth, last),
            State::Dollar(_) => self.dollar(last),
            State::Command => self.command(last),
            State::BeforeRows => self.before_rows(last),
            State::Rows => self.rows(last),
        }
    }

    fn find(&self, wanted: impl Fn(u8) -> bool) -> Option<usize> {
        self.text[self.at..].iter().position(|&byte| wanted(byte)).map(|found| self.at + found)
    }

    fn open(&mut self, state: State, width: usize) {
        self.opened = self.at;
        self.at += width;
        self.state = state;
    }

    fn quoted(&mut self, quote: u8, escapes: bool, last: bool) -> bool {
        loop {
            let Some(found) = self.find(|byte| byte == quote || (escapes && byte == b'\\')) else {
                self.at = self.text.len();
                return false;
            };
            self.at = found;
            if self.text[found] == b'\\' {
                if found + 1 == self.text.len() {
                    return false;
                }
                self.at += 2;
                continue;
            }
            if escapes {
                // Two quotes inside a literal are an escaped quote. Without backslash escapes, the scanner need not
                // know this, because the literal may as well end and begin again.
                match self.text.get(found + 1) {
                    None if !last => return false,
                    Some(&next) if next == quote => {
                        self.at += 2;
                        continue;
                    }
                    _ => {}
                }
            }
            self.at += 1;
            self.state = State::Code;
            return true;
        }
    }

    fn line_comment(&mut self) -> bool {
        let found = self.find(|byte| byte == b'\n');
        self.at = found.unwrap_or(self.text.len());
        if found.is_some() {
            self.state = State::Code;
        }
        found.is_some()
    }

    fn block_comment(&mut self, mut depth: usize, last: bool) -> bool {
        while let Some(found) = self.find(|byte| byte == b'*' || byte == b'/') {
            self.at = found;
            match (self.text[found], self.text.get(found + 1)) {
                (_, None) if !last => break,
                (b'*', Some(b'/')) => {
                    self.at += 2;
                    depth -= 1;
                    if depth == 0 {
                        self.state = State::Code;
                        return true;
                    }
                }
                (b'/', Some(b'*')) if self.dialect == Dialect::Postgres => {
                    self.at += 2;
                    depth += 1;
                }
                _ => self.at += 1,
            }
        }
        if self.find(|byte| byte == b'*' || byte == b'/').is_none() {
            self.at = self.text.len();
        }
        self.state = State::BlockComment { depth };
        false
    }

    fn dollar(&mut self, last: bool) -> bool {
        let State::Dollar(tag) = &self.state else { return false };
        while let Some(found) = self.find(|byte| byte == b'$') {
            self.at = found;
            if self.text[found..].starts_with(tag) {
                self.at += tag.len();
                self.state = State::Code;
                return true;
            }
            if !last && self.text.len() - found < tag.len() {
                return false;
            }
            self.at += 1;
        }
        self.at = self.text.len();
        false
    }

    fn command(&mut self, last: bool) -> bool {
        // Two backslashes end a command, and SQL continues after them (psql, "Meta-Commands").
        let mut end = self.at + 1;
        loop {
            match self.text[end..].iter().position(|&byte| byte == b'\n' || byte == b'\\') {
                None if last => end = self.text.len(),
                None => return false,
                Some(found) if self.text[end + found] == b'\n' => end += found + 1,
                Some(found) => match self.text.get(end + found + 1) {
                    Some(b'\\') => end += found + 2,
                    Some(_) => {
                        end += found + 1;
                        continue;
                    }
                    None if last => end = self.text.len(),
                    None => return false,
                },
            }
            self.state = State::Code;
            self.flush(Kind::Client, end);
            return true;
        }
    }

    fn before_rows(&mut self, last: bool) -> bool {
        let line_end = self.find(|byte| byte == b'\n').map(|found| found + 1);
        let Some(end) = line_end.or(last.then_some(self.text.len())) else { return false };
        self.state = State::Rows;
        self.flush(Kind::Sql, end);
        true
    }

    /// Scans the rows of a COPY. Must be called only at the start of a line.
    fn rows(&mut self, last: bool) -> bool {
        let mut line = self.at;
        loop {
            let rest = &self.text[line..];
            if rest.starts_with(b"\\.") {
                let end = rest.iter().position(|&byte| byte == b'\n');
                let mark = rest[2..end.unwrap_or(rest.len())].iter().all(|&byte| byte == b'\r');
                if mark && (end.is_some() || last) {
                    if line > self.at {
                        self.flush(Kind::Rows, line);
                    }
                    self.state = State::Code;
                    self.flush(Kind::RowsEnd, end.map_or(self.text.len(), |end| line + end + 1));
                    return true;
                }
            }
            match rest.iter().position(|&byte| byte == b'\n') {
                Some(end) => line += end + 1,
                None => break,
            }
        }
        let end = if last { self.text.len() } else { line };
        if end > self.at {
            self.flush(Kind::Rows, end);
        }
        false
    }

    fn end(&mut self) {
        let open = match self.state {
            State::Quoted { .. } | State::BlockComment { .. } | State::Dollar(_) => Some(Kind::OpenText),
            State::Rows => Some(Kind::OpenRows),
            _ => None,
        };
        let begun = &self.text[self.from..self.opened.max(self.from)];
        let line = self.line + newlines(begun);
        let left = self.text.len() > self.from;
        if left {
            self.flush(Kind::Sql, self.text.len());
        }
        if let Some(kind) = open {
            let line = if kind == Kind::OpenText { line } else { self.line };
            self.pieces.push(Piece { kind, line, begins: 0, text: Vec::new() });
        }
    }

    /// Outputs the text up to `end` as a piece. The next statement begins after it.
    fn flush(&mut self, kind: Kind, end: usize) {
        let text = &self.text[self.from..end];
        let lines = newlines(text);
        let begins = self.statement.begins.map_or(text.len(), |begins| begins - self.from);
        let quiet = kind == Kind::Rows || (kind == Kind::Sql && self.merged.contains(&self.statement.first));
        match self.pieces.last_mut() {
            Some(before)
                if quiet && kind == Kind::Sql && before.kind == Kind::Merged && before.text.len() < MERGED_BYTES =>
            {
                before.text.extend_from_slice(text);
            }
            _ => {
                let kind = if quiet && kind == Kind::Sql { Kind::Merged } else { kind };
                self.pieces.push(Piece { kind, line: self.line, begins, text: text.to_vec() });
            }
        }
        self.line += lines;
        self.from = end;
        self.at = end;
        self.statement = Statement::default();
    }
}

fn newlines(text: &[u8]) -> u64 {
    text.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests;

//! A recursive descent parser for the grammar in the parent module. Every error names its column.

use ironbench_core::{Error, Result};

use super::{Expression, Member, Setting, Value};

/// Maximum nesting depth, more than any device that could be built.
const DEEPEST: usize = 16;
/// Maximum number of members. This number exceeds the size of any real enclosure, and such a device can still be built
/// quickly.
const MOST: u32 = 1024;

/// Parses `text`. The function `build` looks up the names later.
///
/// # Errors
/// Input: the text is not an expression. The error contains the column and the text.
pub fn parse(text: &str) -> Result<Expression> {
    let mut parser = Parser { text, at: 0 };
    let device = parser.device(0)?;
    match parser.peek() {
        None => Ok(Expression { written: text.to_owned(), ..device }),
        Some(c) => Err(parser.fault(parser.at, format!("unexpected `{c}`, the end was expected"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Current position in bytes.
    at: usize,
}

impl Parser<'_> {
    fn device(&mut self, depth: usize) -> Result<Expression> {
        if depth > DEEPEST {
            return Err(self.fault(self.at, format!("nested more than {DEEPEST} levels deep")));
        }
        self.peek();
        let column = self.column(self.at);
        let name = self.name();
        if name.is_empty() {
            return Err(self.expected("a device"));
        }
        let mut found = Expression { name, members: vec![], options: vec![], column, written: String::new() };
        if self.taken('(') && !self.taken(')') {
            loop {
                self.part(&mut found, depth)?;
                if self.taken(')') {
                    break;
                }
                if !self.taken(',') {
                    return Err(self.expected("`,` or `)`"));
                }
            }
        }
        Ok(found)
    }

    fn part(&mut self, found: &mut Expression, depth: usize) -> Result<()> {
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            let count = self.count()?;
            self.peek();
            let start = self.at;
            // `4 x ssd` and `4, ssd` mean the same. Therefore a single `x` after a number is not a name.
            if !(self.word().eq_ignore_ascii_case("x")) {
                self.at = start;
                if !self.taken(',') {
                    return Err(self.expected("`, ` or ` x ` and a device"));
                }
            }
            let device = self.device(depth + 1)?;
            found.members.push(Member { count, device });
            return Ok(());
        }
        let start = self.at;
        let key = self.name();
        if key.is_empty() || !self.taken('=') {
            self.at = start;
            let device = self.device(depth + 1)?;
            found.members.push(Member { count: 1, device });
            return Ok(());
        }
        if found.options.iter().any(|option| option.key == key) {
            return Err(self.fault(start, format!("`{key}` is set twice")));
        }
        let value = self.value()?;
        found.options.push(Setting { key, value, column: self.column(start) });
        Ok(())
    }

    fn count(&mut self) -> Result<u32> {
        let start = self.at;
        let digits = self.while_(|c| c.is_ascii_digit());
        match digits.parse::<u32>() {
            Ok(0) => Err(self.fault(start, "the number must be at least 1".into())),
            Ok(count) if count <= MOST => Ok(count),
            _ => Err(self.fault(start, format!("{digits} devices exceed the maximum of {MOST}"))),
        }
    }

    fn value(&mut self) -> Result<Value> {
        self.peek();
        let start = self.at;
        let text = self.while_(|c| c.is_ascii_alphanumeric() || c == '.' || c == '%');
        if text.is_empty() {
            return Err(self.expected("a value"));
        }
        Value::read(&text)
            .ok_or_else(|| self.fault(start, format!("`{text}` is not a number, size, percentage or word")))
    }

    /// Parses a name and converts it to lower case, like the names of models.
    fn name(&mut self) -> String {
        self.peek();
        self.while_(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.').to_ascii_lowercase()
    }

    fn word(&mut self) -> String {
        self.while_(|c| c.is_ascii_alphabetic())
    }

    fn while_(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn taken(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    /// Skips white space and returns the next character after it.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn expected(&mut self, what: &str) -> Error {
        let found = self.peek().map_or("the end".to_owned(), |c| format!("`{c}`"));
        self.fault(self.at, format!("unexpected {found}, {what} was expected"))
    }

    fn column(&self, at: usize) -> usize {
        self.text[..at].chars().count() + 1
    }

    fn fault(&self, at: usize, cause: String) -> Error {
        let column = self.column(at);
        Error::input(format!("device \"{}\"", self.text), format!("column {column}: {cause}"))
            .hint("write for example hdd-7200, raid0(4, ssd-sata-2011, stripe=64K) or spread(4 x ssd-a, 2 x ssd-b)")
    }
}

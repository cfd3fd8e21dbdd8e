//! A recursive descent parser for the grammar in the parent module. Every error names its column.

use ironbench_core::{Error, Result};

use super::{Expression, Member, OptionSetting, Value};

/// Maximum nesting depth, more than any device that could be built.
const MAX_DEPTH: usize = 16;
/// Maximum number of members. This number exceeds the size of any real enclosure, and such a device can still be built
/// quickly.
const MAX_MEMBERS: u32 = 1024;

/// Parses `text`. The function `build` looks up the names later.
///
/// # Errors
/// Input: the text is not an expression. The error contains the column and the text.
pub fn parse(text: &str) -> Result<Expression> {
    let mut parser = Parser { text, position: 0 };
    let device = parser.device(0)?;
    match parser.peek() {
        None => Ok(Expression { source: text.to_owned(), ..device }),
        Some(c) => Err(parser.fault(parser.position, format!("unexpected `{c}`, the end was expected"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Current position in bytes.
    position: usize,
}

impl Parser<'_> {
    fn device(&mut self, depth: usize) -> Result<Expression> {
        if depth > MAX_DEPTH {
            return Err(self.fault(self.position, format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.peek();
        let column = self.column(self.position);
        let name = self.name();
        if name.is_empty() {
            return Err(self.expected_error("a device"));
        }
        let mut found = Expression { name, members: vec![], options: vec![], column, source: String::new() };
        if self.accept('(') && !self.accept(')') {
            loop {
                self.part(&mut found, depth)?;
                if self.accept(')') {
                    break;
                }
                if !self.accept(',') {
                    return Err(self.expected_error("`,` or `)`"));
                }
            }
        }
        Ok(found)
    }

    fn part(&mut self, found: &mut Expression, depth: usize) -> Result<()> {
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            let count = self.count()?;
            self.peek();
            let start = self.position;
            // `4 x ssd` and `4, ssd` mean the same. Therefore a single `x` after a number is not a name.
            if !(self.word().eq_ignore_ascii_case("x")) {
                self.position = start;
                if !self.accept(',') {
                    return Err(self.expected_error("`, ` or ` x ` and a device"));
                }
            }
            let device = self.device(depth + 1)?;
            found.members.push(Member { count, device });
            return Ok(());
        }
        let start = self.position;
        let key = self.name();
        if key.is_empty() || !self.accept('=') {
            self.position = start;
            let device = self.device(depth + 1)?;
            found.members.push(Member { count: 1, device });
            return Ok(());
        }
        if found.options.iter().any(|option| option.key == key) {
            return Err(self.fault(start, format!("`{key}` is set twice")));
        }
        let value = self.value()?;
        found.options.push(OptionSetting { key, value, column: self.column(start) });
        Ok(())
    }

    fn count(&mut self) -> Result<u32> {
        let start = self.position;
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse::<u32>() {
            Ok(0) => Err(self.fault(start, "the number must be at least 1".into())),
            Ok(count) if count <= MAX_MEMBERS => Ok(count),
            _ => Err(self.fault(start, format!("{digits} devices exceed the maximum of {MAX_MEMBERS}"))),
        }
    }

    fn value(&mut self) -> Result<Value> {
        self.peek();
        let start = self.position;
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || c == '.' || c == '%');
        if text.is_empty() {
            return Err(self.expected_error("a value"));
        }
        Value::read(&text)
            .ok_or_else(|| self.fault(start, format!("`{text}` is not a number, size, percentage or word")))
    }

    /// Parses a name and converts it to lower case, like the names of models.
    fn name(&mut self) -> String {
        self.peek();
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.').to_ascii_lowercase()
    }

    fn word(&mut self) -> String {
        self.take_while(|c| c.is_ascii_alphabetic())
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = &self.text[self.position..];
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.position += end;
        rest[..end].to_owned()
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.position += if found { wanted.len_utf8() } else { 0 };
        found
    }

    /// Skips white space and returns the next character after it.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start().len();
        self.text[self.position..].chars().next()
    }

    fn expected_error(&mut self, what: &str) -> Error {
        let found = self.peek().map_or("the end".to_owned(), |c| format!("`{c}`"));
        self.fault(self.position, format!("unexpected {found}, {what} was expected"))
    }

    fn column(&self, position: usize) -> usize {
        self.text[..position].chars().count() + 1
    }

    fn fault(&self, position: usize, cause: String) -> Error {
        let column = self.column(position);
        Error::input(format!("device \"{}\"", self.text), format!("column {column}: {cause}"))
            .hint("write for example hdd-7200, raid0(4, ssd-sata-2011, stripe=64K) or spread(4 x ssd-a, 2 x ssd-b)")
    }
}

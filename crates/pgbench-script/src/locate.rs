//! Errors that point at their position in a script.

use crate::Error;

/// An error at a byte offset of the text. The name of the file is added later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub offset: usize,
    pub cause: String,
    pub hint: String,
}

impl Fault {
    pub fn new(offset: usize, cause: impl Into<String>) -> Self {
        Self { offset, cause: cause.into(), hint: String::new() }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// The text of a script, with the offsets of its lines.
pub struct Text<'a> {
    pub name: &'a str,
    pub text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Text<'a> {
    pub fn new(name: &'a str, text: &'a str) -> Self {
        let after_newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { name, text, line_starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// Returns the line of an offset, from 1.
    pub fn line(&self, offset: usize) -> u32 {
        self.line_starts.partition_point(|start| *start <= offset) as u32
    }

    /// Converts the fault into an error with file, line, column, the text of the line, and a caret below the position.
    pub fn error(&self, fault: Fault) -> Error {
        let line = self.line(fault.offset);
        let start = self.line_starts[line as usize - 1];
        let end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length);
        let shown = self.text[start..end].trim_end();
        // If the fault is in the white space at the end of a line, the caret is after the last other character.
        let before = self.text.get(start..fault.offset.min(start + shown.len())).unwrap_or_default();
        let column = before.chars().count() + 1;
        let (cut, shown) = window(shown, before.len());
        let before = &before[cut..];
        let indent: String = before.chars().map(|char| if char == '\t' { '\t' } else { ' ' }).collect();
        let cause = format!("{}\n    {shown}\n    {indent}^", fault.cause);
        Error::new(format!("{}:{line}:{column}", self.name), cause).hint(fault.hint)
    }
}

/// Returns the part of a long line around a byte offset, and the offset at which that part begins.
fn window(line: &str, offset: usize) -> (usize, &str) {
    const WIDTH: usize = 120;
    if line.len() <= WIDTH {
        return (0, line);
    }
    let boundary = |at: usize| (0..=at.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    let from = boundary(offset.saturating_sub(WIDTH / 2));
    (from, &line[from..boundary(from + WIDTH)])
}

/// Returns a hint with the known name that is most similar to `name`. If no name is similar, the hint contains all
/// known names.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let name = name.to_lowercase();
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    let best = known.iter().map(|candidate| (distance(&name, candidate), *candidate)).min();
    match best {
        Some((changes, candidate)) if changes <= (name.chars().count() / 3).max(1) => {
            format!("did you mean {candidate}?")
        }
        _ => format!("known: {}", known.join(", ")),
    }
}

/// Returns the number of insertions, deletions and replacements that turn one text into the other (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, from) in left.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_file_line_column_and_caret() {
        let text = Text::new("bank.sql", "SELECT 1;\n\t\\set ä randm(1)\n");
        let offset = text.text.find("randm").unwrap();
        let error = text.error(Fault::new(offset, "unknown function \"randm\""));
        assert_eq!(error.subject, "bank.sql:2:9");
        assert_eq!(error.cause, "unknown function \"randm\"\n    \t\\set ä randm(1)\n    \t       ^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let line = format!("{}x{}", "é ".repeat(200), " ü".repeat(200));
        let error = Text::new("f", &line).error(Fault::new(600, "here"));
        let shown: Vec<&str> = error.cause.lines().collect();
        assert_eq!(error.subject, "f:1:401");
        assert!(shown[1].len() < 130);
        assert_eq!(shown[1].chars().nth(shown[2].chars().count() - 1), Some('x'));
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        assert_eq!(nearest("randon", ["random", "random_gaussian"].into_iter()), "did you mean random?");
        assert_eq!(nearest("xyzzy", ["b", "a"].into_iter()), "known: a, b");
    }
}

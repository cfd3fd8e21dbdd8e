//! The rows of a query, stored as text in one buffer.

use crate::Error;

/// Memory limit for the rows of one result. Queries outside the measured window return far less. A server that exceeds
/// the limit might never stop sending.
const MAX_BYTES: usize = 64 << 20;

/// The result of adding a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    Taken,
    /// The number of values of the row differs from the number of columns.
    Misfit,
    /// The memory limit is exceeded.
    TooMuch,
}

/// Returns the error for a connection whose server sent [`Pushed::TooMuch`].
pub(super) fn too_much() -> Error {
    Error::failure("connection", format!("the server's answer is larger than {} MiB", MAX_BYTES >> 20))
        .hint("this may not be the server that it claims to be")
}

/// Rows and the names of their columns.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    columns: Vec<String>,
    text: String,
    /// Position in `text` where each value ends. The values are stored row by row. `NULL` marks a null value.
    ends: Vec<usize>,
    starts: Vec<usize>,
    width: usize,
    count: usize,
    /// Whether rows are only counted and their values are dropped.
    only_counted: bool,
}

const NULL: usize = usize::MAX;

impl Rows {
    pub(super) fn new(columns: Vec<String>) -> Self {
        Self { width: columns.len(), columns, ..Self::default() }
    }

    /// Creates an empty result whose rows are only counted.
    pub(super) fn counted(width: usize) -> Self {
        Self { width, only_counted: true, ..Self::default() }
    }

    /// Creates an empty result for the next statement. Like this result, it keeps its rows or only counts them.
    pub(super) fn following(&self, columns: Vec<String>) -> Self {
        if self.only_counted { Self::counted(columns.len()) } else { Self::new(columns) }
    }

    /// Adds a row of values, each text or NULL.
    pub(super) fn push<'a, E>(
        &mut self,
        values: impl Iterator<Item = Result<Option<&'a [u8]>, E>>,
    ) -> Result<Pushed, E> {
        if self.only_counted {
            return self.pass(values);
        }
        let before = self.ends.len();
        for field in values {
            let start = self.text.len();
            self.starts.push(start);
            match field? {
                None => self.ends.push(NULL),
                Some(value) => {
                    // The server sends UTF-8, as requested. Only a database that stores bytes unchecked (SQL_ASCII) may
                    // send other bytes.
                    self.text.push_str(&String::from_utf8_lossy(value));
                    self.ends.push(self.text.len());
                }
            }
        }
        if self.ends.len() - before != self.width {
            return Ok(Pushed::Misfit);
        }
        self.count += 1;
        // The number of rows is included, because even rows without columns need memory in the consumer.
        let taken = self.text.len() + (self.starts.len() + self.ends.len() + self.count) * size_of::<usize>();
        Ok(if taken > MAX_BYTES { Pushed::TooMuch } else { Pushed::Taken })
    }

    /// Reads all values of a row and drops them.
    fn pass<'a, E>(&mut self, values: impl Iterator<Item = Result<Option<&'a [u8]>, E>>) -> Result<Pushed, E> {
        let mut fields = 0;
        for field in values {
            std::hint::black_box(field?);
            fields += 1;
        }
        self.count += 1;
        Ok(if fields == self.width { Pushed::Taken } else { Pushed::Misfit })
    }

    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the value in `row` and `column`. Returns None for NULL.
    pub fn get(&self, row: usize, column: usize) -> Option<&str> {
        assert!(column < self.width, "column {column} of {}", self.width);
        let index = row * self.width + column;
        let end = self.ends[index];
        (end != NULL).then(|| &self.text[self.starts[index]..end])
    }

    /// Returns the values of `row`, from left to right.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = Option<&str>> {
        (0..self.width).map(move |column| self.get(row, column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values<'a>(row: &'a [Option<&'a str>]) -> impl Iterator<Item = Result<Option<&'a [u8]>, String>> {
        row.iter().map(|value| Ok(value.map(str::as_bytes)))
    }

    #[test]
    fn values_and_nulls_come_back_where_they_were() {
        let mut rows = Rows::new(vec!["a".into(), "b".into()]);
        assert_eq!(rows.push(values(&[Some("ab"), None])), Ok(Pushed::Taken));
        assert_eq!(rows.push(values(&[Some(""), Some("c")])), Ok(Pushed::Taken));
        assert_eq!(rows.row(0).collect::<Vec<_>>(), [Some("ab"), None]);
        assert_eq!(rows.row(1).collect::<Vec<_>>(), [Some(""), Some("c")]);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows.push(values(&[Some("")])), Ok(Pushed::Misfit));
    }

    #[test]
    fn an_answer_has_an_end_however_small_its_rows_are() {
        for row in [&[Some("x")][..], &[None], &[]] {
            let mut rows = Rows::new(vec![String::new(); row.len()]);
            let taken = (0..MAX_BYTES).take_while(|_| rows.push(values(row)) == Ok(Pushed::Taken)).count();
            assert!(taken > MAX_BYTES / 32 && taken < MAX_BYTES / 7, "{taken}");
        }
    }

    #[test]
    fn counted_rows_are_read_to_their_end_and_leave_nothing_behind() {
        let mut rows = Rows::counted(0).following(vec!["a".into(), "b".into()]);
        assert_eq!(rows.push(values(&[Some("ab"), None])), Ok(Pushed::Taken));
        assert_eq!((rows.len(), rows.text.capacity(), rows.ends.capacity()), (1, 0, 0));
        assert_eq!(rows.push(values(&[Some("")])), Ok(Pushed::Misfit));
        assert_eq!(rows.push([Ok(None), Err("cut short")].into_iter()), Err("cut short"));
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let mut rows = Rows::new(Vec::new());
        assert_eq!(rows.push(values(&[])), Ok(Pushed::Taken));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows.row(0).len(), 0);
    }
}

//! The rows of a query, as text in one piece of memory.

/// Rows and the names of their columns.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    columns: Vec<String>,
    text: String,
    /// Where each value lies in `text`, row by row; the end is `NULL` for none.
    ends: Vec<usize>,
    starts: Vec<usize>,
    width: usize,
    count: usize,
    /// Rows are counted, and their values let go.
    only_counted: bool,
}

const NULL: usize = usize::MAX;

impl Rows {
    pub(super) fn new(columns: Vec<String>) -> Self {
        Self { width: columns.len(), columns, ..Self::default() }
    }

    /// Of rows whose values nobody wants.
    pub(super) fn counted(width: usize) -> Self {
        Self { width, only_counted: true, ..Self::default() }
    }

    /// For the rows of the next statement, kept or counted as these are.
    pub(super) fn following(&self, columns: Vec<String>) -> Self {
        if self.only_counted { Self::counted(columns.len()) } else { Self::new(columns) }
    }

    /// Takes a row's values, text or NULL; false: they are not as many as there are columns.
    pub(super) fn push<'a, E>(&mut self, values: impl Iterator<Item = Result<Option<&'a [u8]>, E>>) -> Result<bool, E> {
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
                    // UTF-8 as we asked for, except from databases that store bytes as they come (SQL_ASCII).
                    self.text.push_str(&String::from_utf8_lossy(value));
                    self.ends.push(self.text.len());
                }
            }
        }
        if self.ends.len() - before != self.width {
            return Ok(false);
        }
        self.count += 1;
        Ok(true)
    }

    /// Reads a row to its end.
    fn pass<'a, E>(&mut self, values: impl Iterator<Item = Result<Option<&'a [u8]>, E>>) -> Result<bool, E> {
        let mut fields = 0;
        for field in values {
            std::hint::black_box(field?);
            fields += 1;
        }
        self.count += 1;
        Ok(fields == self.width)
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

    /// The value in `row` and `column`; None for NULL.
    pub fn get(&self, row: usize, column: usize) -> Option<&str> {
        assert!(column < self.width, "column {column} of {}", self.width);
        let index = row * self.width + column;
        let end = self.ends[index];
        (end != NULL).then(|| &self.text[self.starts[index]..end])
    }

    /// The values of `row`, from left to right.
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
        assert_eq!(rows.push(values(&[Some("ab"), None])), Ok(true));
        assert_eq!(rows.push(values(&[Some(""), Some("c")])), Ok(true));
        assert_eq!(rows.row(0).collect::<Vec<_>>(), [Some("ab"), None]);
        assert_eq!(rows.row(1).collect::<Vec<_>>(), [Some(""), Some("c")]);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows.push(values(&[Some("")])), Ok(false));
    }

    #[test]
    fn counted_rows_are_read_to_their_end_and_leave_nothing_behind() {
        let mut rows = Rows::counted(0).following(vec!["a".into(), "b".into()]);
        assert_eq!(rows.push(values(&[Some("ab"), None])), Ok(true));
        assert_eq!((rows.len(), rows.text.capacity(), rows.ends.capacity()), (1, 0, 0));
        assert_eq!(rows.push(values(&[Some("")])), Ok(false));
        assert_eq!(rows.push([Ok(None), Err("cut short")].into_iter()), Err("cut short"));
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let mut rows = Rows::new(Vec::new());
        assert_eq!(rows.push(values(&[])), Ok(true));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows.row(0).len(), 0);
    }
}

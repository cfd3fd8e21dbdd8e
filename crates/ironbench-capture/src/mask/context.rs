//! Decides which literals of a statement keep their value.

use crate::scan::{Kind, Token};

/// Functions whose text arguments are names or formats.
const NAME_FUNCTIONS: &[&str] = &[
    "nextval",
    "currval",
    "setval",
    "date_trunc",
    "date_part",
    "to_char",
    "to_date",
    "to_timestamp",
    "to_regclass",
    "set_config",
    "current_setting",
    "pg_get_serial_sequence",
    "pg_relation_size",
    "pg_total_relation_size",
    "has_table_privilege",
    "timezone",
    "encode",
    "decode",
    "extract",
    "to_tsvector",
    "to_tsquery",
    "plainto_tsquery",
    "pg_advisory_lock",
    "pg_advisory_xact_lock",
    "pg_try_advisory_lock",
    "pg_try_advisory_xact_lock",
];
/// Keywords after which a literal is a number of rows, an interval or a time zone.
const KEPT_AFTER: &[&str] = &["limit", "offset", "first", "next", "interval", "zone", "tablesample"];
/// First words of statements that change the session or the transaction.
const SESSION_COMMANDS: &[&str] =
    &["set", "reset", "show", "discard", "begin", "start", "savepoint", "release", "rollback"];
/// First words of statements that change or maintain the schema.
const SCHEMA_COMMANDS: &[&str] =
    &["create", "alter", "drop", "grant", "revoke", "truncate", "vacuum", "analyze", "reindex"];

/// The part of a statement before a literal. This part determines whether masking keeps the literal.
#[derive(Default)]
pub struct Context {
    /// First word of the statement, in lower case.
    pub first: String,
    /// Last word before the next token, in lower case. Empty after any other token except a period.
    word: String,
    /// Depth of the brackets of a function whose arguments are names or formats, or None outside of such a function.
    name_function_depth: Option<usize>,
    depth: usize,
    /// Whether the statement changes or maintains the schema.
    pub is_schema: bool,
    /// Whether ORDER BY or GROUP BY was read. Numbers after it are positions of columns.
    after_by: bool,
}

impl Context {
    /// Whether masking keeps this literal or parameter.
    pub fn keeps(&self, text: &str, token: &Token) -> bool {
        let follows = text[token.at.end..].trim_start();
        let is_name = follows.strip_prefix("::").is_some_and(|kind| {
            let kind = kind.trim_start();
            kind.len() >= 3 && kind.is_char_boundary(3) && kind[..3].eq_ignore_ascii_case("reg")
                || kind.len() >= 8 && kind.is_char_boundary(8) && kind[..8].eq_ignore_ascii_case("interval")
        });
        let column = self.after_by && token.kind == Kind::Number;
        is_name
            || column
            || self.name_function_depth.is_some()
            || KEPT_AFTER.contains(&self.word.as_str())
            || SESSION_COMMANDS.contains(&self.first.as_str())
    }

    /// Updates the context with the next token of the statement.
    pub fn advance(&mut self, source: &str, token: &Token) {
        match token.kind {
            Kind::Word => {
                self.word = source.to_ascii_lowercase();
                if self.first.is_empty() {
                    self.first.clone_from(&self.word);
                    self.is_schema = SCHEMA_COMMANDS.contains(&self.first.as_str());
                }
                match self.word.as_str() {
                    "by" => self.after_by = true,
                    "limit" | "offset" | "having" | "where" | "from" | "select" | "returning" | "rows" | "range" => {
                        self.after_by = false;
                    }
                    _ => {}
                }
            }
            Kind::Mark if source == "(" => {
                self.depth += 1;
                if self.name_function_depth.is_none() && NAME_FUNCTIONS.contains(&self.word.as_str()) {
                    self.name_function_depth = Some(self.depth);
                }
                self.word.clear();
            }
            Kind::Mark if source == ")" => {
                if self.name_function_depth == Some(self.depth) {
                    self.name_function_depth = None;
                }
                self.depth = self.depth.saturating_sub(1);
                self.after_by = false;
                self.word.clear();
            }
            Kind::Mark if source == ";" => *self = Self::default(),
            Kind::Mark if source == "." => {}
            _ => self.word.clear(),
        }
    }
}

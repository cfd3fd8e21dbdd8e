//! Decides which literals of a statement keep their value.

use crate::scan::{Dialect, Kind, Token};

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
    "pg_sleep",
];
/// Functions of MySQL whose arguments are formats, units or times.
const MYSQL_NAME_FUNCTIONS: &[&str] =
    &["date_format", "time_format", "str_to_date", "get_format", "convert_tz", "extract", "sleep", "benchmark"];
/// Types that can have a size. After AS in a CAST, the numbers in their brackets are sizes.
const SIZED_TYPES: &[&str] = &[
    "char",
    "nchar",
    "varchar",
    "binary",
    "varbinary",
    "decimal",
    "numeric",
    "float",
    "double",
    "time",
    "datetime",
    "timestamp",
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
pub struct Context {
    dialect: Dialect,
    /// First word of the statement, in lower case.
    pub first: String,
    /// Last word before the next token, in lower case. Empty after any other token except a period.
    word: String,
    /// Whether the last word follows AS.
    follows_as: bool,
    /// Depth of the brackets of a function whose arguments are names or formats, or None outside of such a function.
    name_function_depth: Option<usize>,
    depth: usize,
    /// Whether the statement changes or maintains the schema.
    pub is_schema: bool,
    /// Whether ORDER BY or GROUP BY was read. Numbers after it are positions of columns.
    after_by: bool,
    /// Whether LIMIT was read. In MySQL, several numbers can follow it.
    after_limit: bool,
    /// Whether SET assigns a value to a variable of the user (`@name`), and not to a setting.
    sets_variable: bool,
    /// Depth of the brackets of a function of MySQL whose arguments can be JSON paths.
    json_depth: Option<usize>,
    /// Whether the last token is an operator `->` or `->>`.
    after_arrow: bool,
}

impl Context {
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            first: String::new(),
            word: String::new(),
            follows_as: false,
            name_function_depth: None,
            depth: 0,
            is_schema: false,
            after_by: false,
            after_limit: false,
            sets_variable: false,
            json_depth: None,
            after_arrow: false,
        }
    }

    /// Whether a string at this place is a statement of MySQL (PREPARE, EXECUTE IMMEDIATE).
    pub fn is_code(&self) -> bool {
        matches!((self.first.as_str(), self.word.as_str()), ("prepare", "from") | ("execute", "immediate"))
    }

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
            || SESSION_COMMANDS.contains(&self.first.as_str()) && !self.sets_variable
            || self.dialect == Dialect::Mysql && self.keeps_in_mysql(text, token)
    }

    fn keeps_in_mysql(&self, text: &str, token: &Token) -> bool {
        let next = text[token.at.end..].bytes().next().unwrap_or_default();
        match token.kind {
            // A name can begin with a digit.
            Kind::Number if next == b'_' || next == b'$' || next.is_ascii_alphabetic() || next >= 0x80 => true,
            Kind::Number | Kind::Parameter => self.after_limit,
            _ => {
                let is_path =
                    text[token.at.start + 1..].starts_with("$.") || text[token.at.start + 1..].starts_with("$[");
                is_path && (self.after_arrow || self.json_depth.is_some())
            }
        }
    }

    /// Updates the context with the next token of the statement.
    pub fn advance(&mut self, source: &str, token: &Token) {
        let is_mysql = self.dialect == Dialect::Mysql;
        self.after_arrow = matches!(source, "->" | "->>");
        match token.kind {
            Kind::Word => {
                self.follows_as = self.word == "as";
                self.word = source.to_ascii_lowercase();
                if self.first.is_empty() {
                    self.first.clone_from(&self.word);
                    self.is_schema = SCHEMA_COMMANDS.contains(&self.first.as_str());
                }
                self.after_limit = is_mysql && matches!(self.word.as_str(), "limit" | "offset");
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
                let word = self.word.as_str();
                let is_name_function = NAME_FUNCTIONS.contains(&word)
                    || is_mysql && MYSQL_NAME_FUNCTIONS.contains(&word)
                    || self.follows_as && SIZED_TYPES.contains(&word);
                if self.name_function_depth.is_none() && is_name_function {
                    self.name_function_depth = Some(self.depth);
                }
                if is_mysql && self.json_depth.is_none() && word.starts_with("json_") {
                    self.json_depth = Some(self.depth);
                }
                self.word.clear();
            }
            Kind::Mark if source == ")" => {
                for depth in [&mut self.name_function_depth, &mut self.json_depth] {
                    depth.take_if(|depth| *depth == self.depth);
                }
                self.depth = self.depth.saturating_sub(1);
                (self.after_by, self.after_limit) = (false, false);
                self.word.clear();
            }
            Kind::Mark if source == ";" => *self = Self::new(self.dialect),
            Kind::Mark if source == "." => {}
            Kind::Mark if source == "," && self.depth == 0 => {
                self.sets_variable = false;
                self.word.clear();
            }
            Kind::Operator if is_mysql && source.ends_with('@') && self.first == "set" => {
                // `@@` precedes the name of a setting.
                self.sets_variable |= !source.ends_with("@@");
                self.word.clear();
            }
            _ => self.word.clear(),
        }
    }
}

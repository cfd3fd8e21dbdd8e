//! Decides which literals of a statement keep their value.
//!
//! A literal keeps its value only in a position that is known to contain a name, a format, a unit, a size or a setting.
//! Literals in all other positions are data.

use crate::scan::{Dialect, Kind};

/// Functions of PostgreSQL, and the positions of their arguments that are names, formats, units or durations.
const POSTGRES_ARGUMENTS: &[(&[&str], &[usize])] = &[
    (
        &[
            "nextval",
            "currval",
            "setval",
            "date_part",
            "to_regclass",
            "set_config",
            "current_setting",
            "pg_total_relation_size",
            "pg_sleep",
            "timezone",
            "to_tsvector",
            "to_tsquery",
            "plainto_tsquery",
            "phraseto_tsquery",
            "websearch_to_tsquery",
            "current_time",
            "current_timestamp",
            "localtime",
            "localtimestamp",
        ],
        &[1],
    ),
    (&["to_char", "to_date", "to_timestamp", "to_number", "encode", "decode"], &[2]),
    (&["date_trunc"], &[1, 3]),
    (&["pg_get_serial_sequence", "pg_relation_size"], &[1, 2]),
    (&["has_table_privilege"], &[1, 2, 3]),
];
/// Functions of MySQL, and the positions of their arguments that are formats, zones, units or durations.
const MYSQL_ARGUMENTS: &[(&[&str], &[usize])] = &[
    (
        &[
            "sleep",
            "benchmark",
            "now",
            "sysdate",
            "curtime",
            "current_time",
            "current_timestamp",
            "localtime",
            "localtimestamp",
            "utc_time",
            "utc_timestamp",
        ],
        &[1],
    ),
    (
        &[
            "date_format",
            "time_format",
            "str_to_date",
            "get_format",
            "from_unixtime",
            "json_contains_path",
            "json_search",
        ],
        &[2],
    ),
    (&["convert_tz"], &[2, 3]),
];
/// Functions whose first argument is a zone or configuration only if a second argument follows.
const OPTIONAL_FIRST: &[&str] =
    &["timezone", "to_tsvector", "to_tsquery", "plainto_tsquery", "phraseto_tsquery", "websearch_to_tsquery"];
/// Types that can have a size.
const SIZED_TYPES: &[&str] = &[
    "bigint",
    "binary",
    "bit",
    "blob",
    "char",
    "character",
    "datetime",
    "dec",
    "decimal",
    "double",
    "fixed",
    "float",
    "int",
    "integer",
    "mediumint",
    "nchar",
    "numeric",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "tinyint",
    "varbinary",
    "varchar",
    "year",
];
/// Types of PostgreSQL whose values are names of objects.
const NAME_TYPES: &[&str] = &[
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
    "interval",
];
/// Words that can follow the position of a column in ORDER BY or GROUP BY.
const AFTER_POSITION: &[&str] =
    &["asc", "desc", "nulls", "limit", "offset", "fetch", "having", "order", "with", "for", "rows", "range", "union"];
/// Words that end the list of ORDER BY or GROUP BY.
const AFTER_LIST: &[&str] = &[
    "limit",
    "offset",
    "having",
    "where",
    "from",
    "select",
    "returning",
    "rows",
    "range",
    "on",
    "into",
    "union",
    "intersect",
    "except",
    "window",
    "update",
    "values",
    "set",
    "fetch",
    "for",
];
/// Units of intervals in MySQL. Others consist of two of these units, such as `DAY_HOUR`.
const UNITS: &[&str] = &["microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"];
/// First words of statements that contain no other statements after a semicolon.
const PLAIN_STATEMENTS: &[&str] = &[
    "begin",
    "call",
    "close",
    "commit",
    "deallocate",
    "delete",
    "discard",
    "execute",
    "explain",
    "fetch",
    "insert",
    "lock",
    "prepare",
    "release",
    "replace",
    "reset",
    "rollback",
    "savepoint",
    "select",
    "set",
    "show",
    "start",
    "table",
    "truncate",
    "unlock",
    "update",
    "use",
    "values",
    "with",
];
/// The only words in a BEGIN that starts a transaction. With other words, BEGIN starts a compound statement.
const TRANSACTION_WORDS: &[&str] = &[
    "begin",
    "work",
    "transaction",
    "isolation",
    "level",
    "serializable",
    "repeatable",
    "read",
    "committed",
    "uncommitted",
    "write",
    "only",
    "not",
    "deferrable",
];
/// Settings of MySQL whose values are data.
const DATA_SETTINGS: &[&str] = &["insert_id", "last_insert_id", "identity", "timestamp", "password"];
/// Words after which a minus is a sign and not an operator with two operands.
const BEFORE_SIGN: &[&str] = &[
    "and",
    "between",
    "by",
    "case",
    "default",
    "div",
    "else",
    "having",
    "in",
    "is",
    "like",
    "limit",
    "mod",
    "not",
    "offset",
    "on",
    "or",
    "return",
    "returning",
    "select",
    "then",
    "to",
    "values",
    "when",
    "where",
    "xor",
];
const STRING: &str = "'";
const NUMBER: &str = "0";
const PARAMETER: &str = "?";
const IDENTIFIER: &str = "\"";

/// What the next token of a SET statement can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// The value of a user variable, an expression, or any other text that can contain data.
    Other,
    /// The name of a setting or its scope.
    Name,
    /// The operator between name and value.
    Operator,
    Value,
    /// A character set or time zone.
    Words,
    /// The names of roles.
    Roles,
}

/// The numbers after LIMIT.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    None,
    First,
    Comma,
    Second,
}

/// A pair of brackets that is not closed yet, or the statement outside of all brackets.
#[derive(Default)]
struct Frame {
    /// The function whose arguments are in the brackets. Empty in other brackets.
    function: String,
    /// Number of the current argument, from 1.
    argument: usize,
    /// Whether the brackets contain the sizes of a type.
    has_sizes: bool,
    /// Whether the brackets contain definitions of columns.
    has_columns: bool,
    /// Whether the current token belongs to the list after ORDER BY or GROUP BY.
    after_by: bool,
}

/// The part of a statement before a literal. This part determines whether masking keeps the literal.
pub struct Context {
    dialect: Dialect,
    /// First word of the statement, in lower case.
    first: String,
    /// The last tokens, beginning with the newest: words in lower case, marks, operators, and one character for each
    /// literal or quoted name.
    recent: [String; 5],
    /// At least one. The first frame is the statement outside of all brackets.
    frames: Vec<Frame>,
    setting: Setting,
    limit: Limit,
    /// Whether the statement may be part of a compound statement. SET can then assign data to a local variable.
    in_compound: bool,
    /// Whether the statement creates a function or procedure.
    creates_routine: bool,
}

impl Context {
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            first: String::new(),
            recent: Default::default(),
            frames: vec![Frame { argument: 1, ..Frame::default() }],
            setting: Setting::Other,
            limit: Limit::None,
            in_compound: false,
            creates_routine: false,
        }
    }

    /// The context at the start of the code of a function.
    pub fn of_code(dialect: Dialect) -> Self {
        Self { in_compound: true, ..Self::new(dialect) }
    }

    /// Whether a string at this place is a statement of MySQL (PREPARE, EXECUTE IMMEDIATE).
    pub fn is_statement(&self) -> bool {
        self.dialect == Dialect::Mysql
            && (self.at("from") && self.recent[2] == "prepare" || self.at("immediate") && self.recent[1] == "execute")
    }

    /// Whether a string at this place is the code of a function or of DO.
    pub fn is_code(&self) -> bool {
        self.dialect == Dialect::Postgres
            && (self.creates_routine && self.at("as")
                || self.at("do")
                || self.recent[1] == "language" && self.recent[2] == "do")
    }

    /// Whether the minus before a number at this place is its sign.
    pub fn is_negative(&self) -> bool {
        let before = self.recent[1].as_str();
        let follows_operand = matches!(before, STRING | NUMBER | PARAMETER | IDENTIFIER | ")" | "]")
            || is_word(before) && !BEFORE_SIGN.contains(&before);
        self.recent[0].ends_with('-') && (self.recent[0].len() > 1 || !follows_operand)
    }

    /// Whether masking keeps this literal or parameter. `before` and `after`: the text before and after it.
    pub fn keeps(&self, kind: Kind, source: &str, before: &str, after: &str) -> bool {
        let next = after.trim_start();
        let is_count = matches!(kind, Kind::Number | Kind::Parameter);
        let is_name = matches!(kind, Kind::String | Kind::Parameter);
        let frame = self.frame();
        frame.has_sizes && kind == Kind::Number && self.starts_argument() && next.starts_with([',', ')'])
            || self.keeps_argument(next)
            || is_count && matches!(self.limit, Limit::First | Limit::Second)
            || is_count && (self.at("first") || self.at("next")) && self.recent[1] == "fetch"
            || kind == Kind::Number && self.is_position(next)
            || is_name && self.at("zone") && self.recent[1] == "time" && self.recent[2] == "at"
            || self.is_setting()
            || kind == Kind::String && self.first == "show" && self.at("like")
            || match self.dialect {
                Dialect::Postgres => {
                    kind == Kind::String && self.at("interval")
                        || next.strip_prefix("::").is_some_and(|kind| NAME_TYPES.contains(&&*first_word(kind)))
                }
                Dialect::Mysql => {
                    self.at("interval") && first_word(next).split('_').all(|unit| UNITS.contains(&unit))
                        || kind == Kind::Number && is_part_of_name(source, before, after)
                        || kind == Kind::String && self.is_path(source)
                }
            }
    }

    fn at(&self, word: &str) -> bool {
        self.recent[0] == word
    }

    fn frame(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    fn starts_argument(&self) -> bool {
        self.at("(") || self.at(",")
    }

    fn keeps_argument(&self, next: &str) -> bool {
        let Frame { function, argument, .. } = self.frame();
        let table = match self.dialect {
            Dialect::Postgres => POSTGRES_ARGUMENTS,
            Dialect::Mysql => MYSQL_ARGUMENTS,
        };
        let needs_second = *argument == 1 && OPTIONAL_FIRST.contains(&function.as_str());
        let is_whole = next.starts_with(',') || next.starts_with(')') && !needs_second;
        let is_kept =
            |(functions, kept): &(&[&str], &[usize])| functions.contains(&function.as_str()) && kept.contains(argument);
        self.starts_argument() && is_whole && table.iter().any(is_kept)
    }

    /// Whether a number is the position of a column in ORDER BY or GROUP BY.
    fn is_position(&self, next: &str) -> bool {
        let ends = next.is_empty() || next.starts_with([',', ')', ';']);
        self.frame().after_by
            && (self.at("by") || self.at(","))
            && (ends || AFTER_POSITION.contains(&&*first_word(next)))
    }

    fn is_setting(&self) -> bool {
        let frame = self.frame();
        match self.setting {
            Setting::Value => self.frames.len() == 1 || frame.function == "concat" && self.starts_argument(),
            Setting::Words | Setting::Roles => self.frames.len() == 1,
            Setting::Other | Setting::Name | Setting::Operator => false,
        }
    }

    /// Whether a string of MySQL at this place is a JSON path.
    pub fn is_path(&self, source: &str) -> bool {
        let Frame { function, argument, has_columns, .. } = self.frame();
        let is_argument = match function.as_str() {
            "json_extract" | "json_remove" => *argument >= 2,
            "json_keys" | "json_length" | "json_query" | "json_value" | "json_exists" | "json_table" => *argument == 2,
            "json_contains" => *argument == 3,
            "json_contains_path" => *argument >= 3,
            "json_search" => *argument >= 5,
            "json_set" | "json_insert" | "json_replace" | "json_array_append" | "json_array_insert" => {
                argument % 2 == 0
            }
            _ => false,
        };
        let is_path = source[1..].strip_prefix('$').is_some_and(|rest| rest.starts_with(['.', '[', '*', '\'', '"']));
        is_path
            && (matches!(self.recent[0].as_str(), "->" | "->>")
                || is_argument && self.starts_argument()
                || *has_columns && self.first != "create" && self.at("path"))
    }

    /// Updates the context with the next token of the statement.
    pub fn advance(&mut self, kind: Kind, source: &str) {
        let token = match kind {
            Kind::Word => source.to_ascii_lowercase(),
            Kind::Identifier => IDENTIFIER.to_owned(),
            Kind::String => STRING.to_owned(),
            Kind::Number => NUMBER.to_owned(),
            Kind::Parameter => PARAMETER.to_owned(),
            Kind::Operator | Kind::Mark => source.to_owned(),
            Kind::Comment => return,
        };
        if token == ";" {
            return self.restart();
        }
        if self.first == "set" && self.frames.len() == 1 && !self.in_compound {
            if token == "for" && self.frame().function == "statement" {
                return self.restart();
            }
            self.setting = self.next_setting(kind, &token);
        }
        self.limit = match (self.limit, kind) {
            (_, Kind::Word) if matches!(token.as_str(), "limit" | "offset") => Limit::First,
            (Limit::First, Kind::Number | Kind::Parameter) => Limit::Comma,
            (Limit::Comma, Kind::Mark) if token == "," && self.dialect == Dialect::Mysql => Limit::Second,
            _ => Limit::None,
        };
        match (kind, token.as_str()) {
            (Kind::Word, word) => self.word(word),
            (_, "(") => {
                let frame = self.opened();
                self.frames.push(frame);
            }
            (_, ")") if self.frames.len() > 1 => {
                self.frames.pop();
            }
            (_, ",") => {
                let last = self.frames.len() - 1;
                self.frames[last].argument += 1;
            }
            _ => {}
        }
        self.recent.rotate_right(1);
        self.recent[0] = token;
    }

    fn restart(&mut self) {
        *self = Self { in_compound: self.in_compound, ..Self::new(self.dialect) };
    }

    fn word(&mut self, word: &str) {
        if self.first.is_empty() {
            self.first = word.to_owned();
            self.in_compound |= !PLAIN_STATEMENTS.contains(&word);
            self.setting = if word == "set" && !self.in_compound { Setting::Name } else { Setting::Other };
        }
        self.in_compound |= self.first == "begin" && !TRANSACTION_WORDS.contains(&word);
        self.creates_routine |= self.first == "create"
            && matches!(word, "function" | "procedure")
            && matches!(self.recent[0].as_str(), "create" | "replace");
        let follows_list = matches!(self.recent[0].as_str(), "order" | "group");
        let last = self.frames.len() - 1;
        let frame = &mut self.frames[last];
        if word == "by" {
            frame.after_by = follows_list;
        } else if AFTER_LIST.contains(&word) {
            frame.after_by = false;
        }
        // CREATE TABLE t (SELECT …)
        frame.has_columns &= !matches!(word, "select" | "with" | "values" | "table");
    }

    /// The next state of a SET statement. `token` is outside of brackets.
    fn next_setting(&mut self, kind: Kind, token: &str) -> Setting {
        let is_mysql = self.dialect == Dialect::Mysql;
        let is_assignment = self.at("set") || self.at(",");
        match (self.setting, kind, token) {
            (Setting::Roles, Kind::Mark, ",") => Setting::Roles,
            (Setting::Roles, Kind::Operator, "@") if !is_assignment => Setting::Roles,
            (_, Kind::Mark, ",") if is_mysql => Setting::Name,
            (Setting::Name, Kind::Word, "statement") if is_mysql && self.at("set") => {
                self.frames[0].function = token.to_owned();
                Setting::Name
            }
            (
                Setting::Name,
                Kind::Word,
                "session" | "local" | "global" | "persist" | "persist_only" | "character" | "time",
            ) => Setting::Name,
            (Setting::Name, Kind::Word, "role" | "authorization") => Setting::Roles,
            (Setting::Name, Kind::Word, "names" | "charset" | "zone") => Setting::Words,
            (Setting::Name, Kind::Word, "set") if self.at("character") => Setting::Words,
            (Setting::Name, Kind::Operator, "@@") => Setting::Name,
            (Setting::Name, Kind::Mark, ".") if !is_assignment => Setting::Name,
            (Setting::Name, Kind::Word, name) if !DATA_SETTINGS.contains(&name) => Setting::Operator,
            (Setting::Name, Kind::Identifier, _) => Setting::Operator,
            (Setting::Operator, Kind::Mark, ":") if is_mysql => Setting::Operator,
            (Setting::Operator, Kind::Operator, "=" | "=-" | "=+") | (Setting::Operator, Kind::Word, "to") => {
                Setting::Value
            }
            (Setting::Roles, Kind::Operator, "=") => Setting::Roles,
            (Setting::Roles, Kind::Word | Kind::Identifier | Kind::String | Kind::Parameter, _) => Setting::Roles,
            (Setting::Words, Kind::Word | Kind::Identifier | Kind::String | Kind::Number | Kind::Parameter, _)
            | (Setting::Words, Kind::Operator, "-" | "+") => Setting::Words,
            (Setting::Value, Kind::Operator, "-" | "+") if self.at("=") || self.at("to") => Setting::Value,
            // In PostgreSQL, a setting can have several values.
            (Setting::Value, Kind::Word | Kind::Identifier | Kind::String | Kind::Number | Kind::Mark, _)
                if !is_mysql && token != "(" =>
            {
                Setting::Value
            }
            // `SET sql_mode = CONCAT(@@sql_mode, ',ANSI')`
            (Setting::Value, Kind::Word, "concat") if self.recent[0].starts_with('=') => Setting::Value,
            (Setting::Value, Kind::Mark, "(" | ")") if self.at("concat") => Setting::Value,
            _ => Setting::Other,
        }
    }

    /// The frame of the brackets that the next token opens.
    fn opened(&self) -> Frame {
        let word = self.recent[0].as_str();
        let is_built_in = self.recent[1] != "." || self.dialect == Dialect::Postgres && self.recent[2] == "pg_catalog";
        Frame {
            function: if is_built_in && is_word(word) { word.to_owned() } else { String::new() },
            argument: 1,
            has_sizes: self.is_type(),
            has_columns: self.opens_columns(),
            after_by: false,
        }
    }

    /// Whether the next brackets contain the sizes of a type.
    fn is_type(&self) -> bool {
        // CHARACTER VARYING
        let at = usize::from(self.at("varying"));
        let [word, before, earlier] = [at, at + 1, at + 2].map(|at| self.recent[at].as_str());
        let frame = self.frame();
        let starts_definition = matches!(earlier, "(" | "," | "in" | "out" | "inout");
        SIZED_TYPES.contains(&word)
            && (before == "::"
                || before == "as" && frame.function == "cast"
                || before == "," && frame.function == "convert" && self.dialect == Dialect::Mysql
                || before == "returning" && frame.function == "json_value"
                || before == "returns" && self.creates_routine
                || frame.has_columns && starts_definition
                || self.first == "alter"
                    && self.frames.len() == 1
                    && (before == "type" || matches!(earlier, "add" | "column" | "modify" | "exists")))
    }

    /// Whether the next brackets contain definitions of columns or of the parameters of a routine.
    fn opens_columns(&self) -> bool {
        let frame = self.frame();
        let kind = self.recent[if self.recent[1] == "." { 3 } else { 1 }].as_str();
        self.at("columns") && (frame.function == "json_table" || frame.has_columns)
            || self.first == "create"
                && self.frames.len() == 1
                && matches!(kind, "table" | "exists" | "function" | "procedure")
    }
}

/// Whether a number is the start of a name, or the start of a name after a period (`t.2fa`).
fn is_part_of_name(source: &str, before: &str, after: &str) -> bool {
    let is_letter = |byte: u8| byte == b'_' || byte == b'$' || byte.is_ascii_alphanumeric() || byte >= 0x80;
    let digits = source
        .strip_prefix('.')
        .filter(|_| before.bytes().next_back().is_some_and(|byte| is_letter(byte) || byte == b'`'));
    digits.unwrap_or(source).bytes().all(|byte| byte.is_ascii_digit()) && after.bytes().next().is_some_and(is_letter)
}

fn is_word(token: &str) -> bool {
    token.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80)
}

/// The word at the start of a text, in lower case.
fn first_word(text: &str) -> String {
    let text = text.trim_start();
    let length = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    text[..length].to_ascii_lowercase()
}

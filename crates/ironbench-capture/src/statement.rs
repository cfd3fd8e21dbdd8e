//! The analysis of a statement: its template, its effect on the transaction, and whether a replay can run it.

use crate::scan::{Dialect, Kind, Scan, Token};

/// A reason why a replay leaves out a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The statement is a COPY, and the log does not contain its rows.
    Copy,
    /// The statement is LISTEN or UNLISTEN, whose notifications arrive without a request.
    Listen,
    /// The statement is PREPARE TRANSACTION or ends such a transaction.
    TwoPhase,
    /// The statement changes roles, databases or other objects of the whole server.
    ServerWide,
    /// The statement calls a function that ends or changes other sessions.
    OtherSessions,
    /// The log lacks values of the statement's parameters.
    NoParameters,
    /// The statement contained a password. The capture contains the statement without it.
    Password,
    /// The statement is not valid UTF-8.
    Encoding,
    /// The statement fetches a further part of a result. In a replay, the earlier statement has already fetched the
    /// whole result.
    Fetch,
    /// The statement belongs to a transaction that began before the log.
    Begun,
    /// The statement is longer than a proxy stores.
    LongText,
    /// A parameter was sent in the binary format of a type that ironbench cannot decode.
    BinaryParameters,
    /// Statements of the transaction are missing, because they could not be stored in time.
    Gap,
    /// The client called a function without SQL (FunctionCall).
    FunctionCall,
    /// The statement chooses another database (USE). A replay runs all statements in one database.
    Use,
    /// A table in the statement has the name of its database, which is not that of a replay.
    OtherDatabase,
}

impl Obstacle {
    /// Returns the code of the obstacle in the capture.
    pub fn code(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Listen => "listen",
            Self::TwoPhase => "two-phase",
            Self::ServerWide => "server-wide",
            Self::OtherSessions => "other-sessions",
            Self::NoParameters => "no-parameters",
            Self::Password => "password",
            Self::Encoding => "encoding",
            Self::Fetch => "fetch",
            Self::Begun => "begun-before",
            Self::LongText => "long-text",
            Self::BinaryParameters => "binary-parameters",
            Self::Gap => "gap",
            Self::FunctionCall => "function-call",
            Self::Use => "use",
            Self::OtherDatabase => "other-database",
        }
    }
}

/// How a statement changes the state of the transaction block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    None,
    Begins,
    Ends,
    /// The statement ends the block and begins another one (`COMMIT AND CHAIN`).
    Chains,
    /// The statement begins a block. If one is open, it ends before the statement (`BEGIN` of MySQL).
    Restarts,
    /// The statement determines whether each statement is a transaction (`SET autocommit` of MySQL).
    Autocommit(bool),
}

/// The analysis of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Template of the statement: its text in lower case, with `?` in place of literals and parameters.
    pub template: String,
    /// First keyword of the statement, in lower case.
    pub verb: String,
    /// Whether the statement itself changes data or the schema. The functions that the statement calls are not
    /// examined.
    pub writes: bool,
    pub control: Control,
    pub obstacle: Option<Obstacle>,
    /// Highest parameter number, or 0 if there are no parameters.
    pub parameters: usize,
}

impl Statement {
    #[cfg(test)]
    fn of(text: &[u8]) -> Self {
        Self::in_dialect(text, Dialect::Postgres)
    }

    pub fn in_dialect(text: &[u8], dialect: Dialect) -> Self {
        let mut read = Reading::new(text, dialect);
        let mut tokens = Scan::of(text, dialect).filter(|token| token.kind != Kind::Comment).peekable();
        while let Some(token) = tokens.next() {
            let adjacent = tokens.peek().filter(|next| next.kind == Kind::Number && next.at.start == token.at.end);
            if token.kind == Kind::Operator && adjacent.is_some() && read.is_sign(&text[token.at.clone()]) {
                continue;
            }
            read.token(&token);
        }
        read.finish()
    }
}

/// Keywords after which a template has a space before an opening parenthesis.
const SPACED: &[&str] = &[
    "all", "and", "any", "as", "between", "by", "case", "check", "else", "except", "exists", "filter", "from", "group",
    "having", "in", "into", "is", "join", "key", "like", "not", "on", "or", "order", "over", "select", "set", "some",
    "table", "then", "union", "unique", "using", "values", "when", "where", "with", "within",
];
/// First keywords of statements that change data or the schema.
const WRITES: &[&str] = &[
    "insert", "update", "delete", "merge", "truncate", "create", "alter", "drop", "copy", "vacuum", "analyze",
    "reindex", "cluster", "refresh", "grant", "revoke", "comment", "call", "do", "import", "reassign", "security",
];
/// Functions that affect other sessions or the server.
const OTHER_SESSIONS: &[&str] = &[
    "pg_terminate_backend",
    "pg_cancel_backend",
    "pg_reload_conf",
    "pg_rotate_logfile",
    "pg_promote",
    "pg_switch_wal",
    "pg_create_restore_point",
];
/// Objects that are shared by all databases, or that contain credentials.
const SERVER_OBJECTS: &[&str] =
    &["database", "role", "user", "group", "tablespace", "system", "subscription", "server", "publication"];
/// First keywords of statements of MySQL that change data or the schema.
const MYSQL_WRITES: &[&str] = &[
    "insert", "update", "delete", "replace", "truncate", "create", "alter", "drop", "rename", "load", "call",
    "optimize", "analyze", "repair", "grant", "revoke", "import",
];
/// First keywords of statements of MySQL that commit the open transaction (MySQL 8.4 Reference Manual, "Statements That
/// Cause an Implicit Commit").
const MYSQL_COMMITS: &[&str] = &[
    "alter",
    "create",
    "drop",
    "rename",
    "truncate",
    "grant",
    "revoke",
    "install",
    "uninstall",
    "lock",
    "analyze",
    "optimize",
    "repair",
    "check",
    "cache",
    "flush",
    "reset",
];
/// First keywords of statements of MySQL that affect the whole server.
const MYSQL_SERVER_WIDE: &[&str] = &[
    "shutdown",
    "restart",
    "purge",
    "flush",
    "reset",
    "install",
    "uninstall",
    "change",
    "clone",
    "binlog",
    "grant",
    "revoke",
];
/// Objects of MySQL that are shared by all databases, or that contain credentials.
const MYSQL_SERVER_OBJECTS: &[&str] =
    &["database", "schema", "user", "role", "server", "tablespace", "logfile", "instance"];
/// Databases of MySQL that every server has, and whose contents no statement of an application changes.
const MYSQL_SHARED: &[&str] = &["information_schema", "performance_schema", "sys"];

fn is_one_of(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| known.as_bytes() == word)
}

/// Maximum length of a template in bytes. The rest of a longer template is left out.
const LONGEST: usize = 20_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Start,
    Open,
    /// A dot or `::`. No space follows it.
    Tight,
    Spaced,
    Word,
    Operator,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// The elements of IN or ARRAY. If all of them are placeholders, the template contains only one.
    List,
    /// A row of VALUES. Consecutive equal rows are combined into one.
    Row,
    Other,
}

/// A word in lower case, cut to the length of the longest keyword or function that matters.
#[derive(Clone, Copy, Default)]
struct Word {
    bytes: [u8; 24],
    length: usize,
}

impl Word {
    fn of(bytes: &[u8]) -> Self {
        let mut word = Self { length: bytes.len().min(24), ..Self::default() };
        for (lower, byte) in word.bytes.iter_mut().zip(bytes) {
            *lower = byte.to_ascii_lowercase();
        }
        word
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

struct Reading<'a> {
    text: &'a [u8],
    dialect: Dialect,
    out: Vec<u8>,
    last: Last,
    /// Open brackets. Each has its kind, and the length of the output before it.
    open: Vec<(Group, usize)>,
    /// Whether the innermost list contains something other than placeholders and commas.
    mixed: Vec<bool>,
    /// The last row of VALUES that was kept: its depth, and its start and end in the output.
    row: Option<(usize, usize, usize)>,
    /// The first words of the current statement. `known` is the number of words read so far.
    first: [Word; 4],
    known: usize,
    verb: Word,
    writes: bool,
    control: Control,
    obstacle: Option<Obstacle>,
    parameters: usize,
    /// Whether the body of an SQL-standard function has begun. Semicolons in it end no statement.
    in_body: bool,
    last_word: Word,
    /// Whether the next name is that of a table. If so, it can follow the name of a database.
    names_table: bool,
    /// The database whose name may precede the table's name.
    qualifier: Option<Word>,
    /// Whether the statement sets `autocommit`, and its value follows.
    sets_autocommit: bool,
    full: bool,
}

impl<'a> Reading<'a> {
    fn new(text: &'a [u8], dialect: Dialect) -> Self {
        Self {
            text,
            dialect,
            out: Vec::with_capacity(text.len().min(LONGEST)),
            last: Last::Start,
            open: Vec::new(),
            mixed: Vec::new(),
            row: None,
            first: [Word::default(); 4],
            known: 0,
            verb: Word::default(),
            writes: false,
            control: Control::None,
            obstacle: None,
            parameters: 0,
            in_body: false,
            last_word: Word::default(),
            names_table: false,
            qualifier: None,
            sets_autocommit: false,
            full: false,
        }
    }

    /// Whether this operator is the sign of the number that follows it directly.
    fn is_sign(&self, operator: &[u8]) -> bool {
        let after = matches!(self.last, Last::Start | Last::Open | Last::Operator | Last::Spaced)
            || self.last == Last::Word && is_one_of(SPACED, self.last_word.as_bytes());
        (operator == b"-" || operator == b"+") && after
    }

    fn token(&mut self, token: &Token) {
        let bytes = &self.text[token.at.clone()];
        if self.dialect == Dialect::Mysql {
            self.mysql_token(token.kind, bytes);
        }
        match token.kind {
            Kind::Word => self.word(bytes),
            Kind::Identifier => self.push(bytes, Last::Other),
            Kind::String | Kind::Number => self.push(b"?", Last::Other),
            Kind::Parameter if bytes == b"?" => {
                self.parameters += 1;
                self.push(b"?", Last::Other);
            }
            Kind::Parameter => {
                let number = std::str::from_utf8(&bytes[1..]).ok().and_then(|digits| digits.parse().ok());
                self.parameters = self.parameters.max(number.unwrap_or(0));
                self.push(b"?", Last::Other);
            }
            Kind::Operator => self.push(bytes, Last::Operator),
            Kind::Mark => self.mark(bytes),
            Kind::Comment => {}
        }
        if !matches!(token.kind, Kind::String | Kind::Number | Kind::Parameter | Kind::Mark)
            && let Some(mixed) = self.mixed.last_mut()
        {
            *mixed = true;
        }
    }

    fn word(&mut self, bytes: &[u8]) {
        let word = Word::of(bytes);
        let before = self.out.len();
        self.push(bytes, Last::Word);
        self.out[before..].make_ascii_lowercase();
        self.last_word = word;
        if self.known < self.first.len() {
            self.first[self.known] = word;
            self.known += 1;
            match self.dialect {
                Dialect::Postgres => self.beginning(),
                Dialect::Mysql => self.mysql_beginning(),
            }
        }
        match (word.as_bytes(), self.first[0].as_bytes()) {
            (b"chain", _) if self.control == Control::Ends => self.control = Control::Chains,
            (b"insert" | b"update" | b"delete" | b"merge", b"with" | b"explain") => self.writes = true,
            _ if self.dialect == Dialect::Mysql => self.mysql_word(),
            (b"stdin" | b"stdout", b"copy") => self.obstacle = Some(Obstacle::Copy),
            (b"atomic", b"create") => self.in_body = true,
            (b"end", _) if self.in_body => self.in_body = false,
            (one, _) if one.starts_with(b"pg_") && is_one_of(OTHER_SESSIONS, one) => {
                self.obstacle = Some(Obstacle::OtherSessions);
            }
            _ => {}
        }
    }

    /// Processes the first words of a statement.
    fn beginning(&mut self) {
        let words = self.first;
        let [first, second, third, fourth] =
            [0, 1, 2, 3].map(|place| if place < self.known { words[place].as_bytes() } else { b"" });
        match (self.known, first) {
            (1, _) => {
                if self.verb.length == 0 {
                    self.verb = words[0];
                }
                self.writes |= is_one_of(WRITES, first);
                match first {
                    b"begin" => self.begins(),
                    b"commit" | b"end" | b"rollback" | b"abort" => self.control = Control::Ends,
                    b"copy" => self.obstacle = Some(Obstacle::Copy),
                    b"listen" | b"unlisten" => self.obstacle = Some(Obstacle::Listen),
                    b"load" | b"checkpoint" => self.obstacle = Some(Obstacle::ServerWide),
                    _ => {}
                }
            }
            (2, b"start") if second == b"transaction" => self.begins(),
            (2, b"rollback" | b"abort") if second == b"to" => self.control = Control::None,
            (3, b"rollback" | b"abort") if third == b"to" => self.control = Control::None,
            (2, b"commit" | b"rollback") if second == b"prepared" => {
                (self.control, self.obstacle) = (Control::None, Some(Obstacle::TwoPhase));
            }
            (2, b"prepare") if second == b"transaction" => {
                (self.control, self.obstacle) = (Control::Ends, Some(Obstacle::TwoPhase));
            }
            (2, b"create" | b"alter" | b"drop" | b"reassign")
                if second == b"owned" || is_one_of(SERVER_OBJECTS, second) =>
            {
                self.obstacle = Some(Obstacle::ServerWide);
            }
            (3, b"set" | b"reset") if (second, third) == (b"session", b"authorization") => {
                self.obstacle = Some(Obstacle::ServerWide);
            }
            (4, b"set") if (third, fourth) == (b"session", b"authorization") => {
                self.obstacle = Some(Obstacle::ServerWide);
            }
            _ => {}
        }
    }

    /// Processes the first words of a statement of MySQL.
    fn mysql_beginning(&mut self) {
        let words = self.first;
        let [first, second, third, fourth] =
            [0, 1, 2, 3].map(|place| if place < self.known { words[place].as_bytes() } else { b"" });
        let server_wide = Some(Obstacle::ServerWide);
        match (self.known, first) {
            (1, _) => {
                if self.verb.length == 0 {
                    self.verb = words[0];
                }
                self.writes |= is_one_of(MYSQL_WRITES, first);
                if is_one_of(MYSQL_SERVER_WIDE, first) {
                    self.obstacle = server_wide;
                }
                match first {
                    b"begin" => self.begins(),
                    b"commit" | b"rollback" => self.control = Control::Ends,
                    b"xa" => self.obstacle = Some(Obstacle::TwoPhase),
                    b"load" => self.obstacle = Some(Obstacle::Copy),
                    b"kill" => self.obstacle = Some(Obstacle::OtherSessions),
                    b"use" => self.obstacle = Some(Obstacle::Use),
                    _ if is_one_of(MYSQL_COMMITS, first) => self.control = Control::Ends,
                    _ => {}
                }
            }
            // BEGIN NOT ATOMIC starts a compound statement.
            (2, b"begin") if second == b"not" => (self.control, self.in_body) = (Control::None, true),
            (2, b"start") if second == b"transaction" => self.begins(),
            (2, b"start" | b"stop") if matches!(second, b"slave" | b"replica" | b"all" | b"group_replication") => {
                self.obstacle = server_wide;
            }
            (2, b"xa") if matches!(second, b"start" | b"begin") => self.begins(),
            (2, b"xa") if matches!(second, b"commit" | b"rollback") => self.control = Control::Ends,
            // SET DEFAULT ROLE changes an account. SET ROLE changes only the session.
            (2, b"set") if matches!(second, b"global" | b"password" | b"persist" | b"persist_only" | b"default") => {
                self.obstacle = server_wide;
            }
            (2, b"rollback") if second == b"to" => self.control = Control::None,
            (3, b"rollback") if third == b"to" => self.control = Control::None,
            (2, b"create" | b"drop") if second == b"temporary" => self.control = Control::None,
            (4, b"create") if (second, fourth) == (b"or", b"temporary") => self.control = Control::None,
            (2, b"create" | b"alter" | b"drop" | b"rename") if is_one_of(MYSQL_SERVER_OBJECTS, second) => {
                self.obstacle = server_wide;
            }
            (4, b"create") if second == b"or" && is_one_of(MYSQL_SERVER_OBJECTS, fourth) => {
                self.obstacle = server_wide;
            }
            _ => {}
        }
    }

    /// Processes a word of a statement of MySQL.
    fn mysql_word(&mut self) {
        match (self.last_word.as_bytes(), self.first[0].as_bytes()) {
            (b"procedure" | b"function" | b"trigger" | b"event" | b"package", b"create") => self.in_body = true,
            (b"outfile" | b"dumpfile", _) => self.obstacle = Some(Obstacle::ServerWide),
            (b"autocommit", b"set") => self.sets_autocommit = true,
            _ => {}
        }
    }

    /// Finds the value of `autocommit`, and names of databases before names of tables.
    fn mysql_token(&mut self, kind: Kind, bytes: &[u8]) {
        if self.sets_autocommit && matches!(kind, Kind::Word | Kind::Number | Kind::String) {
            let off = matches!(bytes.to_ascii_lowercase().as_slice(), b"0" | b"off" | b"false" | b"'off'");
            (self.control, self.sets_autocommit) = (Control::Autocommit(!off), false);
        }
        let is_name = matches!(kind, Kind::Word | Kind::Identifier);
        if kind == Kind::Mark
            && bytes == b"."
            && self.qualifier.is_some_and(|word| !is_one_of(MYSQL_SHARED, word.as_bytes()))
        {
            self.obstacle = Some(Obstacle::OtherDatabase);
        }
        let word = Word::of(bytes.strip_prefix(b"`").and_then(|name| name.strip_suffix(b"`")).unwrap_or(bytes));
        self.qualifier = (is_name && self.names_table).then_some(word);
        self.names_table = match (kind, word.as_bytes()) {
            (Kind::Word, b"from" | b"join" | b"into" | b"update" | b"table" | b"call") => true,
            (Kind::Word, b"ignore" | b"low_priority" | b"if" | b"exists" | b"not") => self.names_table,
            _ => false,
        };
    }

    fn begins(&mut self) {
        self.control = match (self.control, self.dialect) {
            (Control::Ends, _) => Control::Chains,
            (_, Dialect::Postgres) => Control::Begins,
            (_, Dialect::Mysql) => Control::Restarts,
        };
    }

    fn mark(&mut self, bytes: &[u8]) {
        match bytes {
            b"(" | b"[" => {
                let group = match self.last_word.as_bytes() {
                    b"in" | b"array" if self.last == Last::Word => Group::List,
                    b"values" if self.last == Last::Word || self.row.is_some_and(|row| row.0 == self.open.len()) => {
                        Group::Row
                    }
                    _ => Group::Other,
                };
                if let Some(mixed) = self.mixed.last_mut() {
                    *mixed = true;
                }
                let before = self.out.len();
                self.push(bytes, Last::Open);
                self.open.push((group, before));
                self.mixed.push(false);
            }
            b")" | b"]" => self.close(bytes),
            b"." | b"::" => self.push(bytes, Last::Tight),
            b";" if !self.in_body => {
                self.push(bytes, Last::Spaced);
                self.known = 0;
                self.row = None;
            }
            _ => self.push(bytes, Last::Spaced),
        }
    }

    fn close(&mut self, bytes: &[u8]) {
        let group = self.open.pop();
        let mixed = self.mixed.pop().unwrap_or(true);
        if let Some((Group::List, before)) = group
            && !mixed
            && !self.full
        {
            let opening = self.out[before..].iter().position(|&byte| byte == b'(' || byte == b'[');
            self.out.truncate(before + opening.unwrap_or(0) + 1);
            self.out.extend_from_slice(b"...");
        }
        self.push(bytes, Last::Other);
        if let Some((Group::Row, before)) = group {
            self.end_row(before);
        }
    }

    /// Ends a row of VALUES. Drops it if it equals the row before it.
    fn end_row(&mut self, before: usize) {
        let depth = self.open.len();
        let shape = |start: usize, end: usize| self.out[start..end].trim_ascii_start();
        if let Some((at, start, end)) = self.row
            && at == depth
            && shape(start, end) == shape(before, self.out.len())
        {
            self.out.truncate(end);
            self.out.extend_from_slice(b", ...");
        } else {
            self.row = Some((depth, before, self.out.len()));
        }
        self.last_word = Word::of(b"values");
    }

    /// Appends a token, with a space before it if a template has one between the last token and this one.
    fn push(&mut self, bytes: &[u8], as_last: Last) {
        let spaced = match self.last {
            Last::Start | Last::Open | Last::Tight => false,
            _ => match bytes {
                b")" | b"]" | b"," | b";" | b"." | b"::" | b"[" => false,
                b"(" => self.last != Last::Word || is_one_of(SPACED, self.last_word.as_bytes()),
                _ => true,
            },
        };
        self.last = as_last;
        if self.full {
            return;
        }
        if spaced {
            self.out.push(b' ');
        }
        self.out.extend_from_slice(bytes);
        self.full = self.out.len() > LONGEST;
    }

    fn finish(mut self) -> Statement {
        while matches!(self.out.last(), Some(b';' | b' ')) {
            self.out.pop();
        }
        if self.full {
            self.out.extend_from_slice(" …".as_bytes());
        }
        Statement {
            template: String::from_utf8_lossy(&self.out).into_owned(),
            verb: String::from_utf8_lossy(self.verb.as_bytes()).into_owned(),
            writes: self.writes,
            control: self.control,
            obstacle: self.obstacle,
            parameters: self.parameters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn template(text: &str) -> String {
        Statement::of(text.as_bytes()).template
    }

    #[test]
    fn literals_and_comments_of_mysql_are_not_in_a_template() {
        let template = |text: &str| Statement::in_dialect(text.as_bytes(), Dialect::Mysql).template;
        for text in [
            r#"select "secret", 'se\'cret', `col` from t where a=? and b = -5 # secret"#,
            r#"select 'secret', "se\"cret", `col` from t where a =? and b= ? -- secret"#,
        ] {
            assert_eq!(template(text), "select ?, ?, `col` from t where a = ? and b = ?", "{text}");
        }
        let of = |text: &str| Statement::in_dialect(text.as_bytes(), Dialect::Mysql);
        assert!(of("insert into `t` values (1)").writes);
        assert_eq!(of("select '?', ?, a from t where b = ?").parameters, 2);
    }

    #[test]
    fn transactions_of_mysql_begin_and_end_as_the_server_decides() {
        use Control::{Autocommit, Chains, Ends, None, Restarts};
        for (text, control) in [
            ("start transaction", Restarts),
            ("BEGIN", Restarts),
            ("begin not atomic select 1; commit; end", None),
            ("commit", Ends),
            ("end", None),
            ("rollback to savepoint a", None),
            ("commit; begin", Chains),
            ("create table t (a int)", Ends),
            ("create temporary table t (a int)", None),
            ("create procedure p() begin select 1; commit; end", Ends),
            ("truncate t", Ends),
            ("SET autocommit=0", Autocommit(false)),
            ("set names utf8, @@session.autocommit = OFF", Autocommit(false)),
            ("set @@autocommit := 1", Autocommit(true)),
            ("select autocommit from t where a = 0", None),
        ] {
            assert_eq!(Statement::in_dialect(text.as_bytes(), Dialect::Mysql).control, control, "{text}");
        }
    }

    #[test]
    fn statements_of_mysql_that_a_replay_cannot_run_are_recognised() {
        use Obstacle::{Copy, OtherDatabase, OtherSessions, ServerWide, TwoPhase, Use};
        for (text, obstacle) in [
            ("load data local infile 'x' into table t", Some(Copy)),
            ("kill 5", Some(OtherSessions)),
            ("xa start 'a'", Some(TwoPhase)),
            ("use shop", Some(Use)),
            ("set global max_connections = 5", Some(ServerWide)),
            ("set @@global.max_connections = 5", Some(ServerWide)),
            ("create or replace user u", Some(ServerWide)),
            ("drop schema shop", Some(ServerWide)),
            ("grant all on d.* to u", Some(ServerWide)),
            ("select a from shop.item", Some(OtherDatabase)),
            ("insert into `shop`.`item` values (1)", Some(OtherDatabase)),
            ("select item.a from item join sale on sale.b = item.a", None),
            ("select a from information_schema.tables", None),
            ("update item i set i.a = 1", None),
            ("set session wait_timeout = 5", None),
            ("create table users (id int)", None),
            ("select 'use', copy from t", None),
        ] {
            assert_eq!(Statement::in_dialect(text.as_bytes(), Dialect::Mysql).obstacle, obstacle, "{text}");
        }
    }

    #[test]
    fn statements_that_differ_in_literals_and_layout_have_one_template() {
        for (one, other) in [
            ("SELECT name FROM item WHERE id = 5;", "select name from item\n  where id=$1"),
            ("select f(a , -5, 'x''y')", "SELECT f(a,3.2e4,$$q$$) -- comment"),
            ("insert into t (a,b) values (1,'a'),(2,'b'), (3, 'c')", "INSERT INTO t(a, b) VALUES (9, 'x'), (8, 'y')"),
            ("select * from t where id in (1,2,3)", "select * from t where id in ($1)"),
            ("select array[1,2]", "select array[1,2,3,4]"),
            ("select a::int[]", "select a :: int []"),
        ] {
            assert_eq!(template(one), template(other));
        }
        assert_eq!(template("SELECT f(a , -5, 'x''y')"), "select f(a, ?, ?)");
        assert_eq!(template("select 1 - 5"), "select ? - ?");
        assert_eq!(
            template("insert into t(a) values (1),(2),(3),(4) returning id"),
            "insert into t(a) values (?), ... returning id"
        );
        assert_eq!(template("insert into t(a) values (1)"), "insert into t(a) values (?)");
        assert_eq!(template("insert into t values (1, now()), (2, now())"), "insert into t values (?, now()), ...");
        assert_eq!(
            template("select \"A b\".c from x where d in (1, f(2))"),
            "select \"A b\".c from x where d in (?, f(?))"
        );
        assert_eq!(template("select x from t where a in (select 1)"), "select x from t where a in (select ?)");
    }

    #[test]
    fn a_transaction_block_begins_and_ends_by_its_statements() {
        use Control::{Begins, Chains, Ends, None};
        for (text, control) in [
            ("BEGIN", Begins),
            ("start transaction isolation level serializable", Begins),
            ("/* a */ COMMIT;", Ends),
            ("rollback", Ends),
            ("ROLLBACK TO SAVEPOINT a", None),
            ("rollback work to a", None),
            ("commit and chain", Chains),
            ("savepoint a", None),
            ("begin; select 1; commit", Ends),
            ("commit; begin", Chains),
            ("create function f() returns int begin atomic select 1; select 2; end", None),
            ("prepare transaction 'x'", Ends),
        ] {
            assert_eq!(Statement::of(text.as_bytes()).control, control, "{text}");
        }
    }

    #[test]
    fn statements_that_a_replay_cannot_run_are_recognised() {
        use Obstacle::{Copy, Listen, OtherSessions, ServerWide, TwoPhase};
        for (text, obstacle) in [
            ("copy item (name) from stdin", Some(Copy)),
            ("select 1; listen x", Some(Listen)),
            ("commit prepared 'a'", Some(TwoPhase)),
            ("alter role x password 'y'", Some(ServerWide)),
            ("create database d", Some(ServerWide)),
            ("create user mapping for x server s", Some(ServerWide)),
            ("select pg_terminate_backend(5)", Some(OtherSessions)),
            ("prepare p as select $1", None),
            ("create table users(id int)", None),
            ("select 'listen'", None),
        ] {
            assert_eq!(Statement::of(text.as_bytes()).obstacle, obstacle, "{text}");
        }
    }

    #[test]
    fn writes_and_parameters_are_counted() {
        let writes = |text: &str| Statement::of(text.as_bytes()).writes;
        assert!(writes("insert into t select 1") && writes("with x as (delete from t returning *) select * from x"));
        assert!(!writes("select * from t for update") && !writes("begin"));
        assert_eq!(Statement::of(b"select $2, $10, '$11'").parameters, 10);
        assert_eq!(Statement::of(b" Select 1").verb, "select");
    }

    proptest! {
        #[test]
        fn no_literal_remains_in_a_template(digits in "[0-9]{5,9}", letters in "[a-z]{9,12}") {
            let text = format!("select {digits}, '{letters}', -{digits}.{digits} from t where a in ({digits}, '{letters}')");
            let found = template(&text);
            prop_assert!(!found.contains(&digits) && !found.contains(&letters), "{}", found);
        }

        #[test]
        fn any_bytes_have_a_template(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            Statement::of(&bytes);
        }

        #[test]
        fn brackets_in_any_order_have_a_template(text in "(values|in|array|[(),;?1a ]|\\[|\\]){0,40}") {
            Statement::of(text.as_bytes());
        }
    }
}

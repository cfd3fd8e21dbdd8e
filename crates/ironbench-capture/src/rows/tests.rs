use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};
use arrow::ffi_stream::RecordBatchStreamReader;

use super::*;

/// The fields of a row that tests need.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    session: u32,
    transaction: u64,
    text: String,
    prepared: Option<String>,
    parameters: Option<Vec<Option<String>>>,
    duration_us: Option<i64>,
    error: Option<String>,
    obstacle: Option<String>,
    at_us: i64,
}

fn rows_of(logs: &Logs) -> (Vec<Row>, Summary) {
    let progress = Arc::new(Progress::default());
    let reader = RecordBatchStreamReader::try_new(open(logs, Arc::clone(&progress)).unwrap().stream()).unwrap();
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let text = |name: &str, row: usize| {
            let values = column(name).as_string::<i32>();
            values.is_valid(row).then(|| values.value(row).to_owned())
        };
        for row in 0..batch.num_rows() {
            let parameters = column("parameters").as_list::<i32>();
            let list = parameters.is_valid(row).then(|| {
                let values = parameters.value(row);
                values.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect()
            });
            let durations = column("duration_us").as_primitive::<Int64Type>();
            rows.push(Row {
                session: column("session").as_primitive::<UInt32Type>().value(row),
                transaction: column("transaction").as_primitive::<UInt64Type>().value(row),
                text: text("text", row).unwrap(),
                prepared: text("prepared", row),
                parameters: list,
                duration_us: durations.is_valid(row).then(|| durations.value(row)),
                error: text("error", row),
                obstacle: text("obstacle", row),
                at_us: column("at_us").as_primitive::<Int64Type>().value(row),
            });
        }
    }
    (rows, std::mem::take(&mut *progress.summary.lock().unwrap()))
}

fn sample(suffix: &str) -> LogFile {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pglog");
    LogFile { path: data.join(format!("all-statements.{suffix}")), named: true }
}

/// A log in a temporary file, which is deleted when this value is dropped.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, text: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("ironbench-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn logs(&self) -> Logs {
        Logs { files: vec![LogFile { path: self.0.clone(), named: true }], prefix: None, mask: false }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns an entry of a csvlog of PostgreSQL 18.
fn csv(second: u32, session: u32, line: u32, state: &str, message: &str, detail: &str) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    format!(
        "2026-11-28 17:{:02}:{:02}.000 UTC,\"app\",\"shop\",{session},\"[local]\",6b0b1484.{session:x},{line},{},\
         2026-11-28 17:00:00 UTC,3/{line},0,LOG,00000,{},{},,,,,,,,\"web\",\"client backend\",,0\n",
        second / 60,
        second % 60,
        quoted(state),
        quoted(message),
        quoted(detail),
    )
}

#[test]
fn the_three_formats_contain_the_same_statements() {
    let (of_csv, summary) = rows_of(&Logs { files: vec![sample("csv")], prefix: None, mask: false });
    let (of_json, _) = rows_of(&Logs { files: vec![sample("json")], prefix: None, mask: false });
    let prefix = Some("%m [%p] %q%u@%d %a ".to_owned());
    let (of_stderr, _) = rows_of(&Logs { files: vec![sample("log")], prefix, mask: false });
    // The files list the entries of different sessions in different orders.
    let by_session = |rows: &[Row]| {
        let mut rows: Vec<Row> = rows.iter().map(|row| Row { transaction: 0, ..row.clone() }).collect();
        rows.sort_by_key(|row| row.session);
        rows
    };
    assert_eq!(by_session(&of_csv), by_session(&of_json));
    let without_errors = |rows: &[Row]| -> Vec<Row> {
        by_session(rows).into_iter().map(|row| Row { error: row.error.map(|_| String::new()), ..row }).collect()
    };
    assert_eq!(without_errors(&of_csv), without_errors(&of_stderr));
    assert_eq!((summary.files, summary.sessions, summary.errors), (1, 6, 2));
    assert_eq!(summary.statements, of_csv.len() as u64);
    let of_error: Vec<_> = of_csv.iter().filter(|row| row.error.is_some()).map(|row| row.text.as_str()).collect();
    assert_eq!(of_error, ["select 1/0", "select nosuch;"]);
    let insert = of_csv.iter().find(|row| row.session == 2 && row.text.starts_with("INSERT INTO sale")).unwrap();
    assert_eq!(insert.prepared.as_deref(), Some("P_2"));
    assert_eq!(insert.parameters, Some(vec![Some("9".to_owned())]));
    // The first statement took 60 µs for Bind and 547 µs for Execute. The Parse of a named statement does not count.
    assert!(insert.duration_us.is_some_and(|micros| micros > 60));
    let obstacles: Vec<_> = of_csv.iter().filter_map(|row| row.obstacle.as_deref()).collect();
    assert_eq!(obstacles, ["copy", "listen"]);
}

#[test]
fn a_block_is_one_transaction_and_statements_outside_have_their_own() {
    let texts = ["begin", "select 1", "savepoint a", "rollback to a", "commit", "select 2", "select 3"];
    let log: String =
        (1..).zip(texts).map(|(line, text)| csv(line, 7, line, "idle", &format!("statement: {text}"), "")).collect();
    let log = log.replacen("\"idle\"", "\"\"", 5);
    let (rows, summary) = rows_of(&Written::new("block.csv", log.as_bytes()).logs());
    let transactions: Vec<u64> = rows.iter().map(|row| row.transaction).collect();
    assert_eq!(transactions, [1, 1, 1, 1, 1, 2, 3]);
    assert_eq!((summary.transactions, summary.with_duration), (3, 0));
}

#[test]
fn a_transaction_that_began_before_the_log_is_marked() {
    let log = csv(1, 7, 1, "idle in transaction", "statement: update t set a = 1", "")
        + &csv(2, 7, 2, "idle in transaction", "statement: commit", "")
        + &csv(3, 7, 3, "idle", "statement: select 1", "");
    let (rows, _) = rows_of(&Written::new("begun.csv", log.as_bytes()).logs());
    let obstacles: Vec<_> = rows.iter().map(|row| row.obstacle.as_deref()).collect();
    assert_eq!(obstacles, [Some("begun-before"), Some("begun-before"), None]);
}

#[test]
fn a_damaged_log_is_read_as_far_as_possible() {
    let whole = csv(1, 7, 1, "idle", "statement: select 'a\nb'", "") + &csv(2, 7, 2, "idle", "statement: select 2", "");
    let mut log = b"tail of an entry\", nonsense\n".to_vec();
    log.extend_from_slice(whole.as_bytes());
    log.extend_from_slice(
        &csv(3, 7, 3, "idle", "statement: select '\u{1}'", "")
            .into_bytes()
            .iter()
            .map(|byte| if *byte == 1 { 0xff } else { *byte })
            .collect::<Vec<_>>(),
    );
    log.extend_from_slice(&csv(4, 7, 4, "idle", "statement: cut", "").as_bytes()[..60]);
    let (rows, summary) = rows_of(&Written::new("damaged.csv", &log).logs());
    let texts: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(texts, ["select 'a\nb'", "select 2", "select '\u{fffd}'"]);
    assert_eq!(rows[2].obstacle.as_deref(), Some("encoding"));
    assert_eq!((summary.unreadable, summary.truncated), (1, 1));
}

#[test]
fn time_continues_when_the_clock_steps_back() {
    let log = csv(100, 7, 1, "idle", "statement: select 1", "")
        + &csv(40, 7, 2, "idle", "statement: select 2", "")
        + &csv(45, 7, 3, "idle", "statement: select 3", "");
    let (rows, summary) = rows_of(&Written::new("jump.csv", log.as_bytes()).logs());
    let since: Vec<i64> = rows.iter().map(|row| (row.at_us - rows[0].at_us) / 1_000_000).collect();
    assert_eq!((since, summary.jumps), (vec![0, 0, 5], 1));
}

#[test]
fn versions_with_fewer_columns_are_read_and_a_repeated_file_counts_once() {
    let new = csv(1, 7, 1, "idle", "statement: select 1", "");
    let old = csv(2, 7, 2, "idle", "statement: select 2", "").replace(",\"client backend\",,0", "");
    let both = Written::new("both.csv", (new.clone() + &old + &new).as_bytes());
    let (rows, summary) = rows_of(&both.logs());
    assert_eq!((rows.len(), summary.repeated), (2, 1));
}

#[test]
fn parameters_may_be_missing_or_cut() {
    let bound = |line: u32, value: &str| {
        csv(line, 7, line, "SELECT", "execute <unnamed>: select $1", &format!("Parameters: $1 = '{value}'"))
    };
    let log = bound(1, "abcd") + &bound(2, "abcde...") + &csv(3, 7, 3, "SELECT", "execute <unnamed>: select $1", "");
    let (rows, summary) = rows_of(&Written::new("cut.csv", log.as_bytes()).logs());
    assert_eq!(rows[2].obstacle.as_deref(), Some("no-parameters"));
    assert_eq!(summary.cut_at, 5);
    let (_, summary) =
        rows_of(&Written::new("whole.csv", (bound(1, "abcdefghi") + &bound(2, "abc...")).as_bytes()).logs());
    assert_eq!(summary.cut_at, 0);
}

#[test]
fn a_mask_keeps_joins_and_no_literal() {
    let log = csv(1, 7, 1, "idle", "statement: select * from person where name = 'Secretname' and id = 471147", "")
        + &csv(2, 7, 2, "SELECT", "execute a: select $1", "Parameters: $1 = 'Secretname', $2 = '471147'")
        + &csv(3, 7, 3, "idle", "statement: alter role x password 'hunter2hunter2'", "");
    let written = Written::new("mask.csv", log.as_bytes());
    let (rows, _) = rows_of(&Logs { mask: true, ..written.logs() });
    let whole = format!("{rows:?}");
    for literal in ["Secretname", "471147", "hunter2"] {
        assert!(!whole.contains(literal), "{whole}");
    }
    let parameters = rows[1].parameters.clone().unwrap();
    for value in parameters.iter().flatten() {
        assert!(rows[0].text.contains(value.as_str()), "{} in {}", value, rows[0].text);
    }
    let (rows, _) = rows_of(&written.logs());
    assert!(!format!("{rows:?}").contains("hunter2"));
}

#[test]
fn two_formats_of_one_log_are_refused_unless_a_directory_contains_both() {
    let both = |named| {
        let files = [sample("csv"), sample("json")].map(|file| LogFile { named, ..file }).to_vec();
        open(&Logs { files, prefix: None, mask: false }, Arc::default())
    };
    assert!(both(true).err().unwrap().cause.contains("another format (jsonlog) than the rest (csvlog)"));
    assert!(both(false).is_ok());
    let log = open(&Logs { files: vec![sample("log")], prefix: None, mask: false }, Arc::default());
    assert!(log.err().unwrap().hint.contains("--prefix"));
}

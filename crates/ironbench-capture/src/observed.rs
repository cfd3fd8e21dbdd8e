//! Statements that a proxy has observed, as rows of a capture.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::AsArray;
pub use arrow::array::RecordBatch;
use arrow::datatypes::UInt64Type;
use arrow::error::ArrowError;
use arrow::ffi_stream::FFI_ArrowArrayStream;
use arrow::record_batch::RecordBatchIterator;
use ironbench_core::{Error, Result};

use crate::mask::Mask;
use crate::rows::{Builder, schema};
pub use crate::scan::Dialect;
pub use crate::sessions::SessionNames;
use crate::sessions::{Executed, Handler, Parameters};
use crate::statement::Control;
pub use crate::statement::Obstacle;

/// A statement that has ended.
#[derive(Debug)]
pub struct Observed {
    pub session: u32,
    /// Time at which the proxy received the statement, in microseconds since 1970.
    pub at_us: i64,
    pub text: Arc<[u8]>,
    /// Name of the prepared statement: empty for the unnamed statement, and None for the simple protocol.
    pub prepared: Option<Arc<[u8]>>,
    pub values: Vec<Option<Vec<u8>>>,
    /// Types of the parameters, as in [`Executed`].
    pub types: Vec<u8>,
    /// Duration, or None if it is unknown.
    pub duration_us: Option<u64>,
    /// Number of rows that the statement returned or changed, or None if it is unknown.
    pub rows: Option<u64>,
    /// Key that the statement generated, or None if it is unknown.
    pub generated: Option<u64>,
    /// SQLSTATE of the error that ended the statement.
    pub error: Option<[u8; 5]>,
    pub obstacle: Option<Obstacle>,
    /// Number of the request within the session. A request is a query of the simple protocol, or all messages up to a
    /// Sync.
    pub request: u32,
    /// Whether a transaction block was open before the request.
    pub in_block: bool,
    /// Whether a transaction block is open after the request. Only the last statement of the request has this value.
    pub leaves_block: Option<bool>,
    /// Whether statements of the session before this one are missing.
    pub after_gap: bool,
    pub names: Arc<SessionNames>,
}

/// Something that happened in a session.
#[derive(Debug)]
pub enum Event {
    Statement(Box<Observed>),
    Ended(u32),
}

impl Event {
    /// Returns the approximate number of bytes in memory.
    pub fn size(&self) -> usize {
        match self {
            Self::Ended(_) => 16,
            Self::Statement(one) => {
                // The text of a prepared statement is shared. The size of the text still counts, because this may be
                // the last reference to it.
                let values: usize = one.values.iter().flatten().map(|value| value.len() + 24).sum();
                size_of::<Observed>() + one.text.len() + values
            }
        }
    }
}

#[derive(Debug, Default)]
struct Session {
    /// Number of the current transaction, or 0 if there is none.
    transaction: u64,
    in_block: bool,
    request: u32,
    /// Whether statements of the current transaction could not be stored.
    is_incomplete: bool,
    /// Whether a statement outside a block begins one, because autocommit is off.
    begins_by_itself: bool,
}

/// Assigns statements to transactions, and collects them into batches with the columns of a capture.
pub struct Collector {
    builder: Builder,
    sessions: HashMap<u32, Session>,
    transactions: u64,
    /// Number of transactions before the current batch. The next field is the number before the first of the batches
    /// that were lost in a row.
    before_batch: u64,
    before_loss: Option<u64>,
    was_lost: bool,
}

impl Collector {
    /// # Errors
    /// Failure: the system has no random numbers for the key of the mask.
    pub fn new(mask: bool, dialect: Dialect) -> Result<Self> {
        let key = |error: std::io::Error| Error::failure("key of the mask", error.to_string());
        let mask = if mask { Some(Mask::new(dialect).map_err(key)?) } else { None };
        Ok(Self {
            builder: Builder::new(mask, dialect),
            sessions: HashMap::new(),
            transactions: 0,
            before_batch: 0,
            before_loss: None,
            was_lost: false,
        })
    }

    pub fn is_full(&self) -> bool {
        self.builder.is_full()
    }

    /// Returns the statements collected since the last call. Returns None if there are none.
    pub fn batch(&mut self) -> Option<RecordBatch> {
        if !std::mem::take(&mut self.was_lost) {
            self.before_loss = None;
        }
        self.builder.batch()
    }

    /// Notes that the last batch could not be stored. Must be called before further statements are added. Returns the
    /// transactions that are incomplete, because an earlier batch contains some of their statements.
    pub fn lose(&mut self, batch: &RecordBatch) -> Vec<u64> {
        self.was_lost = true;
        let before = *self.before_loss.get_or_insert(self.before_batch);
        for session in self.sessions.values_mut() {
            session.is_incomplete |= session.in_block;
        }
        let transactions = batch.column_by_name("transaction").map(|column| column.as_primitive::<UInt64Type>());
        let known = transactions.into_iter().flat_map(|column| column.values().iter().copied());
        let mut known: Vec<u64> = known.filter(|transaction| *transaction <= before).collect();
        known.sort_unstable();
        known.dedup();
        known
    }

    pub fn add(&mut self, event: Event) {
        match event {
            Event::Statement(observed) => self.statement(*observed),
            Event::Ended(session) => drop(self.sessions.remove(&session)),
        }
    }

    fn statement(&mut self, one: Observed) {
        if self.builder.is_empty() {
            self.before_batch = self.transactions;
        }
        let analysis = self.builder.analyse(&one.text);
        let session = self.sessions.entry(one.session).or_default();
        let mut obstacle = one.obstacle;
        // The missing statements may have ended a transaction or not. The transactions before and after the gap are
        // therefore counted as one incomplete transaction.
        let is_cut = one.after_gap && (session.in_block || one.in_block);
        if is_cut {
            session.in_block = true;
        }
        if is_cut || std::mem::take(&mut session.is_incomplete) {
            obstacle = Some(Obstacle::Gap);
        }
        // Statements of a pipeline share an implicit transaction until its Sync.
        let shares =
            one.prepared.is_some() && session.request == one.request && analysis.control == Control::None && !is_cut;
        if session.transaction == 0 || !session.in_block && !shares {
            self.transactions += 1;
            session.transaction = self.transactions;
        }
        if analysis.control == Control::Restarts && session.in_block && one.error.is_none() {
            self.transactions += 1;
            session.transaction = self.transactions;
        }
        session.request = one.request;
        let transaction = session.transaction;
        match analysis.control {
            Control::Restarts if one.error.is_none() => session.in_block = true,
            Control::Autocommit(on) if one.error.is_none() => {
                session.begins_by_itself = !on;
                if on {
                    (session.in_block, session.transaction) = (false, 0);
                }
            }
            Control::Begins if one.error.is_none() => session.in_block = true,
            Control::Ends => (session.in_block, session.transaction) = (false, 0),
            Control::Chains => (session.in_block, session.transaction) = (true, 0),
            Control::None if session.begins_by_itself => session.in_block = true,
            Control::Begins | Control::None | Control::Restarts | Control::Autocommit(_) => {}
        }
        match one.leaves_block {
            Some(true) => session.in_block = true,
            Some(false) => (session.in_block, session.transaction) = (false, 0),
            None => {}
        }
        self.builder.take(Executed {
            session: one.session,
            transaction,
            at_us: one.at_us,
            analysis,
            prepared: one.prepared.map(|name| name.to_vec()),
            parameters: Parameters::Sent(one.values),
            duration_us: one.duration_us,
            error: one.error.map(Vec::from).unwrap_or_default(),
            rows: one.rows,
            types: one.types,
            generated: one.generated,
            obstacle,
            names: one.names,
            ..Executed::default()
        });
    }
}

/// Returns a batch as an Arrow stream.
pub fn stream(batch: RecordBatch) -> FFI_ArrowArrayStream {
    let batches = [Ok::<_, ArrowError>(batch)].into_iter();
    FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema())))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Int64Type;

    use super::*;

    fn statement(text: &str, request: u32, leaves_block: Option<bool>) -> Observed {
        Observed {
            session: 1,
            at_us: 0,
            text: text.as_bytes().into(),
            prepared: Some(Arc::from(&b""[..])),
            values: Vec::new(),
            types: Vec::new(),
            duration_us: Some(1),
            rows: Some(2),
            generated: None,
            error: None,
            obstacle: None,
            request,
            in_block: false,
            leaves_block,
            after_gap: false,
            names: Arc::default(),
        }
    }

    /// Returns the transaction and the obstacle of each statement.
    fn collected(statements: Vec<Observed>) -> Vec<(u64, Option<String>)> {
        let mut collector = Collector::new(false, Dialect::Postgres).unwrap();
        for one in statements {
            collector.add(Event::Statement(Box::new(one)));
        }
        let batch = collector.batch().unwrap();
        let transactions = batch.column_by_name("transaction").unwrap().as_primitive::<UInt64Type>().clone();
        let obstacles = batch.column_by_name("obstacle").unwrap().as_string::<i32>().clone();
        transactions.values().iter().copied().zip(obstacles.iter().map(|one| one.map(str::to_owned))).collect()
    }

    fn transactions(statements: Vec<Observed>) -> Vec<u64> {
        collected(statements).into_iter().map(|(transaction, _)| transaction).collect()
    }

    #[test]
    fn requests_outside_a_block_are_transactions() {
        let alone = |request| statement("select 1", request, Some(false));
        assert_eq!(transactions(vec![alone(1), alone(2)]), [1, 2]);
    }

    #[test]
    fn a_pipeline_is_one_transaction_unless_its_statements_end_it() {
        let pipelined = |text| statement(text, 1, None);
        let last = statement("select 3", 1, Some(false));
        assert_eq!(transactions(vec![pipelined("select 1"), pipelined("select 2"), last]), [1, 1, 1]);
        let last = statement("select 3", 1, Some(false));
        assert_eq!(transactions(vec![pipelined("begin"), pipelined("commit"), last]), [1, 1, 2]);
    }

    #[test]
    fn the_servers_state_decides_where_a_block_ends() {
        let block = vec![
            statement("begin", 1, Some(true)),
            statement("select f()", 2, Some(true)),
            // A procedure may end the block.
            statement("call p()", 3, Some(false)),
            statement("select 1", 4, Some(false)),
        ];
        assert_eq!(transactions(block), [1, 1, 1, 2]);
    }

    #[test]
    fn without_the_servers_state_the_statements_of_mysql_decide_where_a_transaction_ends() {
        let mut collector = Collector::new(false, Dialect::Mysql).unwrap();
        let texts = [
            ("begin", 1),
            ("insert into t values (1)", 1),
            ("begin", 2),
            ("update t set a = 1", 2),
            ("create table u (a int)", 2),
            ("select 1", 3),
            ("set autocommit = 0", 4),
            ("insert into t values (2)", 5),
            ("select 2", 5),
            ("commit", 5),
            ("select 3", 6),
            ("set autocommit = 1", 6),
            ("select 4", 7),
        ];
        for (number, (text, _)) in texts.into_iter().enumerate() {
            let one = Observed { prepared: None, ..statement(text, number as u32 + 1, None) };
            collector.add(Event::Statement(Box::new(one)));
        }
        let batch = collector.batch().unwrap();
        let found = batch.column_by_name("transaction").unwrap().as_primitive::<UInt64Type>().clone();
        assert_eq!(found.values().to_vec(), texts.map(|(_, transaction)| transaction));
    }

    #[test]
    fn both_sides_of_a_gap_are_one_incomplete_transaction() {
        let cut = Observed { after_gap: true, in_block: true, ..statement("update t set a = 1", 9, Some(true)) };
        let found = collected(vec![
            statement("begin", 1, Some(true)),
            cut,
            statement("commit", 10, Some(false)),
            Observed { after_gap: true, ..statement("select 1", 20, Some(false)) },
        ]);
        let gap = Some("gap".to_owned());
        assert_eq!(found, [(1, None), (1, gap), (1, None), (2, None)]);
    }

    #[test]
    fn transactions_with_statements_in_a_lost_batch_are_incomplete() {
        let add = |collector: &mut Collector, one| collector.add(Event::Statement(Box::new(one)));
        let mut collector = Collector::new(false, Dialect::Postgres).unwrap();
        add(&mut collector, statement("begin", 1, Some(true)));
        let stored = collector.batch().unwrap();
        add(&mut collector, statement("select 1", 2, Some(true)));
        let lost = collector.batch().unwrap();
        assert_eq!(collector.lose(&lost), [1]);
        add(&mut collector, statement("select 2", 3, Some(true)));
        let after = collector.batch().unwrap();
        let obstacle = |batch: &RecordBatch| {
            let obstacles = batch.column_by_name("obstacle").unwrap().as_string::<i32>().clone();
            obstacles.iter().map(|one| one.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!((obstacle(&stored), obstacle(&after)), (vec![None], vec![Some("gap".to_owned())]));
        add(&mut collector, statement("commit", 4, Some(false)));
        add(&mut collector, statement("select 3", 5, Some(false)));
        let lost = collector.batch().unwrap();
        assert_eq!(collector.lose(&lost), [1], "the transaction of `select 3` began in the lost batch");
    }

    #[test]
    fn rows_and_null_parameters_are_kept() {
        let mut collector = Collector::new(false, Dialect::Postgres).unwrap();
        let values = vec![Some(b"it's".to_vec()), None];
        collector.add(Event::Statement(Box::new(Observed { values, ..statement("select $1, $2", 1, Some(false)) })));
        let batch = collector.batch().unwrap();
        assert_eq!(batch.column_by_name("row_count").unwrap().as_primitive::<Int64Type>().value(0), 2);
        let values = batch.column_by_name("parameters").unwrap().as_list::<i32>().value(0);
        let values: Vec<_> = values.as_string::<i32>().iter().collect();
        assert_eq!(values, [Some("it's"), None]);
        assert!(collector.batch().is_none());
    }
}

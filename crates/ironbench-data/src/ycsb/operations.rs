//! The operations of a trial. Each chooses its script, its record and its values.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ironbench_core::drive::jobs::{Jobs, Next, Role};
use ironbench_core::drive::plan::Part;
use ironbench_core::{Error, Result};
use pgbench_script::{Given, Program, Random, Slot, Value, Variables};
use serde::Deserialize;

use super::numbers::{Inserted, RecordChooser};
use super::{COLUMNS, Distribution, Layout, MAX_FIELDS, Ycsb, write_key, write_value};
use crate::Generator;
use crate::row_rng::mix;

/// Options of the operations, as given in the plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The generator of the loaded records.
    pub data: Generator,
    pub distribution: Distribution,
    /// Number of the first inserted record. This number and all larger ones are unused.
    pub first_insert: u64,
    /// Maximum number of records that a scan returns.
    pub max_scan: u64,
    /// Whether an update writes all fields instead of a random one.
    pub write_all_fields: bool,
    /// Whether texts are quoted, because the protocol replaces variables by their text.
    pub quoted: bool,
}

/// A kind of operation. Each kind has a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        match name {
            "read" => Some(Self::Read),
            "update" => Some(Self::Update),
            "insert" => Some(Self::Insert),
            "scan" => Some(Self::Scan),
            "read_modify_write" => Some(Self::ReadModifyWrite),
            _ => None,
        }
    }
}

/// The source of the operations of all clients of one drive. In a trial in parts, each part inserts different records.
/// Each part chooses only among the loaded records and the records that it has inserted itself.
pub struct Operations {
    ycsb: Ycsb,
    options: Options,
    seed: u64,
    part: Part,
    /// Kind and weight of each script.
    scripts: OnceLock<Vec<(Kind, u64)>>,
    next_insert: AtomicU64,
    inserted: Inserted,
    /// Number of reads that did not return the requested record.
    missed: AtomicU64,
}

impl Operations {
    /// Creates the source of operations.
    ///
    /// # Errors
    /// Input: the options are invalid.
    pub fn new(options: Options, part: Part, seed: u64) -> Result<Self> {
        let Generator::Ycsb(ycsb) = options.data.clone() else {
            return Err(Error::input("data of the operations", "are not YCSB data"));
        };
        let fields = 1..=MAX_FIELDS;
        if ycsb.records == 0 || !fields.contains(&ycsb.fields) || ycsb.field_length == 0 || options.max_scan == 0 {
            return Err(Error::input("operations of YCSB", "a number or a length is out of range"));
        }
        if options.first_insert < ycsb.records {
            return Err(Error::input("operations of YCSB", "the first inserted record exists"));
        }
        let next_insert = AtomicU64::new(options.first_insert + part.number as u64);
        let (scripts, inserted, missed) = (OnceLock::new(), Inserted::default(), AtomicU64::new(0));
        Ok(Self { ycsb, options, seed, part, scripts, next_insert, inserted, missed })
    }

    fn scripts(&self) -> &[(Kind, u64)] {
        self.scripts.get().expect("the scripts were checked")
    }

    /// Returns the number of the next inserted record.
    fn next_insert(&self) -> u64 {
        self.next_insert.fetch_add(self.part.of as u64, Relaxed)
    }
}

impl Jobs for Operations {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    /// Returns no names. The plan names the variables, because their number depends on the number of fields.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    fn waiting_clients(&self) -> usize {
        0
    }

    fn check(&self, program: &Program) -> Result<()> {
        let kind = |name: &str| {
            Kind::of(name).ok_or_else(|| Error::input(format!("script {name}"), "is not an operation of YCSB"))
        };
        let scripts: Result<Vec<_>> =
            program.scripts.iter().map(|script| Ok((kind(&script.name)?, u64::from(script.weight)))).collect();
        let scripts = scripts?;
        self.scripts.get_or_init(|| scripts);
        Ok(())
    }

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a> {
        Box::new(Client::new(self, program, client))
    }

    fn figures(&self) -> BTreeMap<String, f64> {
        [("ycsb_reads_missed".to_owned(), self.missed.load(Relaxed) as f64)].into()
    }
}

/// The variables of the scripts. A variable is None if the plan does not define it.
struct Slots {
    key: Option<Slot>,
    /// The key that a read returned.
    found: Option<Slot>,
    /// Number of the field that an operation uses. `name` is the name of the same field.
    field: Option<Slot>,
    name: Option<Slot>,
    value: Option<Slot>,
    /// Number of records of a scan.
    rows: Option<Slot>,
    document: Option<Slot>,
    values: Vec<Option<Slot>>,
}

impl Slots {
    fn of(program: &Program, fields: u64) -> Self {
        let slot = |name: &str| program.symbols.get(name);
        Self {
            key: slot("key"),
            found: slot("found"),
            field: slot("field"),
            name: slot("name"),
            value: slot("value"),
            rows: slot("rows"),
            document: slot("document"),
            values: (0..fields).map(|number| slot(&format!("value{number}"))).collect(),
        }
    }
}

/// The state of one client: its random numbers, and its operation in progress.
struct Client<'a> {
    operations: &'a Operations,
    slots: Slots,
    random: Random,
    numbers: RecordChooser,
    kind: Kind,
    number: u64,
    key: String,
    text: String,
}

impl<'a> Client<'a> {
    fn new(operations: &'a Operations, program: &Program, client: usize) -> Self {
        let Operations { ycsb, options, seed, part, .. } = operations;
        let grows = operations.scripts().iter().any(|(kind, weight)| *kind == Kind::Insert && *weight > 0);
        Self {
            slots: Slots::of(program, ycsb.fields),
            random: Random::new(mix(seed ^ mix((part.first_client + client) as u64))),
            numbers: RecordChooser::new(options.distribution, ycsb.records, grows),
            operations,
            kind: Kind::Read,
            number: 0,
            key: String::new(),
            text: String::new(),
        }
    }

    /// Chooses a script by its weight.
    fn choose(&mut self) -> (usize, Kind) {
        let scripts = self.operations.scripts();
        let total: u64 = scripts.iter().map(|(_, weight)| weight).sum();
        let mut drawn = self.random.up_to(total - 1);
        for (script, (kind, weight)) in scripts.iter().enumerate() {
            if drawn < *weight {
                return (script, *kind);
            }
            drawn -= weight;
        }
        unreachable!("a number below the sum of the weights is within one of them")
    }

    /// Sets a variable to the text that `write` appends to a buffer.
    fn set(&mut self, slot: Option<Slot>, variables: &mut Variables, write: impl FnOnce(&mut Self)) {
        self.text.clear();
        let quoted = self.operations.options.quoted;
        if quoted {
            self.text.push('\'');
        }
        write(self);
        if quoted {
            self.text.push('\'');
        }
        if let Some(slot) = slot {
            variables.set_text(slot, self.text.as_bytes());
        }
    }

    fn set_value(&mut self, slot: Option<Slot>, variables: &mut Variables) {
        let length = self.operations.ycsb.field_length;
        self.set(slot, variables, |client| write_value(length, &mut client.text, || client.random.next_u64()));
    }

    fn set_all_values(&mut self, variables: &mut Variables) {
        match self.operations.ycsb.layout {
            Layout::Columns => {
                for place in 0..self.slots.values.len() {
                    self.set_value(self.slots.values[place], variables);
                }
            }
            Layout::Json => self.set(self.slots.document, variables, |client| {
                client.operations.ycsb.write_document(&mut client.text, || client.random.next_u64());
            }),
        }
    }

    fn set_field(&mut self, variables: &mut Variables) {
        let field = self.random.up_to(self.operations.ycsb.fields - 1);
        number(self.slots.field, field, variables);
        self.set(self.slots.name, variables, |client| client.text.push_str(COLUMNS[1 + field as usize]));
    }

    fn set_changes(&mut self, variables: &mut Variables) {
        if self.operations.options.write_all_fields {
            self.set_all_values(variables);
        } else {
            self.set_value(self.slots.value, variables);
        }
    }
}

fn number(slot: Option<Slot>, value: u64, variables: &mut Variables) {
    if let Some(slot) = slot {
        variables.set(slot, Value::Integer(value as i64));
    }
}

impl Role for Client<'_> {
    fn job_queue(&self) -> Option<usize> {
        None
    }

    fn next(&mut self, now: u64, variables: &mut Variables) -> Next {
        let (script, kind) = self.choose();
        self.kind = kind;
        self.number = match kind {
            Kind::Insert => self.operations.next_insert(),
            _ => self.numbers.draw(&self.operations.inserted, &mut self.random),
        };
        self.key.clear();
        write_key(self.number, &mut self.key);
        self.set(self.slots.key, variables, |client| client.text.push_str(&client.key));
        match kind {
            Kind::Read => self.set_field(variables),
            Kind::Update | Kind::ReadModifyWrite => {
                self.set_field(variables);
                self.set_changes(variables);
            }
            Kind::Insert => self.set_all_values(variables),
            Kind::Scan => {
                self.set_field(variables);
                number(self.slots.rows, 1 + self.random.up_to(self.operations.options.max_scan - 1), variables);
            }
        }
        if let Some(found) = self.slots.found {
            variables.set(found, Value::Null);
        }
        Next::Job { script, due: now }
    }

    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool {
        match self.kind {
            Kind::Insert if well => self.operations.inserted.add(self.number),
            Kind::Read | Kind::ReadModifyWrite if well => {
                let found = self.slots.found.and_then(|slot| variables.held(slot));
                let missed = found != Some(Given::Text(self.key.as_bytes()));
                self.operations.missed.fetch_add(u64::from(missed), Relaxed);
            }
            _ => {}
        }
        false
    }
}

//! The analysis of a statement's text. Applications send the same texts repeatedly. Therefore the analyses of recent
//! texts are cached.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use crate::mask::Mask;
use crate::scan::Dialect;
use crate::secrets::{without_mysql_passwords, without_passwords};
use crate::statement::{Control, Obstacle, Statement};

/// The text of a statement, and what the statement does.
#[derive(Debug)]
pub struct Analysis {
    /// The text without passwords, masked if the capture must not contain literals.
    pub text: String,
    pub template: String,
    pub verb: String,
    pub writes: bool,
    pub control: Control,
    pub obstacle: Option<Obstacle>,
    /// Highest parameter number in the text.
    pub parameters: usize,
    /// Numbers of the parameters whose values masking does not change.
    pub unmasked: Vec<usize>,
}

impl Default for Analysis {
    fn default() -> Self {
        Self::of(b"", None, Dialect::default())
    }
}

impl Analysis {
    pub fn of(text: &[u8], mask: Option<&Mask>, dialect: Dialect) -> Self {
        let harmless = match dialect {
            Dialect::Postgres => without_passwords(text),
            Dialect::Mysql => without_mysql_passwords(text),
        };
        let Statement { template, verb, writes, control, obstacle, parameters } = Statement::in_dialect(text, dialect);
        let decoded = String::from_utf8_lossy(harmless.as_deref().unwrap_or(text));
        let obstacle = match obstacle {
            // The conversion above and the reader of JSON logs replace invalid bytes with U+FFFD. This character
            // therefore means that the text was not valid UTF-8.
            _ if decoded.contains(char::REPLACEMENT_CHARACTER) => Some(Obstacle::Encoding),
            None if harmless.is_some() => Some(Obstacle::Password),
            known => known,
        };
        // PostgreSQL and Parquet do not accept the zero byte in a text.
        let decoded = if decoded.contains('\0') { decoded.replace('\0', " ") } else { decoded.into_owned() };
        let (text, unmasked) = match mask {
            Some(mask) => mask.statement(&decoded),
            None => (decoded, Vec::new()),
        };
        Self { text, template, verb, writes, control, obstacle, parameters, unmasked }
    }
}

const SLOTS: usize = 4096;
/// Maximum length of a text whose analysis is kept, in bytes.
const LONGEST: usize = 16_384;

/// A text, as logged, and its analysis.
type Slot = Option<(Box<[u8]>, Arc<Analysis>)>;

/// A cache of recent analyses.
pub struct Analyses {
    dialect: Dialect,
    slots: Vec<Slot>,
    hashing: BuildHasherDefault<DefaultHasher>,
}

impl Analyses {
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, slots: vec![None; SLOTS], hashing: BuildHasherDefault::default() }
    }

    pub fn of(&mut self, text: &[u8], mask: Option<&Mask>) -> Arc<Analysis> {
        let slot = self.hashing.hash_one(text) as usize % SLOTS;
        if let Some((known, analysis)) = &self.slots[slot]
            && **known == *text
        {
            return Arc::clone(analysis);
        }
        let analysis = Arc::new(Analysis::of(text, mask, self.dialect));
        if text.len() <= LONGEST {
            self.slots[slot] = Some((text.into(), Arc::clone(&analysis)));
        }
        analysis
    }
}

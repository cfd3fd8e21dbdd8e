//! The prepared statements of a session, with their parameter types and values.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use ironbench_capture::observed::Obstacle;

use super::values;
use crate::framing::beginning;

/// Maximum number of bytes of the texts of all sessions' prepared statements.
const MAX_PREPARED_BYTES: usize = 256 << 20;

static PREPARED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A prepared statement, and the types of its parameters.
#[derive(Debug)]
pub struct Prepared {
    pub text: Arc<[u8]>,
    /// Types that the client declared. With 0, the server determines the type.
    declared: Box<[u32]>,
    /// All types, if the client has asked the server for them.
    pub described: OnceLock<Box<[u32]>>,
    /// Whether only the beginning of the text is kept.
    pub is_cut: bool,
    /// Number of bytes by which this statement increases `PREPARED_BYTES`.
    counted_bytes: usize,
}

impl Prepared {
    pub fn new(text: &[u8], declared: Box<[u32]>, is_cut: bool) -> Self {
        let is_cut = is_cut || PREPARED_BYTES.load(Relaxed) + text.len() > MAX_PREPARED_BYTES;
        let text: Arc<[u8]> = if is_cut { beginning(text) } else { text }.into();
        PREPARED_BYTES.fetch_add(text.len(), Relaxed);
        Self { declared, described: OnceLock::new(), is_cut, counted_bytes: text.len(), text }
    }

    /// Returns the OID of a parameter's type. Returns 0 if the type is unknown.
    fn parameter_type(&self, index: usize) -> u32 {
        let known = self.described.get().and_then(|types| types.get(index));
        known.or_else(|| self.declared.get(index)).copied().unwrap_or(0)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        PREPARED_BYTES.fetch_sub(self.counted_bytes, Relaxed);
    }
}

/// Parses a list of types, which begins with their number.
pub fn types(body: &[u8]) -> Box<[u32]> {
    let rest = body.get(2..).unwrap_or_default();
    rest.as_chunks::<4>().0.iter().map(|oid| u32::from_be_bytes(*oid)).collect()
}

/// The values of a Bind as text, and why the statement cannot be replayed if a value has no text form.
type BoundValues = (Vec<Option<Vec<u8>>>, Option<Obstacle>);

/// Parses the formats and values of a Bind. Returns None if they are damaged.
pub fn bound_values(prepared: &Prepared, rest: &[u8]) -> Option<BoundValues> {
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let (formats, rest) = rest.split_at_checked(2 * usize::from(u16::from_be_bytes(*count)))?;
    let formats = formats.as_chunks::<2>().0;
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    let (mut values, mut obstacle) = (Vec::new(), None);
    for index in 0..usize::from(u16::from_be_bytes(*count)) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        let length = i32::from_be_bytes(*length);
        if length < 0 {
            values.push(None);
            continue;
        }
        let (value, after) = rest.split_at_checked(length as usize)?;
        rest = after;
        let format = if formats.len() == 1 { formats.first() } else { formats.get(index) };
        let is_text = format.is_none_or(|format| *format == [0, 0]);
        let text = if is_text {
            Some(value.to_vec())
        } else {
            values::text(prepared.parameter_type(index), value).map(Vec::from)
        };
        if text.is_none() {
            obstacle = Some(Obstacle::BinaryParameters);
        }
        values.push(Some(text.unwrap_or_default()));
    }
    Some((values, obstacle))
}

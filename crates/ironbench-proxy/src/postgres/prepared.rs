//! The prepared statements of a session, with their parameter types and values.

use std::sync::{Arc, OnceLock};

use ironbench_capture::observed::Obstacle;

use super::values;
use crate::framing::{BEGINNING, beginning};
use crate::reserved::Reserved;

/// A prepared statement, and the types of its parameters.
#[derive(Debug)]
pub struct Prepared {
    pub text: Arc<[u8]>,
    /// Types that the client declared. With 0, the server determines the type.
    declared: Box<[u32]>,
    /// All types, if the client has asked the server for them.
    pub described: OnceLock<(Box<[u32]>, Reserved)>,
    /// Whether only the beginning of the text is kept.
    pub is_cut: bool,
    /// Memory for the text and the declared types.
    #[cfg_attr(not(test), expect(dead_code, reason = "counts until it is dropped"))]
    pub reserved: Reserved,
}

impl Prepared {
    pub fn new(text: &[u8], declared: Box<[u32]>, is_cut: bool) -> Self {
        let whole = if is_cut { None } else { Reserved::new(text.len() + size_of_val(&*declared)) };
        let Some(reserved) = whole else {
            let text = beginning(text).into();
            let reserved = Reserved::beyond_limit(BEGINNING);
            return Self { text, declared: Box::default(), described: OnceLock::new(), is_cut: true, reserved };
        };
        Self { text: text.into(), declared, described: OnceLock::new(), is_cut, reserved }
    }

    /// Notes the types that the server has reported. Does nothing if they would take too much memory.
    pub fn describe(&self, types: Box<[u32]>) {
        if let Some(reserved) = Reserved::new(size_of_val(&*types)) {
            let _ = self.described.set((types, reserved));
        }
    }

    /// Returns the OID of a parameter's type. Returns 0 if the type is unknown.
    fn parameter_type(&self, index: usize) -> u32 {
        let known = self.described.get().and_then(|(types, _)| types.get(index));
        known.or_else(|| self.declared.get(index)).copied().unwrap_or(0)
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

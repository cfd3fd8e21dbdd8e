//! Values in the binary protocol of prepared statements.

use std::io::Write;

use super::Malformed;
use super::backend::{Column, Reader};
use super::frontend;

/// Types of columns and parameters.
pub mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDECIMAL: u8 = 246;
    pub const VAR_STRING: u8 = 253;
}

/// The value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    /// An integer that exceeds the maximum of i64.
    Unsigned(u64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
    Date(Temporal),
    DateTime(Temporal),
    Time(Temporal),
}

/// A point in time, or a time interval. An interval has a `year` and `month` of 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Temporal {
    negative: bool,
    year: u16,
    month: u8,
    day: u32,
    hour: u8,
    minute: u8,
    second: u8,
    micros: u32,
}

/// Parses a row with these columns. Calls `each` with the index and the value of each column.
pub fn row<'a>(body: &'a [u8], columns: &[Column], mut each: impl FnMut(usize, Value<'a>)) -> Result<(), Malformed> {
    let mut rest = Reader(body);
    if rest.byte()? != 0 {
        return Err(Malformed::Invalid);
    }
    // The first two bits of the NULL bitmap are unused.
    let nulls = rest.bytes((columns.len() + 2).div_ceil(8))?;
    for (number, column) in columns.iter().enumerate() {
        let bit = number + 2;
        let value = if nulls[bit / 8] & 1 << (bit % 8) != 0 {
            Value::Null
        } else {
            value(&mut rest, column.kind, column.unsigned)?
        };
        each(number, value);
    }
    if rest.0.is_empty() { Ok(()) } else { Err(Malformed::Invalid) }
}

/// Parses a value that is not NULL.
pub fn value<'a>(rest: &mut Reader<'a>, kind: u8, unsigned: bool) -> Result<Value<'a>, Malformed> {
    Ok(match kind {
        kind::NULL => Value::Null,
        kind::TINY if unsigned => Value::Integer(rest.byte()?.into()),
        kind::TINY => Value::Integer((rest.byte()? as i8).into()),
        kind::SHORT if unsigned => Value::Integer(rest.u16()?.into()),
        kind::YEAR => Value::Integer(rest.u16()?.into()),
        kind::SHORT => Value::Integer((rest.u16()? as i16).into()),
        kind::LONG | kind::INT24 if unsigned => Value::Integer(rest.u32()?.into()),
        kind::LONG | kind::INT24 => Value::Integer((rest.u32()? as i32).into()),
        kind::LONGLONG => {
            let bits = u64::from_le_bytes(rest.array()?);
            match i64::try_from(bits) {
                Err(_) if unsigned => Value::Unsigned(bits),
                _ => Value::Integer(bits as i64),
            }
        }
        kind::FLOAT => Value::Float(f32::from_le_bytes(rest.array()?)),
        kind::DOUBLE => Value::Double(f64::from_le_bytes(rest.array()?)),
        kind::DATE => Value::Date(date_time(rest)?),
        kind::DATETIME | kind::TIMESTAMP => Value::DateTime(date_time(rest)?),
        kind::TIME => Value::Time(duration(rest)?),
        // Decimals are sent as text.
        _ => Value::Bytes(rest.string()?),
    })
}

/// Parses a date or time. The server omits trailing zeros.
fn date_time(rest: &mut Reader) -> Result<Temporal, Malformed> {
    let mut bytes = sent::<11>(rest)?;
    Ok(Temporal {
        year: bytes.u16()?,
        month: bytes.byte()?,
        day: bytes.byte()?.into(),
        hour: bytes.byte()?,
        minute: bytes.byte()?,
        second: bytes.byte()?,
        micros: bytes.u32()?,
        negative: false,
    })
}

fn duration(rest: &mut Reader) -> Result<Temporal, Malformed> {
    let mut bytes = sent::<12>(rest)?;
    Ok(Temporal {
        negative: bytes.byte()? != 0,
        day: bytes.u32()?,
        hour: bytes.byte()?,
        minute: bytes.byte()?,
        second: bytes.byte()?,
        micros: bytes.u32()?,
        ..Temporal::default()
    })
}

/// Reads up to `N` bytes preceded by their number, and pads them with zeros.
fn sent<const N: usize>(rest: &mut Reader) -> Result<Filled<N>, Malformed> {
    let length = usize::from(rest.byte()?);
    let mut bytes = [0; N];
    bytes.get_mut(..length).ok_or(Malformed::Invalid)?.copy_from_slice(rest.bytes(length)?);
    Ok(Filled { bytes, at: 0 })
}

struct Filled<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Filled<N> {
    fn take<const M: usize>(&mut self) -> Result<[u8; M], Malformed> {
        let taken = self.bytes[self.at..].first_chunk::<M>().ok_or(Malformed::Invalid)?;
        self.at += M;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }
}

impl Value<'_> {
    /// Appends the value in the format of the text protocol. Appends nothing for NULL. Trailing zeros of fractional
    /// seconds are omitted.
    pub fn write_text(self, out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = match self {
            Self::Null => Ok(()),
            Self::Integer(value) => write!(out, "{value}"),
            Self::Unsigned(value) => write!(out, "{value}"),
            Self::Float(value) => write!(out, "{value}"),
            Self::Double(value) => write!(out, "{value}"),
            Self::Bytes(bytes) => out.write_all(bytes),
            Self::Date(Temporal { year, month, day, .. }) => write!(out, "{year:04}-{month:02}-{day:02}"),
            Self::DateTime(Temporal { year, month, day, hour, minute, second, micros, .. }) => {
                let _ = write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
                fraction(micros, out)
            }
            Self::Time(Temporal { negative, day, hour, minute, second, micros, .. }) => {
                let sign = if negative { "-" } else { "" };
                let hours = u64::from(day) * 24 + u64::from(hour);
                let _ = write!(out, "{sign}{hours:02}:{minute:02}:{second:02}");
                fraction(micros, out)
            }
        };
    }
}

/// A parameter whose text is known. Parameters of other types, such as dates, are sent as texts, which the server
/// converts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    Integer(i64),
    Unsigned(u64),
    Float(f32),
    Double(f64),
    Decimal(&'a [u8]),
    Text(&'a [u8]),
}

impl<'a> Parameter<'a> {
    /// Returns the code of a parameter type: a letter in captures and on tapes.
    pub fn code(kind: u8, unsigned: bool) -> u8 {
        match kind {
            kind::TINY | kind::SHORT | kind::LONG | kind::INT24 | kind::LONGLONG | kind::YEAR if unsigned => b'u',
            kind::TINY | kind::SHORT | kind::LONG | kind::INT24 | kind::LONGLONG | kind::YEAR => b'i',
            kind::FLOAT => b'f',
            kind::DOUBLE => b'd',
            kind::NEWDECIMAL => b'n',
            _ => b's',
        }
    }

    /// Returns the parameter with the type of this code. Texts that are no values of the type remain texts.
    pub fn of(code: u8, text: &'a [u8]) -> Self {
        fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
            std::str::from_utf8(text).ok()?.parse().ok()
        }
        let typed = match code {
            b'i' => parsed(text).map(Self::Integer),
            b'u' => parsed(text).map(Self::Unsigned),
            b'f' => parsed(text).map(Self::Float),
            b'd' => parsed(text).map(Self::Double),
            b'n' => Some(Self::Decimal(text)),
            _ => None,
        };
        typed.unwrap_or(Self::Text(text))
    }

    /// Returns the type as an Execute contains it. The second byte is 0x80 for unsigned integers.
    pub fn kind(self) -> [u8; 2] {
        match self {
            Self::Integer(_) => [kind::LONGLONG, 0],
            Self::Unsigned(_) => [kind::LONGLONG, 0x80],
            Self::Float(_) => [kind::FLOAT, 0],
            Self::Double(_) => [kind::DOUBLE, 0],
            Self::Decimal(_) => [kind::NEWDECIMAL, 0],
            Self::Text(_) => [kind::VAR_STRING, 0],
        }
    }

    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Unsigned(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Decimal(text) | Self::Text(text) => frontend::string(out, text),
        }
    }
}

fn fraction(micros: u32, out: &mut Vec<u8>) -> std::io::Result<()> {
    if micros == 0 {
        return Ok(());
    }
    let digits = format!("{micros:06}");
    write!(out, ".{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn column(kind: u8, unsigned: bool) -> Column {
        Column { name: String::new(), kind, unsigned }
    }

    fn texts(body: &[u8], columns: &[Column]) -> Result<Vec<Option<String>>, Malformed> {
        let mut texts = Vec::new();
        row(body, columns, |number, value| {
            assert_eq!(number, texts.len());
            let mut text = Vec::new();
            value.write_text(&mut text);
            texts.push((value != Value::Null).then(|| String::from_utf8_lossy(&text).into_owned()));
        })?;
        Ok(texts)
    }

    proptest! {
        #[test]
        fn arbitrary_rows_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            kinds in prop::collection::vec((any::<u8>(), any::<bool>()), 0..10)
        ) {
            let columns: Vec<_> = kinds.into_iter().map(|(kind, unsigned)| column(kind, unsigned)).collect();
            let _ = texts(&bytes, &columns);
        }

        #[test]
        fn rows_of_small_kinds_never_panic(
            bytes in prop::collection::vec(prop::sample::select(vec![0u8, 1, 4, 7, 8, 11, 12]), 0..60),
            kinds in prop::collection::vec((1u8..14, any::<bool>()), 0..5)
        ) {
            let columns: Vec<_> = kinds.into_iter().map(|(kind, unsigned)| column(kind, unsigned)).collect();
            let _ = texts(&bytes, &columns);
        }
    }

    #[test]
    fn parameters_are_sent_with_their_recorded_types() {
        for (kind, unsigned, text, expected) in [
            (kind::TINY, false, "-5", Parameter::Integer(-5)),
            (kind::LONGLONG, true, "18446744073709551615", Parameter::Unsigned(u64::MAX)),
            (kind::FLOAT, false, "0.1", Parameter::Float(0.1)),
            (kind::DOUBLE, false, "1e300", Parameter::Double(1e300)),
            (kind::NEWDECIMAL, false, "1.50", Parameter::Decimal(b"1.50")),
            (kind::DATETIME, false, "2026-01-02 03:04:05", Parameter::Text(b"2026-01-02 03:04:05")),
            (kind::LONG, false, "x", Parameter::Text(b"x")),
        ] {
            assert_eq!(Parameter::of(Parameter::code(kind, unsigned), text.as_bytes()), expected);
        }
    }

    #[test]
    fn values_are_written_as_the_text_protocol_writes_them() {
        let columns = [
            column(kind::TINY, false),
            column(kind::LONGLONG, true),
            column(kind::VAR_STRING, false),
            column(kind::DATETIME, false),
            column(kind::TIME, false),
            column(kind::DATE, false),
            column(kind::DOUBLE, false),
            column(kind::LONG, false),
        ];
        let mut body = vec![0, 0, 0b10];
        body.push(0xff);
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        body.extend_from_slice(b"\x02ab");
        body.extend_from_slice(&[11, 0xea, 7, 11, 23, 1, 2, 3, 0x20, 0xa1, 7, 0]);
        body.extend_from_slice(&[8, 1, 1, 0, 0, 0, 2, 3, 4]);
        body.extend_from_slice(&[4, 0xea, 7, 1, 2]);
        body.extend_from_slice(&1.5f64.to_le_bytes());
        let expected = ["-1", "18446744073709551615", "ab", "2026-11-23 01:02:03.5", "-26:03:04", "2026-01-02", "1.5"];
        let mut expected: Vec<_> = expected.iter().map(|text| Some((*text).to_owned())).collect();
        expected.push(None);
        assert_eq!(texts(&body, &columns).unwrap(), expected);
        assert_eq!(texts(&body[..body.len() - 1], &columns), Err(Malformed::Invalid));
    }
}

//! Basic Encoding Rules as LDAP restricts them (RFC 4511, 5.1): definite lengths, one-byte tags.

/// Tags of the universal class.
pub mod tag {
    pub const BOOLEAN: u8 = 0x01;
    pub const INTEGER: u8 = 0x02;
    pub const OCTETS: u8 = 0x04;
    pub const ENUMERATED: u8 = 0x0a;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
}

/// Maximum length of an accepted message. Memory is allocated only as bytes arrive.
pub const MAX_MESSAGE: usize = 1 << 26;

/// Why a message is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the server sent data that is not an LDAP message")]
    Invalid,
    #[error("the server announced a message of more than {MAX_MESSAGE} bytes")]
    TooLong,
}

/// Begins an element of unknown length; [`close`] ends it.
#[inline]
pub fn open(out: &mut Vec<u8>, tag: u8) -> usize {
    out.push(tag);
    out.push(0);
    out.len()
}

/// Ends the element whose content begins at `start`. The content is moved if it has 128 bytes or more, because its
/// length then needs more than one byte.
#[inline]
pub fn close(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    if length < 0x80 {
        out[start - 1] = length as u8;
        return;
    }
    let bytes = (length as u32).to_be_bytes();
    let leading = (length as u32).leading_zeros() as usize / 8;
    let more = &bytes[leading..];
    out[start - 1] = 0x80 | more.len() as u8;
    out.resize(out.len() + more.len(), 0);
    out.copy_within(start..start + length, start + more.len());
    out[start..start + more.len()].copy_from_slice(more);
}

#[inline]
pub fn nested(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = open(out, tag);
    body(out);
    close(out, start);
}

#[inline]
pub fn octets(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    nested(out, tag, |out| out.extend_from_slice(value));
}

/// Appends an integer in the minimal number of bytes, in two's complement.
#[inline]
pub fn integer(out: &mut Vec<u8>, tag: u8, value: i32) {
    let bytes = value.to_be_bytes();
    let sign = (value >> 31) as u8;
    let redundant = |pair: &[u8]| pair[0] == sign && (pair[1] ^ sign) & 0x80 == 0;
    let skip = bytes.windows(2).take_while(|pair| redundant(pair)).count();
    out.push(tag);
    out.push((4 - skip) as u8);
    out.extend_from_slice(&bytes[skip..]);
}

pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(&[tag::BOOLEAN, 1, if value { 0xff } else { 0 }]);
}

/// Returns the offset and the length of the content of the first element in `bytes`. Returns None if more bytes must
/// arrive.
#[inline]
pub fn header(bytes: &[u8]) -> Result<Option<(usize, usize)>, Malformed> {
    let Some(&first) = bytes.get(1) else { return Ok(None) };
    if first < 0x80 {
        return Ok(Some((2, usize::from(first))));
    }
    let count = usize::from(first & 0x7f);
    // 0x80 would be an indefinite length, which LDAP forbids.
    if count == 0 {
        return Err(Malformed::Invalid);
    }
    if count > 8 {
        return Err(Malformed::TooLong);
    }
    let Some(bytes) = bytes.get(2..2 + count) else { return Ok(None) };
    let length = bytes.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
    match usize::try_from(length) {
        Ok(length) if length <= MAX_MESSAGE => Ok(Some((2 + count, length))),
        _ => Err(Malformed::TooLong),
    }
}

/// Reads elements one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the tag of the next element, or None at the end.
    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Reads the next element, with any tag.
    #[inline]
    pub fn element(&mut self) -> Result<(u8, &'a [u8]), Malformed> {
        let (start, length) = header(self.0)?.ok_or(Malformed::Invalid)?;
        let body = self.0.get(start..start + length).ok_or(Malformed::Invalid)?;
        let tag = self.0[0];
        self.0 = &self.0[start + length..];
        Ok((tag, body))
    }

    #[inline]
    pub fn expect(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        match self.element()? {
            (found, body) if found == tag => Ok(body),
            _ => Err(Malformed::Invalid),
        }
    }

    /// Reads an integer or enumerated value.
    #[inline]
    pub fn number(&mut self, tag: u8) -> Result<i32, Malformed> {
        let body = self.expect(tag)?;
        if body.is_empty() || body.len() > 4 {
            return Err(Malformed::Invalid);
        }
        let sign = if body[0] & 0x80 == 0 { 0 } else { -1 };
        Ok(body.iter().fold(sign, |sum, &byte| sum << 8 | i32::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_written_element_is_read_unchanged(inner in prop::collection::vec(any::<u8>(), 0..70_000), number: i32) {
            let mut out = b"before".to_vec();
            nested(&mut out, tag::SEQUENCE, |out| {
                integer(out, tag::INTEGER, number);
                octets(out, tag::OCTETS, &inner);
            });
            let mut reader = Reader(&out[6..]);
            let mut body = Reader(reader.expect(tag::SEQUENCE).unwrap());
            prop_assert!(reader.is_empty());
            prop_assert_eq!(body.number(tag::INTEGER).unwrap(), number);
            prop_assert_eq!(body.expect(tag::OCTETS).unwrap(), &inner[..]);
            prop_assert!(body.is_empty());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader(&bytes);
            while !reader.is_empty() && reader.element().is_ok() {}
            let _ = Reader(&bytes).number(tag::INTEGER);
        }
    }

    #[test]
    fn integers_have_the_shortest_encoding() {
        let written = |value| {
            let mut out = Vec::new();
            integer(&mut out, tag::INTEGER, value);
            out.split_off(2)
        };
        assert_eq!(written(0), [0]);
        assert_eq!(written(127), [127]);
        assert_eq!(written(128), [0, 128]);
        assert_eq!(written(-1), [0xff]);
        assert_eq!(written(i32::MAX), [0x7f, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn a_length_above_the_maximum_is_refused_when_the_header_arrives() {
        assert_eq!(header(&[0x30, 0x84, 0x7f, 0xff, 0xff, 0xff]), Err(Malformed::TooLong));
        assert_eq!(header(&[0x30, 0x80]), Err(Malformed::Invalid));
        assert_eq!(header(&[0x30, 0x82, 1]), Ok(None));
    }
}

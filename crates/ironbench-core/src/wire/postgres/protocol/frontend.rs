//! Functions that append messages for the server to `out`. Strings must not contain a zero byte, because a zero byte
//! marks the end of a string in this protocol. Callers that take SQL from users first check for zero bytes with
//! [`has_zero_byte`].

/// Number of protocol 3.0, which every supported server accepts.
const VERSION: i32 = 0x0003_0000;
const SSL_REQUEST: i32 = 80_877_103;
const CANCEL_REQUEST: i32 = 80_877_102;

/// Whether `text` contains a zero byte. Such a text cannot be sent as a string.
pub fn has_zero_byte(text: &str) -> bool {
    text.as_bytes().contains(&0)
}

/// Appends a message, which consists of `tag`, the length (including the length field itself), and the bytes that
/// `body` appends.
#[inline(always)]
fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    untagged(out, body);
}

#[inline(always)]
fn untagged(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start) as i32;
    patch_length(out, start, length);
}

#[inline(always)]
fn patch_length(out: &mut [u8], at: usize, length: i32) {
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

#[inline(always)]
fn text(out: &mut Vec<u8>, value: &str) {
    debug_assert!(!has_zero_byte(value));
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// Appends the first message of a connection. `parameters` contains `user`, `database`, and run-time settings.
pub fn startup<'a>(out: &mut Vec<u8>, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) {
    untagged(out, |out| {
        out.extend_from_slice(&VERSION.to_be_bytes());
        for (name, value) in parameters {
            text(out, name);
            text(out, value);
        }
        out.push(0);
    });
}

/// Appends a request for TLS. The server answers with one byte, `S` or `N`.
pub fn ssl_request(out: &mut Vec<u8>) {
    untagged(out, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
}

/// Appends a cancel request, which is the only message on its connection.
pub fn cancel_request(out: &mut Vec<u8>, backend_pid: i32, secret: i32) {
    untagged(out, |out| {
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&backend_pid.to_be_bytes());
        out.extend_from_slice(&secret.to_be_bytes());
    });
}

pub fn password(out: &mut Vec<u8>, password: &[u8]) {
    message(out, b'p', |out| {
        out.extend_from_slice(password);
        out.push(0);
    });
}

pub fn sasl_initial_response(out: &mut Vec<u8>, mechanism: &str, data: &[u8]) {
    message(out, b'p', |out| {
        text(out, mechanism);
        out.extend_from_slice(&(data.len() as i32).to_be_bytes());
        out.extend_from_slice(data);
    });
}

pub fn sasl_response(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'p', |out| out.extend_from_slice(data));
}

/// Appends a request to run one or more statements with the simple protocol.
pub fn query(out: &mut Vec<u8>, sql: &str) {
    message(out, b'Q', |out| text(out, sql));
}

/// Appends the same message as [`query`]. `write` appends the SQL without the terminating zero byte.
#[inline]
pub fn query_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    message(out, b'Q', |out| {
        write(out);
        out.push(0);
    });
}

/// Appends a message that prepares `sql` as `statement` (`""` is the unnamed statement). The server infers the
/// parameter types.
pub fn parse(out: &mut Vec<u8>, statement: &str, sql: &str) {
    message(out, b'P', |out| {
        text(out, statement);
        text(out, sql);
        out.extend_from_slice(&0i16.to_be_bytes());
    });
}

/// Appends a message that creates the unnamed portal from `statement`. Parameters and results are text. `write(i, out)`
/// appends parameter `i` and returns true. For NULL, it appends nothing and returns false.
#[inline]
pub fn bind(out: &mut Vec<u8>, statement: &str, parameters: u16, mut write: impl FnMut(usize, &mut Vec<u8>) -> bool) {
    message(out, b'B', |out| {
        out.push(0);
        text(out, statement);
        out.extend_from_slice(&0i16.to_be_bytes());
        out.extend_from_slice(&parameters.to_be_bytes());
        for i in 0..parameters as usize {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            let length = if write(i, out) { (out.len() - start - 4) as i32 } else { -1 };
            patch_length(out, start, length);
        }
        out.extend_from_slice(&[0, 1, 0, 0]); // one format for all results: text, as libpq sends it
    });
}

/// Appends a message like [`bind`], but with binary parameters. `write` appends all parameters, each as a four-byte
/// length and the value.
#[inline]
pub fn bind_binary(out: &mut Vec<u8>, statement: &str, parameters: u16, write: impl FnOnce(&mut Vec<u8>)) {
    message(out, b'B', |out| {
        out.push(0);
        text(out, statement);
        out.extend_from_slice(&[0, 1, 0, 1]); // one format for all parameters: binary
        out.extend_from_slice(&parameters.to_be_bytes());
        write(out);
        out.extend_from_slice(&0i16.to_be_bytes());
    });
}

/// Appends a message like [`bind`], but with encoded parameters. `values` contains the length and the text of each
/// parameter.
#[inline]
pub fn bind_values(out: &mut Vec<u8>, statement: &str, parameters: u16, values: &[u8]) {
    message(out, b'B', |out| {
        out.push(0);
        text(out, statement);
        out.extend_from_slice(&0i16.to_be_bytes());
        out.extend_from_slice(&parameters.to_be_bytes());
        out.extend_from_slice(values);
        out.extend_from_slice(&[0, 1, 0, 0]); // one format for all results: text, as libpq sends it
    });
}

/// Appends a request for the RowDescription of the unnamed portal.
#[inline]
pub fn describe_portal(out: &mut Vec<u8>) {
    message(out, b'D', |out| out.extend_from_slice(b"P\0"));
}

/// Appends a message that runs the unnamed portal to completion.
#[inline]
pub fn execute(out: &mut Vec<u8>) {
    out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
}

#[inline]
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(b"S\0\0\0\x04");
}

#[inline]
pub fn flush(out: &mut Vec<u8>) {
    out.extend_from_slice(b"H\0\0\0\x04");
}

pub fn close_statement(out: &mut Vec<u8>, statement: &str) {
    message(out, b'C', |out| {
        out.push(b'S');
        text(out, statement);
    });
}

pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', |out| out.extend_from_slice(data));
}

/// Returns the header of a CopyData message. The caller sends its `length` bytes separately.
pub fn copy_data_head(length: usize) -> [u8; 5] {
    let [a, b, c, d] = (length as i32 + 4).to_be_bytes();
    [b'd', a, b, c, d]
}

pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

pub fn copy_fail(out: &mut Vec<u8>, reason: &str) {
    message(out, b'f', |out| text(out, reason));
}

pub fn terminate(out: &mut Vec<u8>) {
    out.extend_from_slice(b"X\0\0\0\x04");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind_writes_lengths_after_the_values_and_minus_one_for_null() {
        let mut out = Vec::new();
        bind(&mut out, "s1", 2, |i, out| {
            if i == 0 {
                out.extend_from_slice(b"42");
            }
            i == 0
        });
        let mut expected = b"B\0\0\0\x1a\0s1\0\0\0\0\x02".to_vec();
        expected.extend_from_slice(b"\0\0\0\x0242\xff\xff\xff\xff\0\x01\0\0");
        assert_eq!(out[4] as usize, out.len() - 1);
        assert_eq!(out, expected);
    }

    #[test]
    fn every_message_states_its_own_length() {
        let mut out = Vec::new();
        parse(&mut out, "", "select 1");
        describe_portal(&mut out);
        execute(&mut out);
        sync(&mut out);
        flush(&mut out);
        bind_values(&mut out, "s1", 1, b"\0\0\0\x01x");
        query(&mut out, "select 1");
        query_with(&mut out, |out| out.extend_from_slice(b"select 2"));
        close_statement(&mut out, "s1");
        password(&mut out, b"secret");
        sasl_initial_response(&mut out, "SCRAM-SHA-256", b"n,,");
        sasl_response(&mut out, b"c=biws");
        copy_data(&mut out, b"1\t2\n");
        out.extend_from_slice(&copy_data_head(3));
        out.extend_from_slice(b"abc");
        copy_done(&mut out);
        copy_fail(&mut out, "stopped");
        terminate(&mut out);
        let mut tags = Vec::new();
        let mut rest = &out[..];
        while !rest.is_empty() {
            tags.push(rest[0]);
            let length = i32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
            rest = &rest[1 + length..];
        }
        assert_eq!(tags, b"PDESHBQQCpppddcfX");
    }

    #[test]
    fn startup_ends_with_an_empty_name() {
        let mut out = Vec::new();
        startup(&mut out, [("user", "u"), ("database", "d")]);
        assert_eq!(out, b"\0\0\0\x1b\0\x03\0\0user\0u\0database\0d\0\0");
    }

    #[test]
    fn requests_before_startup_have_no_tag() {
        let mut out = Vec::new();
        ssl_request(&mut out);
        assert_eq!(out, b"\0\0\0\x08\x04\xd2\x16\x2f");
        out.clear();
        cancel_request(&mut out, 1, 2);
        assert_eq!(out, b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02");
    }
}

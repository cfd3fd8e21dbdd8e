//! Converts values to text and text to values, exactly like pgbench.

use super::Value;
use std::io::Write;

/// Number of significant digits with which pgbench prints doubles. This is C's DBL_DIG, the number of decimal digits
/// that a double can always represent.
const DOUBLE_DIGITS: usize = 15;

pub fn write_value(value: Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Integer(integer) => write_integer(integer, out),
        Value::Double(double) => write_double(double, out),
    }
}

pub fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    while rest >= 10 {
        // A single division gives two digits.
        let pair = (rest % 100) as u8;
        rest /= 100;
        start -= 2;
        digits[start] = b'0' + pair / 10;
        digits[start + 1] = b'0' + pair % 10;
    }
    if rest > 0 || start == digits.len() {
        start -= 1;
        digits[start] = b'0' + rest as u8;
    }
    if value < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    out.extend_from_slice(&digits[start..]);
}

/// Writes a double like C's `%.15g`. This is fixed or scientific notation, whichever is shorter, without trailing
/// zeros. Infinity and NaN have PostgreSQL's names.
pub fn write_double(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value < 0.0 { b"-Infinity" } else { b"Infinity" });
        return;
    }
    let mut buffer = [0u8; 32];
    let length = {
        let mut rest = &mut buffer[..];
        // The text has at most 24 bytes: sign, 15 digits, point, `e`, sign and 3 digits of the exponent.
        let _ = write!(rest, "{:.*e}", DOUBLE_DIGITS - 1, value.abs());
        32 - rest.len()
    };
    let text = &buffer[..length];
    let mark = text.iter().position(|&byte| byte == b'e').unwrap_or(length);
    let exponent: i32 =
        std::str::from_utf8(&text[(mark + 1).min(length)..]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut digits = [0u8; DOUBLE_DIGITS];
    digits[0] = text[0];
    digits[1..].copy_from_slice(&text[2..mark]);
    let used = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if exponent < -4 || exponent >= DOUBLE_DIGITS as i32 {
        out.push(digits[0]);
        write_fraction(&digits[1..used], out);
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.push(b'0');
        }
        write_integer(i64::from(exponent.abs()), out);
    } else if exponent < 0 {
        out.extend_from_slice(&b"0.0000"[..(1 - exponent) as usize]);
        out.extend_from_slice(&digits[..used]);
    } else {
        let whole = exponent as usize + 1;
        out.extend_from_slice(&digits[..whole]);
        if used > whole {
            write_fraction(&digits[whole..used], out);
        }
    }
}

fn write_fraction(digits: &[u8], out: &mut Vec<u8>) {
    if !digits.is_empty() {
        out.push(b'.');
        out.extend_from_slice(digits);
    }
}

/// Returns the value of a variable that was given as text (by `-D` or `\gset`). Returns None if the text is not a
/// value.
pub fn parse_value(text: &str) -> Option<Value> {
    if text.is_empty() {
        return None;
    }
    // A word may be abbreviated. Only `o` is not accepted, because it could mean `on` or `off`.
    let begins = |word: &str| word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    if text.eq_ignore_ascii_case("null") {
        Some(Value::Null)
    } else if begins("true") || begins("yes") || text.eq_ignore_ascii_case("on") {
        Some(Value::Boolean(true))
    } else if begins("false") || begins("no") || text.eq_ignore_ascii_case("off") || text.eq_ignore_ascii_case("of") {
        Some(Value::Boolean(false))
    } else if is_integer(text) {
        text.trim_start_matches(is_space).parse().ok().map(Value::Integer)
    } else {
        parse_double(text.trim_start_matches(is_space)).map(Value::Double)
    }
}

/// Whether the character is white space, as for C's isspace in the C locale.
fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

fn is_integer(text: &str) -> bool {
    let digits = text.trim_start_matches(is_space);
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a double. Returns None if the text is not a number or its magnitude is out of range.
pub fn parse_double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let names_infinity = text.contains(['i', 'I']);
    let overflows = value.is_infinite() && !names_infinity;
    let underflows = value.abs() < f64::MIN_POSITIVE && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (!overflows && !underflows).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: Value) -> String {
        let mut out = Vec::new();
        write_value(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_print_as_c_prints_them() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1 + 0.2, "0.3"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (123456789012345680.0, "1.23456789012346e+17"),
            (0.0001, "0.0001"),
            (0.00012345, "0.00012345"),
            (0.00001, "1e-05"),
            (1.5e-300, "1.5e-300"),
            (std::f64::consts::PI, "3.14159265358979"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
            (999_999_999_999_999.9, "1e+15"),
        ] {
            assert_eq!(text(Value::Double(value)), expected);
        }
        assert_eq!(text(Value::Null), "NULL");
        assert_eq!(text(Value::Boolean(true)), "true");
        assert_eq!(text(Value::Integer(i64::MIN)), "-9223372036854775808");
    }

    #[test]
    fn text_is_read_as_pgbench_reads_variables() {
        assert_eq!(parse_value("NuLL"), Some(Value::Null));
        assert_eq!(parse_value("t"), Some(Value::Boolean(true)));
        assert_eq!(parse_value("Ye"), Some(Value::Boolean(true)));
        assert_eq!(parse_value("of"), Some(Value::Boolean(false)));
        assert_eq!(parse_value("n"), Some(Value::Boolean(false)));
        assert_eq!(parse_value("o"), None);
        assert_eq!(parse_value(" +12"), Some(Value::Integer(12)));
        assert_eq!(parse_value("9223372036854775808"), None);
        assert_eq!(parse_value("1e3"), Some(Value::Double(1000.0)));
        assert_eq!(parse_value("1e400"), None);
        assert_eq!(parse_value("1e-400"), None);
        assert_eq!(parse_value("0e-400"), Some(Value::Double(0.0)));
        assert_eq!(parse_value(""), None);
        assert_eq!(parse_value("+"), None);
        assert_eq!(parse_value("grün"), None);
    }

    proptest! {
        #[test]
        fn an_integer_prints_as_rust_prints_it(value: i64) {
            prop_assert_eq!(text(Value::Integer(value)), value.to_string());
        }

        #[test]
        fn a_printed_double_reads_back_within_fifteen_digits(value in proptest::num::f64::NORMAL) {
            let back: f64 = text(Value::Double(value)).parse().unwrap();
            prop_assert!(((back - value) / value).abs() < 1e-14);
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC*") {
            let _ = parse_value(&text);
        }
    }
}

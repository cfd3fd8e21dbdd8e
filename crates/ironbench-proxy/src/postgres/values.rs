//! Converts parameters from PostgreSQL's binary formats to text.
//!
//! A capture contains texts, which a replay sends with any type. Source of the formats: the functions `…_recv` and
//! `…_send` of PostgreSQL 18 (src/backend/utils/adt).

use std::fmt::Write;

/// Maximum depth of an array's dimensions (MAXDIM in PostgreSQL).
const MAX_DIMENSIONS: i32 = 6;
/// Number of days from 1970-01-01 to 2000-01-01. PostgreSQL counts dates from the latter.
const EPOCH_DAYS: i64 = 10_957;
const DAY_US: i64 = 86_400_000_000;

/// Returns the text of a value of the type with this OID (pg_type.dat). Returns None if the type is not known, or if
/// the value is damaged.
pub fn text(oid: u32, value: &[u8]) -> Option<String> {
    let text = match oid {
        16 => if *array::<1>(value)?.first()? == 0 { "f" } else { "t" }.to_owned(),
        17 => hexadecimal(value),
        20 => i64::from_be_bytes(array(value)?).to_string(),
        21 => i16::from_be_bytes(array(value)?).to_string(),
        23 => i32::from_be_bytes(array(value)?).to_string(),
        26 | 24 | 2202..=2206 | 28 | 29 | 4089 | 4096 => u32::from_be_bytes(array(value)?).to_string(),
        700 => float(f32::from_be_bytes(array(value)?).into(), f32::from_be_bytes(array(value)?)),
        701 => float(f64::from_be_bytes(array(value)?), f64::from_be_bytes(array(value)?)),
        18 | 19 | 25 | 114 | 142 | 705 | 1042 | 1043 => String::from_utf8(value.to_vec()).ok()?,
        3802 => String::from_utf8(value.strip_prefix(b"\x01")?.to_vec()).ok()?,
        1082 => date(i32::from_be_bytes(array(value)?)),
        1083 => time(i64::from_be_bytes(array(value)?))?,
        1114 => timestamp(i64::from_be_bytes(array(value)?), ""),
        1184 => timestamp(i64::from_be_bytes(array(value)?), "+00"),
        1186 => interval(value)?,
        1266 => time_with_zone(value)?,
        1560 | 1562 => bits(value)?,
        1700 => numeric(value)?,
        2950 => uuid(&array(value)?),
        650 | 869 => network(value)?,
        829 => value.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        _ => return elements(value, is_array(oid)?),
    };
    Some(text)
}

/// Returns the type of the elements of an array type.
fn is_array(oid: u32) -> Option<u32> {
    Some(match oid {
        1000 => 16,
        1001 => 17,
        1002 => 18,
        1003 => 19,
        1005 => 21,
        1007 => 23,
        1009 => 25,
        1014 => 1042,
        1015 => 1043,
        1016 => 20,
        1021 => 700,
        1022 => 701,
        1028 => 26,
        1041 => 869,
        651 => 650,
        1115 => 1114,
        1182 => 1082,
        1183 => 1083,
        1185 => 1184,
        1187 => 1186,
        1231 => 1700,
        1270 => 1266,
        1561 => 1560,
        1563 => 1562,
        199 => 114,
        143 => 142,
        2951 => 2950,
        3807 => 3802,
        _ => return None,
    })
}

fn array<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    value.try_into().ok()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

fn hexadecimal(value: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * value.len());
    text.push_str("\\x");
    for byte in value {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Formats a number with the fewest digits that distinguish it from all others of the same precision.
fn float(wide: f64, shortest: impl std::fmt::Display + std::fmt::LowerExp) -> String {
    if wide.is_nan() {
        return "NaN".to_owned();
    }
    if wide.is_infinite() {
        return if wide > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = wide.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) { format!("{shortest:e}") } else { shortest.to_string() }
}

/// Formats days since 2000 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn date(days: i32) -> String {
    match days {
        i32::MAX => return "infinity".to_owned(),
        i32::MIN => return "-infinity".to_owned(),
        _ => {}
    }
    let (year, month, day) = civil(i64::from(days));
    if year > 0 { format!("{year:04}-{month:02}-{day:02}") } else { format!("{:04}-{month:02}-{day:02} BC", 1 - year) }
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let of_400 = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_400 + of_400 / 4 - of_400 / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (of_400 + era * 400 + i64::from(month <= 2), month, day)
}

fn time(us: i64) -> Option<String> {
    (0..=DAY_US).contains(&us).then(|| {
        let (seconds, us) = (us / 1_000_000, us % 1_000_000);
        let whole = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        if us == 0 { whole } else { format!("{whole}.{us:06}") }
    })
}

fn timestamp(us: i64, zone: &str) -> String {
    match us {
        i64::MAX => return "infinity".to_owned(),
        i64::MIN => return "-infinity".to_owned(),
        _ => {}
    }
    let (year, month, day) = civil(us.div_euclid(DAY_US));
    let time = time(us.rem_euclid(DAY_US)).unwrap_or_default();
    if year > 0 {
        format!("{year:04}-{month:02}-{day:02} {time}{zone}")
    } else {
        format!("{:04}-{month:02}-{day:02} {time}{zone} BC", 1 - year)
    }
}

fn interval(mut value: &[u8]) -> Option<String> {
    let us = i64::from_be_bytes(take(&mut value)?);
    let (days, months) = (i32::from_be_bytes(take(&mut value)?), i32::from_be_bytes(take(&mut value)?));
    match (us, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) => return Some("infinity".to_owned()),
        (i64::MIN, i32::MIN, i32::MIN) => return Some("-infinity".to_owned()),
        _ => {}
    }
    value.is_empty().then(|| format!("{months} mons {days} days {us} microseconds"))
}

fn time_with_zone(mut value: &[u8]) -> Option<String> {
    let us = i64::from_be_bytes(take(&mut value)?);
    let west_s = i32::from_be_bytes(take(&mut value)?);
    let east = -i64::from(west_s);
    let sign = if east < 0 { '-' } else { '+' };
    let size = east.abs();
    let zone = format!("{sign}{:02}:{:02}:{:02}", size / 3600, size / 60 % 60, size % 60);
    time(us).filter(|_| value.is_empty()).map(|time| time + &zone)
}

fn bits(mut value: &[u8]) -> Option<String> {
    let count = usize::try_from(i32::from_be_bytes(take(&mut value)?)).ok()?;
    if value.len() != count.div_ceil(8) {
        return None;
    }
    Some((0..count).map(|at| if value[at / 8] >> (7 - at % 8) & 1 == 1 { '1' } else { '0' }).collect())
}

/// Formats a number that consists of digits to the base 10,000.
fn numeric(mut value: &[u8]) -> Option<String> {
    let count = usize::from(u16::from_be_bytes(take(&mut value)?));
    let weight = i32::from(i16::from_be_bytes(take(&mut value)?));
    let sign = u16::from_be_bytes(take(&mut value)?);
    let scale = usize::from(u16::from_be_bytes(take(&mut value)?));
    let mut text = match sign {
        0x0000 => String::new(),
        0x4000 => "-".to_owned(),
        0xc000 => return Some("NaN".to_owned()),
        0xd000 => return Some("Infinity".to_owned()),
        0xf000 => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    let digits: Vec<u16> = value.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
    if digits.len() != count || value.len() != 2 * count || digits.iter().any(|digit| *digit > 9999) {
        return None;
    }
    let digit = |place: i32| usize::try_from(place).ok().and_then(|at| digits.get(at)).copied().unwrap_or(0);
    if weight < 0 {
        text.push('0');
    }
    for place in 0..=weight {
        let _ = if place == 0 { write!(text, "{}", digit(0)) } else { write!(text, "{:04}", digit(place)) };
    }
    if scale > 0 {
        text.push('.');
        let whole = text.len();
        let mut place = weight + 1;
        while text.len() - whole < scale {
            let _ = write!(text, "{:04}", digit(place));
            place += 1;
        }
        text.truncate(whole + scale);
    }
    Some(text)
}

fn uuid(value: &[u8; 16]) -> String {
    let text: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

fn network(value: &[u8]) -> Option<String> {
    let [family, bits, is_cidr, length, address @ ..] = value else { return None };
    let (text, most) = match (family, length) {
        (2, 4) => (std::net::Ipv4Addr::from(array::<4>(address)?).to_string(), 32),
        (3, 16) => (std::net::Ipv6Addr::from(array::<16>(address)?).to_string(), 128),
        _ => return None,
    };
    Some(if *is_cidr == 1 || *bits != most { format!("{text}/{bits}") } else { text })
}

/// Formats an array as `{1,NULL,"a b"}`.
fn elements(mut value: &[u8], kind: u32) -> Option<String> {
    let dimensions = i32::from_be_bytes(take(&mut value)?);
    let _has_nulls = take::<4>(&mut value)?;
    if u32::from_be_bytes(take(&mut value)?) != kind || !(0..=MAX_DIMENSIONS).contains(&dimensions) {
        return None;
    }
    let (mut lengths, mut text) = (Vec::new(), String::new());
    let mut has_bounds = false;
    for _ in 0..dimensions {
        let (length, first) = (i32::from_be_bytes(take(&mut value)?), i32::from_be_bytes(take(&mut value)?));
        lengths.push(usize::try_from(length).ok()?);
        has_bounds |= first != 1;
        let _ = write!(text, "[{first}:{}]", i64::from(first) + i64::from(length) - 1);
    }
    if has_bounds {
        text.push('=')
    } else {
        text.clear()
    }
    if lengths.contains(&0) || lengths.is_empty() {
        return Some("{}".to_owned());
    }
    // Each element begins with a length of four bytes. This limits the number of elements that the array can really
    // contain.
    let count = lengths.iter().try_fold(1_usize, |product, length| product.checked_mul(*length))?;
    if count > value.len() / 4 {
        return None;
    }
    element(&lengths, kind, &mut value, &mut text)?;
    value.is_empty().then_some(text)
}

fn element(lengths: &[usize], kind: u32, rest: &mut &[u8], text_of: &mut String) -> Option<()> {
    let Some((length, inner)) = lengths.split_first() else {
        let size = i32::from_be_bytes(take(rest)?);
        if size < 0 {
            text_of.push_str("NULL");
            return Some(());
        }
        let (value, after) = rest.split_at_checked(size as usize)?;
        *rest = after;
        text_of.push('"');
        for letter in text(kind, value)?.chars() {
            if matches!(letter, '"' | '\\') {
                text_of.push('\\');
            }
            text_of.push(letter);
        }
        text_of.push('"');
        return Some(());
    };
    text_of.push('{');
    for place in 0..*length {
        if place > 0 {
            text_of.push(',');
        }
        element(inner, kind, rest, text_of)?;
    }
    text_of.push('}');
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_read_as_the_server_writes_them() {
        let numeric = |digits: &[u16], weight: i16, sign: u16, scale: u16| {
            let head = [digits.len() as u16, weight as u16, sign, scale];
            head.iter().chain(digits).flat_map(|one| one.to_be_bytes()).collect::<Vec<u8>>()
        };
        let texts: &[(u32, Vec<u8>, &str)] = &[
            (16, vec![1], "t"),
            (17, vec![0, 255], "\\x00ff"),
            (20, (-5_i64).to_be_bytes().to_vec(), "-5"),
            (21, 7_i16.to_be_bytes().to_vec(), "7"),
            (23, 42_i32.to_be_bytes().to_vec(), "42"),
            (25, "é'".into(), "é'"),
            (3802, b"\x01{\"a\": 1}".to_vec(), "{\"a\": 1}"),
            (700, 0.1_f32.to_be_bytes().to_vec(), "0.1"),
            (701, 1e300_f64.to_be_bytes().to_vec(), "1e300"),
            (701, f64::NEG_INFINITY.to_be_bytes().to_vec(), "-Infinity"),
            (1082, 0_i32.to_be_bytes().to_vec(), "2000-01-01"),
            (1082, 9828_i32.to_be_bytes().to_vec(), "2026-11-28"),
            (1082, (-730_120_i32).to_be_bytes().to_vec(), "0001-12-31 BC"),
            (1082, i32::MAX.to_be_bytes().to_vec(), "infinity"),
            (1083, 3_723_000_001_i64.to_be_bytes().to_vec(), "01:02:03.000001"),
            (1114, (-1_i64).to_be_bytes().to_vec(), "1999-12-31 23:59:59.999999"),
            (1184, 0_i64.to_be_bytes().to_vec(), "2000-01-01 00:00:00+00"),
            (
                1186,
                [&1_i64.to_be_bytes()[..], &2_i32.to_be_bytes(), &3_i32.to_be_bytes()].concat(),
                "3 mons 2 days 1 microseconds",
            ),
            (1266, [&0_i64.to_be_bytes()[..], &(-3600_i32).to_be_bytes()].concat(), "00:00:00+01:00:00"),
            (1562, vec![0, 0, 0, 3, 0b1010_0000], "101"),
            (1700, numeric(&[1, 2345, 6000], 1, 0, 2), "12345.60"),
            (1700, numeric(&[5000], -1, 0x4000, 4), "-0.5000"),
            (1700, numeric(&[1], -2, 0, 8), "0.00000001"),
            (1700, numeric(&[3], 2, 0, 0), "300000000"),
            (1700, numeric(&[], 0, 0xc000, 0), "NaN"),
            (2950, (0..16).collect(), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
            (869, vec![2, 32, 0, 4, 127, 0, 0, 1], "127.0.0.1"),
            (650, vec![2, 8, 1, 4, 10, 0, 0, 0], "10.0.0.0/8"),
        ];
        for (oid, value, expected) in texts {
            assert_eq!(text(*oid, value).as_deref(), Some(*expected), "{oid}");
        }
    }

    #[test]
    fn arrays_read_with_nulls_quotes_and_bounds() {
        let mut value: Vec<u8> = [1_i32, 1, 25, 3, 1].iter().flat_map(|one| one.to_be_bytes()).collect();
        value.extend_from_slice(b"\0\0\0\x01a\xff\xff\xff\xff\0\0\0\x02\"\\");
        assert_eq!(text(1009, &value).unwrap(), r#"{"a",NULL,"\"\\"}"#);
        let of_numbers = |numbers: &[i32]| numbers.iter().flat_map(|one| one.to_be_bytes()).collect::<Vec<u8>>();
        assert_eq!(text(1007, &of_numbers(&[2, 0, 23, 1, 1, 2, 1, 4, 7, 4, 8])).unwrap(), r#"{{"7","8"}}"#);
        assert_eq!(text(1007, &of_numbers(&[1, 0, 23, 1, 0, 4, 7])).unwrap(), r#"[0:0]={"7"}"#);
        assert_eq!(text(1007, &of_numbers(&[0, 0, 23])).unwrap(), "{}");
    }

    #[test]
    fn unknown_types_and_damaged_values_have_no_text() {
        assert_eq!(text(600, &[0; 16]), None);
        assert_eq!(text(23, &[0; 3]), None);
        assert_eq!(text(25, b"\xff"), None);
        assert_eq!(text(1700, &[0, 9, 0, 0, 0, 0, 0, 0]), None);
        let vast: Vec<u8> = [2_i32, 0, 23, i32::MAX, 1, i32::MAX, 1].iter().flat_map(|one| one.to_be_bytes()).collect();
        assert_eq!(text(1007, &vast), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            oid in prop::sample::select(vec![16u32, 17, 20, 23, 700, 701, 1082, 1083, 1114, 1184, 1186, 1266, 1560, 1700,
                2950, 869, 1007, 1009, 1231]),
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = text(oid, &bytes);
        }
    }
}

//! Generates entries of a directory from a template.
//! A template has one line per attribute, with tags in angle brackets for the values that differ between entries.
//! `docs/databases/directory.md` lists the tags.
//!
//! Every value is a function of the entry's number, so that pieces can be generated independently.

use std::io::Write as _;
use std::ops::Range;

/// Password of every generated entry. The password protects nothing.
const PASSWORD: &str = "password";
const FIRST: [&str; 26] = [
    "Ada", "Bela", "Carla", "Dora", "Edda", "Fred", "Greta", "Hugo", "Ines", "Jonas", "Karla", "Lars", "Mona", "Nils",
    "Olga", "Pavel", "Quentin", "Rosa", "Sven", "Thea", "Ulla", "Viktor", "Wanda", "Xenia", "Yves", "Zora",
];
const LAST: [&str; 26] = [
    "Amsel", "Birke", "Conrad", "Dorn", "Eiche", "Falke", "Ginster", "Hasel", "Iltis", "Jaspis", "Kranich", "Linde",
    "Marder", "Nelke", "Otter", "Pirol", "Quitte", "Reiher", "Specht", "Tanne", "Ulme", "Veilchen", "Weide", "Xander",
    "Ysop", "Zeisig",
];
/// Attribute of the RDN.
const RDN: &str = "uid";
/// Number of letters drawn from one random number. This number is 12, because 26^12 is below 2^57.
const LETTERS_AT_ONCE: usize = 12;

/// The random numbers of one entry (SplitMix64, Steele and others 2014).
struct EntryRng(u64);

impl EntryRng {
    fn new(number: u64) -> Self {
        Self(number.wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let state = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ state >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_of<'w, W: AsRef<str>>(&mut self, words: &'w [W]) -> &'w [u8] {
        words[self.below(words.len() as u64) as usize].as_ref().as_bytes()
    }

    fn letters(&mut self, count: usize, out: &mut Vec<u8>) {
        let end = out.len() + count;
        while out.len() < end {
            let mut drawn = self.below(26u64.pow(LETTERS_AT_ONCE as u32));
            for _ in 0..LETTERS_AT_ONCE.min(end - out.len()) {
                out.push(b'a' + (drawn % 26) as u8);
                drawn /= 26;
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Number,
    First,
    Last,
    Password,
    Guid,
    List(Vec<String>),
    Telephone,
    Letters(usize),
    /// This many random digits.
    Digits(usize),
    /// Consecutive numbers, given by the first number and the count.
    Numeric(u64, u64),
    /// The value of an earlier slot, cut to this many characters.
    Value(usize, Option<usize>),
}

#[derive(Debug)]
struct TemplateLine {
    name: String,
    /// Index of the attribute in `Template::slots`. Lines for the same attribute share a slot.
    slot: usize,
    parts: Vec<Part>,
    percent: u64,
}

#[derive(Debug)]
pub struct Template {
    lines: Vec<TemplateLine>,
    /// Names of the attributes.
    slots: Vec<String>,
}

impl Template {
    /// Parses a template. The error contains the line number (0 for the whole template) and the cause.
    pub fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut template = Self { lines: Vec::new(), slots: Vec::new() };
        for (number, row) in text.lines().enumerate() {
            if !row.trim().is_empty() && !row.starts_with('#') {
                template.add(row).map_err(|cause| (number + 1, cause))?;
            }
        }
        match template.lines.iter().find(|line| line.name == RDN) {
            Some(line) if line.percent == 100 => Ok(template),
            Some(_) => Err((0, "does not give every entry a uid, which names the entries".to_owned())),
            None => Err((0, "contains no uid, which names the entries".to_owned())),
        }
    }

    /// Appends the LDIF of these entries below `parent`. The RDN of an entry is its `uid`.
    pub fn write(&self, numbers: Range<u64>, parent: &str, out: &mut Vec<u8>) {
        let (mut entry, mut values) = (Vec::new(), vec![0..0; self.slots.len()]);
        let rdn = self.slots.iter().position(|name| name == RDN).expect("`read` has seen to it");
        for number in numbers {
            entry.clear();
            values.fill(0..0);
            self.fill(number, &mut entry, &mut values);
            out.extend_from_slice(b"dn: uid=");
            out.extend_from_slice(&entry[values[rdn].clone()]);
            out.push(b',');
            out.extend_from_slice(parent.as_bytes());
            out.push(b'\n');
            out.extend_from_slice(&entry);
            out.push(b'\n');
        }
    }

    /// Appends the attributes to `entry`. For each slot, `values` gets the range of its last value in `entry`.
    fn fill(&self, number: u64, entry: &mut Vec<u8>, values: &mut [Range<usize>]) {
        let mut rng = EntryRng::new(number);
        for line in &self.lines {
            if line.percent < 100 && rng.below(100) >= line.percent {
                continue;
            }
            entry.extend_from_slice(line.name.as_bytes());
            entry.extend_from_slice(b": ");
            let start = entry.len();
            for part in &line.parts {
                part.write(number, &mut rng, values, entry);
            }
            values[line.slot] = start..entry.len();
            entry.push(b'\n');
        }
    }

    fn add(&mut self, row: &str) -> Result<(), String> {
        let (percent, rest) = presence(row);
        let (name, value) = rest.split_once(':').ok_or_else(|| format!("{rest:?} is not `attribute: value`"))?;
        let name = name.trim();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ';' | '-'));
        if !is_name {
            return Err(format!("{rest:?} is not `attribute: value`"));
        }
        let parts = self.parts(value.trim())?;
        let slot = self.slots.iter().position(|known| known == name).unwrap_or_else(|| {
            self.slots.push(name.to_owned());
            self.slots.len() - 1
        });
        self.lines.push(TemplateLine { name: name.to_owned(), slot, parts, percent });
        Ok(())
    }

    fn parts(&self, value: &str) -> Result<Vec<Part>, String> {
        let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), value);
        while let Some(first) = rest.chars().next() {
            let token = match first {
                '<' => tag_of(rest).map(|(inner, length)| (tag(inner), length)),
                '{' => reference_of(rest).map(|(name, most, length)| (self.reference(name, most), length)),
                _ => None,
            };
            let Some((part, length)) = token else {
                text.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            };
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(part?);
            rest = &rest[length..];
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(parts)
    }

    fn reference(&self, name: &str, most: Option<usize>) -> Result<Part, String> {
        let slot = self.slots.iter().position(|known| known == name);
        slot.map(|slot| Part::Value(slot, most)).ok_or_else(|| format!("{{{name}}} does not match any attribute above"))
    }
}

impl Part {
    fn write(&self, number: u64, rng: &mut EntryRng, values: &[Range<usize>], out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = match self {
            Self::Text(text) => out.write_all(text.as_bytes()),
            Self::Number => write!(out, "{number}"),
            Self::First => out.write_all(rng.one_of(&FIRST)),
            Self::Last => out.write_all(rng.one_of(&LAST)),
            Self::Password => out.write_all(PASSWORD.as_bytes()),
            Self::Guid => write!(out, "{:016x}{:016x}", rng.below(1 << 63), rng.below(1 << 63)),
            Self::List(words) => out.write_all(rng.one_of(words)),
            Self::Telephone => write!(out, "+49 {} {}", rng.below(900) + 100, rng.below(9_000_000) + 1_000_000),
            Self::Digits(width) => {
                let limit = u32::try_from(*width).ok().and_then(|width| 10u64.checked_pow(width));
                let drawn = rng.next();
                write!(out, "{:0width$}", limit.map_or(drawn, |limit| drawn % limit), width = *width)
            }
            Self::Numeric(least, count) => write!(out, "{}", least + rng.below(*count)),
            Self::Letters(count) => {
                rng.letters(*count, out);
                Ok(())
            }
            Self::Value(slot, most) => {
                let range = values[*slot].clone();
                let text = String::from_utf8_lossy(&out[range.clone()]);
                let end = most.and_then(|most| text.char_indices().nth(most)).map_or(range.len(), |(end, _)| end);
                out.extend_from_within(range.start..range.start + end);
                Ok(())
            }
        };
    }
}

/// Parses a tag such as `<presence:30>` at the start of a line. Returns the percentage of entries that have the line,
/// and the rest of the line.
fn presence(row: &str) -> (u64, &str) {
    let given = row.strip_prefix("<presence:").and_then(|rest| rest.split_once('>'));
    match given.map(|(percent, rest)| (number(percent), rest)) {
        Some((Some(percent), rest)) if percent <= 100 => (percent, rest),
        _ => (100, row),
    }
}

/// Returns the text between the brackets of the tag at the start of `text`, and the length of the tag.
fn tag_of(text: &str) -> Option<(&str, usize)> {
    let end = text.find('>')?;
    let inner = &text[1..end];
    let name = inner.split(':').next().unwrap_or_default();
    let is_tag = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()) && !inner.contains('<');
    is_tag.then_some((inner, end + 1))
}

/// Parses a reference such as `{name}` or `{name:3}`. Returns the name, the maximum number of characters if given, and
/// the length of the reference.
fn reference_of(text: &str) -> Option<(&str, Option<usize>, usize)> {
    let end = text.find('}')?;
    let (name, most) = match text[1..end].split_once(':') {
        Some((name, most)) => (name, Some(usize::try_from(number(most)?).ok()?)),
        None => (&text[1..end], None),
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then_some((name, most, end + 1))
}

fn tag(text: &str) -> Result<Part, String> {
    let (name, given) = text.split_once(':').map_or((text, None), |(name, given)| (name, Some(given)));
    let part = match (name, given) {
        ("number", None) => Some(Part::Number),
        ("first", None) => Some(Part::First),
        ("last", None) => Some(Part::Last),
        ("password", None) => Some(Part::Password),
        ("guid", None) => Some(Part::Guid),
        ("list", Some(words)) => Some(Part::List(words.split(',').map(str::to_owned).collect())),
        ("random", Some(given)) => random(given),
        _ => None,
    };
    part.ok_or_else(|| format!("<{text}> is not a tag"))
}

/// Maximum number of letters or digits in one value.
const MAX_RANDOM_CHARACTERS: u64 = 1 << 20;

fn random(given: &str) -> Option<Part> {
    let count = |text: &str| number(text).filter(|count| *count <= MAX_RANDOM_CHARACTERS).map(|count| count as usize);
    match *given.split(':').collect::<Vec<_>>() {
        ["telephone"] => Some(Part::Telephone),
        ["alpha", letters] => count(letters).map(Part::Letters),
        ["digits", width] => count(width).map(Part::Digits),
        ["numeric", least, most] => {
            let (least, most) = (number(least)?, number(most)?);
            let span = most.checked_sub(least)?.checked_add(1)?;
            Some(Part::Numeric(least, span))
        }
        _ => None,
    }
}

/// Parses digits, without a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str, numbers: Range<u64>) -> String {
        let mut out = Vec::new();
        Template::read(text).unwrap().write(numbers, "ou=x", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tags_references_and_lists_become_values() {
        let text = "uid: u.<number>\nl: <list:a:b>\ncn: {l:1}-{uid}\nsn: {cn:99} <open {x y}\n";
        assert_eq!(written(text, 7..8), "dn: uid=u.7,ou=x\nuid: u.7\nl: a:b\ncn: a-u.7\nsn: a-u.7 <open {x y}\n\n");
    }

    #[test]
    fn letters_and_digits_have_their_counts() {
        let text = "uid: <number>\na: <random:alpha:30>\nb: <random:digits:25>\nc: <random:numeric:3:3>\nd: <guid>";
        let entry = written(text, 1..2);
        let value = |name: &str| entry.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        assert!(value("a: ").len() == 30 && value("a: ").bytes().all(|byte| byte.is_ascii_lowercase()));
        assert!(value("b: ").len() == 25 && value("b: ").bytes().all(|byte| byte.is_ascii_digit()));
        assert_eq!((value("c: ").as_str(), value("d: ").len()), ("3", 32));
    }

    #[test]
    fn as_many_entries_have_a_line_as_it_says() {
        let entries = written("uid: <number>\n<presence:30>title: x", 0..10_000);
        let having = entries.matches("title: x").count();
        assert!((2_800..3_200).contains(&having), "{having}");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, words) in [
            ("uid: <nothing>", 1, "<nothing> is not a tag"),
            ("uid: <number>\n\ncn: {sn}", 3, "{sn} does not match any attribute above"),
            ("uid: <number>\ncn", 2, "is not `attribute: value`"),
            ("cn: x", 0, "contains no uid"),
            ("<presence:50>uid: x", 0, "does not give every entry a uid"),
            ("uid: <random:numeric:5:4>", 1, "is not a tag"),
        ] {
            let (at, cause) = Template::read(text).unwrap_err();
            assert!(at == line && cause.contains(words), "{text}: {at} {cause}");
        }
    }

    proptest! {
        #[test]
        fn an_entry_is_the_same_in_whatever_piece_it_is_made(first in 0u64..1_000_000, count in 1u64..40) {
            let text = "uid: <number>\na: <first> <last> <random:alpha:40> <random:telephone>";
            let apart: String = (first..first + count).map(|number| written(text, number..number + 1)).collect();
            prop_assert_eq!(written(text, first..first + count), apart);
        }

        #[test]
        fn whatever_is_written_is_read_or_refused(text in "[a-z<>{}: 0-9,\n]{0,80}") {
            if let Ok(template) = Template::read(&text) {
                template.write(1..3, "ou=x", &mut Vec::new());
            }
        }
    }
}

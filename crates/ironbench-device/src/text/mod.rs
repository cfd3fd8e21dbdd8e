//! Device expressions, such as `raid0(4, ssd-sata-2011, stripe=64K)`.
//!
//! ```text
//! device  = NAME [ "(" part { "," part } ")" ]
//! part    = COUNT                     how many of the device that follows
//!         | [ COUNT "x" ] device      a member, repeated COUNT times
//!         | KEY "=" VALUE             an option
//! ```

mod parser;
mod value;

pub use parser::parse;
pub use value::Value;

use std::fmt;

/// A parsed device expression. Expressions that differ only in their columns are equal.
#[derive(Debug, Clone)]
pub struct Expression {
    pub name: String,
    pub members: Vec<Member>,
    pub options: Vec<OptionSetting>,
    /// Column of the name, from 1.
    pub column: usize,
    /// The text of the outermost expression, to which columns refer.
    pub source: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub count: u32,
    pub device: Expression,
}

#[derive(Debug, Clone)]
pub struct OptionSetting {
    pub key: String,
    pub value: Value,
    /// Column of the key, from 1.
    pub column: usize,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.members == other.members && self.options == other.options
    }
}

impl PartialEq for OptionSetting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

/// Formats the normal form, which parses to an equal expression.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let mut parts: Vec<String> = match self.members.as_slice() {
            [one] if one.count == 1 => vec![one.device.to_string()],
            [one] => vec![one.count.to_string(), one.device.to_string()],
            several => several.iter().map(Member::to_string).collect(),
        };
        let mut options: Vec<&OptionSetting> = self.options.iter().collect();
        options.sort_by(|a, b| a.key.cmp(&b.key));
        parts.extend(options.iter().map(|option| format!("{}={}", option.key, option.value)));
        if parts.is_empty() {
            return Ok(());
        }
        write!(f, "({})", parts.join(", "))
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{}", self.device),
            many => write!(f, "{many} x {}", self.device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(text: &str) -> String {
        parse(text).unwrap().to_string()
    }

    #[test]
    fn however_it_is_spaced_the_normal_form_is_one() {
        for text in ["raid0(4, ssd-sata-2011, stripe=64K)", " raid0 ( 4,ssd-sata-2011,stripe = 65536 ) "] {
            assert_eq!(normal(text), "raid0(4, ssd-sata-2011, stripe=64K)");
        }
        assert_eq!(normal("raid0(4 x ssd)"), "raid0(4, ssd)");
        assert_eq!(normal("spread(4 x a, b, 2 X c)"), "spread(4 x a, b, 2 x c)");
        assert_eq!(normal("behind(bus, raid1(2, a(fill=80%)))"), "behind(bus, raid1(2, a(fill=80%)))");
        assert_eq!(normal("hdd-7200()"), "hdd-7200");
        assert_eq!(normal("hdd(stroke=10%, cache=off, capacity=20GB)"), "hdd(cache=off, capacity=20GB, stroke=10%)");
    }

    #[test]
    fn mistakes_are_named_with_their_column() {
        for (text, column, said) in [
            ("", 1, "a device"),
            ("raid0(4, ssd", 13, ")"),
            ("raid0(4, )", 10, "a device"),
            ("raid0(4)", 8, "a device"),
            ("raid0(0, ssd)", 7, "at least 1"),
            ("ssd) ", 4, "end"),
            ("a(stripe=)", 10, "a value"),
            ("a(stripe=64Q)", 10, "64Q"),
            ("a(stripe=1K, stripe=2K)", 14, "twice"),
            ("raid0(99999999999, a)", 7, "maximum"),
            ("a;b", 2, ";"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.cause.contains(&format!("column {column}")), "{text}: {error}");
            assert!(error.cause.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("{}a{}", "raid0(".repeat(100_000), ")".repeat(100_000));
        assert!(parse(&deep).unwrap_err().cause.contains("deep"));
    }

    fn value() -> impl Strategy<Value = Value> + Clone {
        prop_oneof![
            (0u64..1 << 50).prop_map(Value::Number),
            (0u32..=1000).prop_map(|tenths| Value::Percent(f64::from(tenths) / 10.0)),
            prop_oneof![Just("on"), Just("off")].prop_map(|word| Value::Word(word.into())),
        ]
    }

    fn options() -> impl Strategy<Value = Vec<OptionSetting>> {
        let option = ("[a-w]{1,6}", value()).prop_map(|(key, value)| OptionSetting { key, value, column: 0 });
        prop::collection::vec(option, 0..3).prop_map(|mut options| {
            options.sort_by(|a, b| a.key.cmp(&b.key));
            options.dedup_by(|a, b| a.key == b.key);
            options
        })
    }

    fn expression() -> impl Strategy<Value = Expression> {
        let leaf = ("[a-w][a-w0-9-]{0,8}", options());
        let leaf = leaf.prop_map(|(name, options)| Expression {
            name,
            members: vec![],
            options,
            column: 0,
            source: String::new(),
        });
        leaf.prop_recursive(3, 12, 3, |inner| {
            let member = (1u32..9, inner).prop_map(|(count, device)| Member { count, device });
            ("[a-w]{1,6}", prop::collection::vec(member, 1..4), options()).prop_map(|(name, members, options)| {
                Expression { name, members, options, column: 0, source: String::new() }
            })
        })
    }

    proptest! {
        #[test]
        fn the_normal_form_parses_to_what_it_says(expression in expression()) {
            let text = expression.to_string();
            let read = parse(&text).unwrap();
            prop_assert_eq!(&read, &expression, "{}", text);
            prop_assert_eq!(read.to_string(), text);
        }

        #[test]
        fn no_text_is_too_much(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}

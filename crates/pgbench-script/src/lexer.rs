//! Splits expressions into tokens. An expression is the text between `\set NAME`, `\if` or `\elif` and the end of the
//! line.

use super::locate::Fault;
use super::number::parse_double;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    /// An operator, parenthesis, comma or keyword. Keywords are in lower case.
    Symbol(&'static str),
    Null,
    Boolean(bool),
    Integer(i64),
    /// The number 2^63, which is valid only after a minus sign.
    IntegerLimit,
    Double(f64),
    Variable(&'a str),
    Name(&'a str),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spanned<'a> {
    pub token: Token<'a>,
    pub offset: usize,
}

const KEYWORDS: [&str; 11] = ["and", "or", "not", "is", "isnull", "notnull", "case", "when", "then", "else", "end"];
/// Operators. Longer ones come first, so that `<=` is not read as `<`.
const OPERATORS: [&str; 21] =
    ["<>", "!=", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%", "=", "<", ">", "|", "&", "#", "~", "(", ")", ","];

/// Whether a name may start with this byte. A name starts with a letter, an underscore, or a character that is not
/// ASCII.
pub fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

pub fn is_variable_name(name: &str) -> bool {
    name.bytes().next().is_some_and(begins_name) && name.bytes().all(continues_name)
}

/// Skips blanks at `at`, and line breaks after a backslash. Returns the offset after them.
pub fn skip_blanks(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c) => at += 1,
            Some(b'\\') => match continuation(text, at) {
                Some(next) => at = next,
                None => return at,
            },
            _ => return at,
        }
    }
}

/// Returns where the next line begins, if the backslash at `at` continues the line. Otherwise returns None.
pub fn continuation(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    ["\\\n", "\\\r\n"].into_iter().find(|mark| rest.starts_with(mark)).map(|mark| at + mark.len())
}

/// Returns all tokens up to the end of the line, including continued lines. The last token is `End`, at the newline or
/// the end of the text.
pub fn tokens(text: &str, mut at: usize) -> Result<Vec<Spanned<'_>>, Fault> {
    let mut found = Vec::new();
    loop {
        at = skip_blanks(text, at);
        if at == text.len() || text.as_bytes()[at] == b'\n' {
            found.push(Spanned { token: Token::End, offset: at });
            return Ok(found);
        }
        let (token, length) = token(text, at)?;
        found.push(Spanned { token, offset: at });
        at += length;
    }
}

fn token(text: &str, at: usize) -> Result<(Token<'_>, usize), Fault> {
    let rest = &text[at..];
    let bytes = rest.as_bytes();
    let first = bytes[0];
    if first.is_ascii_digit() || (first == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit)) {
        return number(rest, at);
    }
    if begins_name(first) {
        let length = run(bytes, continues_name);
        return Ok((word(&rest[..length]), length));
    }
    if first == b':' {
        let length = run(&bytes[1..], continues_name);
        if length > 0 {
            return Ok((Token::Variable(&rest[1..=length]), length + 1));
        }
    }
    if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
        return Ok((Token::Symbol(operator), operator.len()));
    }
    let char = rest.chars().next().unwrap_or('\0');
    let fault = Fault::new(at, format!("unexpected character \"{}\" in an expression", char.escape_debug()));
    Err(match char {
        ';' => fault.hint("a backslash command ends with its line, without a semicolon"),
        '\'' | '"' => fault.hint("expressions know numbers and booleans, but no text"),
        '!' => fault.hint("write \"not\" or \"<>\""),
        _ => fault,
    })
}

fn run(bytes: &[u8], belongs: fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| belongs(**byte)).count()
}

fn word(word: &str) -> Token<'_> {
    let is = |known: &str| word.eq_ignore_ascii_case(known);
    if is("null") {
        Token::Null
    } else if is("true") || is("false") {
        Token::Boolean(is("true"))
    } else if let Some(keyword) = KEYWORDS.iter().find(|keyword| is(keyword)) {
        Token::Symbol(keyword)
    } else {
        Token::Name(word)
    }
}

fn number(rest: &str, at: usize) -> Result<(Token<'_>, usize), Fault> {
    let bytes = rest.as_bytes();
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let whole = run(bytes, is_digit);
    let mut length = whole;
    if bytes.get(length) == Some(&b'.') {
        length += 1 + run(&bytes[length + 1..], is_digit);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let digits = run(bytes.get(length + 1 + sign..).unwrap_or_default(), is_digit);
        if digits > 0 {
            length += 1 + sign + digits;
        }
    }
    let text = &rest[..length];
    if length > whole {
        return match parse_double(text) {
            Some(double) => Ok((Token::Double(double), length)),
            None => Err(Fault::new(at, format!("{text} is out of the range of a double"))),
        };
    }
    match text.parse() {
        Ok(integer) => Ok((Token::Integer(integer), length)),
        Err(_) if text == "9223372036854775808" => Ok((Token::IntegerLimit, length)),
        Err(_) => Err(Fault::new(at, format!("{text} is out of the range of a bigint"))
            .hint("write it with a decimal point to make it a double")),
    }
}

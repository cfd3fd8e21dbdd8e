//! Finds the variables in a SQL command.

use super::lexer::{begins_name, continues_name};
use super::scan::RawSql;
use super::{Piece, Slot, Sql, Symbols};

/// The two forms of a SQL command, as in `Sql`.
#[derive(Debug, Default)]
pub struct Substituted {
    pub text: String,
    pub parameters: Vec<Slot>,
    pub parameter_offsets: Vec<usize>,
    pub pieces: Vec<Piece>,
    pub quoted: Vec<Slot>,
}

/// Splits the text at its variables. In the simple form, variables are replaced everywhere, as in pgbench. In the form
/// with `$n`, quotes and comments stay unchanged, because a server accepts no parameters inside them. pgbench replaces
/// them there too, so such a command fails in pgbench.
pub fn substitute(raw: &RawSql, symbols: &mut Symbols) -> Substituted {
    let text = &raw.text;
    let mut out = Substituted::default();
    let mut copied = 0;
    let mut piece_from = 0;
    let mut protected = raw.protected.iter().peekable();
    let mut at = 0;
    while let Some(colon) = text[at..].find(':').map(|length| at + length) {
        let Some(length) = name_length(&text.as_bytes()[colon + 1..]) else {
            // Several colons, as in `a::int`, do not start a variable.
            at = colon + text[colon..].bytes().take_while(|byte| *byte == b':').count();
            continue;
        };
        let end = colon + 1 + length;
        let slot = symbols.slot(&text[colon + 1..end]);
        if piece_from < colon {
            out.pieces.push(Piece::Text(text[piece_from..colon].to_owned()));
        }
        out.pieces.push(Piece::Variable(slot));
        piece_from = end;
        while protected.next_if(|part| part.range.end <= colon).is_some() {}
        match protected.peek() {
            Some(part) if part.range.contains(&colon) => {
                if !part.comment {
                    out.quoted.push(slot);
                }
            }
            _ => {
                out.parameters.push(slot);
                out.text.push_str(&text[copied..colon]);
                out.parameter_offsets.push(out.text.len());
                out.text.push_str(&format!("${}", out.parameters.len()));
                copied = end;
            }
        }
        at = end;
    }
    if piece_from < text.len() {
        out.pieces.push(Piece::Text(text[piece_from..].to_owned()));
    }
    out.text.push_str(&text[copied..]);
    out
}

impl Sql {
    /// Returns the text with `?` for each variable, for servers that number parameters by their order.
    pub fn with_question_marks(&self) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut copied = 0;
        for (number, offset) in self.parameter_offsets.iter().enumerate() {
            text.push_str(&self.text[copied..*offset]);
            text.push('?');
            copied = offset + format!("${}", number + 1).len();
        }
        text + &self.text[copied..]
    }
}

/// Returns the length of the variable name at the start of `bytes`. A name cannot start with a digit. Therefore `12:30`
/// and `a[1:2]` contain no variables.
fn name_length(bytes: &[u8]) -> Option<usize> {
    begins_name(*bytes.first()?).then(|| bytes.iter().take_while(|byte| continues_name(**byte)).count())
}

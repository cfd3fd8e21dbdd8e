//! Encodes requests. The pieces of a request are built once. Elements without variables are encoded in advance.

use pgbench_script::Slot;

use super::ber;
use super::text::{Part, plain};

/// Maximum nesting depth of elements.
const MAX_DEPTH: usize = 64;

/// A piece of an encoded request.
#[derive(Debug, Clone)]
pub enum Piece {
    Bytes(Vec<u8>),
    Variable(Slot),
    Letters { of: Vec<u8>, count: usize },
    Open(u8),
    Close,
}

/// Collects the pieces of a request.
#[derive(Debug, Default)]
pub struct Writer {
    pieces: Vec<Piece>,
    depth: usize,
}

impl Writer {
    pub fn open(&mut self, tag: u8) {
        self.depth += 1;
        self.pieces.push(Piece::Open(tag));
    }

    pub fn close(&mut self) {
        self.depth -= 1;
        self.pieces.push(Piece::Close);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    pub fn octets(&mut self, tag: u8, value: &[Part]) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            return Err("the nesting is too deep".to_owned());
        }
        if let Some(plain) = plain(value) {
            let mut out = Vec::new();
            ber::octets(&mut out, tag, &plain);
            self.bytes(&out);
            return Ok(());
        }
        self.open(tag);
        for part in value {
            match part {
                Part::Byte(byte) => self.bytes(&[*byte]),
                Part::Variable(slot) => self.pieces.push(Piece::Variable(*slot)),
                Part::Letters { of, count } => self.pieces.push(Piece::Letters { of: of.clone(), count: *count }),
            }
        }
        self.close();
        Ok(())
    }

    /// Encodes the pieces, which must not contain variables.
    #[cfg(test)]
    pub fn plain(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write(&self.pieces, &mut out, |_, _| unreachable!("no variable"), |_, _, _| {}).unwrap();
        out
    }

    /// Combines the pieces of each element without variables into a single piece.
    pub fn folded(self) -> Vec<Piece> {
        let fixed =
            |pieces: &[Piece]| pieces.iter().all(|piece| !matches!(piece, Piece::Variable(_) | Piece::Letters { .. }));
        let mut out: Vec<Piece> = Vec::new();
        let mut at = 0;
        while at < self.pieces.len() {
            let piece = &self.pieces[at];
            if let Piece::Open(_) = piece {
                let end = closing(&self.pieces, at);
                if fixed(&self.pieces[at..=end]) {
                    let mut bytes = Vec::new();
                    write(&self.pieces[at..=end], &mut bytes, |_, _| true, |_, _, _| {}).expect("no variable");
                    push(&mut out, Piece::Bytes(bytes));
                    at = end + 1;
                    continue;
                }
            }
            push(&mut out, piece.clone());
            at += 1;
        }
        out
    }
}

fn push(out: &mut Vec<Piece>, piece: Piece) {
    match (out.last_mut(), piece) {
        (Some(Piece::Bytes(last)), Piece::Bytes(more)) => last.extend_from_slice(&more),
        (_, piece) => out.push(piece),
    }
}

fn closing(pieces: &[Piece], open: usize) -> usize {
    let mut depth = 0;
    for (at, piece) in pieces.iter().enumerate().skip(open) {
        match piece {
            Piece::Open(_) => depth += 1,
            Piece::Close if depth == 1 => return at,
            Piece::Close => depth -= 1,
            _ => {}
        }
    }
    unreachable!("every element is closed")
}

/// Writes the pieces. Calls `variable` for each variable. If it returns false, stops and returns the variable as the
/// error.
#[inline]
pub fn write(
    pieces: &[Piece],
    out: &mut Vec<u8>,
    variable: impl Fn(Slot, &mut Vec<u8>) -> bool,
    mut letters: impl FnMut(&[u8], usize, &mut Vec<u8>),
) -> Result<(), Slot> {
    let (mut starts, mut depth) = ([0; MAX_DEPTH], 0);
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Variable(slot) if variable(*slot, out) => {}
            Piece::Variable(slot) => return Err(*slot),
            Piece::Letters { of, count } => letters(of, *count, out),
            Piece::Open(tag) => {
                starts[depth] = ber::open(out, *tag);
                depth += 1;
            }
            Piece::Close => {
                depth -= 1;
                ber::close(out, starts[depth]);
            }
        }
    }
    Ok(())
}

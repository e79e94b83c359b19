//! Finds parts of many secrets in one pass over a text.

use super::text::{Folded, fold};
use std::collections::HashMap;
use std::ops::Range;

/// Length of the pieces that are looked up.
const PIECE: usize = 8;
/// Minimum length of a part of a secret that counts. Every part of this length contains an indexed piece, as every eighth
/// is.
const PART: usize = 2 * PIECE - 1;
/// The separator between two secrets.
const END: u8 = 0;

/// All forms of all secrets, in the form of [`Folded`].
#[derive(Debug, Default)]
pub(super) struct Forms {
    signs: Vec<u8>,
    /// The position of a piece in `signs`.
    pieces: HashMap<u64, u32>,
    /// A filter of possible pieces by a part of their hash: for most places of a text it is enough.
    filter: Vec<u64>,
}

/// Bits of the filter, as a power of two.
const FILTER: u32 = 20;

impl Forms {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn add(&mut self, form: &[u8]) {
        let form: Vec<u8> = form.iter().filter_map(|sign| fold(*sign)).collect();
        if form.len() < PIECE || self.covers(&form) {
            return;
        }
        if self.signs.is_empty() {
            self.signs.push(END);
            self.filter = vec![0; 1 << (FILTER - 6)];
        }
        let begin = self.signs.len();
        self.signs.extend_from_slice(&form);
        self.signs.push(END);
        for (at, piece) in form.windows(PIECE).enumerate().step_by(PIECE) {
            let (piece, place) = (key(piece), u32::try_from(begin + at).unwrap_or(u32::MAX));
            self.pieces.entry(piece).or_insert(place);
            let bit = hash(piece);
            self.filter[bit >> 6] |= 1 << (bit & 63);
        }
    }

    /// Whether this form is already known.
    fn covers(&self, form: &[u8]) -> bool {
        let Some(&place) = self.pieces.get(&key(&form[..PIECE])) else { return false };
        self.signs[place as usize..].starts_with(form)
    }

    /// The positions of secrets' parts in a text.
    pub(super) fn find(&self, text: &Folded) -> Vec<Range<usize>> {
        let (mut found, mut at, mut end) = (Vec::new(), 0, 0);
        let signs = &text.signs;
        // The piece that ends before the next character.
        let (mut piece, mut read) = (0, 0);
        while at + PIECE <= signs.len() {
            while read < at + PIECE {
                piece = piece << 8 | u64::from(signs[read]);
                read += 1;
            }
            let bit = hash(piece);
            if self.filter[bit >> 6] >> (bit & 63) & 1 == 1
                && let Some(&place) = self.pieces.get(&piece)
            {
                let place = place as usize;
                let before = (0..at - end)
                    .take_while(|step| self.signs[place - 1 - step] == signs[at - 1 - step])
                    .count();
                let after =
                    signs[at..].iter().zip(&self.signs[place..]).take_while(|(one, other)| one == other);
                let (from, to) = (at - before, at + after.count());
                let (first, last) = (place - before, place + (to - at));
                // A secret that is shorter than a part must appear as a whole.
                let whole = self.signs[first - 1] == END && self.signs[last] == END;
                if to - from >= PART || whole {
                    found.push(text.place(from, to));
                    (at, end, read) = (to, to, to);
                    continue;
                }
            }
            at += 1;
        }
        found
    }
}

fn key(piece: &[u8]) -> u64 {
    piece.iter().fold(0, |key, sign| key << 8 | u64::from(*sign))
}

fn hash(piece: u64) -> usize {
    (piece.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER)) as usize
}

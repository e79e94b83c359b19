//! A text in the form in which secrets are searched: without characters that programs insert into a secret.

/// The significant characters, each with its position in the text: in lower case, in one alphabet of base64, without
/// spaces, line breaks, colours or other control characters, whether plain or escaped.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) signs: Vec<u8>,
    /// The beginning and end of each character.
    places: Vec<(u32, u32)>,
}

impl Folded {
    pub(super) fn of(text: &str) -> Folded {
        let mut folded =
            Folded { signs: Vec::with_capacity(text.len()), places: Vec::with_capacity(text.len()) };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            // Most characters stand for themselves.
            if !matches!(bytes[at], 0x1b | b'\\' | b'%') {
                let sign = FOLDED[bytes[at] as usize];
                if sign != 0 {
                    folded.push(sign, at, at + 1);
                }
                at += 1;
                continue;
            }
            let (sign, length) = read(&bytes[at..]);
            match sign {
                0x1b => at += length + sequence(&bytes[at + length..]),
                sign => {
                    if let Some(sign) = fold(sign) {
                        folded.push(sign, at, at + length);
                    }
                    at += length;
                }
            }
        }
        folded
    }

    fn push(&mut self, sign: u8, from: usize, to: usize) {
        let short = |place| u32::try_from(place).unwrap_or(u32::MAX);
        self.signs.push(sign);
        self.places.push((short(from), short(to)));
    }

    /// The position of these characters in the text.
    pub(super) fn place(&self, from: usize, to: usize) -> std::ops::Range<usize> {
        self.places[from].0 as usize..self.places[to - 1].1 as usize
    }
}

/// The significant form of a character; `None` for one that may appear within a secret without being part of it.
pub(super) fn fold(sign: u8) -> Option<u8> {
    Some(FOLDED[sign as usize]).filter(|sign| *sign != 0)
}

/// The significant form of each character; 0 for none.
const FOLDED: [u8; 256] = {
    let (mut table, mut at) = ([0; 256], b'!' as usize);
    while at < table.len() {
        table[at] = match at as u8 {
            0x7f => 0,
            b'-' => b'+',
            b'_' => b'/',
            sign => sign.to_ascii_lowercase(),
        };
        at += 1;
    }
    table
};

/// The next character, and the number of bytes that represent it: itself, an escape of JSON, C or Rust, or one of a URL.
fn read(bytes: &[u8]) -> (u8, usize) {
    match bytes {
        [b'\\', b'n' | b'r' | b't', ..] => (b' ', 2),
        [b'\\', b'e', ..] => (0x1b, 2),
        [b'\\', b'u', b'{', rest @ ..] => {
            let length = rest.iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
            match (number(&rest[..length], 16), rest.get(length)) {
                (Some(sign), Some(b'}')) => (sign, length + 4),
                _ => (b'\\', 1),
            }
        }
        [b'\\', b'u', rest @ ..] => numbered(rest, 4, 16, 2),
        [b'\\', b'x', rest @ ..] => numbered(rest, 2, 16, 2),
        [b'\\', b'0'..=b'3', ..] => numbered(&bytes[1..], 3, 8, 1),
        [b'%', rest @ ..] => match numbered(rest, 2, 16, 1) {
            (_, 1) => (b'%', 1),
            found => found,
        },
        [sign, ..] => (*sign, 1),
        [] => (0, 1),
    }
}

/// A character that is written as a number with this many digits, after this many bytes of prefix.
fn numbered(digits: &[u8], length: usize, radix: u32, before: usize) -> (u8, usize) {
    match digits.get(..length).and_then(|digits| number(digits, radix)) {
        Some(sign) => (sign, before + length),
        None => (b'\\', 1),
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u8> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, radix).ok().and_then(|sign| u8::try_from(sign).ok())
}

/// The length of a control sequence after its escape:
/// <https://www.ecma-international.org/publications-and-standards/standards/ecma-48/>.
fn sequence(bytes: &[u8]) -> usize {
    /// Longer ones are not control sequences.
    const LONGEST: usize = 256;
    let ends = |end: fn(u8) -> bool| {
        let length = bytes[1..].iter().take(LONGEST).position(|byte| end(*byte));
        length.map_or(1, |length| length + 2)
    };
    match bytes.first() {
        Some(b'[') => ends(|byte| (0x40..=0x7e).contains(&byte)),
        Some(b']' | b'P' | b'^' | b'_' | b'X') => ends(|byte| matches!(byte, 0x07 | 0x1b | b'\\')),
        Some(b'(' | b')' | b'#' | b'%') => 2.min(bytes.len()),
        _ => 0,
    }
}

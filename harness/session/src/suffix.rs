//! The suffix of names that a check creates.

/// A number of 20 bits as four letters and digits.
pub fn suffix(mut number: u32) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut text = String::new();
    for _ in 0..4 {
        text.push(DIGITS[(number & 31) as usize] as char);
        number >>= 5;
    }
    text
}

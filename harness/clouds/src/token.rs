//! Random tokens that cannot be guessed.

use super::StartError;
use std::fmt::Write as _;

/// A token that cannot be guessed: 256 random bits in hexadecimal digits.
///
/// # Errors
/// The system provides no random numbers.
pub fn fresh_token() -> Result<String, StartError> {
    let mut bits = [0_u8; 32];
    getrandom::fill(&mut bits).map_err(StartError::Random)?;
    Ok(bits.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to memory cannot fail");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, two) = (fresh_token().expect("random"), fresh_token().expect("random"));
        assert_eq!((one.len(), one == two), (64, false));
    }
}

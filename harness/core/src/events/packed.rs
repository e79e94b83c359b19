//! A packed stream: a single gzip member, unpacked while it is read.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, ErrorKind, Read};

/// The first bytes of packed files (RFC 1952).
pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Unpacks a stream, up to a maximum number of bytes.
///
/// A second gzip member, or any other byte after the first one, is an error: a run's stream is packed once.
pub(super) struct Packed<R> {
    decoder: GzDecoder<R>,
    /// How many more bytes may be unpacked.
    left: u64,
}

impl<R: BufRead> Packed<R> {
    /// Unpacks `packed`, which may have at most `most` unpacked bytes.
    pub(super) fn new(packed: R, most: u64) -> Packed<R> {
        Packed { decoder: GzDecoder::new(packed), left: most }
    }
}

impl<R: BufRead> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wrong = |why: &str| io::Error::new(ErrorKind::InvalidData, why);
        let length = self.decoder.read(buffer)?;
        if length == 0 && !buffer.is_empty() && !self.decoder.get_mut().fill_buf()?.is_empty() {
            return Err(wrong(
                "there is data after the end of the packed stream; a packed stream must be a single one",
            ));
        }
        self.left = self
            .left
            .checked_sub(length as u64)
            .ok_or_else(|| wrong("the packed stream is larger than the maximum size of a stream"))?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    fn unpacked(bytes: &[u8], most: u64) -> Result<String, String> {
        let mut text = String::new();
        let read = Packed::new(bytes, most).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn one_member_within_its_bound_is_unpacked() {
        assert_eq!(unpacked(&packed("one\ntwo\n"), 8), Ok("one\ntwo\n".to_owned()));
        let large = unpacked(&packed("one\ntwo\n"), 7).expect_err("a byte too many");
        assert!(large.contains("larger than the maximum size of a stream"), "{large}");
    }

    #[test]
    fn nothing_may_follow_the_packed_stream() {
        for more in [packed("two\n"), b"x".to_vec(), vec![0]] {
            let why = unpacked(&[packed("one\n"), more].concat(), 100).expect_err("something follows");
            assert!(why.contains("data after the end of the packed stream"), "{why}");
        }
    }
}

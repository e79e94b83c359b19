//! Compression of large answers, as a real server compresses them.
//!
//! Source: `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go`.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Answers with more bytes than this are compressed.
const FROM: usize = 128 << 10;

/// Compresses an answer, quickly rather than well; `None` if it is too small.
pub(super) fn compressed(bytes: &[u8]) -> Option<Bytes> {
    if bytes.len() <= FROM {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn only_large_answers_are_compressed() {
        assert_eq!(compressed(&[0; FROM]), None);
        let text = "node".repeat(FROM);
        let small = compressed(text.as_bytes()).expect("it is large");
        let mut back = String::new();
        flate2::read::GzDecoder::new(small.as_ref()).read_to_string(&mut back).expect("gzip");
        assert!(back == text && small.len() < text.len() / 10);
    }
}

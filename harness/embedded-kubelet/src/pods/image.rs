//! Whether an image reference can be parsed (`github.com/distribution/reference`). Pure functions.

/// The reason for which a container waits whose image cannot be parsed.
pub(crate) const UNUSABLE: &str = "InvalidImageName";

/// What a kubelet says of such an image.
pub(crate) fn refusal(image: &str, fault: &str) -> String {
    format!("Failed to apply default image tag {image:?}: {fault}")
}

/// The reason why a kubelet cannot use this image; `None` if it can.
pub(crate) fn fault(image: &str) -> Option<String> {
    let wrong = || Some(format!("couldn't parse image name {image:?}: invalid reference format"));
    let (rest, digest) = image.split_once('@').map_or((image, None), |(rest, digest)| (rest, Some(digest)));
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return wrong();
    }
    let (path, tag) = match rest.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (rest, None),
    };
    let in_word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_tag = |tag: &str| {
        (1..=128).contains(&tag.len()) && tag.chars().all(in_word) && !tag.starts_with(['.', '-'])
    };
    if !tag.is_none_or(is_tag) {
        return wrong();
    }
    // The first component may be a host, which may have capital letters.
    let (host, name) = match path.split_once('/') {
        Some((host, name)) if host.contains(['.', ':']) || host == "localhost" => (host, name),
        _ => ("", path),
    };
    let in_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    if host.chars().all(in_host) && name.split('/').all(is_component) { None } else { wrong() }
}

fn is_digest(digest: &str) -> bool {
    let hex = |sum: &str| sum.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
    match digest.split_once(':') {
        Some(("sha256", sum)) => sum.len() == 64 && hex(sum),
        Some(("sha512", sum)) => sum.len() == 128 && hex(sum),
        _ => false,
    }
}

/// Lower-case letters and digits, with single separators between them.
fn is_component(part: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(edge) && part.ends_with(edge) && part.chars().all(|c| edge(c) || "_.-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn only_image_names_that_a_kubelet_parses_are_used() {
        let sum = "a".repeat(64);
        for good in ["ccm", "a/ccm:v1", "Registry.example:5000/a/ccm:v1.2", &format!("ccm@sha256:{sum}")] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in ["registry/ccm@latest", "", "Ccm:v1", "ccm:", "ccm:a b", "a//b", "ccm@sha256:abc"] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }
}

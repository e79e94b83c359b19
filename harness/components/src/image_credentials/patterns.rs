//! Which images a pattern matches, by the kubelet's rules (kubernetes pkg/credentialprovider/keyring.go): the same number
//! of labels in the host, globs only within a label, the same port, and a path that is a prefix of the image's.

use harness_core::glob::fits;
use std::fmt;
use std::net::IpAddr;

/// A host label that is not registered.
const UNOWNED: &str = "belongs-to-nobody";
/// Labels before a country's label below which names are registered.
const BELOW_COUNTRIES: &[&str] = &["ac", "co", "com", "edu", "gov", "net", "org"];

/// A pattern of `matchImages` or of an answer's `auth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    labels: Vec<String>,
    port: String,
    path: String,
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a pattern: {why}")]
pub struct BadPattern {
    text: String,
    why: String,
}

impl Pattern {
    /// Parses a text without scheme, as in `matchImages`.
    ///
    /// # Errors
    /// It is not a host with an optional port and path.
    pub fn new(text: &str) -> Result<Pattern, BadPattern> {
        let bad = |why: &str| BadPattern { text: text.to_owned(), why: why.to_owned() };
        if text.chars().any(char::is_control) {
            return Err(bad("it contains a control character"));
        }
        let end = text.find(['/', '?', '#']).unwrap_or(text.len());
        let (authority, rest) = text.split_at(end);
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let path = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
        if let Some(sign) = host.chars().find(|sign| sign.is_ascii() && !belongs_to_a_host(*sign)) {
            return Err(bad(&format!("a host cannot contain '{sign}'")));
        }
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
            Some((_, port)) => return Err(bad(&format!("'{port}' is not a port"))),
            None => (host, ""),
        };
        let path = unescaped(path).ok_or_else(|| bad("its path has an invalid escape"))?;
        let labels = name.split('.').map(str::to_owned).collect();
        Ok(Pattern { labels, port: port.to_owned(), path })
    }

    /// Parses a key of a response's `auth`, as a keyring does: it may begin with a scheme, and the prefix of registries'
    /// API paths is ignored.
    ///
    /// # Errors
    /// Those of [`Pattern::new`].
    pub fn of_auth(key: &str) -> Result<Pattern, BadPattern> {
        let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
        let mut pattern = Pattern::new(bare)?;
        if pattern.path.starts_with("/v1/") || pattern.path.starts_with("/v2/") {
            pattern.path.drain(..3);
        }
        if pattern.path == "/" {
            pattern.path.clear();
        }
        Ok(pattern)
    }

    /// Whether it matches an image: host, optional port, and path, without tag and digest.
    pub fn matches(&self, image: &str) -> bool {
        let Ok(image) = Pattern::new(image) else { return false };
        self.port == image.port
            && self.labels.len() == image.labels.len()
            && image.path.starts_with(&self.path)
            && self.labels.iter().zip(&image.labels).all(|(glob, label)| fits(glob, label))
    }

    /// The part that a kubelet takes literally although it looks like a glob: globs in a path match nothing.
    pub fn idle_glob(&self) -> Option<&str> {
        self.path.contains('*').then_some(self.path.as_str())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = if self.port.is_empty() { "" } else { ":" };
        write!(f, "{}{port}{}{}", self.labels.join("."), self.port, self.path)
    }
}

/// The image of the same name in a foreign registry: only the registered part of the host differs. `None` if no part of
/// the host is registered.
pub fn foreign_to(image: &str) -> Vec<String> {
    let (registry, path) = image.split_once('/').unwrap_or((image, ""));
    let (host, port) = registry.split_once(':').map_or((registry, None), |(host, port)| (host, Some(port)));
    let labels: Vec<&str> = host.split('.').collect();
    if host.parse::<IpAddr>().is_ok() {
        return Vec::new();
    }
    let below_country = match labels.as_slice() {
        [.., before, last] => last.len() == 2 && BELOW_COUNTRIES.contains(before),
        _ => false,
    };
    let registered = if below_country { vec![2, 3] } else { vec![2] };
    let places = registered.into_iter().filter_map(|from_end| labels.len().checked_sub(from_end));
    let elsewhere = |at: usize| {
        let mut labels = labels.clone();
        labels[at] = UNOWNED;
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{}{port}/{path}", labels.join("."))
    };
    places.map(elsewhere).collect()
}

/// Which characters Go's `net/url` allows in a host.
fn belongs_to_a_host(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(sign)
}

/// A path with its escapes decoded; `None` if one is invalid.
fn unescaped(path: &str) -> Option<String> {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::yaml;
    use harness_core::files;
    use serde::Deserialize;

    #[test]
    fn an_image_of_another_has_the_same_port_and_path_and_another_owner() {
        assert_eq!(
            foreign_to("eu.registry.example:5000/team/app"),
            ["eu.belongs-to-nobody.example:5000/team/app"]
        );
        assert_eq!(
            foreign_to("eu.acme.co.uk/app"),
            ["eu.acme.belongs-to-nobody.uk/app", "eu.belongs-to-nobody.co.uk/app"]
        );
        for without_owner in ["localhost/app", "registry:5000/app", "10.0.0.1:5000/app"] {
            assert!(foreign_to(without_owner).is_empty(), "{without_owner}");
        }
    }

    #[test]
    fn wildcards_below_unregistered_domains_match_no_other_owner() {
        for (pattern, image, too_wide) in [
            ("*.dkr.ecr.*.amazonaws.com", "1234.dkr.ecr.eu-west-1.amazonaws.com/app", false),
            ("*.dkr.ecr.*.amazonaws.com.cn", "1234.dkr.ecr.cn-north-1.amazonaws.com.cn/app", false),
            ("*-docker.pkg.dev", "europe-docker.pkg.dev/app", false),
            ("*.on.aws", "1234.on.aws/app", false),
            ("*.*.example", "eu.registry.example/app", true),
            ("*.io", "registry.io/app", true),
            ("*.*.co.uk", "eu.acme.co.uk/app", true),
            ("*.*.*:5000", "eu.registry.example:5000/app", true),
            ("*.*.example/team", "eu.registry.example/team/app", true),
        ] {
            let parsed = Pattern::of_auth(pattern).expect("a pattern");
            assert!(parsed.matches(image), "{pattern} does not match {image}");
            let found = foreign_to(image).iter().any(|foreign| parsed.matches(foreign));
            assert_eq!(found, too_wide, "{pattern}");
        }
    }

    /// A line of `patterns.yaml`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Vector {
        pattern: String,
        #[serde(default)]
        matches: Vec<String>,
        #[serde(default)]
        misses: Vec<String>,
        #[serde(default)]
        malformed: bool,
    }

    #[test]
    fn patterns_match_what_a_kubelet_takes_them_to_match() {
        let file = files::built_in("vectors/patterns.yaml");
        let text = files::read(&file).expect("the vectors");
        let vectors: Vec<Vector> = yaml::from_str(&text, &file).expect("vectors");
        assert!(vectors.len() > 15);
        for Vector { pattern, matches, misses, malformed } in vectors {
            let Ok(parsed) = Pattern::of_auth(&pattern) else {
                assert!(malformed, "{pattern} is refused");
                continue;
            };
            assert!(!malformed, "{pattern} is not a pattern");
            assert!(!matches.is_empty() || !misses.is_empty(), "{pattern} shows nothing");
            for image in matches {
                assert!(parsed.matches(&image), "{pattern} does not match {image}");
            }
            for image in misses {
                assert!(!parsed.matches(&image), "{pattern} matches {image}");
            }
        }
    }
}

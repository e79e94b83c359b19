//! URLs in answers that would lead past the proxy, and lead back to it once they are replaced.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// The beginnings of URLs that are replaced in bodies of answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrites(Vec<String>);

impl Rewrites {
    /// Replaces URLs that begin with one of these, without a slash at their end.
    pub fn of(urls: impl IntoIterator<Item = String>) -> Rewrites {
        let mut urls: Vec<String> = urls
            .into_iter()
            .map(|url| url.trim_end_matches('/').to_owned())
            .filter(|url| !url.is_empty())
            .collect();
        // Of two that begin alike the longer counts.
        urls.sort_by_key(|url| std::cmp::Reverse(url.len()));
        Rewrites(urls)
    }

    /// Whether there is nothing to replace.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A body in which URLs lead to `own`, the URL of the proxy as the caller uses it; `None` if it has none of them. JSON
    /// may write a slash as `\\/`.
    pub(crate) fn applied(&self, body: &[u8], own: &str) -> Option<Bytes> {
        let text = std::str::from_utf8(body).ok()?;
        let mut changed = text.to_owned();
        for url in &self.0 {
            changed = replaced(&changed, url, own);
            changed = replaced(&changed, &escaped(url), &escaped(own));
        }
        (changed != text).then(|| Bytes::from(changed))
    }
}

/// Whether an answer may be text that has URLs.
pub(crate) fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    ["json", "xml", "text/", "yaml"].iter().any(|part| kind.contains(part))
}

fn escaped(url: &str) -> String {
    url.replace('/', "\\/")
}

/// Replaces `url` where the host, the port or the part of a path that it ends with ends as well.
fn replaced(text: &str, url: &str, own: &str) -> String {
    let (mut changed, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(url) {
        let after = &rest[at + url.len()..];
        let is_whole = !after.starts_with(|next: char| next.is_ascii_alphanumeric() || ".:-_".contains(next));
        changed.push_str(&rest[..at]);
        changed.push_str(if is_whole { own } else { url });
        rest = after;
    }
    changed.push_str(rest);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(urls: &[&str], body: &str) -> Option<String> {
        let rewrites = Rewrites::of(urls.iter().map(|url| (*url).to_owned()));
        let changed = rewrites.applied(body.as_bytes(), "http://127.0.0.1:9")?;
        Some(String::from_utf8(changed.to_vec()).expect("text"))
    }

    #[test]
    fn whole_urls_are_replaced_and_longer_names_stay() {
        let urls = ["https://api.acme.example/", "https://api.acme.example/v2"];
        let body =
            r#"{"next": "https://api.acme.example/v2/servers?page=2", "a": "https://api.acme.example"}"#;
        assert_eq!(
            applied(&urls, body).as_deref(),
            Some(r#"{"next": "http://127.0.0.1:9/servers?page=2", "a": "http://127.0.0.1:9"}"#)
        );
        for other in
            ["https://api.acme.example.org/v2", "https://api.acme.example:8443/", "https://api.acme.exampleX"]
        {
            assert_eq!(applied(&urls, other), None, "{other}");
        }
        assert_eq!(applied(&[], body), None);
    }

    #[test]
    fn slashes_may_be_escaped() {
        let body = r#"{"next":"https:\/\/api.acme.example\/v2\/x"}"#;
        let changed = applied(&["https://api.acme.example"], body);
        assert_eq!(changed.as_deref(), Some(r#"{"next":"http:\/\/127.0.0.1:9\/v2\/x"}"#));
    }

    #[test]
    fn only_text_has_urls() {
        let of = |kind: &'static str| {
            is_text(&HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().expect("a value"))]))
        };
        assert!(of("application/json; charset=utf-8") && of("text/xml") && of("application/hal+json"));
        assert!(!of("application/octet-stream") && !is_text(&HeaderMap::new()));
    }
}

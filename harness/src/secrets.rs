//! What must appear in no output: the tokens of a run, as they are and as a Secret of Kubernetes shows them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What stands in a secret's place.
const REDACTED: &str = "<redacted>";

/// The secrets of a run.
#[derive(Clone, Default)]
pub struct Secrets {
    forms: Vec<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// These tokens; those shorter than 8 characters are no secrets, and would be found everywhere.
    pub fn new<'a>(tokens: impl Iterator<Item = &'a str>) -> Secrets {
        let long_enough = tokens.filter(|token| token.len() >= 8);
        Secrets { forms: long_enough.flat_map(|token| [token.to_owned(), STANDARD.encode(token)]).collect() }
    }

    /// These secrets, too.
    pub fn add(&mut self, more: Secrets) {
        self.forms.extend(more.forms);
    }

    /// The text with every secret replaced.
    pub fn redact(&self, text: String) -> String {
        self.redacted(&text).unwrap_or(text)
    }

    /// The text with every secret replaced; `None` when there is none in it.
    pub fn redacted(&self, text: &str) -> Option<String> {
        self.forms.iter().fold(None, |clean: Option<String>, secret| {
            let now = clean.as_deref().unwrap_or(text);
            if now.contains(secret) { Some(now.replace(secret, REDACTED)) } else { clean }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_in_both_forms_and_nothing_else_does() {
        let secrets = Secrets::new(["0123456789abcdef", "", "short"].into_iter());
        let text = "token=0123456789abcdef data: MDEyMzQ1Njc4OWFiY2RlZg== short".to_owned();
        assert_eq!(secrets.redact(text), "token=<redacted> data: <redacted> short");
    }
}

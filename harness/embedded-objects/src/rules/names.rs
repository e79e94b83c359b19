//! The forms of names, and the API server's messages for names that do not have the required form.
//!
//! Source: `k8s.io/apimachinery/pkg/api/validate/content` and `pkg/util/validation`.

/// The messages about all faults of a name; empty if it is valid.
pub type Faults = Vec<String>;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Whether a text has this form. Inner bytes may also be those of `extra`; first and last are plain.
fn shaped(text: &str, plain: fn(u8) -> bool, extra: &[u8]) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            plain(first) && plain(last) && bytes.iter().all(|&byte| plain(byte) || extra.contains(&byte))
        }
        _ => false,
    }
}

fn is_label(text: &str) -> bool {
    shaped(text, lower_or_digit, b"-")
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_qualified_part(text: &str) -> bool {
    shaped(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// The message about length. Older checks say characters; those of qualified names and label values say bytes.
fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn too_many_bytes(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// The sentence about a form, with its examples and pattern.
pub fn pattern(sentence: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{sentence} (regex used for validation is '{pattern}')");
    }
    let listed: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{sentence} (e.g. {}regex used for validation is '{pattern}')", listed.join(" or "))
}

/// Checks a DNS label, the form of the names of Services, Namespaces and containers.
pub fn label(text: &str) -> Faults {
    let mut faults = Faults::new();
    if text.len() > 63 {
        faults.push(too_long(63));
    }
    if !is_label(text) {
        faults.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    faults
}

/// Checks a DNS label that begins with a letter, the form of the names of API versions and resources.
pub fn label_1035(text: &str) -> Faults {
    let mut faults = Faults::new();
    if text.len() > 63 {
        faults.push(too_long(63));
    }
    if !is_label(text) || text.starts_with(|first: char| first.is_ascii_digit()) {
        faults.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// Checks a DNS subdomain, the form of the names of most objects.
pub fn subdomain(text: &str) -> Faults {
    let mut faults = Faults::new();
    if text.len() > 253 {
        faults.push(too_long(253));
    }
    if !is_subdomain(text) {
        faults.push(subdomain_form());
    }
    faults
}

fn subdomain_form() -> String {
    pattern(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        &format!("{LABEL}(\\.{LABEL})*"),
        &["example.com"],
    )
}

/// Checks a name that can be in a path, the form of the names of RBAC objects.
pub fn path_segment(text: &str) -> Faults {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

/// Checks a part of a name that can be in a path.
pub fn path_segment_prefix(text: &str) -> Faults {
    ["/", "%"]
        .iter()
        .filter(|part| text.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// Checks a key of a label, an annotation or a taint, or a finalizer: a name with an optional DNS prefix.
pub fn qualified(text: &str) -> Faults {
    let sentence = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let examples = ["MyName", "my.name", "123-abc"];
    let mut faults = Faults::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > 253 {
                    faults.push(format!("prefix part {}", too_many_bytes(253)));
                }
                if !is_subdomain(prefix) {
                    faults.push(format!("prefix part {}", subdomain_form()));
                }
            }
            name
        }
        _ => {
            let form = pattern(sentence, QUALIFIED, &examples);
            return vec![format!(
                "a valid label key {form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        faults.push(format!("name part {}", too_many_bytes(63)));
    }
    if !is_qualified_part(name) {
        faults.push(format!("name part {}", pattern(sentence, QUALIFIED, &examples)));
    }
    faults
}

/// Checks a label's value.
pub fn label_value(text: &str) -> Faults {
    let mut faults = Faults::new();
    if text.len() > 63 {
        faults.push(too_many_bytes(63));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        faults.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &format!("({QUALIFIED})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// Checks the name of a port of a container, an IANA service name.
pub fn port_name(text: &str) -> Faults {
    let mut faults = Faults::new();
    if text.len() > 15 {
        faults.push(too_long(15));
    }
    if !text.bytes().all(|byte| lower_or_digit(byte) || byte == b'-') || text.is_empty() {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

/// Checks the key of a ConfigMap or Secret.
pub fn data_key(text: &str) -> Faults {
    let mut faults = Faults::new();
    if text.len() > 253 {
        faults.push(too_long(253));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.is_empty() || !text.bytes().all(plain) {
        faults.push(pattern(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    if text == "." {
        faults.push("must not be '.'".to_owned());
    }
    if text == ".." {
        faults.push("must not be '..'".to_owned());
    } else if text.starts_with("..") {
        faults.push("must not start with '..'".to_owned());
    }
    faults
}

/// Checks the name of an environment variable: any printable ASCII except the equals sign.
pub fn env_name(text: &str) -> Faults {
    let mut faults = Faults::new();
    if text.is_empty() {
        faults.push("environment variable name must be non-empty".to_owned());
    }
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        faults.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    faults
}

/// Replaces a trailing dash, for the check of the part before a generated ending.
pub fn masked(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let kept: String = rest.chars().take(rest.chars().count() - 1).collect();
            format!("{kept}a")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_names_have_no_faults() {
        assert_eq!(label("a-1"), Faults::new());
        assert_eq!(label_1035("v1beta1"), Faults::new());
        assert_eq!(subdomain("a.b-c.1"), Faults::new());
        assert_eq!(qualified("example.com/My_Name.1"), Faults::new());
        assert_eq!(label_value(""), Faults::new());
        assert_eq!(data_key("tls.crt"), Faults::new());
        assert_eq!(port_name("http-2"), Faults::new());
    }

    #[test]
    fn wrong_names_are_explained() {
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert!(label_1035("1v")[0].starts_with("a DNS-1035 label must consist"));
        assert!(qualified("a/b/c")[0].starts_with("a valid label key must consist"));
        assert_eq!(qualified("/x"), ["prefix part must be non-empty"]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
        assert_eq!(data_key("..x"), ["must not start with '..'"]);
        assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
    }

    #[test]
    fn a_trailing_dash_is_masked() {
        assert_eq!(masked("node-"), "noda");
        assert_eq!(masked("-"), "-");
        assert_eq!(masked("x"), "x");
    }
}

//! Secrets in every form in which programs print them.

use super::*;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const TOKEN: &str = "q7Lw2Xz9-Kd_4TnVb8RmYs3GhJc6PfEa";

fn redactor(secrets: &[&str]) -> Redactor {
    let mut redactor = Redactor::default();
    secrets.iter().for_each(|secret| redactor.know(secret));
    redactor
}

/// Every form of a secret in which a program may print it.
fn encodings(secret: &str) -> Vec<(&'static str, String)> {
    let base64 = |prefix: &str| STANDARD.encode(format!("{prefix}{secret}"));
    let wrap = |text: &str, every: usize, between: &str| {
        let chunks: Vec<&str> =
            text.as_bytes().chunks(every).map(|c| std::str::from_utf8(c).expect("ASCII")).collect();
        chunks.join(between)
    };
    let each = |form: fn(u8) -> String| secret.bytes().map(form).collect::<String>();
    let hex = each(|byte| format!("{byte:02x}"));
    vec![
        ("as it is", secret.to_owned()),
        ("upper case", secret.to_uppercase()),
        ("lower case", secret.to_lowercase()),
        ("base64", base64("")),
        ("base64 of a header", base64("Authorization: Bearer ")),
        ("base64 shifted by one", base64("x")),
        ("base64 shifted by two", base64("xy")),
        ("base64 for URLs", URL_SAFE_NO_PAD.encode(format!("x{secret}"))),
        ("base64 in lines", wrap(&base64("Bearer "), 16, "\n")),
        ("hexadecimal", hex.clone()),
        ("upper hexadecimal", hex.to_uppercase()),
        ("split by a line break", wrap(secret, 10, "\n")),
        ("split by CR LF and blanks", wrap(secret, 9, "\r\n    ")),
        ("in JSON, split by an escape", wrap(secret, 12, "\\n")),
        ("with colours", wrap(secret, 7, "\u{1b}[31m")),
        ("with escaped colours", wrap(secret, 7, "\\u001b[0;1m")),
        ("with colours as Go quotes them", wrap(secret, 7, "\\x1b[0m")),
        ("as escapes of JSON", each(|byte| format!("\\u{byte:04x}"))),
        ("as escapes of C", each(|byte| format!("\\x{byte:02X}"))),
        ("as escapes of a URL", each(|byte| format!("%{byte:02x}"))),
        ("with NULs between", wrap(secret, 1, "\0")),
        ("with a title of the terminal in it", wrap(secret, 11, "\u{1b}]0;title\u{7}")),
    ]
}

#[test]
fn no_part_of_a_secret_stands_in_any_of_its_forms() {
    let redactor = redactor(&[TOKEN]);
    for (name, form) in encodings(TOKEN) {
        let clean = redactor.clean(&format!("before {form} after")).into_owned();
        assert!(clean.starts_with("before ") && clean.ends_with(" after"), "{name}: {clean}");
        let rest = clean.replace(REDACTED, "");
        // A character or two that depend on their neighbours may remain of base64.
        let header = STANDARD.encode("Authorization: Bearer ").len();
        let allowed = "before  after".len() + if name == "base64 of a header" { header } else { 13 };
        assert!(rest.len() <= allowed && clean.contains(REDACTED), "{name}: {clean}");
    }
}

#[test]
fn a_part_counts_and_lines_may_have_a_beginning_of_their_own() {
    let redactor = redactor(&[TOKEN]);
    let (one, other) = TOKEN.split_at(16);
    let log = format!("2026-01-01T00:00:00Z {one}\n2026-01-01T00:00:01Z {other}\n");
    assert_eq!(redactor.clean(&log), "2026-01-01T00:00:00Z <redacted>\n2026-01-01T00:00:01Z <redacted>\n");
    assert_eq!(redactor.clean(&TOKEN[..10]), TOKEN[..10], "too short to be distinguished from other words");
}

#[test]
fn text_that_is_not_secret_is_unchanged() {
    let redactor = redactor(&[TOKEN, "", "short"]);
    let text =
        "a short line, with \u{1b}[31mcolour\u{1b}[0m, \\n and %41: Zm9vYmFyYmF6\n\\u12\\u{zz\\x\u{1b}[";
    assert!(matches!(redactor.clean(text), Cow::Borrowed(_)));
    assert_eq!(redactor.clean("{\"a\":\"q7Lw2Xz9-Kd_4TnVb8RmYs3GhJc6PfEa\"}"), "{\"a\":\"<redacted>\"}");
}

#[test]
fn a_short_secret_is_found_as_a_whole() {
    let redactor = redactor(&["s3cr3t-Pw"]);
    assert_eq!(redactor.clean("password=s3cr3t-Pw;"), "password=<redacted>;");
    assert_eq!(redactor.clean("s3cr3t-P"), "s3cr3t-P");
}

#[test]
fn keys_and_certificates_are_known_by_their_content() {
    let (body, other) = (STANDARD.encode([7; 90]), STANDARD.encode([9; 90]));
    let pem = |body: &str, what: &str| {
        let (one, two) = body.split_at(64);
        format!("-----BEGIN {what}-----\n{one}\n{two}\n-----END {what}-----\n")
    };
    let kubeconfig = format!(
        "users:\n- name: a\n  user:\n    client-key-data: {}\n    token: \"{TOKEN}\"\n",
        STANDARD.encode(pem(&body, "CERTIFICATE"))
    );
    know_kubeconfig(&kubeconfig);
    let clean = redact(kubeconfig);
    assert!(
        clean.contains("client-key-data: ") && !clean.contains(&STANDARD.encode(&body)[8..40]),
        "{clean}"
    );
    assert!(!clean.contains(TOKEN), "{clean}");
    let shown = redact(pem(&body, "CERTIFICATE"));
    assert_eq!(shown, "-----BEGIN CERTIFICATE-----\n<redacted>\n-----END CERTIFICATE-----\n");
    assert_eq!(redacted(&pem(&other, "CERTIFICATE")), None, "another's");
    // A private key is redacted whatever its origin.
    let shown = redact(pem(&other, "EC PRIVATE KEY"));
    assert!(shown.contains(REDACTED) && !shown.contains(&other[..20]), "{shown}");
}

#[test]
fn a_token_of_a_service_account_is_known_by_its_shape_and_by_its_signature() {
    let signature = "Zk3vQ9_x".repeat(10);
    let token = format!("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.{signature}");
    let empty = Redactor::default();
    for (name, form) in [
        ("as it is", token.clone()),
        ("base64", STANDARD.encode(&token)),
        ("shifted", STANDARD.encode(format!("x{token}"))),
        ("shifted again", STANDARD.encode(format!("xy{token}"))),
        ("hexadecimal", token.bytes().map(|byte| format!("{byte:02x}")).collect()),
    ] {
        assert_eq!(empty.clean(&format!("a {form} b")), "a <redacted> b", "{name}");
    }
    let clean = redactor(&[&token]).clean(&signature.to_uppercase()).into_owned();
    assert_eq!(clean, REDACTED);
}

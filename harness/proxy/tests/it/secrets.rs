//! No credential is written down.

use super::support::{CALLER_TOKEN, Proxied};

#[tokio::test]
async fn the_journal_holds_no_credential() {
    let proxied = Proxied::start().await;
    let path =
        format!("/v1/instances?name={CALLER_TOKEN}&X-Amz-Signature=5f1e57&X-Amz-Security-Token=5ec2e7");
    let request =
        proxied.http.get(proxied.url("a", &path)).header("user-agent", format!("ccm {CALLER_TOKEN}"));
    proxied.ask(request).await.expect("an answer");
    let there = proxied.http.get(proxied.url("a", "/v1/instances/token-of-another"));
    proxied.ask(there.header("x-auth-token", "token-of-another")).await.expect("an answer");
    let text = serde_json::to_string(&proxied.journal().await).expect("JSON");
    for secret in [CALLER_TOKEN, "5f1e57", "5ec2e7", "token-of-another"] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    assert!(text.contains("X-Amz-Signature=<redacted>"), "{text}");
}

//! The contents of a kubeconfig: whether a program can use it (client-go, `clientcmd` validation), and its server.

use serde_json::Value;

/// What is wrong with the text, and the remedy; `None` if a program can use it. A text with placeholders is not judged.
pub(super) fn fault(text: &str, is_there: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
    if text.contains("${") || text.contains("{{") || text.contains('<') {
        return None;
    }
    let wrong = |what: String, advice: &str| Some((what, advice.to_owned()));
    let Ok(file) = serde_saphyr::from_str::<Value>(text) else {
        return wrong("is not YAML".to_owned(), "correct the kubeconfig");
    };
    if let Some(kind) = file["kind"].as_str().filter(|kind| *kind != "Config") {
        return wrong(format!("is of the kind {kind}, and not a Config"), "write kind: Config");
    }
    let current = file["current-context"].as_str().unwrap_or_default();
    if current.is_empty() {
        // Then client-go uses the configuration of the service account.
        return None;
    }
    let Some(context) = named(&file, "contexts", current) else {
        let what = format!("names the current context '{current}', which it does not contain");
        return wrong(what, "correct current-context");
    };
    let text_of = |key: &str| context["context"][key].as_str().unwrap_or_default();
    let (cluster, user) = (text_of("cluster"), text_of("user"));
    let Some(cluster) = named(&file, "clusters", cluster) else {
        return wrong(format!("has no cluster '{cluster}'"), "correct the cluster of the context");
    };
    let has = |entry: &Value, key: &str| entry[key].as_str().is_some_and(|text| !text.is_empty());
    let cluster = &cluster["cluster"];
    let authority = has(cluster, "certificate-authority") || has(cluster, "certificate-authority-data");
    match (authority, cluster["insecure-skip-tls-verify"] == true) {
        (true, true) => {
            let what = "has both an authority and insecure-skip-tls-verify, which client-go refuses";
            return wrong(what.to_owned(), "remove one of them");
        }
        (false, false) if is_private(cluster["server"].as_str().unwrap_or_default()) => {
            let what =
                "has no certificate-authority, so the program does not trust the API server of kubeadm";
            return wrong(what.to_owned(), "add the authority of the cluster");
        }
        _ => {}
    }
    let Some(user) = named(&file, "users", user) else {
        return wrong(format!("has no user '{user}'"), "correct the user of the context");
    };
    let user = &user["user"];
    let (by_token, by_name) =
        (has(user, "token") || has(user, "tokenFile"), has(user, "username") || has(user, "password"));
    if by_token && by_name {
        let what = "has both a token and a name or password for its user, which client-go refuses";
        return wrong(what.to_owned(), "remove username and password, which no API server accepts");
    }
    let ways = ["token", "tokenFile", "client-certificate", "client-certificate-data", "username"];
    if !ways.iter().any(|way| has(user, way)) && user["exec"].is_null() && user["auth-provider"].is_null() {
        return wrong(
            "has no credentials for its user, so its requests are refused".to_owned(),
            "add a token or a client certificate",
        );
    }
    let token = user["tokenFile"].as_str().filter(|path| !path.is_empty() && !is_there(path));
    let token = token.filter(|_| !has(user, "token"));
    let path = token?;
    wrong(format!("reads its token from {path}, and no volume contains that file"), "mount the token there")
}

/// Whether only kubeadm's own authority can have signed the certificate: an address, or a name inside the cluster.
fn is_private(server: &str) -> bool {
    let host = super::host::host_of(server);
    let inside = host == "kubernetes" || host.starts_with("kubernetes.default");
    server.starts_with("https://") && (inside || host.parse::<std::net::IpAddr>().is_ok())
}

fn named(file: &Value, list: &str, name: &str) -> Option<Value> {
    let items = file[list].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().find(|item| item["name"] == name).cloned()
}

/// The user as whom a program acts (`as`), if its kubeconfig says so.
pub(super) fn acts_as(text: &str) -> Option<String> {
    let file: Value = serde_saphyr::from_str(text).ok()?;
    let context = named(&file, "contexts", file["current-context"].as_str()?)?;
    let user = named(&file, "users", context["context"]["user"].as_str()?)?;
    user["user"]["as"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The server of the current context, or of the only cluster.
pub(super) fn server_of(text: &str) -> Option<String> {
    let file: Value = serde_saphyr::from_str(text).ok()?;
    let some = |list: &str, name: &str| named(&file, list, name).or_else(|| file[list].get(0).cloned());
    let context = some("contexts", file["current-context"].as_str().unwrap_or_default());
    let cluster = context.as_ref().and_then(|own| own["context"]["cluster"].as_str()).unwrap_or_default();
    some("clusters", cluster)?["cluster"]["server"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, \
                        cluster: {server: 'https://172.18.0.2:6443', certificate-authority-data: eA==}}]\nusers: [{name: \
                        u, user: {token: t}}]\n";

    fn what(text: &str) -> Option<String> {
        fault(text, &|path| path == "/var/run/token").map(|(what, _)| what)
    }

    #[test]
    fn a_file_that_client_go_can_use_has_no_fault() {
        assert_eq!(what(GOOD), None);
        assert_eq!(
            what(&GOOD.replace("certificate-authority-data: eA==", "insecure-skip-tls-verify: true")),
            None
        );
        assert_eq!(what(&GOOD.replace("token: t", "tokenFile: /var/run/token")), None);
        assert_eq!(what(&GOOD.replace("token: t", "exec: {command: get-token}")), None);
        assert_eq!(what("apiVersion: v1\nkind: Config\n"), None, "the service account is used");
        let public =
            GOOD.replace(", certificate-authority-data: eA==", "").replace("172.18.0.2", "api.acme.example");
        assert_eq!(what(&public), None);
        assert_eq!(server_of(GOOD).as_deref(), Some("https://172.18.0.2:6443"));
    }

    #[test]
    fn what_client_go_refuses_is_named() {
        for (from, to, expected) in [
            ("current-context: a", "current-context: b", "names the current context 'b'"),
            ("cluster: c,", "cluster: d,", "has no cluster 'd'"),
            ("user: u}", "user: v}", "has no user 'v'"),
            (", certificate-authority-data: eA==", "", "has no certificate-authority"),
            ("eA==", "eA==, insecure-skip-tls-verify: true", "has both an authority"),
            ("token: t", "", "has no credentials"),
            ("token: t", "tokenFile: /absent", "reads its token from /absent"),
            ("token: t", "token: t, username: a, password: b", "has both a token and a name"),
            ("contexts", "\tcontexts", "is not YAML"),
            ("current-context", "kind: ConfigMap\ncurrent-context", "is of the kind ConfigMap"),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert!(what(&text).is_some_and(|what| what.starts_with(expected)), "{text}: {:?}", what(&text));
        }
    }
}

//! User agents: the names with which callers of an API identify themselves.

/// The default user agents of client libraries; their versions follow.
const NAMELESS: &[&str] = &[
    "",
    "unknown",
    "go-http-client",
    "go-resty",
    "reqwest",
    "hyper",
    "kube-rs",
    "python-requests",
    "python-urllib",
    "okhttp",
    "java",
    "node-fetch",
    "axios",
    "curl",
    "aws-sdk-go",
    "aws-sdk-go-v2",
    "azsdk-go-armcompute",
    "godo",
    "gophercloud",
    "google-api-go-client",
    "hcloud-go",
    "linodego",
    "scaleway-sdk-go",
];
/// The keys that SDKs add to their names: languages, systems, and the purpose of the call.
const ADDED: &[&str] = &["api", "app", "cfg", "exec-env", "ft", "lang", "m", "md", "os", "ua"];

/// Whether a user agent, or a field manager made from one, only names the libraries of the program.
pub fn is_nameless(agent: &str) -> bool {
    let products = agent.split('(').flat_map(|part| part.rsplit(')').next()).flat_map(str::split_whitespace);
    let name = |product: &str| product.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let says_nothing = |name: String| NAMELESS.contains(&name.as_str()) || ADDED.contains(&name.as_str());
    products.map(name).all(says_nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AWS: &str =
        "aws-sdk-go-v2/1.24.0 os/linux lang/go#1.22 md/GOARCH#amd64 api/ec2#1.1 (go1.22; linux; x)";

    #[test]
    fn a_library_s_own_name_is_none() {
        for nameless in
            ["", "Go-http-client/2.0", "reqwest/0.13", "unknown", "Java/17", AWS, "hcloud-go/2.1.0"]
        {
            assert!(is_nameless(nameless), "{nameless}");
        }
        for named in
            ["acme-ccm/v1.2 acme-go/1.0", "acme-cloud-controller/v1", "cloud-controller-manager", "a"]
        {
            assert!(!is_nameless(named), "{named}");
        }
    }
}

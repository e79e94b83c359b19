//! The versions of Kubernetes' own API groups.

/// Group and all versions that a release of Kubernetes has served, up to 1.36. Source: `staging/src/k8s.io/api` and the
/// releases' changelogs.
const VERSIONS: &[(&str, &[&str])] = &[
    ("", &["v1"]),
    ("admissionregistration.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("apiextensions.k8s.io", &["v1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1", "v1beta1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2", "v2beta1", "v2beta2", "v2alpha1"]),
    ("batch", &["v1", "v1beta1", "v2alpha1"]),
    ("certificates.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("coordination.k8s.io", &["v1", "v1beta1", "v1alpha1", "v1alpha2"]),
    ("discovery.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("networking.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("node.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
    ("scheduling.k8s.io", &["v1", "v1beta1", "v1alpha1", "v1alpha2"]),
    ("storage.k8s.io", &["v1", "v1beta1", "v1alpha1"]),
];

/// The `apiVersion` to write instead of one that Kubernetes' own group has never had.
pub(super) fn instead_of(api_version: &str) -> Option<String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (_, versions) = VERSIONS.iter().find(|(own, _)| *own == group)?;
    let right = versions.first().filter(|_| !versions.contains(&version))?;
    Some(if group.is_empty() { (*right).to_owned() } else { format!("{group}/{right}") })
}

#[cfg(test)]
mod tests {
    use super::instead_of;

    #[test]
    fn only_versions_that_kubernetes_has_never_had_are_named() {
        assert_eq!(instead_of("apps/v2").as_deref(), Some("apps/v1"));
        assert_eq!(instead_of("v2").as_deref(), Some("v1"));
        for known in ["v1", "apps/v1beta1", "autoscaling/v2", "example.com/v7", "snapshot.storage.k8s.io/v2"]
        {
            assert_eq!(instead_of(known), None, "{known}");
        }
    }
}

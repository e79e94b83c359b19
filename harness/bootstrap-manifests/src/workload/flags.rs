//! Flags of the framework whose value is written as a word of its own.

use super::hindrance::Hindrance;
use super::kind::Role;
use super::pods::Workload;
use super::refs::Stage;

/// Flags of truth values, which take a value only after `=` (`k8s.io/cloud-provider`, `k8s.io/component-base`, `apiserver`).
const OF_TRUTH: &[&str] = &[
    "allocate-node-cidrs",
    "allow-untagged-cloud",
    "authentication-skip-lookup",
    "authentication-tolerate-lookup-failure",
    "configure-cloud-routes",
    "contention-profiling",
    "enable-leader-migration",
    "leader-elect",
    "profiling",
    "use-service-account-credentials",
];

/// A truth value after a blank: the program takes the flag for true and the word for an argument, which a program of the
/// framework refuses (`app/controllermanager.go`, `Args`).
pub(super) fn separate_values(workload: &Workload) -> Option<Hindrance> {
    // Only programs of the framework are known to have these flags and no arguments.
    if workload.role != Role::Ccm || workload.flag("cloud-provider").is_none() {
        return None;
    }
    let containers = workload.containers.iter().filter(|container| !container.init);
    containers.flat_map(|container| container.arguments.windows(2)).find_map(|words| {
        let [(flag, _), (value, place)] = words else { return None };
        let name = flag.strip_prefix("--")?;
        (OF_TRUTH.contains(&name) && matches!(value.as_str(), "true" | "false")).then(|| {
            Hindrance::new(
                Stage::Work,
                format!(
                    "'{flag} {value}' sets {flag} to true, and the process exits because of the argument '{value}'"
                ),
                place.clone(),
                format!("write {flag}={value}"),
            )
        })
    })
}

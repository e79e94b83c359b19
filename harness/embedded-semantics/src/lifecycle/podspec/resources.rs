//! Validation of amounts of resources that containers ask for.
//!
//! Source: `validateResourceRequirements` in `pkg/apis/core/validation/validation.go`,
//! `pkg/apis/core/helper/helpers.go`. References to resource claims are not looked into.

use serde_json::{Map, Value};

use super::checks::faulty;
use embedded_objects::cause::Cause;
use embedded_objects::rules::names;
use embedded_objects::rules::quantity::{self, Quantity};
use embedded_objects::value::PathAccess as _;

const HUGE_PAGES: &str = "hugepages-";
/// The start of the names of requests in quotas, which resources cannot have.
const REQUESTS: &str = "requests.";
/// One, in the unit in which amounts are compared.
const ONE: i128 = 1_000_000_000;

/// The resources without a domain that the server knows, apart from huge pages.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// Those of them that containers can ask for.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Those of them that are counted.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Adds the causes for resources at a path.
pub(super) fn validate(
    limits: &Map<String, Value>,
    requests: &Map<String, Value>,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    for (list, amounts) in [("limits", limits), ("requests", requests)] {
        for (resource, value) in amounts {
            let field = format!("{path}.{list}[{resource}]");
            name(resource, &field, causes);
            let Some(amount) = parsed(value) else { continue };
            one_amount(resource, &amount, &field, causes);
            if list == "requests" {
                beyond(resource, &amount, limits.get(resource).and_then(parsed), path, causes);
            }
            if resource.starts_with(HUGE_PAGES) && !divisible(resource, &amount) {
                let shown = amount.text();
                let why = format!("{shown} is not positive integer multiple of {resource}");
                causes.push(Cause::invalid(field, shown, why));
            }
        }
    }
    let some = |found: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(|name| found(name));
    if some(|name| name.starts_with(HUGE_PAGES)) && !some(|name| name == "cpu" || name == "memory") {
        causes.push(Cause::forbidden(path, "HugePages require cpu or memory"));
    }
}

fn parsed(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str().unwrap_or_default()).ok()
}

/// Whether a resource is one of Kubernetes itself: it has no domain, or one of Kubernetes.
fn native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource with a domain can be offered by a device plugin or an operator.
fn extended(name: &str) -> bool {
    !native(name) && !name.starts_with(REQUESTS) && names::qualified(&format!("{REQUESTS}{name}")).is_empty()
}

fn name(resource: &str, field: &str, causes: &mut Vec<Cause>) {
    let faults = names::qualified(resource);
    let huge = resource.starts_with(HUGE_PAGES);
    let standard =
        STANDARD.contains(&resource) || huge || resource.starts_with(&format!("{REQUESTS}{HUGE_PAGES}"));
    if faults.is_empty() && !resource.contains('/') && !standard {
        let why = "must be a standard resource type or fully qualified";
        causes.push(Cause::invalid(field, resource, why));
    }
    faulty(causes, field.to_owned(), resource, faults);
    if !resource.contains('/') {
        if !OF_CONTAINERS.contains(&resource) && !huge {
            causes.push(Cause::invalid(field, resource, "must be a standard resource for containers"));
        }
    } else if !native(resource) && !extended(resource) {
        causes.push(Cause::invalid(field, resource, "doesn't follow extended resource name standard"));
    }
}

fn one_amount(resource: &str, amount: &Quantity, field: &str, causes: &mut Vec<Cause>) {
    if amount.is_negative() {
        causes.push(Cause::invalid(field, amount.text(), "must be greater than or equal to 0"));
    }
    if !amount.is_whole() && (COUNTED.contains(&resource) || extended(resource)) {
        causes.push(Cause::invalid(field, amount.text(), "must be an integer"));
    }
}

/// Compares a request with its limit. Resources that cannot be shared need a limit that is equal.
fn beyond(resource: &str, asked: &Quantity, limit: Option<Quantity>, path: &str, causes: &mut Vec<Cause>) {
    let shared = native(resource) && !resource.starts_with(HUGE_PAGES);
    let Some(limit) = limit else {
        if !shared {
            let why = "Limit must be set for non overcommitable resources";
            causes.push(Cause::required(format!("{path}.limits"), why));
        }
        return;
    };
    let relation = match asked.compare(&limit) {
        order if order.is_ne() && !shared => "equal to",
        order if order.is_gt() => "less than or equal to",
        _ => return,
    };
    let why = format!("must be {relation} {resource} limit of {}", limit.text());
    causes.push(Cause::invalid(format!("{path}.requests"), asked.text(), why));
}

/// Whether an amount of huge pages is a multiple of the size in the resource's name.
fn divisible(resource: &str, amount: &Quantity) -> bool {
    let size = resource.strip_prefix(HUGE_PAGES).and_then(quantity::billionths);
    let amount = quantity::billionths(&amount.text());
    match (size, amount) {
        // Parts of a byte are rounded up.
        (Some(size), Some(amount)) if size > 0 && size % ONE == 0 => {
            (amount.div_euclid(ONE) + i128::from(amount.rem_euclid(ONE) > 0)) % (size / ONE) == 0
        }
        _ => false,
    }
}

/// Adds the causes for the resources of a container at a path.
pub(super) fn of_container(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let (limits, requests) = (container.map("resources.limits"), container.map("resources.requests"));
    validate(limits, requests, &format!("{path}.resources"), causes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(limits: Value, requests: Value, expected: &[&str]) {
        let mut causes = Vec::new();
        let container = json!({"resources": {"limits": limits, "requests": requests}});
        of_container(&container, "c", &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn resources_have_known_names_or_domains() {
        says(json!({"cpu": "1", "example.com/gpu": "1", "kubernetes.io/x": "1"}), json!({}), &[]);
        says(
            json!({"gpus": "1"}),
            json!({}),
            &[
                "c.resources.limits[gpus]: Invalid value: \"gpus\": must be a standard resource type or fully qualified",
                "c.resources.limits[gpus]: Invalid value: \"gpus\": must be a standard resource for containers",
            ],
        );
        says(
            json!({"pods": "1"}),
            json!({}),
            &[
                "c.resources.limits[pods]: Invalid value: \"pods\": must be a standard resource for containers",
            ],
        );
        says(
            json!({"requests.example.com/gpu": "1"}),
            json!({}),
            &[
                "c.resources.limits[requests.example.com/gpu]: Invalid value: \"requests.example.com/gpu\": doesn't follow \
             extended resource name standard",
            ],
        );
    }

    #[test]
    fn amounts_are_not_negative_and_devices_are_whole() {
        says(json!({"cpu": "500m"}), json!({"cpu": "0"}), &[]);
        says(
            json!({"cpu": "-1"}),
            json!({}),
            &["c.resources.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"],
        );
        says(
            json!({"example.com/gpu": "500m"}),
            json!({}),
            &["c.resources.limits[example.com/gpu]: Invalid value: \"500m\": must be an integer"],
        );
    }

    #[test]
    fn requests_stay_below_limits() {
        says(json!({"cpu": "1"}), json!({"cpu": "1000m", "memory": "1Gi"}), &[]);
        says(
            json!({"cpu": "1"}),
            json!({"cpu": "2"}),
            &["c.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"],
        );
        says(
            json!({"example.com/gpu": "2"}),
            json!({"example.com/gpu": "1"}),
            &["c.resources.requests: Invalid value: \"1\": must be equal to example.com/gpu limit of 2"],
        );
        says(
            json!({}),
            json!({"example.com/gpu": "1"}),
            &["c.resources.limits: Required value: Limit must be set for non overcommitable resources"],
        );
    }

    #[test]
    fn huge_pages_are_multiples_of_their_size() {
        says(json!({"hugepages-2Mi": "4Mi", "memory": "1Gi"}), json!({}), &[]);
        says(
            json!({"hugepages-2Mi": "3Mi"}),
            json!({}),
            &[
                "c.resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of \
             hugepages-2Mi",
                "c.resources: Forbidden: HugePages require cpu or memory",
            ],
        );
    }
}

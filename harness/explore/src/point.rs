//! Points: the moments of a history at which a fault can be put, found by carrying it out once without any.

use harness_clouds::{Entry, Op};
use harness_clusters::Asked;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How many requests of one kind are points. A CCM that waits for its cloud asks again and again.
const MOST: u64 = 6;
/// How many look-ups of a machine are points: the CCM also looks now and then whether it still exists.
const MOST_LOOK_UPS: u64 = 2;

/// A request of the CCM, named independently of time and of generated names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Point {
    /// A request to the API server.
    Api {
        /// The verb, as in roles.
        verb: String,
        /// The resource, followed by `/` and the subresource if there is one.
        resource: String,
        /// The name of the object in the scenario; empty if the request has none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        object: String,
        /// Which of these requests, from 1.
        nth: u64,
    },
    /// A call to the cloud.
    Cloud {
        /// The operation.
        operation: Op,
        /// The machine in the scenario, if the operation is about one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        object: String,
        /// Which of these calls, from 1.
        nth: u64,
    },
    /// The moment before a step of the scenario.
    Step {
        /// Which step, from 0.
        step: usize,
    },
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |object: &str| if object.is_empty() { String::new() } else { format!(" of {object}") };
        match self {
            Point::Api { verb, resource, object, nth } => {
                write!(f, "{} {verb} {resource}{}", ordinal(*nth), of(object))
            }
            Point::Cloud { operation, object, nth } => {
                write!(f, "{} {}{}", ordinal(*nth), operation_name(*operation), of(object))
            }
            Point::Step { step } => write!(f, "step {step}"),
        }
    }
}

/// The name of an operation in the driver protocol: `lb.create`.
fn operation_name(operation: Op) -> String {
    let value = serde_json::to_value(operation).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn ordinal(nth: u64) -> String {
    let end = match (nth % 10, nth % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{nth}{end}")
}

/// The names that a trial's objects have in the cluster and in the cloud, and those that they have in the scenario.
pub(crate) struct Names {
    /// The namespace of its Services.
    pub(crate) namespace: String,
    /// The name in the scenario, by the name in the cluster.
    pub(crate) machines: BTreeMap<String, String>,
}

impl Names {
    /// The name in the scenario; `None` for an object that is not part of it.
    fn of_request<'a>(&'a self, request: &'a Asked) -> Option<&'a str> {
        match (request.namespace.as_str(), request.resource.split('/').next().unwrap_or_default()) {
            ("", "nodes") => self.machines.get(&request.name).map(String::as_str),
            (namespace, "services") if namespace == self.namespace => Some(&request.name),
            _ => None,
        }
    }

    fn of_call(&self, call: &Entry) -> Option<&str> {
        let resource = call.resource.as_deref()?;
        let value = resource.split_once('=').map_or(resource, |(_, value)| value);
        let named =
            |(name, scenario): (&String, &String)| (value.contains(name.as_str())).then(|| scenario.clone());
        let found = self.machines.iter().find_map(named)?;
        self.machines.values().find(|scenario| **scenario == found).map(String::as_str)
    }
}

/// The points of a history, from what the API server and the cloud have recorded.
pub(crate) fn points(names: &Names, requests: &[Asked], calls: &[Entry]) -> Vec<Point> {
    let mut counts: BTreeMap<Point, u64> = BTreeMap::new();
    let mut all = Vec::new();
    let mut add = |unnumbered: Point, number: &dyn Fn(u64) -> Point| {
        let count = counts.entry(unnumbered.clone()).or_default();
        *count += 1;
        let most = match &unnumbered {
            Point::Cloud { operation: Op::InstanceGet, .. } => MOST_LOOK_UPS,
            _ => MOST,
        };
        if *count <= most {
            all.push(number(*count));
        }
    };
    for request in requests {
        let Some(object) = names.of_request(request) else { continue };
        if !["create", "update", "patch", "delete"].contains(&request.verb.as_str()) {
            continue;
        }
        let (verb, resource, object) = (request.verb.clone(), request.resource.clone(), object.to_owned());
        let numbered =
            |nth| Point::Api { verb: verb.clone(), resource: resource.clone(), object: object.clone(), nth };
        add(numbered(0), &numbered);
    }
    for call in calls {
        let object = match call.op {
            Op::LbGet
            | Op::LbList
            | Op::LbCreate
            | Op::LbUpdate
            | Op::LbDelete
            | Op::AuxRead
            | Op::AuxCreate
            | Op::AuxUpdate
            | Op::AuxDelete => String::new(),
            Op::InstanceGet => match names.of_call(call) {
                Some(object) => object.to_owned(),
                None => continue,
            },
            // What the CCM does again and again without any reason in the scenario.
            Op::InstanceList
            | Op::InstanceWrite
            | Op::RouteList
            | Op::RouteCreate
            | Op::RouteDelete
            | Op::Other => continue,
        };
        let operation = call.op;
        let numbered = |nth| Point::Cloud { operation, object: object.clone(), nth };
        add(numbered(0), &numbered);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(verb: &str, resource: &str, namespace: &str, name: &str) -> Asked {
        let text = |text: &str| text.to_owned();
        Asked {
            verb: text(verb),
            resource: text(resource),
            namespace: text(namespace),
            name: text(name),
            ..Asked::default()
        }
    }

    #[test]
    fn requests_are_counted_by_what_they_are_about() {
        let names = Names {
            namespace: "explore-1".to_owned(),
            machines: BTreeMap::from([("explore-1-m1".to_owned(), "m1".to_owned())]),
        };
        let requests = [
            request("patch", "services", "explore-1", "web"),
            request("patch", "services/status", "explore-1", "web"),
            request("patch", "services", "other", "web"),
            request("get", "services", "explore-1", "web"),
            request("patch", "services", "explore-1", "web"),
            request("patch", "nodes", "", "explore-1-m1"),
            request("update", "leases", "kube-system", "ccm"),
        ];
        let shown: Vec<String> = points(&names, &requests, &[]).iter().map(Point::to_string).collect();
        let expected = [
            "1st patch services of web",
            "1st patch services/status of web",
            "2nd patch services of web",
            "1st patch nodes of m1",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn requests_that_never_end_are_not_all_points() {
        let names = Names { namespace: "n".to_owned(), machines: BTreeMap::new() };
        let requests = vec![request("patch", "services", "n", "web"); 100];
        assert_eq!(points(&names, &requests, &[]).len() as u64, MOST);
    }

    #[test]
    fn ordinals_are_english() {
        assert_eq!(
            [1, 2, 3, 4, 11, 12, 21].map(ordinal),
            ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st"]
        );
    }
}

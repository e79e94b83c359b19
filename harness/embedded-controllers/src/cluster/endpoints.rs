//! Endpoints and EndpointSlices of Services with a selector.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort as CorePort, EndpointSubset, Endpoints, ObjectReference, Pod, Service,
    ServicePort,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};

use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::selectors::service_selects;
use embedded_runtime::writing;

/// The most endpoints of a slice, which is the API's own limit.
const SLICE: usize = 1000;

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<Key>> = Queue::new();
    let own = queue.clone();
    world.services.on_key(move |key| own.add(key));
    let (own, known) = (queue.clone(), world.clone());
    world.pods.on_change(move |before, after| {
        let facts = |pod: &Arc<Pod>| {
            (pod.labels().clone(), [Family::Ipv4, Family::Ipv6].map(|family| shown(pod, family)))
        };
        if before.map(facts) == after.map(facts) {
            return;
        }
        let namespace = after.or(before).and_then(|pod| pod.namespace()).unwrap_or_default();
        for service in known.services.list_in(&namespace) {
            let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            if [before, after].into_iter().flatten().any(|pod| service_selects(selector, pod.labels())) {
                own.add(Key::of(service.as_ref()));
            }
        }
    });
    let known = world.clone();
    queue.spawn(&world.tasks, "endpoints", 4, move |key| {
        let world = known.clone();
        async move { look(&world, &key).await }
    });
}

/// An IP family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// The name of the family in `addressType` and in `ipFamilies`.
    fn name(self) -> &'static str {
        match self {
            Family::Ipv4 => "IPv4",
            Family::Ipv6 => "IPv6",
        }
    }

    /// The families of a Service, the preferred one first.
    fn of(service: &Service) -> Vec<Family> {
        let named = service.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()).unwrap_or_default();
        let families: Vec<_> = named
            .iter()
            .filter_map(|name| [Family::Ipv4, Family::Ipv6].into_iter().find(|family| family.name() == name))
            .collect();
        if families.is_empty() { vec![Family::Ipv4] } else { families }
    }
}

/// The endpoint of a Pod in this family: its address, whether it is ready, whether it is being deleted.
/// `None` if the Pod has no endpoint.
fn shown(pod: &Pod, family: Family) -> Option<(String, bool, bool)> {
    let status = pod.status.as_ref()?;
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return None;
    }
    // The API server rejects a loopback address as an endpoint.
    let fits = |ip: &&String| {
        ip.parse::<IpAddr>().is_ok_and(|ip| !ip.is_loopback() && ip.is_ipv4() == (family == Family::Ipv4))
    };
    let address =
        status.pod_ips.iter().flatten().map(|one| &one.ip).chain(&status.pod_ip).find(fits)?.clone();
    let ready = status.conditions.iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    Some((address, ready, pod.metadata.deletion_timestamp.is_some()))
}

fn target_port(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match port.target_port.as_ref() {
        None => Some(port.port),
        Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => pod
            .spec
            .iter()
            .flat_map(|spec| &spec.containers)
            .flat_map(|container| container.ports.iter().flatten())
            .find(|one| one.name.as_deref() == Some(name))
            .map(|one| one.container_port),
    }
}

fn ports(service: &Service, pods: &[Arc<Pod>]) -> Vec<(ServicePort, i32)> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let number = pods.iter().find_map(|pod| target_port(port, pod)).or(match &port.target_port {
                Some(IntOrString::String(_)) => None,
                _ => Some(port.port),
            })?;
            Some((port.clone(), number))
        })
        .collect()
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        name: pod.metadata.name.clone(),
        namespace: pod.metadata.namespace.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

async fn look(world: &ControllerContext, key: &Key) -> Outcome {
    let client = world.client();
    let endpoints_api = writing::api_in::<Endpoints>(&client, &key.namespace);
    let Some(service) = world.services.get(key) else {
        if let Some(known) = world.endpoints.get(key) {
            writing::delete(&endpoints_api, &world.endpoints, known.as_ref(), DeleteParams::default())
                .await?;
        }
        return Ok(Next::Done);
    };
    let selector =
        service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).filter(|selector| !selector.is_empty());
    if selector.is_none() || service.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Done);
    }
    let mut pods = world.pods.list_in(&key.namespace);
    pods.retain(|pod| service_selects(selector, pod.labels()));
    let unready_too =
        service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses).unwrap_or(false);
    let families = Family::of(&service);
    let showing = |family: Family| {
        let mut showing = pods.clone();
        showing.retain(|pod| shown(pod, family).is_some());
        showing
    };
    // Endpoints have one family, the Service's first.
    let first = families.first().copied().unwrap_or(Family::Ipv4);
    let wanted = endpoints(&service, &showing(first), first, unready_too);
    match world.endpoints.get(key) {
        Some(known) if known.subsets == wanted.subsets => {}
        Some(known) => {
            let mut changed = known.as_ref().clone();
            changed.subsets = wanted.subsets;
            world
                .endpoints
                .observe(endpoints_api.replace(&key.name, &PostParams::default(), &changed).await?);
        }
        None => settle(writing::create(&endpoints_api, &world.endpoints, &wanted).await)?,
    }

    let slices_api = writing::api_in::<EndpointSlice>(&client, &key.namespace);
    let mut known = world.slices.list_in(&key.namespace);
    known.retain(|slice| {
        slice.labels().get("kubernetes.io/service-name") == Some(&key.name)
            && slice.owner_references().iter().any(|owner| Some(&owner.uid) == service.metadata.uid.as_ref())
    });
    for family in families {
        let wanted = slice(&service, &showing(family), family, unready_too);
        let at = known.iter().position(|known| known.address_type == wanted.address_type);
        match at.map(|at| known.swap_remove(at)) {
            Some(known) if known.endpoints == wanted.endpoints && known.ports == wanted.ports => {}
            Some(known) => {
                let mut changed = known.as_ref().clone();
                changed.endpoints = wanted.endpoints;
                changed.ports = wanted.ports;
                let name = known.name_any();
                world.slices.observe(slices_api.replace(&name, &PostParams::default(), &changed).await?);
            }
            None => settle(writing::create(&slices_api, &world.slices, &wanted).await)?,
        }
    }
    // The Service no longer has this family.
    for left in known {
        writing::delete(&slices_api, &world.slices, left.as_ref(), DeleteParams::default()).await?;
    }
    Ok(Next::Done)
}

/// Ignores that an object cannot be created in a namespace that is being deleted.
fn settle<K>(created: Result<K, kube::Error>) -> Result<(), kube::Error> {
    match created {
        Err(error) if writing::is_forbidden(&error) => Ok(()),
        other => other.map(|_| ()),
    }
}

fn endpoints(service: &Service, pods: &[Arc<Pod>], family: Family, unready_too: bool) -> Endpoints {
    let ports = ports(service, pods);
    let (mut ready, mut unready) = (Vec::new(), Vec::new());
    for pod in pods {
        let Some((ip, is_ready, leaving)) = shown(pod, family) else { continue };
        let address = EndpointAddress {
            ip,
            node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            target_ref: Some(reference(pod)),
            ..EndpointAddress::default()
        };
        match (is_ready && !leaving) || unready_too {
            true => ready.push(address),
            false if leaving => {}
            false => unready.push(address),
        }
    }
    let some = |addresses: Vec<EndpointAddress>| Some(addresses).filter(|addresses| !addresses.is_empty());
    let subset = EndpointSubset {
        addresses: some(ready),
        not_ready_addresses: some(unready),
        ports: Some(
            ports
                .iter()
                .map(|(port, number)| CorePort {
                    name: port.name.clone(),
                    port: *number,
                    protocol: port.protocol.clone(),
                    app_protocol: port.app_protocol.clone(),
                })
                .collect(),
        ),
    };
    let empty = subset.addresses.is_none() && subset.not_ready_addresses.is_none();
    Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: service.metadata.labels.clone(),
            ..ObjectMeta::default()
        },
        subsets: (!empty).then(|| vec![subset]),
    }
}

fn slice(service: &Service, pods: &[Arc<Pod>], family: Family, unready_too: bool) -> EndpointSlice {
    let ports = ports(service, pods);
    let name = service.name_any();
    let labels = [
        ("kubernetes.io/service-name", name.as_str()),
        ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"),
    ];
    let endpoints = pods.iter().take(SLICE).filter_map(|pod| {
        let (ip, is_ready, leaving) = shown(pod, family)?;
        Some(Endpoint {
            addresses: vec![ip],
            conditions: Some(EndpointConditions {
                ready: Some((is_ready && !leaving) || unready_too),
                serving: Some(is_ready),
                terminating: Some(leaving),
            }),
            node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            target_ref: Some(reference(pod)),
            ..Endpoint::default()
        })
    });
    EndpointSlice {
        address_type: family.name().to_owned(),
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Service".to_owned(),
                name: name.clone(),
                uid: service.uid().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        endpoints: Some(endpoints.collect()),
        ports: Some(
            ports
                .iter()
                .map(|(port, number)| EndpointPort {
                    name: Some(port.name.clone().unwrap_or_default()),
                    port: Some(*number),
                    protocol: port.protocol.clone(),
                    app_protocol: port.app_protocol.clone(),
                })
                .collect(),
        ),
    }
}

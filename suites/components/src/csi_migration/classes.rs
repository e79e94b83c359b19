//! The parameters of StorageClasses that reach drivers (contract CSIM-06).

use super::annotations::{claim, class, names_driver, short};
use futures::future::try_join_all;
use harness_component_testkit::components::csi_migration::{Moved, ZONE};
use harness_component_testkit::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The CSI method that creates volumes.
const CREATE: &str = "CreateVolume";

pub(super) const CHECKS: &[Check] = &[
    Check::of("CSIM-06.fstype", |cx| Box::pin(names_the_file_system(cx))).with_csi_drivers(),
    Check::of("CSIM-06.zones", |cx| Box::pin(names_zones(cx))).with_csi_drivers(),
    Check::of("CSIM-06.topologies", |cx| Box::pin(allows_topologies(cx))).with_csi_drivers(),
    Check::of("CSIM-06.both", |cx| Box::pin(refuses_both(cx))).with_csi_drivers(),
];

/// The drivers to which this applies.
fn drivers(csi: &CsiMigration<'_>, applies: impl Fn(&Moved) -> bool) -> Result<Vec<Moved>, CheckError> {
    csi.has_provisioner()?;
    let found: Vec<Moved> = csi.moved().into_iter().filter(applies).collect();
    match found.is_empty() {
        true => {
            Err(CheckError::NotObservable("classes of none of the drivers have such parameters".to_owned()))
        }
        false => Ok(found),
    }
}

/// A claim, with the fields that identify calls for its volume.
struct Claimed {
    driver: &'static str,
    namespace: String,
    name: String,
    uid: String,
}

impl Claimed {
    /// How many characters of a claim's uid the name of its volume contains: provisioners may leave out the
    /// rest (`--volume-name-uuid-length`).
    const OF_UID: usize = 8;

    /// Reads the claim with this name for this driver.
    async fn of(cluster: &CsiCluster<'_>, moved: &Moved, name: &str) -> Result<Claimed, CheckError> {
        let uid =
            |claim: &Value| claim["metadata"]["uid"].as_str().map(str::to_owned).ok_or("no claim".to_owned());
        let path = cluster.path("persistentvolumeclaims", name);
        let uid = cluster.sees(("a claim is there", "a uid"), cluster.limit(), &path, uid).await?;
        let (namespace, name) = (cluster.namespace().to_owned(), name.to_owned());
        Ok(Claimed { driver: moved.driver.as_str(), namespace, name, uid })
    }

    /// Whether this call creates the volume of the claim: its name contains the uid, or its parameters name
    /// the claim (`--extra-create-metadata`).
    fn is_asked_by(&self, call: &CsiCall) -> bool {
        let parameters = &call.request["parameters"];
        let has_claim = parameters["csi.storage.k8s.io/pvc/name"] == self.name.as_str()
            && parameters["csi.storage.k8s.io/pvc/namespace"] == self.namespace.as_str();
        let uid = self.uid.get(..Self::OF_UID).unwrap_or(&self.uid);
        let named = call.request["name"].as_str().is_some_and(|name| name.contains(uid));
        call.driver == self.driver && call.method == CREATE && (has_claim || named)
    }
}

/// Creates a class and a claim for each driver.
async fn claimed(
    cluster: &CsiCluster<'_>,
    drivers: &[Moved],
    name: impl Fn(&Moved) -> String,
    more: impl Fn(&Moved) -> Value,
) -> Result<Vec<Claimed>, CheckError> {
    let classes = drivers.iter().map(|moved| class(cluster, moved, &name(moved), more(moved)));
    cluster.makes(classes.collect()).await?;
    cluster.makes_inside(drivers.iter().map(|moved| claim(cluster, &name(moved))).collect()).await?;
    let mut all = Vec::new();
    for moved in drivers {
        all.push(Claimed::of(cluster, moved, &name(moved)).await?);
    }
    Ok(all)
}

/// Waits for the call that requests a volume for each claim.
async fn asked(
    cluster: &CsiCluster<'_>,
    claims: &[Claimed],
    about: (&str, &str),
) -> Result<Vec<CsiCall>, CheckError> {
    let mut calls = Vec::new();
    for claim in claims {
        let ours = |call: &CsiCall| claim.is_asked_by(call);
        let promise = format!("{} of {}", about.0, claim.driver);
        calls.push(cluster.is_called((&promise, about.1), CREATE, ours, ours).await?);
    }
    Ok(calls)
}

/// Creates a class and a claim for each driver, and returns the calls that request their volumes.
async fn created(
    cluster: &CsiCluster<'_>,
    drivers: &[Moved],
    about: (&str, &str),
    more: impl Fn(&Moved) -> Value,
) -> Result<Vec<CsiCall>, CheckError> {
    let claims = claimed(cluster, drivers, |moved| short(moved).to_owned(), more).await?;
    asked(cluster, &claims, about).await
}

async fn names_the_file_system(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let drivers = drivers(&csi, |moved| moved.fs_type)?;
    let cluster = csi.on_a_cluster().await?;
    let about =
        ("a class with fstype and another parameter asks for a volume", "a CreateVolume for the claim");
    let more = |_: &Moved| json!({"parameters": {"fstype": "xfs", "type": "fast"}});
    for call in created(&cluster, &drivers, about, more).await? {
        let request = &call.request;
        let asked = request["volume_capabilities"][0]["mount"]["fs_type"].as_str().unwrap_or_default();
        let parameters = &request["parameters"];
        let left = ["fstype", "csi.storage.k8s.io/fstype"].iter().any(|key| !parameters[key].is_null());
        if asked != "xfs" || left || parameters["type"] != "fast" {
            let promise = format!("fstype of a class is the file system that {} is asked for", call.driver);
            let expected = "fs_type xfs, and of the parameters type alone";
            return Err(csi.violation(&promise, expected, request.to_string()));
        }
    }
    Ok(())
}

/// The zones that a driver is asked for under its own key, and the other keys.
fn zones(call: &CsiCall, key: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let places = call.request["accessibility_requirements"]["requisite"].as_array().into_iter().flatten();
    let segments = places.filter_map(|place| place["segments"].as_object()).flatten();
    let (ours, others): (Vec<_>, Vec<_>) = segments.partition(|(name, _)| *name == key);
    let ours = ours.into_iter().filter_map(|(_, zone)| zone.as_str().map(str::to_owned));
    (ours.collect(), others.into_iter().map(|(name, _)| name.clone()).collect())
}

/// Checks that each driver is asked for these zones and that no zone is passed as a parameter.
async fn asks_for(cx: &CheckCx, expected: &[&str], more: impl Fn(&Moved) -> Value) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let drivers = drivers(&csi, |moved| moved.zones && moved.zone.is_some())?;
    let cluster = csi.on_a_cluster().await?;
    let about = ("a class with zones asks for a volume", "a CreateVolume for the claim");
    let calls = created(&cluster, &drivers, about, more).await?;
    for (moved, call) in drivers.iter().zip(calls) {
        let key = moved.zone.unwrap_or_default();
        let (asked, others) = zones(&call, key);
        let wanted: BTreeSet<String> = expected.iter().map(|zone| (*zone).to_owned()).collect();
        let left = ["zone", "zones"].iter().any(|name| !call.request["parameters"][name].is_null());
        if asked != wanted || !others.is_empty() || left {
            let promise = format!("zones of a class are topologies that {} is asked for", call.driver);
            let expected = format!("{key} one of {}, and no parameter of zones", json!(wanted));
            return Err(csi.violation(&promise, &expected, call.request.to_string()));
        }
    }
    Ok(())
}

async fn names_zones(cx: &CheckCx) -> Verdict {
    let parameters = |_: &Moved| json!({"parameters": {"zones": "us-east-1a,us-east-1b"}});
    asks_for(cx, &["us-east-1a", "us-east-1b"], parameters).await
}

fn allowed(zone: &str) -> Value {
    json!([{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}])
}

async fn allows_topologies(cx: &CheckCx) -> Verdict {
    asks_for(cx, &["us-east-1b"], |_| json!({"allowedTopologies": allowed("us-east-1b")})).await
}

async fn refuses_both(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let drivers = drivers(&csi, |moved| moved.zones)?;
    let cluster = csi.on_a_cluster().await?;
    let both =
        |_: &Moved| json!({"parameters": {"zone": "us-east-1a"}, "allowedTopologies": allowed("us-east-1a")});
    let refused = claimed(&cluster, &drivers, |moved| short(moved).to_owned(), both).await?;
    for (moved, claim) in drivers.iter().zip(&refused) {
        let promise = format!("a claim of a class of {} is handed to {}", moved.in_tree, moved.driver);
        let named = |claim: &Value| names_driver(claim, moved);
        let path = cluster.path("persistentvolumeclaims", &claim.name);
        cluster.sees((&promise, "a claim that names it"), cluster.limit(), &path, named).await?;
    }
    // A provisioner that handles these claims has handled the earlier ones, and has reported the result.
    let plain = claimed(&cluster, &drivers, |moved| format!("plain-{}", short(moved)), |_| json!({})).await?;
    asked(&cluster, &plain, ("a class that says no zones asks for a volume", "a CreateVolume for the claim"))
        .await?;
    let promises: Vec<String> = drivers
        .iter()
        .map(|moved| {
            format!("a claim of a class of {} with zones and allowed topologies waits", moved.in_tree)
        })
        .collect();
    let pending = |claim: &Value| match claim["status"]["phase"] == "Pending" {
        true => Ok(()),
        false => Err(format!("status {}", claim["status"])),
    };
    let kept = promises.iter().zip(&refused).map(async |(promise, claim)| {
        let path = cluster.path("persistentvolumeclaims", &claim.name);
        cluster.keeps((promise, "phase Pending"), cx.limits().settle(), &path, pending).await
    });
    try_join_all(kept).await?;
    let calls = cluster.calls().await?;
    for (promise, claim) in promises.iter().zip(&refused) {
        if let Some(call) = calls.iter().find(|call| claim.is_asked_by(call)) {
            return Err(csi.violation(promise, "no CreateVolume", call.request.to_string()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_for_a_claim_are_known_by_its_uid_and_by_its_name() {
        let [namespace, name, uid] = ["ns", "one", "01234567-89ab-cdef-0123-456789abcdef"].map(str::to_owned);
        let claim = Claimed { driver: "one.csi.example", namespace, name, uid };
        let call = |driver: &str, name: &str, parameters: Value| CsiCall {
            driver: driver.to_owned(),
            node: String::new(),
            method: CREATE.to_owned(),
            request: json!({"name": name, "parameters": parameters}),
        };
        let of = |namespace: &str, name: &str| json!({"csi.storage.k8s.io/pvc/namespace": namespace, "csi.storage.k8s.io/pvc/name": name});
        let driver = claim.driver;
        for name in ["pvc-01234567-89ab-cdef-0123-456789abcdef", "pvc-0123456789", "acme-01234567"] {
            assert!(claim.is_asked_by(&call(driver, name, json!({}))), "{name}");
        }
        assert!(claim.is_asked_by(&call(driver, "pvc-0123", of("ns", "one"))));
        for (name, parameters) in
            [("pvc-0123", json!({})), ("pvc-1", of("other", "one")), ("pvc-1", of("ns", "other"))]
        {
            let other = call(driver, name, parameters);
            assert!(!claim.is_asked_by(&other), "{other:?}");
        }
        assert!(!claim.is_asked_by(&call("other.csi.example", "pvc-01234567", json!({}))));
        let deleted =
            CsiCall { method: "DeleteVolume".to_owned(), ..call(driver, "pvc-01234567", json!({})) };
        assert!(!claim.is_asked_by(&deleted));
    }
}

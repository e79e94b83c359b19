//! What classes ask of drivers (contract CSIM-06).

use super::annotations::{claim, class, short};
use super::sources::LIBRARY;
use harness::check::{Stop, Verdict};
use harness::csi_migration::{Moved, ZONE};
use harness::cx::{Check, CheckCx, CsiCall, CsiCluster, CsiMigration};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The method by which volumes are made.
const CREATE: &str = "CreateVolume";

pub(super) const CHECKS: &[Check] = &[
    Check::must("CSIM-06.fstype", "a class's fstype is the file system that is asked for", LIBRARY, |cx| {
        Box::pin(names_the_file_system(cx))
    })
    .with_csi_drivers(),
    Check::must("CSIM-06.zones", "a class's zones are topologies by the driver's key", LIBRARY, |cx| {
        Box::pin(names_zones(cx))
    })
    .with_csi_drivers(),
    Check::must(
        "CSIM-06.topologies",
        "a class's allowed topologies are told by the driver's key",
        LIBRARY,
        |cx| Box::pin(allows_topologies(cx)),
    )
    .with_csi_drivers(),
    Check::must("CSIM-06.both", "a class with zones and allowed topologies gets no volume", LIBRARY, |cx| {
        Box::pin(refuses_both(cx))
    })
    .with_csi_drivers(),
];

/// The drivers to which this applies.
fn drivers(csi: &CsiMigration<'_>, applies: impl Fn(&Moved) -> bool) -> Result<Vec<Moved>, Stop> {
    csi.has_provisioner()?;
    let found: Vec<Moved> = csi.moved().into_iter().filter(applies).collect();
    match found.is_empty() {
        true => Err(Stop::NotObservable("classes of none of the drivers have such parameters".to_owned())),
        false => Ok(found),
    }
}

/// Makes a class and a claim for each driver; the calls for them.
async fn created(
    cluster: &CsiCluster<'_>,
    drivers: &[Moved],
    about: (&str, &str),
    more: impl Fn(&Moved) -> Value,
) -> Result<Vec<CsiCall>, Stop> {
    let classes = drivers.iter().map(|moved| class(cluster, moved, short(moved), more(moved)));
    cluster.makes(classes.collect()).await?;
    cluster.makes_inside(drivers.iter().map(|moved| claim(cluster, short(moved))).collect()).await?;
    let mut calls = Vec::new();
    for moved in drivers {
        let uid = uid_of(cluster, short(moved)).await?;
        let ours = |call: &CsiCall| {
            call.driver == moved.driver.as_str()
                && call.request["name"].as_str().is_some_and(|name| name.contains(&uid))
        };
        let promise = format!("{} of {}", about.0, moved.driver);
        calls.push(cluster.is_called((&promise, about.1), CREATE, ours, ours).await?);
    }
    Ok(calls)
}

async fn uid_of(cluster: &CsiCluster<'_>, claim: &str) -> Result<String, Stop> {
    let uid =
        |claim: &Value| claim["metadata"]["uid"].as_str().map(str::to_owned).ok_or("no claim".to_owned());
    let path = cluster.path("persistentvolumeclaims", claim);
    cluster.sees(("a claim is there", "a uid"), cluster.limit(), &path, uid).await
}

async fn names_the_file_system(cx: &CheckCx) -> Verdict {
    let csi = cx.csi_migration()?;
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
            return Err(csi.unmet(&promise, expected, request.to_string()));
        }
    }
    Ok(())
}

/// The zones that a driver is asked for, by its own key, and the other keys.
fn zones(call: &CsiCall, key: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let places = call.request["accessibility_requirements"]["requisite"].as_array().into_iter().flatten();
    let segments = places.filter_map(|place| place["segments"].as_object()).flatten();
    let (ours, others): (Vec<_>, Vec<_>) = segments.partition(|(name, _)| *name == key);
    let ours = ours.into_iter().filter_map(|(_, zone)| zone.as_str().map(str::to_owned));
    (ours.collect(), others.into_iter().map(|(name, _)| name.clone()).collect())
}

/// That each driver is asked for these zones and gets no parameter of them.
async fn asks_for(cx: &CheckCx, expected: &[&str], more: impl Fn(&Moved) -> Value) -> Verdict {
    let csi = cx.csi_migration()?;
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
            let expected = format!("{key} one of {wanted:?}, and no parameter of zones");
            return Err(csi.unmet(&promise, &expected, call.request.to_string()));
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
    let csi = cx.csi_migration()?;
    let drivers = drivers(&csi, |moved| moved.zones)?;
    let cluster = csi.on_a_cluster().await?;
    let both =
        |_: &Moved| json!({"parameters": {"zone": "us-east-1a"}, "allowedTopologies": allowed("us-east-1a")});
    let classes = drivers.iter().map(|moved| class(&cluster, moved, short(moved), both(moved)));
    cluster.makes(classes.collect()).await?;
    cluster.makes_inside(drivers.iter().map(|moved| claim(&cluster, short(moved))).collect()).await?;
    for (at, moved) in drivers.iter().enumerate() {
        let uid = uid_of(&cluster, short(moved)).await?;
        let pending = |claim: &Value| match claim["status"]["phase"] == "Pending" {
            true => Ok(()),
            false => Err(format!("status {}", claim["status"])),
        };
        let promise =
            format!("a claim of a class of {} with zones and allowed topologies waits", moved.in_tree);
        let path = cluster.path("persistentvolumeclaims", short(moved));
        let window = if at == 0 { cx.limits().settle() } else { std::time::Duration::ZERO };
        cluster.keeps((&promise, "phase Pending"), window, &path, pending).await?;
        let calls = cluster.calls().await?;
        let made = calls.iter().find(|call| {
            call.method == CREATE && call.request["name"].as_str().is_some_and(|name| name.contains(&uid))
        });
        if let Some(call) = made {
            return Err(csi.unmet(&promise, "no CreateVolume", call.request.to_string()));
        }
    }
    Ok(())
}

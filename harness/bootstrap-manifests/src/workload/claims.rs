//! Claims that need no provisioner, because the manifests contain a volume for them. kube-controller-manager binds the two
//! (`pkg/controller/volume/persistentvolume`).

use super::kind::spec_path;
use super::pods::Workload;
use super::selector::{Selector, labels};
use crate::manifest::{Node, Object, Objects};
use embedded_objects::billionths;

/// Takes volumes out of those that need the storage system if their claim is bound to a volume of the manifests.
pub(super) fn bound_by_hand(objects: &Objects, workload: &mut Workload) {
    let Some(object) = workload.object.map(|index| &objects.all[index]) else { return };
    let Some(spec) = object.node.at(spec_path(workload.kind)) else { return };
    for volume in spec.get("volumes").map(Node::items).unwrap_or_default() {
        let name = volume.at(&["persistentVolumeClaim", "claimName"]).and_then(Node::text);
        let claim = name.and_then(|name| objects.find("PersistentVolumeClaim", &object.namespace, name));
        if claim.is_some_and(|claim| has_volume(objects, &claim.node, (&object.namespace, &claim.name))) {
            let place = object.place(volume);
            workload.storage.retain(|own| *own != place);
        }
    }
    // The Pods of a StatefulSet come one after the other, and the first is enough for a boot.
    let Some(templates) = object.node.at(&["spec", "volumeClaimTemplates"]) else { return };
    let is_bound = |template: &Node| {
        let name = template.at(&["metadata", "name"]).and_then(Node::text).unwrap_or_default();
        has_volume(objects, template, (&object.namespace, &format!("{name}-{}-0", object.name)))
    };
    if templates.items().iter().all(is_bound) {
        let place = object.place(templates);
        workload.storage.retain(|own| *own != place);
    }
}

fn has_volume(objects: &Objects, claim: &Node, key: (&str, &str)) -> bool {
    objects.of_kind("PersistentVolume").any(|volume| fits(volume, claim, key))
}

/// Whether the volume is one for the claim. A claim without a class may get the default one, which is not known.
fn fits(volume: &Object, claim: &Node, (namespace, name): (&str, &str)) -> bool {
    let of_claim = |path: &[&str]| claim.at(&[&["spec"], path].concat());
    let of_volume = |path: &[&str]| volume.node.at(&[&["spec"], path].concat());
    let text = |node: Option<&Node>| node.and_then(Node::text).unwrap_or_default().to_owned();
    let mode = |node: Option<&Node>| node.and_then(Node::text).unwrap_or("Filesystem").to_owned();
    let size = |node: Option<&Node>| node.and_then(Node::scalar).and_then(|text| billionths(&text));
    let named = of_claim(&["volumeName"]).and_then(Node::text).filter(|name| !name.is_empty());
    // One that states a uid was of an earlier claim (`IsVolumeBoundToClaim`).
    let is_for_it = |claim: &Node| {
        claim.text_at("namespace") == Some(namespace)
            && claim.text_at("name") == Some(name)
            && claim.text_at("uid").is_none_or(str::is_empty)
    };
    let reserved = of_volume(&["claimRef"]).filter(|claim| !claim.is_null()).map(is_for_it);
    // Those that name each other are bound without a comparison (`syncUnboundClaim`).
    if named == Some(volume.name.as_str()) && reserved == Some(true) {
        return of_volume(&["hostPath"]).is_some() && of_volume(&["nodeAffinity"]).is_none();
    }
    let Some(class) = of_claim(&["storageClassName"]) else { return false };
    let modes = |node: Option<&Node>| node.map(Node::texts).unwrap_or_default();
    let offered = modes(of_volume(&["accessModes"]));
    let is_large = size(of_volume(&["capacity", "storage"]))
        .zip(size(of_claim(&["resources", "requests", "storage"])))
        .is_some_and(|(offered, wanted)| offered >= wanted);
    let selector = Selector::read(of_claim(&["selector"]));
    let own_labels = labels(volume.node.at(&["metadata", "labels"]));
    text(Some(class)) == text(of_volume(&["storageClassName"]))
        && mode(of_claim(&["volumeMode"])) == mode(of_volume(&["volumeMode"]))
        && modes(of_claim(&["accessModes"])).iter().all(|mode| offered.contains(mode))
        && is_large
        && selector.is_none_or(|selector| selector.chooses(&own_labels))
        && named.is_none_or(|name| name == volume.name)
        && reserved.is_none_or(|is_for_it| is_for_it)
        && of_volume(&["hostPath"]).is_some()
        && of_volume(&["nodeAffinity"]).is_none()
}

//! Chooses the backend of a run if the user did not: kind if this machine supports it, otherwise embedded.

use super::SessionError;
use super::manifests::load_manifests;
use crate::ccm::{Manifests, mentions, substitute};
use harness_clusters::{Runs, available_kind_image, facts};
use harness_config::{
    BackendKind, DesiredCluster, Image, Kubernetes, OldRelease, OwnCluster, RunPlan, WantedCluster,
};
use harness_core::check::chain;
use serde_json::Value;
use std::collections::BTreeMap;

/// The plan with a backend, and the reason for it; no reason if the user has chosen.
pub async fn settle(plan: RunPlan<WantedCluster>) -> (RunPlan, Option<String>) {
    let wanted = plan.cluster.clone();
    let own = match (wanted.backend(), wanted.desired()) {
        (None, DesiredCluster::Own(own)) => own,
        // Existing things belong to one backend only.
        (None, DesiredCluster::Existing(_)) => return (plan.on(wanted.settled(BackendKind::Existing)), None),
        (None, DesiredCluster::Absent) => return (plan.on(wanted.settled(BackendKind::Absent)), None),
        (Some(backend), _) => return (plan.on(wanted.settled(backend)), None),
    };
    let (backend, why) = match needs(&plan, own) {
        Some(settled) => settled,
        None => match kind_available(own).await {
            Ok(why) => (BackendKind::Kind, why),
            Err(why) => {
                let why = format!("{why}; it cannot certify, '--cluster kind' can");
                (BackendKind::Embedded, why)
            }
        },
    };
    let said = format!("cluster: {backend}, as {why}");
    (plan.on(wanted.settled(backend)), Some(said))
}

/// Requirements that only one of the backends supports.
fn needs(plan: &RunPlan<WantedCluster>, own: &OwnCluster) -> Option<(BackendKind, String)> {
    let profile = &plan.profile;
    if plan.binary.is_some() {
        return Some((BackendKind::Embedded, "the CCM is a program on this machine".to_owned()));
    }
    if let Kubernetes::Image(image) = &own.kubernetes {
        return Some((BackendKind::Kind, format!("{image} is a node image")));
    }
    if !profile.deploys_nothing() && !matches!(profile.image, Some(Image::Build(_) | Image::Command(_))) {
        return Some((BackendKind::Kind, "the CCM is an image".to_owned()));
    }
    None
}

/// Whether there can be a cluster for the Pods of a hosted CCM.
///
/// # Errors
/// [`SessionError::Usage`]: the backend creates none.
pub(super) fn check_hosting(plan: &RunPlan) -> Result<(), SessionError> {
    let (profile, backend) = (&plan.profile, plan.cluster.backend());
    if !profile.is_hosted() || facts(backend).manages {
        return Ok(());
    }
    Err(SessionError::Usage(format!(
        "{}: deployment: 'hosted' needs a management cluster for the CCM's Pods, which backend '{backend}' does not \
         create; use '--cluster kind', or '--cluster embedded' (with '--binary' if the CCM is an image)",
        profile.file.display()
    )))
}

/// Whether the CCM's image or program is known.
///
/// # Errors
/// [`SessionError::Usage`]: neither the profile nor its manifests name an image, and no program was given; or the cluster
/// cannot run images.
pub(super) fn check_image(plan: &RunPlan) -> Result<(), SessionError> {
    let profile = &plan.profile;
    if let Some(OldRelease { profile: old, binary: None }) = &plan.old_release
        && facts(plan.cluster.backend()).runs == Runs::Programs
        && (old.image.is_none() || matches!(old.image, Some(Image::Reference(_))))
    {
        let written = match &old.image {
            Some(Image::Reference(image)) => format!("the image {image}"),
            _ => format!("the image of profile '{}'", old.name),
        };
        let of_profile =
            if old.file == profile.file { String::new() } else { format!("profile:{},", old.name) };
        return Err(SessionError::Usage(format!(
            "the old release is {written}, but the {} cluster runs programs: name its program with \
             '--upgrade-from {of_profile}binary:PATH', or use '--cluster kind'",
            plan.cluster.backend()
        )));
    }
    if plan.binary.is_some() || profile.deploys_nothing() {
        return Ok(());
    }
    let image = match &profile.image {
        Some(Image::Command(_) | Image::Build(_)) => return Ok(()),
        Some(Image::Reference(image)) => image.clone(),
        None => {
            let manifests = load_manifests(plan)?;
            let written = manifests.as_ref().and_then(Manifests::image);
            written.and_then(|image| stood_for(image, &profile.placeholders)).ok_or_else(|| {
                SessionError::Usage(format!(
                    "neither profile '{}' nor its manifests name the CCM's image: pass its program with '--cluster \
                     embedded --binary PATH', or add 'image: {{reference: IMAGE}}' to {}",
                    profile.name,
                    profile.file.display()
                ))
            })?
        }
    };
    let backend = plan.cluster.backend();
    match facts(backend).runs {
        Runs::Images => Ok(()),
        Runs::Programs => Err(SessionError::Usage(format!(
            "the CCM is the image {image}, but the {backend} cluster runs programs: pass the CCM's program with '--binary \
             PATH', or use '--cluster kind'"
        ))),
    }
}

/// The image in the manifests themselves; `None` if they leave it to the profile.
pub(super) fn stood_for(image: &str, placeholders: &BTreeMap<String, String>) -> Option<String> {
    let mut image = Value::String(image.to_owned());
    substitute(&mut image, placeholders);
    (!mentions(&image, "IMAGE")).then(|| image.as_str().unwrap_or_default().to_owned())
}

/// Whether a real cloud's machines can be the run's Nodes.
///
/// # Errors
/// [`SessionError::Usage`]: the run creates its machines itself.
pub(super) fn check_real(plan: &RunPlan) -> Result<(), SessionError> {
    let (profile, backend) = (&plan.profile, plan.cluster.backend());
    if profile.cloud.real().is_none() || backend == BackendKind::Existing {
        return Ok(());
    }
    Err(SessionError::Usage(format!(
        "{}: cloud.real: the machines of a real cloud already exist, but backend '{backend}' creates its own; use \
         '--cluster existing' with a cluster whose Nodes are machines of that cloud, or name the driver under \
         'cloud.driver' if it can create machines",
        profile.file.display()
    )))
}

/// Whether kind can create this cluster with what is on this machine.
async fn kind_available(own: &OwnCluster) -> Result<String, String> {
    let image = available_kind_image(&own.kubernetes).await.map_err(|error| first_line(&chain(&error)))?;
    Ok(format!("Docker, kind and the node image {image} are available"))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{RunFile, Source, plan};

    #[test]
    fn a_real_cloud_is_for_a_cluster_that_is_there_already() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "apiVersion: ccm-conformance/v1\nkind: Profile\nname: acme\nmanifests: []\ncapabilities: {}\n\
                    providerId: {format: 'acme://{id}'}\ncloud: {real: {driver: {command: [./driver]}}}\n";
        std::fs::write(folder.path().join("profile.yaml"), text).expect("written");
        let on = |backend| {
            let profile = Some(folder.path().display().to_string());
            let wanted = plan(&Source::Defaults, RunFile { profile, ..RunFile::default() }).expect("a plan");
            let cluster = wanted.cluster.clone().settled(backend);
            check_real(&wanted.on(cluster))
        };
        assert!(on(BackendKind::Existing).is_ok());
        for backend in [BackendKind::Kind, BackendKind::Embedded] {
            let error = on(backend).expect_err("it makes its machines itself");
            let said = error.to_string();
            assert!(error.is_usage() && said.contains("profile.yaml: cloud.real: the machines of"), "{said}");
            assert!(said.contains("use '--cluster existing'"), "{said}");
        }
    }

    #[test]
    fn a_ccm_without_an_image_is_refused_before_anything_is_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let on = |backend: BackendKind, written: &str, profile: &str, binary: Option<&str>| {
            let text = format!(
                "apiVersion: ccm-conformance/v1\nkind: Profile\nname: acme\nmanifests: [ccm.yaml]\ncapabilities: {{}}\n{profile}"
            );
            std::fs::write(folder.path().join("profile.yaml"), text).expect("written");
            let pod = format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: ccm}}, spec: {{containers: [{{name: a, image: '{written}'}}]}}}}\n"
            );
            std::fs::write(folder.path().join("ccm.yaml"), pod).expect("written");
            let (profile, binary) = (Some(folder.path().display().to_string()), binary.map(str::to_owned));
            let wanted =
                plan(&Source::Defaults, RunFile { profile, binary, ..RunFile::default() }).expect("a plan");
            let cluster = wanted.cluster.clone().settled(backend);
            check_image(&wanted.on(cluster))
        };
        let checked = |written: &str, profile: &str, binary: Option<&str>| {
            on(BackendKind::Kind, written, profile, binary)
        };
        let error = checked("${IMAGE}", "", None).expect_err("no image is given");
        let said = error.to_string();
        assert!(error.is_usage() && said.contains("--cluster embedded --binary PATH"), "{said}");
        assert!(said.contains("profile.yaml"), "{said}");
        assert!(checked("${IMAGE}", "image: {reference: 'example/ccm:1'}\n", None).is_ok());
        assert!(on(BackendKind::Embedded, "${IMAGE}", "", Some("/bin/sh")).is_ok());
        for (written, profile) in
            [("${IMAGE}", "image: {reference: 'example/ccm:1'}\n"), ("example/ccm:1", "")]
        {
            let said = on(BackendKind::Embedded, written, profile, None).expect_err("an image").to_string();
            assert!(
                said.starts_with("the CCM is the image example/ccm:1, but the embedded cluster"),
                "{said}"
            );
        }
        assert!(checked("example/ccm:1", "", None).is_ok());
        assert!(checked("${OWN}", "placeholders: {OWN: 'example/ccm:1'}\n", None).is_ok());
    }

    #[test]
    fn a_hosted_ccm_is_refused_where_no_cluster_for_its_pods_can_be_made() {
        let wanted = || {
            let profile = Some("reference-hosted".to_owned());
            plan(&Source::Defaults, RunFile { profile, ..RunFile::default() }).expect("a plan")
        };
        let on = |backend: BackendKind| {
            let wanted = wanted();
            let cluster = wanted.cluster.clone().settled(backend);
            check_hosting(&wanted.on(cluster))
        };
        for backend in [BackendKind::Embedded, BackendKind::Kind] {
            assert!(on(backend).is_ok(), "{backend}");
        }
        let error = on(BackendKind::Existing).expect_err("there is only one existing cluster");
        assert!(
            error.is_usage() && error.to_string().contains("profile.yaml: deployment: 'hosted' needs"),
            "{error}"
        );
    }
}

//! Which backend a run gets when nobody has said: kind where this machine has all it takes, else embedded.

use crate::check::chain;
use crate::cluster::kind_at_hand;
use crate::config::{BackendKind, DesiredCluster, Image, Kubernetes, OwnCluster, RunPlan, WantedCluster};

/// The plan with its backend settled, and why it is this one; nothing to say where the user has chosen.
pub async fn settle(plan: RunPlan<WantedCluster>) -> (RunPlan, Option<String>) {
    let wanted = plan.cluster.clone();
    let own = match (wanted.backend(), wanted.desired()) {
        (None, DesiredCluster::Own(own)) => own,
        // What is there already is of one backend only.
        (None, DesiredCluster::Existing(_)) => return (plan.on(wanted.settled(BackendKind::Existing)), None),
        (None, DesiredCluster::Absent) => return (plan.on(wanted.settled(BackendKind::Absent)), None),
        (Some(backend), _) => return (plan.on(wanted.settled(backend)), None),
    };
    let (backend, why) = match needs(&plan, own) {
        Some(settled) => settled,
        None => match at_hand(own).await {
            Ok(why) => (BackendKind::Kind, why),
            Err(why) => {
                let why = format!("{why}; it certifies nothing, '--cluster kind' does");
                (BackendKind::Embedded, why)
            }
        },
    };
    let said = format!("cluster: {backend}, as {why}");
    (plan.on(wanted.settled(backend)), Some(said))
}

/// What only one of the backends can do.
fn needs(plan: &RunPlan<WantedCluster>, own: &OwnCluster) -> Option<(BackendKind, String)> {
    let profile = &plan.profile;
    if plan.binary.is_some() {
        return Some((BackendKind::Embedded, "the CCM is a program of this machine".to_owned()));
    }
    if let Kubernetes::Image(image) = &own.kubernetes {
        return Some((BackendKind::Kind, format!("{image} is a node image")));
    }
    if !profile.deploys_nothing() && !matches!(profile.image, Some(Image::Build(_) | Image::Command(_))) {
        return Some((BackendKind::Kind, "the CCM is an image".to_owned()));
    }
    None
}

/// Whether kind can make this cluster with what is on this machine.
async fn at_hand(own: &OwnCluster) -> Result<String, String> {
    let image = kind_at_hand(&own.kubernetes).await.map_err(|error| first_line(&chain(&error)))?;
    Ok(format!("Docker, kind and the node image {image} are here"))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

//! What the manifests say by themselves (contract BOOT-LINT), and what a CCM does that is told of what there is not
//! (BOOT-DYN-15).

use crate::joining::{ends_or_works, registered};
use harness_testkit::prelude::*;
use std::future::ready;

const SEED: &str = "the project's seed articles";
const START: &str = "k8s.io/cloud-provider cloud.go InitCloudProvider";
const TRIAL: &[Facility] = &[Facility::CcmControl];

pub(super) const CHECKS: &[Check] = &[
    Check::must("BOOT-LINT-10", "several Pods work at once only under an election", SEED, |cx| {
        Box::pin(ready(cx.manifests_follow("BOOT-LINT-10", false)))
    })
    .of_the_cloud(&[])
    .timeless()
    .cold(),
    Check::must("BOOT-LINT-13", "the CCM has a critical priority", SEED, |cx| {
        Box::pin(ready(cx.manifests_follow("BOOT-LINT-13", true)))
    })
    .should()
    .of_the_cloud(&[])
    .timeless()
    .cold(),
    Check::must("BOOT-LINT-16", "probes ask for what the CCM serves", "contract OBS-01 to -03", |cx| {
        Box::pin(ready(cx.manifests_follow("BOOT-LINT-16", false)))
    })
    .of_the_cloud(&[])
    .timeless()
    .cold(),
    Check::must(
        "BOOT-LINT-17",
        "the manifests name a provider",
        "k8s.io/cloud-provider options Validate; cloud.go InitCloudProvider",
        |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-17", false))),
    )
    .of_the_cloud(&[])
    .timeless()
    .cold(),
    Check::must("BOOT-LINT-18", "requests are set and the image is pinned", SEED, |cx| {
        Box::pin(ready(cx.manifests_follow("BOOT-LINT-18", true)))
    })
    .should()
    .of_the_cloud(&[])
    .timeless()
    .cold(),
    Check::must(
        "BOOT-LINT-20",
        "CCMs that share a host listen on ports of their own",
        "k8s.io/cloud-provider options/webhook.go",
        |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-20", true))),
    )
    .should()
    .of_the_cloud(&[])
    .timeless()
    .cold(),
    Check::must("BOOT-LINT-22", "roles grant what the CCM needs", "contract section 14", |cx| {
        Box::pin(ready(cx.manifests_follow("BOOT-LINT-22", false)))
    })
    .of_the_cloud(&[])
    .timeless()
    .cold(),
    Check::must(
        "BOOT-DYN-15.provider",
        "a provider that there is not ends the process, which names it, or is nothing that it asks for",
        START,
        |cx| Box::pin(names_what_it_lacks(cx, "--cloud-provider=no-such-provider", "no-such-provider")),
    )
    .needs(&[Capability::FrameworkFlags])
    .of_the_cloud(&[])
    .with(TRIAL)
    .cold(),
    Check::must(
        "BOOT-DYN-15.config",
        "a cloud config file that is missing ends the process, which names it, or is nothing that it reads",
        START,
        |cx| {
            Box::pin(names_what_it_lacks(
                cx,
                "--cloud-config=/no-such-folder/cloud.conf",
                "/no-such-folder/cloud.conf",
            ))
        },
    )
    .needs(&[Capability::FrameworkFlags])
    .of_the_cloud(&[])
    .with(TRIAL)
    .cold(),
];

/// The row itself asks for the line in the log: who reads it looks at the setting, be it named by what was given or by its
/// flag. A CCM that makes its cloud without asking for it works as ever.
async fn names_what_it_lacks(cx: &CheckCx, flag: &str, lacking: &str) -> Verdict {
    let alone = cx.ccm_alone(&[flag]).await?;
    let ended = if cx.declares(Capability::Instances) {
        let (_, node) = registered(cx, machine("witness")).await?;
        let seen = (&alone, &node).becomes(ends_or_works()).within(cx.limits().start()).await;
        alone.explained(seen).await?
    } else {
        let refused = alone.becomes(refuses()).within(cx.limits().start()).await;
        alone.explained(refused).await?;
        true
    };
    if !ended {
        cx.record("reads", "nothing of it: it works as without");
        return Ok(());
    }
    // k8s.io/component-base cli/flag PrintFlags: what it was told, whether or not that is at fault.
    let log = alone.log().await?;
    let setting = flag.split('=').next().unwrap_or(flag);
    let names = |line: &str| line.contains(lacking) || line.contains(setting);
    if log.lines().any(|line| names(line) && !line.contains("FLAG: --")) {
        return Ok(());
    }
    let expected = format!("a line with {lacking} or {setting}");
    alone.explained(Err(alone.breaks("its log says what is missing", &expected, "no such line"))).await
}

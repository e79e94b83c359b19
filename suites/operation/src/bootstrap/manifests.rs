//! Checks of the manifests alone (contract BOOT-LINT), and how a CCM handles settings that refer to missing
//! objects (BOOT-DYN-15).

use harness_testkit::prelude::*;
use std::future::ready;
use suites_common::joining::{ends_or_works, registered};

const TRIAL: &[Facility] = &[Facility::CcmControl];

pub(super) const CHECKS: &[Check] = &[
    Check::of("BOOT-LINT-10", |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-10", false))))
        .of_the_cloud(&[])
        .timeless()
        .on_a_fresh_cluster(),
    Check::of("BOOT-LINT-13", |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-13", true))))
        .of_the_cloud(&[])
        .timeless()
        .on_a_fresh_cluster(),
    Check::of("BOOT-LINT-16", |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-16", false))))
        .of_the_cloud(&[])
        .timeless()
        .on_a_fresh_cluster(),
    Check::of("BOOT-LINT-17", |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-17", false))))
        .of_the_cloud(&[])
        .timeless()
        .on_a_fresh_cluster(),
    Check::of("BOOT-LINT-18", |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-18", true))))
        .of_the_cloud(&[])
        .timeless()
        .on_a_fresh_cluster(),
    Check::of("BOOT-LINT-20", |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-20", true))))
        .of_the_cloud(&[])
        .timeless()
        .on_a_fresh_cluster(),
    Check::of("BOOT-LINT-22", |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-22", false))))
        .of_the_cloud(&[])
        .timeless()
        .on_a_fresh_cluster(),
    Check::of("BOOT-DYN-15.provider", |cx| {
        Box::pin(names_what_it_lacks(cx, "--cloud-provider=no-such-provider", "no-such-provider"))
    })
    .needs(&[Capability::FrameworkFlags])
    .of_the_cloud(&[])
    .with(TRIAL)
    .on_a_fresh_cluster(),
    Check::of("BOOT-DYN-15.config", |cx| {
        Box::pin(names_what_it_lacks(
            cx,
            "--cloud-config=/no-such-folder/cloud.conf",
            "/no-such-folder/cloud.conf",
        ))
    })
    .needs(&[Capability::FrameworkFlags])
    .of_the_cloud(&[])
    .with(TRIAL)
    .on_a_fresh_cluster(),
];

/// The row itself requires the line in the log, so that a reader finds the setting, by its value or by its
/// flag. A CCM that creates its cloud client lazily keeps working.
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
    // k8s.io/component-base cli/flag PrintFlags logs every flag, whether or not it is wrong.
    let log = alone.log().await?;
    let setting = flag.split('=').next().unwrap_or(flag);
    let names = |line: &str| line.contains(lacking) || line.contains(setting);
    if log.lines().any(|line| names(line) && !line.contains("FLAG: --")) {
        return Ok(());
    }
    let expected = format!("a line with {lacking} or {setting}");
    alone.explained(Err(alone.breaks("its log says what is missing", &expected, "no such line"))).await
}

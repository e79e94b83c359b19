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
    Check::of("BOOT-LINT-22.all", |cx| Box::pin(ready(cx.manifests_follow("BOOT-LINT-22", true))))
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

/// Whether the process ends. A CCM that initialises no Nodes works if it still leads at the end of the budget: it may
/// read its configuration only once it leads.
async fn ends_or_leads_on(cx: &CheckCx, alone: &Trial<'_>) -> Result<bool, CheckError> {
    let ends = matcher("ends with an error", |tried: &Tried| match tried.exit_code() {
        Some(0) => Observation::Impossible("that is not an error".to_owned()),
        Some(_) => Observation::Matched(()),
        None => Observation::Pending(String::new()),
    });
    let ends = ends.expecting("its process ended with an exit code that is not 0, or it leads");
    match alone.becomes(ends).within(cx.limits().start()).await {
        Ok(()) => Ok(true),
        Err(CheckError::Violation(_)) if alone.read(ReadSource::Origin).await?.leads() => Ok(false),
        ended => alone.explained(ended).await.map(|()| true),
    }
}

/// The row itself requires the line in the log, so that a reader finds the setting, by its value or by its
/// flag. A CCM that creates its cloud client lazily keeps working.
async fn names_what_it_lacks(cx: &CheckCx, flag: &str, lacking: &str) -> Verdict {
    let alone = cx.ccm_alone(&[flag]).await?;
    let ended = if cx.declares(Capability::Instances) {
        let (_, node) = registered(cx, machine("witness")).await?;
        let seen = (&alone, &node).becomes(ends_or_works()).within(cx.limits().start()).await;
        alone.explained(seen).await?
    } else {
        ends_or_leads_on(cx, &alone).await?
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

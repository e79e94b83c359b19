//! The rights that the CCM's manifests grant, as they are in the cluster, and requests that these rights do
//! not cover (AUTH-20 to -22).

use super::least_rights::{beyond, least_rights, unused, wildcards};
use harness_testkit::prelude::*;
use std::collections::BTreeSet;
use suites_common::joining::registered;

pub(super) const CHECKS: &[Check] = &[
    Check::of("AUTH-20", |cx| Box::pin(grants_no_wildcard(cx)))
        .of_the_cloud(&[])
        .timeless()
        .with(&[Facility::CcmControl]),
    Check::of("AUTH-21", |cx| Box::pin(grants_no_more(cx)))
        .of_the_cloud(&[])
        .timeless()
        .with(&[Facility::CcmControl]),
    Check::of("AUTH-21.least", |cx| Box::pin(works_with_the_least(cx)))
        .needs(&[Capability::Instances])
        .with(&[Facility::CcmControl])
        .on_a_fresh_cluster(),
    Check::of("AUTH-21.unused", |cx| Box::pin(tells_what_is_unused(cx)))
        .of_the_cloud(&[])
        .with(&[Facility::CcmControl, Facility::AuditLog])
        .after_the_run(),
    Check::of("AUTH-22", |cx| Box::pin(asks_for_no_more(cx)))
        .of_the_cloud(&[])
        .with(&[Facility::CcmControl, Facility::AuditLog])
        .after_the_run(),
];

/// Deploys the CCM, and returns its account and the rights granted to it.
async fn granted(cx: &CheckCx) -> Result<(Account, Vec<Grant>), CheckError> {
    cx.ccm_runs().await?;
    let account = cx.ccm_account()?;
    let grants = cx.granted_to(&account).await?;
    Ok((account, grants))
}

async fn grants_no_wildcard(cx: &CheckCx) -> Verdict {
    let (account, grants) = granted(cx).await?;
    let wild = wildcards(&grants);
    match wild.is_empty() {
        true => Ok(()),
        false => {
            let promise = format!("{} is granted nothing with a wildcard", account.user());
            Err(CheckError::violation(promise, "groups, resources and verbs by name", wild.join("; ")))
        }
    }
}

async fn grants_no_more(cx: &CheckCx) -> Verdict {
    let (account, grants) = granted(cx).await?;
    let more = beyond(&grants, cx.makes_accounts(), &cx.lease_namespace());
    match more.is_empty() {
        true => Ok(()),
        false => {
            let promise = format!("{} is granted no more than a CCM needs", account.user());
            Err(CheckError::violation(
                promise,
                "the rights of AUTH-01 to -14 and the extras of AUTH-21",
                more.join("; "),
            ))
        }
    }
}

async fn works_with_the_least(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_as(least_rights(cx), &[]).await?;
    let (_, node) = registered(cx, machine("least")).await?;
    let worked =
        node.becomes(initialised()).within(cx.limits().start()).when("by a CCM with the least rights");
    alone.while_it_runs(worked).await?;
    if cx.declares(Capability::LoadBalancer) {
        let web = cx.service(load_balancer("least").port(80)).await?;
        alone.explained(web.gets_published().await).await?;
        web.delete().await?;
        alone.explained(web.becomes(gone()).within(cx.limits().load_balancer()).await).await?;
    }
    Ok(())
}

async fn tells_what_is_unused(cx: &CheckCx) -> Verdict {
    let (account, grants) = granted(cx).await?;
    let asked = cx.asked_by(&account, false).await?;
    let used = asked.into_iter().filter(|asked| asked.authorized);
    let used: Vec<_> = used.map(|asked| (asked.verb, asked.group, asked.resource)).collect();
    cx.record("unused", unused(&grants, &used, &account).join("; "));
    Ok(())
}

/// Describes a denied request.
fn show(asked: &Asked) -> String {
    let what = if asked.resource.is_empty() { &asked.path } else { &asked.resource };
    let of = if asked.group.is_empty() { String::new() } else { format!(".{}", asked.group) };
    let place = if asked.namespace.is_empty() { String::new() } else { format!(" in {}", asked.namespace) };
    format!("{} {what}{of}{place}", asked.verb)
}

async fn asks_for_no_more(cx: &CheckCx) -> Verdict {
    let account = cx.ccm_account()?;
    cx.ccm_runs().await?;
    let refused: BTreeSet<String> = cx.asked_by(&account, true).await?.iter().map(show).collect();
    match refused.is_empty() {
        true => Ok(()),
        false => {
            let promise = format!("the API server refuses {} nothing", account.user());
            let refused: Vec<String> = refused.into_iter().collect();
            Err(CheckError::violation(promise, "every request authorised", refused.join("; ")))
        }
    }
}

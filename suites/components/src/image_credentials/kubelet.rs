//! How a real kubelet uses a plugin (contract CREDP-06, -08, -12, -13, -15). Needs a cluster whose kubelets
//! can be given a plugin: kind.

use super::scope::foreign;
use harness_component_testkit::components::image_credentials::{PUBLIC, PluginExecution, go_duration};
use harness_component_testkit::prelude::*;
use std::collections::BTreeSet;
use std::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CREDP-06.pulls", |cx| Box::pin(is_run_as_often_as_it_says(cx))).by_a_kubelet(),
    Check::of("CREDP-08.pulls", |cx| Box::pin(costs_no_other_image(cx)))
        .by_a_kubelet()
        .with(&[Facility::LinkControl]),
    Check::of("CREDP-12", |cx| Box::pin(is_not_run_for_others(cx))).by_a_kubelet(),
    Check::of("CREDP-13", |cx| Box::pin(is_given_a_token(cx)))
        .needs(&[Capability::ServiceAccountTokens])
        .by_a_kubelet(),
    Check::of("CREDP-15", |cx| Box::pin(is_counted(cx))).by_a_kubelet(),
];

/// How many Pods pull the same image one after the other.
const PULLS: usize = 3;

/// For how long a kubelet caches an answer, in seconds.
fn kept(plugin: &ImageCredentialProvider<'_>, seen: &PluginExecution) -> f64 {
    let said = seen.cache_duration.as_deref().map(|text| go_duration(text).unwrap_or_default());
    said.or(plugin.default_cache_duration()).unwrap_or_default()
}

async fn is_run_as_often_as_it_says(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let kubelet = PullingKubelet::with(&plugin, &[]).await?;
    let began = Instant::now();
    let first = &plugin.images()[0];
    for _ in 0..PULLS {
        kubelet.has_pulled(first, " with its credentials").await?;
    }
    for other in &plugin.images()[1..] {
        kubelet.has_pulled(other, " with its credentials").await?;
    }
    let runs = kubelet.executions().await?;
    let pulls = PULLS + plugin.images().len() - 1;
    cx.record("pulls", pulls);
    cx.record("executions", runs.len());
    cx.record("took_ms", runs.iter().map(|run| run.took_ms).max().unwrap_or_default());
    let kept: Vec<_> = runs.iter().map(|run| (run, kept(&plugin, run))).collect();
    let by_token = plugin.token().is_some_and(|(_, by_token)| by_token);
    // Within its cache time an answer serves every image that it was cached for.
    for (at, (run, seconds)) in kept.iter().enumerate() {
        let again = runs[at + 1..].iter().find(|later| run.serves(later, by_token));
        if let Some(again) = again.filter(|_| *seconds > began.elapsed().as_secs_f64()) {
            let promise = "a kubelet runs the provider as often as its answers say";
            let expected = format!("one execution for {} in {seconds} s, as its answer says", run.image);
            let seen =
                format!("it was run for {} again; {} executions for {pulls} pulls", again.image, runs.len());
            return Err(plugin.violation(promise, &expected, seen));
        }
    }
    let unkept = kept.iter().filter(|(_, seconds)| *seconds <= 0.0).count();
    if unkept == runs.len() && runs.len() < pulls {
        let promise = "a kubelet runs it for each pull where its answers are not kept";
        return Err(plugin.violation(promise, &format!("{pulls} executions"), runs.len().to_string()));
    }
    Ok(())
}

/// An image of the same registry that needs no credentials.
fn public_image_of_same_registry(image: &str) -> String {
    let registry = image.split('/').next().unwrap_or_default();
    format!("{registry}/{PUBLIC}app")
}

async fn costs_no_other_image(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let kubelet = PullingKubelet::with(&plugin, &[]).await?;
    let (private, public) = (&plugin.images()[0], public_image_of_same_registry(&plugin.images()[0]));
    let away = kubelet.loses_the_cloud().await?;
    // The plugin may have the credentials without calling its cloud.
    let pulled = kubelet.pull(private).await?;
    cx.record("pulled_without_its_cloud", pulled == Pull::Pulled);
    kubelet
        .has_pulled(&public, ", which needs no credentials, while the plugin's cloud is out of reach")
        .await?;
    away.restore().await?;
    kubelet.has_pulled(private, " when the plugin's cloud is within reach again").await
}

async fn is_not_run_for_others(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    // The name of a node is not a registry.
    let registries = foreign(&plugin).into_iter().filter(|image| !image.starts_with("localhost/"));
    let foreign: BTreeSet<String> = registries.map(|image| public_image_of_same_registry(&image)).collect();
    let foreign: Vec<&str> = foreign.iter().map(String::as_str).collect();
    let kubelet = PullingKubelet::with(&plugin, &foreign).await?;
    // This shows that the plugin is run.
    kubelet.has_pulled(&plugin.images()[0], " with its credentials").await?;
    for image in &foreign {
        kubelet.has_pulled(image, ", an image of a registry without a provider").await?;
    }
    let runs = kubelet.executions().await?;
    cx.record("executions", runs.len());
    match runs.iter().find(|run| foreign.contains(&run.image.as_str())) {
        Some(run) => {
            let promise = "a kubelet does not run the provider for images of foreign registries";
            let seen = format!("it was run for {}, which delayed that by {} ms", run.image, run.took_ms);
            Err(plugin.violation(promise, "matchImages that match no foreign registry", seen))
        }
        None => Ok(()),
    }
}

async fn is_given_a_token(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let kubelet = PullingKubelet::with(&plugin, &[]).await?;
    if !kubelet.gives_tokens() {
        return Err(CheckError::NotObservable("kubelets give plugins tokens since 1.34".to_owned()));
    }
    kubelet.has_pulled(&plugin.images()[0], " with its credentials").await?;
    let runs = kubelet.executions().await?;
    let Some((run, token)) = runs.iter().find_map(|run| Some((run, run.token.as_ref()?))) else {
        let promise = "a kubelet gives it a token of the Pod's service account";
        return Err(plugin.violation(promise, "a request with a token", "none in any request"));
    };
    cx.record("audiences", token.audiences.join(", "));
    cx.record("service_account", &token.service_account);
    cx.record("bound_to_pod", !token.pod.is_empty());
    cx.record("annotations", run.annotations.keys().cloned().collect::<Vec<_>>().join(", "));
    let audience = plugin.audience().unwrap_or_default();
    if token.audiences != [audience] || token.pod.is_empty() {
        let promise = "its token is for the configured audience and bound to the Pod";
        let pod = if token.pod.is_empty() { "no Pod" } else { &token.pod };
        let seen = format!("audiences [{}], bound to {pod}", token.audiences.join(", "));
        return Err(plugin.violation(promise, audience, seen));
    }
    Ok(())
}

async fn is_counted(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let kubelet = PullingKubelet::with(&plugin, &[]).await?;
    kubelet.has_pulled(&plugin.images()[0], " with its credentials").await?;
    cx.record("users", kubelet.users().await?.into_iter().collect::<Vec<_>>().join(", "));
    let metrics = kubelet.metrics().await?;
    let mut names: BTreeSet<&str> =
        metrics.iter().map(|(series, _)| series.split('{').next().unwrap_or(series)).collect();
    names.retain(|name| !name.ends_with("_bucket") && !name.ends_with("_sum"));
    cx.record(
        "series",
        if names.is_empty() { "none".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") },
    );
    Ok(())
}

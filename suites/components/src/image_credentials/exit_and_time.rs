//! How a plugin ends, how long it takes, and which secrets it keeps (contract CREDP-08, -09, -10, -16).

use super::answers::shown;
use super::scope::matching;
use harness_component_testkit::components::image_credentials::{
    Answer, Behaviour, Ended, Execution, StandIn,
};
use harness_component_testkit::prelude::*;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CREDP-08", |cx| Box::pin(ends_well(cx))).without_a_cluster(),
    Check::of("CREDP-08.unreadable", |cx| Box::pin(refuses_nonsense(cx))).without_a_cluster(),
    Check::of("CREDP-08.failing-cloud", |cx| Box::pin(fails_with(cx, Behaviour::Answers(503))))
        .without_a_cluster(),
    Check::of("CREDP-08.absent-cloud", |cx| Box::pin(fails_with(cx, Behaviour::Refuses))).without_a_cluster(),
    Check::of("CREDP-09", |cx| Box::pin(ends_by_itself(cx))).without_a_cluster(),
    Check::of("CREDP-09.silent-cloud", |cx| Box::pin(fails_with(cx, Behaviour::IsSilent)))
        .without_a_cluster(),
    Check::of("CREDP-09.prompt", |cx| Box::pin(is_prompt(cx))).without_a_cluster(),
    Check::of("CREDP-10.parallel", |cx| Box::pin(works_ten_times(cx))).without_a_cluster(),
    Check::of("CREDP-10.no-home", |cx| Box::pin(needs_no_home(cx))).without_a_cluster(),
    Check::of("CREDP-16", |cx| Box::pin(keeps_its_secrets(cx))).without_a_cluster(),
];

/// The number of concurrent executions: as many as Pods that start together.
const AT_ONCE: usize = 10;
/// The kind of the request.
const REQUEST: &str = "CredentialProviderRequest";
/// The time within which the plugin, including its cloud client, has to answer.
const PROMPT: Duration = Duration::from_secs(10);

async fn ends_well(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    for image in plugin.images().iter().chain(plugin.without()) {
        let execution = plugin.asked_for(image).executed().await?;
        if !execution.succeeded() {
            let promise = format!("asked for {image} it ends with exit code 0");
            return Err(plugin.violation(
                &promise,
                "exit code 0, with or without credentials",
                execution.shown(),
            ));
        }
    }
    Ok(())
}

/// Whether the plugin ended by itself, with an exit code other than 0 and a reason.
fn fails_well(execution: &Execution) -> bool {
    matches!(execution.ended, Ended::Code(code) if code != 0) && !execution.log().trim().is_empty()
}

async fn refuses_nonsense(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    plugin.asked().answered().await?;
    for (what, input) in [("nothing", ""), ("half a request", "{\"kind\": \"CredentialProviderReq")] {
        let execution = plugin.asked().with_input(input.as_bytes()).executed().await?;
        if !fails_well(&execution) {
            let promise = format!("with {what} on its standard input it fails with a reason");
            let expected = "another exit code than 0, and a reason on standard error";
            return Err(plugin.violation(&promise, expected, execution.shown()));
        }
    }
    Ok(())
}

/// Checks that the plugin fails with a reason when its cloud behaves like this. A plugin that needs no cloud
/// may succeed.
async fn fails_with(cx: &CheckCx, behaviour: Behaviour) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let cloud = plugin.cloud_that(behaviour).await?;
    let usual = plugin.asked().answered().await?;
    let execution = plugin.asked().before(&cloud).executed().await?;
    if fails_well(&execution) {
        return Ok(());
    }
    if has_all_the_same(&plugin, &execution, &usual) {
        return shows(&cloud, &execution);
    }
    let how = match behaviour {
        Behaviour::Refuses => "is not there".to_owned(),
        Behaviour::IsSilent => "is silent".to_owned(),
        Behaviour::Answers(status) => format!("answers {status}"),
    };
    let promise = format!("when its cloud {how} it fails with a reason");
    let expected = "another exit code than 0 and a reason on standard error within 60 s, or the credentials all the same";
    Err(plugin.violation(&promise, expected, execution.shown()))
}

/// Fails unless the execution shows how the plugin behaves while the cloud fails: success without a call to
/// the cloud shows nothing.
fn shows(cloud: &StandIn, execution: &Execution) -> Verdict {
    if execution.succeeded() && cloud.was_asked() == Some(false) {
        let why = "it succeeds without a call, so nothing shows what it does when its cloud fails";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    Ok(())
}

fn has_all_the_same(plugin: &ImageCredentialProvider<'_>, execution: &Execution, usual: &Answer) -> bool {
    let version = plugin.versions().remove(0);
    let answer = Answer::read(&execution.stdout, &version);
    execution.succeeded() && !answer.auth.is_empty() && answer.auth.keys().eq(usual.auth.keys())
}

async fn ends_by_itself(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let execution = plugin.asked().executed().await?;
    match execution.ended {
        Ended::Code(_) => Ok(()),
        _ => Err(plugin.violation("it ends by itself within 60 s", "an exit code", execution.shown())),
    }
}

async fn is_prompt(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let usual = plugin.asked().executed().await?;
    let mut executions = vec![("usually", usual)];
    let mut observed = Ok(());
    match plugin.cloud_that(Behaviour::IsSilent).await {
        Ok(cloud) => {
            let silent = plugin.asked().before(&cloud).executed().await?;
            observed = shows(&cloud, &silent);
            executions.push(("with a silent cloud", silent));
        }
        Err(CheckError::NotObservable(_)) => {}
        Err(other) => return Err(other),
    }
    for (when, execution) in executions {
        let ended = matches!(execution.ended, Ended::Code(_));
        if !ended || execution.took > PROMPT {
            let promise = format!("{when} it ends within {} s", PROMPT.as_secs());
            return Err(plugin.violation(&promise, "an end by itself in that time", execution.shown()));
        }
    }
    observed
}

async fn works_ten_times(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let images: Vec<&String> = plugin.images().iter().cycle().take(AT_ONCE).collect();
    let all = images.iter().map(|image| plugin.asked_for(image).answered());
    let answers = futures::future::join_all(all).await;
    let failed: Vec<&CheckError> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    let promise = "executed ten times at once it answers each";
    match failed.first() {
        Some(CheckError::Violation(violation)) => {
            let seen = format!("{} of {AT_ONCE} did not; the first: {}", failed.len(), violation.seen);
            return Err(plugin.violation(promise, "ten answers", seen));
        }
        Some(other) => return Err((*other).clone()),
        None => {}
    }
    let mut asked = images.iter().zip(answers.iter().flatten());
    match asked.find(|(image, answer)| matching(answer, image).is_none()) {
        Some((image, answer)) => {
            let seen = format!("asked for {image} it has {}", shown(answer));
            Err(plugin.violation(promise, "a password for the image that each is asked for", seen))
        }
        None => Ok(()),
    }
}

async fn needs_no_home(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let answer = plugin.asked().without_home().answered().await?;
    let image = &plugin.images()[0];
    if matching(&answer, image).is_none() {
        let promise = format!("without HOME it has credentials for {image}");
        return Err(plugin.violation(&promise, "a password under a pattern that matches it", shown(&answer)));
    }
    Ok(())
}

async fn keeps_its_secrets(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let mut known = plugin.secrets();
    let usual = plugin.asked().answered().await?;
    known.extend(
        usual.auth.iter().map(|(key, one)| (format!("the password for {key}"), one.password.clone())),
    );
    let mut executions = vec![("usually", plugin.asked().executed().await?)];
    // Each request contains everything that is secret.
    let request = plugin.asked().request();
    let of_another_kind = request.replacen(REQUEST, "CredentialProviderQuestion", 1);
    let without_end = request.trim_end().trim_end_matches('}');
    for (when, input) in [
        ("asked for nothing", "{}"),
        ("asked what is of another kind", of_another_kind.as_str()),
        ("asked without the request's end", without_end),
    ] {
        executions.push((when, plugin.asked().with_input(input.as_bytes()).executed().await?));
    }
    let mut observed = Ok(());
    for (when, behaviour) in [
        ("when its cloud fails", Behaviour::Answers(503)),
        ("when its cloud is not there", Behaviour::Refuses),
    ] {
        match plugin.cloud_that(behaviour).await {
            Ok(cloud) => {
                let execution = plugin.asked().before(&cloud).executed().await?;
                observed = observed.and(shows(&cloud, &execution));
                executions.push((when, execution));
            }
            Err(CheckError::NotObservable(_)) => {}
            Err(other) => return Err(other),
        }
    }
    for (when, execution) in &executions {
        let answer = Answer::read(&execution.stdout, "");
        let own =
            answer.auth.iter().map(|(key, one)| (format!("the password for {key}"), one.password.clone()));
        let log = execution.log();
        for (what, secret) in own.chain(known.iter().cloned()) {
            if secrets::stands_in(&secret, &log) {
                let promise = format!("{when} no secret stands in its log");
                return Err(plugin.violation(
                    &promise,
                    "no part of any secret on standard error",
                    format!("{what} does"),
                ));
            }
        }
    }
    observed
}

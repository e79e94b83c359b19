//! The requests that a plugin reads and the answers that it writes (contract CREDP-01 to -04, -11).

use harness_component_testkit::components::image_credentials::{Answer, Fault};
use harness_component_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CREDP-01", |cx| Box::pin(answers_each_image(cx))).without_a_cluster(),
    Check::of("CREDP-01.pieces", |cx| Box::pin(reads_to_the_end(cx))).without_a_cluster(),
    Check::of("CREDP-02", |cx| Box::pin(writes_one_answer(cx))).without_a_cluster(),
    Check::of("CREDP-03", |cx| Box::pin(answers_in_the_version(cx))).without_a_cluster(),
    Check::of("CREDP-04", |cx| Box::pin(has_known_fields(cx))).without_a_cluster(),
    Check::of("CREDP-11", |cx| Box::pin(starts_a_kubelet(cx))).without_a_cluster(),
];

/// Fails if the answer has a fault that `is` selects; the failure shows the first one.
pub(super) fn without(
    plugin: &ImageCredentialProvider<'_>,
    answer: &Answer,
    promise: &str,
    expected: &str,
    is: fn(&Fault) -> bool,
) -> Verdict {
    let found: Vec<String> =
        answer.faults.iter().filter(|fault| is(fault)).map(ToString::to_string).collect();
    if found.is_empty() { Ok(()) } else { Err(plugin.violation(promise, expected, found.join("; "))) }
}

/// Describes for which images the answer has credentials.
pub(super) fn shown(answer: &Answer) -> String {
    match answer.auth.is_empty() {
        true => "no credentials at all".to_owned(),
        false => format!("credentials for {}", answer.auth.keys().cloned().collect::<Vec<_>>().join(", ")),
    }
}

async fn answers_each_image(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    for image in plugin.images() {
        plugin.asked_for(image).answered().await?;
    }
    Ok(())
}

async fn reads_to_the_end(cx: &CheckCx) -> Verdict {
    const PIECES: usize = 3;
    let plugin = ImageCredentialProvider::of(cx)?;
    let whole = plugin.asked().answered().await?;
    let seen = match plugin.asked().in_pieces(PIECES).answered().await {
        Err(CheckError::Violation(violation)) => violation.seen,
        Ok(answer) if !answer.auth.keys().eq(whole.auth.keys()) => shown(&answer),
        other => return other.map(drop),
    };
    Err(plugin.violation(
        "it reads its request to the end",
        &format!("the answer that it gives to the request in one piece: {}", shown(&whole)),
        format!("the same request in {PIECES} pieces: {seen}"),
    ))
}

async fn writes_one_answer(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    // An output that is not an answer fails here.
    for image in plugin.images().iter().chain(plugin.without()) {
        plugin.asked_for(image).answered().await?;
    }
    Ok(())
}

async fn answers_in_the_version(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let versions = plugin.versions();
    cx.record("versions", versions.join(", "));
    for version in versions {
        let answer = plugin.asked().in_version(&version).answered().await?;
        let promise = format!("asked in {version} it answers in that");
        without(&plugin, &answer, &promise, "the request's apiVersion", |fault| {
            matches!(fault, Fault::Version(_))
        })?;
    }
    Ok(())
}

async fn has_known_fields(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    for image in plugin.images().iter().chain(plugin.without()) {
        let answer = plugin.asked_for(image).answered().await?;
        let promise = format!("its answer for {image} can be decoded strictly");
        let is = |fault: &Fault| matches!(fault, Fault::Field(_));
        without(&plugin, &answer, &promise, "known fields, each once and of its type", is)?;
    }
    Ok(())
}

async fn starts_a_kubelet(cx: &CheckCx) -> Verdict {
    let wrong = ImageCredentialProvider::lint(cx)?;
    if wrong.is_empty() {
        return Ok(());
    }
    let promise = "a kubelet starts with the configuration";
    Err(CheckError::violation(promise, "a configuration that it validates", wrong.join("\n           ")))
}

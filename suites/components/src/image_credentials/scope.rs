//! For which images and for how long an answer is valid (contract CREDP-05, -06, -07, -14).

use super::answers::{shown, without};
use harness_component_testkit::components::image_credentials::{
    Answer, CacheKeyType, Fault, Pattern, foreign_to,
};
use harness_component_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CREDP-05", |cx| Box::pin(names_a_key_type(cx))).without_a_cluster(),
    Check::of("CREDP-05.scope", |cx| Box::pin(serves_what_it_is_cached_for(cx))).without_a_cluster(),
    Check::of("CREDP-06", |cx| Box::pin(names_a_duration(cx))).without_a_cluster(),
    Check::of("CREDP-06.lifetime", |cx| Box::pin(outlives_its_cache(cx))).without_a_cluster(),
    Check::of("CREDP-07", |cx| Box::pin(has_credentials(cx))).without_a_cluster(),
    Check::of("CREDP-07.patterns", |cx| Box::pin(keeps_to_its_registries(cx))).without_a_cluster(),
    Check::of("CREDP-07.none", |cx| Box::pin(says_that_it_has_none(cx))).without_a_cluster(),
    Check::of("CREDP-14", |cx| Box::pin(keeps_the_token(cx)))
        .needs(&[Capability::ServiceAccountTokens])
        .without_a_cluster(),
];

/// Images of registries that do not exist, with as many labels as real registries have.
const FOREIGN: &[&str] = &[
    "localhost/team/app",
    "registry.invalid/team/app",
    "team.registry.invalid/team/app",
    "a.team.registry.invalid/team/app",
    "b.a.team.registry.invalid/team/app",
    "c.b.a.team.registry.invalid/team/app",
    "registry.invalid:5000/team/app",
];

/// Images of registries that the plugin is not responsible for.
pub(super) fn foreign(plugin: &ImageCredentialProvider<'_>) -> Vec<String> {
    let foreign = plugin.images().iter().flat_map(|image| foreign_to(image));
    FOREIGN.iter().map(|image| (*image).to_owned()).chain(foreign).collect()
}

async fn names_a_key_type(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    for image in plugin.images().iter().chain(plugin.without()) {
        let answer = plugin.asked_for(image).answered().await?;
        let promise = format!("its answer for {image} says for which images it is cached");
        let is = |fault: &Fault| matches!(fault, Fault::KeyType(_));
        without(&plugin, &answer, &promise, "Image, Registry or Global, spelt so", is)?;
    }
    Ok(())
}

async fn serves_what_it_is_cached_for(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let all = plugin.images();
    let (mut shared, mut widest) = (false, None);
    // An answer without credentials that is cached for other images as well withholds credentials from them.
    for image in all.iter().chain(plugin.without()) {
        let answer = plugin.asked_for(image).answered().await?;
        let Some(kind) = answer.cache_key_type else {
            return without(
                &plugin,
                &answer,
                "its answer says for which images it is cached",
                "a kind of key",
                |fault| matches!(fault, Fault::KeyType(_)),
            );
        };
        cx.record("cache_key_type", kind);
        // What is kept for no time is used for no other.
        if answer.cache_duration.or(plugin.default_cache_duration()) == Some(0.0) {
            continue;
        }
        if all.contains(image) && kind != CacheKeyType::Image {
            widest = Some(kind);
        }
        for other in all.iter().filter(|other| *other != image && kind.joins(image, other)) {
            shared = true;
            if matching(&answer, other).is_none() {
                let promise = format!("its answer for {image}, cached by {kind}, serves {other}");
                return Err(plugin.violation(&promise, "a pattern that matches it", shown(&answer)));
            }
        }
    }
    // An answer that is cached for its image alone serves only that image.
    match (shared, widest, all.len()) {
        (false, None, 1) => Err(CheckError::NotObservable(
            "imageCredentials.images has one image, so no other can show for what its answer is cached"
                .to_owned(),
        )),
        (false, Some(kind), _) => Err(CheckError::NotObservable(format!(
            "answers are cached by {kind}, and imageCredentials.images has no other image that one would serve"
        ))),
        _ => Ok(()),
    }
}

async fn names_a_duration(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    for image in plugin.images().iter().chain(plugin.without()) {
        let answer = plugin.asked_for(image).answered().await?;
        let promise = format!("its answer for {image} says for how long it is cached, or leaves that out");
        let is = |fault: &Fault| matches!(fault, Fault::Duration(_));
        without(&plugin, &answer, &promise, "null, or a Go duration of 0 or more in a text", is)?;
    }
    Ok(())
}

async fn outlives_its_cache(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let Some(lives) = plugin.credential_lifetime() else {
        let why =
            "the profile does not say how long a credential lives (imageCredentials.credentialLifetime)";
        return Err(CheckError::NotObservable(why.to_owned()));
    };
    for image in plugin.images() {
        let answer = plugin.asked_for(image).answered().await?;
        let (cached, by) = match (answer.cache_duration, plugin.default_cache_duration()) {
            (Some(seconds), _) => (seconds, "its cacheDuration"),
            (None, Some(seconds)) => (seconds, "the configuration's defaultCacheDuration"),
            (None, None) => {
                let seen = "neither its answer nor the configuration says for how long it is cached";
                return Err(plugin.violation("a credential outlives its cache", "a duration", seen));
            }
        };
        cx.record("cached_s", cached);
        if cached > lives.as_secs_f64() {
            let promise = format!("a credential for {image} outlives its cache");
            let seen = format!("{by} is {cached} s");
            return Err(plugin.violation(&promise, &format!("at most {} s", lives.as_secs()), seen));
        }
    }
    Ok(())
}

/// The first pattern of an answer that matches the image and has a password.
pub(super) fn matching<'a>(answer: &'a Answer, image: &str) -> Option<&'a str> {
    let fits = |key: &str| Pattern::of_auth(key).is_ok_and(|pattern| pattern.matches(image));
    let usable = answer.auth.iter().filter(|(_, credential)| !credential.password.is_empty());
    usable.map(|(key, _)| key.as_str()).find(|key| fits(key))
}

async fn has_credentials(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    for image in plugin.images() {
        let answer = plugin.asked_for(image).answered().await?;
        if matching(&answer, image).is_none() {
            let promise = format!("it has credentials for {image}");
            return Err(plugin.violation(
                &promise,
                "a password under a pattern that matches it",
                shown(&answer),
            ));
        }
    }
    Ok(())
}

async fn keeps_to_its_registries(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    for image in plugin.images().iter().chain(plugin.without()) {
        let answer = plugin.asked_for(image).answered().await?;
        for key in answer.auth.keys() {
            sound(&plugin, image, key)?;
        }
    }
    Ok(())
}

/// Checks that a pattern of an answer is valid and does not match registries of others.
fn sound(plugin: &ImageCredentialProvider<'_>, image: &str, key: &str) -> Verdict {
    let promise = format!("asked for {image} it returns credentials for no other registry");
    let pattern = match Pattern::of_auth(key) {
        Ok(pattern) => pattern,
        Err(bad) => {
            return Err(plugin.violation(&promise, "patterns of a host with port and path", bad.to_string()));
        }
    };
    if let Some(path) = pattern.idle_glob() {
        let seen = format!(
            "the pattern '{key}' has a glob in its path '{path}', where a kubelet takes it literally"
        );
        return Err(plugin.violation(&promise, "globs in labels of the host alone", seen));
    }
    match foreign(plugin).iter().find(|foreign| pattern.matches(foreign)) {
        Some(foreign) => {
            let seen = format!("the pattern '{key}' matches {foreign}, too");
            Err(plugin.violation(&promise, "patterns that match no foreign registry", seen))
        }
        None => Ok(()),
    }
}

async fn says_that_it_has_none(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    if plugin.without().is_empty() {
        let why = "the profile names no image that it is asked for in vain (imageCredentials.without)";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    // The plugin has to answer for its own images first: otherwise the lack of an answer shows nothing.
    plugin.asked().answered().await?;
    for image in plugin.without() {
        let answer = plugin.asked_for(image).answered().await?;
        if let Some(key) = matching(&answer, image) {
            let promise = format!("it has no credentials for {image}");
            return Err(plugin.violation(
                &promise,
                "no password under a pattern that matches it",
                format!("one under {key}"),
            ));
        }
    }
    Ok(())
}

async fn keeps_the_token(cx: &CheckCx) -> Verdict {
    let plugin = ImageCredentialProvider::of(cx)?;
    let Some((token, by_token)) = plugin.token() else {
        return Err(CheckError::NotObservable("the configuration has it given no token".to_owned()));
    };
    let execution = plugin.asked().executed().await?;
    if let harness_component_testkit::components::image_credentials::Ended::NotStarted(_) = &execution.ended {
        return Err(plugin.violation(
            "it answers a request with a token",
            "an answer, or a reason why not",
            execution.shown(),
        ));
    }
    let version = plugin.versions().remove(0);
    let answer = Answer::read(&execution.stdout, &version);
    let echoed = answer.auth.iter().find(|(_, one)| one.password == token || one.username == token);
    cx.record("echoes_token", echoed.is_some());
    match echoed {
        Some((key, _)) if !by_token => {
            let promise = "it does not hand a service account's token on";
            let seen = format!(
                "the token itself is the credential for {key}, and answers are kept by service account"
            );
            Err(plugin.violation(promise, "another password, or cacheType Token in the configuration", seen))
        }
        _ => Ok(()),
    }
}

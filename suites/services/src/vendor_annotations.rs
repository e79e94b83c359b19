//! The vendor's annotations that change a load balancer: an edit has its effect (contract SVC-UPD-13). The
//! profile lists them, and where their effect shows.

use harness_testkit::prelude::*;
use serde_json::{Value, json};

pub(super) const CHECKS: &[Check] = &[Check::of("SVC-UPD-13", |cx| Box::pin(follows_each(cx)))
    .by_calls()
    .without_machines()
    .needs(&[Capability::LoadBalancer, Capability::VendorAnnotations])];

async fn follows_each(cx: &CheckCx) -> Verdict {
    for (at, (annotation, effect)) in cx.annotation_effects().iter().enumerate() {
        follows(cx, &format!("web-{at}"), (annotation, effect)).await?;
    }
    Ok(())
}

async fn follows(cx: &CheckCx, name: &str, (annotation, effect): (&str, &AnnotationEffect)) -> Verdict {
    let [first, second] = &effect.values;
    let web = cx.service(load_balancer(name).port(80).annotation(annotation, first)).await?;
    let before = web.gets_published().await?;
    web.rests().await?;
    let [was, is] = &effect.shows;
    let at_first = web.balancer();
    at_first.becomes(shows(effect, was)).when(format!("with annotation {annotation}: {first}")).await?;
    web.patch(&json!({"metadata": {"annotations": {annotation: second}}})).await?;
    let followed = web.balancer();
    let followed = followed.becomes(shows(effect, is)).within(cx.limits().load_balancer());
    followed.when(format!("after annotation {annotation} was changed to {second}")).await?;
    web.is(publishes(&before)).await
}

/// Matches a load balancer that shows this value where the annotation has its effect.
fn shows(effect: &AnnotationEffect, value: &str) -> Matcher<Inventory> {
    let (at, value) = (effect.at.clone(), value.to_owned());
    let expected = format!("'{value}' at {at} of its load balancer");
    matcher(format!("shows '{value}'"), move |held: &Inventory| match held.load_balancers.as_slice() {
        [lb] => match found(lb, &at) {
            seen if seen == value => Observation::Matched(()),
            seen => Observation::Pending(format!("'{seen}' at {at}")),
        },
        _ => Observation::Pending(String::new()),
    })
    .expecting(expected)
}

/// The value at a path of a load balancer; empty if there is no such path.
fn found(lb: &LoadBalancer, at: &str) -> String {
    match json!(lb).pointer(at) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_read_at_its_place_whatever_its_type() {
        let lb: LoadBalancer = serde_json::from_value(json!({
            "id": "lb-1", "name": "web", "frontends": [], "backends": [], "addresses": [], "state": "active",
            "health_check": {"protocol": "HTTP", "path": "/livez", "port": 80}, "details": {"proxy": true},
        }))
        .expect("a load balancer");
        for (at, text) in [
            ("/health_check/path", "/livez"),
            ("/health_check/port", "80"),
            ("/details/proxy", "true"),
            ("/details/x", ""),
        ] {
            assert_eq!(found(&lb, at), text, "{at}");
        }
        let effect = |value: &str| AnnotationEffect {
            values: ["a", "b"].map(str::to_owned),
            at: "/health_check/path".to_owned(),
            shows: [value, value].map(str::to_owned),
        };
        let held = Inventory { load_balancers: vec![lb], ..Inventory::default() };
        assert_eq!(shows(&effect("/livez"), "/livez").matches(&held), Observation::Matched(()));
        let other = shows(&effect("/readyz"), "/readyz").matches(&held);
        assert_eq!(other, Observation::Pending("'/livez' at /health_check/path".to_owned()));
        assert_eq!(
            shows(&effect("x"), "x").matches(&Inventory::default()),
            Observation::Pending(String::new())
        );
    }
}

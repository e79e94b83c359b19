//! Events about a check's objects: how a CCM tells users what it does and what it cannot do.

use super::{CheckCx, Lease, Node, Service, Subject};
use harness_clouds::Entry;
use harness_core::check::SubjectName;
use harness_core::objects::source_of;
use harness_core::probe::{Matcher, ReadError, ReadSource, holds};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};

/// Events about one object.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// let events: EventsOf<'_> = web.events();
/// events.becomes(warns()).within(cx.limits().event()).when("after a failed creation").await
/// # }
/// ```
#[derive(Clone)]
pub struct EventsOf<'a> {
    cx: &'a CheckCx,
    about: SubjectName,
    /// Their namespace: those about Nodes are in `default` (k8s.io/client-go tools/record).
    namespace: String,
    /// The object's name within its namespace.
    object: String,
}

impl Subject for EventsOf<'_> {
    type Snapshot = Vec<Event>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName {
            kind: "the Events about",
            name: format!("{} {}", self.about.kind, self.about.name),
            uid: self.about.uid.clone(),
        }
    }

    async fn read(&self, _: ReadSource) -> Result<Vec<Event>, ReadError> {
        let api: Api<Event> = Api::namespaced(self.cx.client.clone(), &self.namespace);
        let fields = format!("involvedObject.kind={},involvedObject.name={}", self.about.kind, self.object);
        let mut events = api.list(&ListParams::default().fields(&fields)).await?.items;
        // Recorders of Node Events have long written the name in place of the uid.
        events.retain(|event| {
            let uid = event.involved_object.uid.as_deref().filter(|uid| *uid != self.object);
            uid.is_none() || self.about.uid.is_none() || uid == self.about.uid.as_deref()
        });
        Ok(events)
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

/// One of them has this type and this reason.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// let reported = tells("Normal", "EnsuredLoadBalancer");
/// web.events().becomes(reported).within(cx.limits().event()).await
/// # }
/// ```
pub fn tells(kind: &'static str, reason: &'static str) -> Matcher<Vec<Event>> {
    has_one(format!("are one with reason {reason}"), format!("an Event {kind} {reason}"), move |event| {
        event.type_.as_deref() == Some(kind) && event.reason.as_deref() == Some(reason)
    })
}

/// Like [`tells`], and this component recorded it.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, node: &Node<'_>) -> Verdict {
/// let reported = tells_by("Normal", "Synced", "cloud-node-controller");
/// node.events().becomes(reported).within(cx.limits().event()).await
/// # }
/// ```
pub fn tells_by(kind: &'static str, reason: &'static str, by: &'static str) -> Matcher<Vec<Event>> {
    has_one(
        format!("are one with reason {reason} by {by}"),
        format!("an Event {kind} {reason} by {by}"),
        move |event| {
            let said = (event.type_.as_deref(), event.reason.as_deref(), source_of(event));
            said == (Some(kind), Some(reason), by)
        },
    )
}

/// One of them has this type and reason, and its message contains this text.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, holder: String) -> Verdict {
/// let reported = tells_of("Normal", "LeaderElection", holder);
/// cx.lease().events().becomes(reported).within(cx.limits().event()).await
/// # }
/// ```
pub fn tells_of(kind: &'static str, reason: &'static str, named: String) -> Matcher<Vec<Event>> {
    let expected = format!("an Event {kind} {reason} that names {named}");
    has_one(format!("are one with reason {reason} about {named}"), expected, move |event| {
        let says = event.message.as_deref().is_some_and(|message| message.contains(&named));
        event.type_.as_deref() == Some(kind) && event.reason.as_deref() == Some(reason) && says
    })
}

/// All of them were recorded by these components.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let others = &["kubelet", "node-controller"];
/// web.events().is(reported_only_by(others)).await
/// # }
/// ```
pub fn reported_only_by(components: &'static [&'static str]) -> Matcher<Vec<Event>> {
    let known = |event: &Event| components.contains(&source_of(event));
    holds("come only from other components", move |events: &Vec<Event>| events.iter().all(known))
        .expecting(format!("only Events of {}", components.join(", ")))
}

/// One of them is a warning, with any reason.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// web.cloud().answers(500).to(&[Op::LbCreate]).times(1).await?;
/// web.events().becomes(warns()).within(cx.limits().event()).await
/// # }
/// ```
pub fn warns() -> Matcher<Vec<Event>> {
    has_one("are a warning".to_owned(), "an Event of type Warning".to_owned(), |event| {
        event.type_.as_deref() == Some("Warning")
    })
}

fn has_one(
    claim: String,
    expected: String,
    wanted: impl Fn(&Event) -> bool + 'static,
) -> Matcher<Vec<Event>> {
    holds(claim, move |events: &Vec<Event>| events.iter().any(&wanted)).expecting(expected)
}

impl<'a> Service<'a> {
    /// Events about it.
    pub fn events(&self) -> EventsOf<'a> {
        let (namespace, object) = self.place();
        EventsOf { cx: self.check(), about: Subject::name(self), namespace, object }
    }
}

impl<'a> Node<'a> {
    /// Events about it.
    pub fn events(&self) -> EventsOf<'a> {
        let about = Subject::name(self);
        EventsOf { cx: self.check(), namespace: "default".to_owned(), object: about.name.clone(), about }
    }
}

impl<'a> Lease<'a> {
    /// Events about it.
    pub fn events(&self) -> EventsOf<'a> {
        let (namespace, object) = self.place();
        EventsOf { cx: self.check(), about: Subject::name(self), namespace, object }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::probe::Observation;
    use serde_json::json;

    fn event(kind: &str, reason: &str) -> Event {
        let event = json!({"metadata": {}, "involvedObject": {}, "type": kind, "reason": reason, "message": "a_1 did"});
        serde_json::from_value(event).expect("an Event")
    }

    #[test]
    fn an_event_is_matched_by_type_and_reason() {
        let events = vec![event("Normal", "Synced"), event("Warning", "Failed")];
        assert_eq!(tells("Normal", "Synced").matches(&events), Observation::Matched(()));
        assert_eq!(tells("Warning", "Synced").matches(&events), Observation::when(false));
        let named = |name: &str| tells_of("Normal", "Synced", name.to_owned()).matches(&events);
        assert_eq!((named("a_1"), named("b_2")), (Observation::Matched(()), Observation::when(false)));
        assert_eq!(warns().matches(&events), Observation::Matched(()));
        assert_eq!(warns().matches(&events[..1].to_vec()), Observation::when(false));
    }

    #[test]
    fn its_source_stands_in_either_field() {
        let mut one = event("Normal", "Synced");
        one.reporting_component = Some("newer".to_owned());
        assert_eq!(source_of(&one), "newer");
        one.source = Some(serde_json::from_value(json!({"component": "older"})).expect("a source"));
        assert_eq!(source_of(&one), "older");
        assert_eq!(
            tells_by("Normal", "Synced", "older").matches(&vec![one.clone()]),
            Observation::Matched(())
        );
        assert_eq!(
            tells_by("Normal", "Synced", "newer").matches(&vec![one.clone()]),
            Observation::when(false)
        );
        assert_eq!(reported_only_by(&["older"]).matches(&vec![one.clone()]), Observation::Matched(()));
        assert_eq!(reported_only_by(&["newer"]).matches(&vec![one]), Observation::when(false));
    }
}

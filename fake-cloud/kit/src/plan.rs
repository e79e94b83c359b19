//! The meaning of a call and how it is carried out.

use super::answer::Answer;
use super::error::Error;
use super::query::Query;
use super::request::{Asker, Call, Request};
use fake_cloud_driver::{Instance, Op};
use fake_cloud_model::Cloud;
use hyper::Method;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// The effect of a call: immediate and atomic. Gets the time.
pub type Run = Box<dyn FnOnce(&mut Cloud, Duration) -> Answer + Send>;

/// The meaning of a call, and how it is carried out.
pub struct Plan {
    /// The meaning.
    pub call: Call,
    /// How it is carried out.
    pub run: Run,
    /// The part that the dialect does not know. A strict cloud then rejects the call with
    /// [`Denial::Unknown`](super::Denial), a lenient one still carries it out; the journal shows it in both
    /// cases.
    pub unknown: Option<String>,
}

impl Plan {
    /// A plan from a call and the function that carries it out.
    pub fn new(call: Call, run: impl FnOnce(&mut Cloud, Duration) -> Answer + Send + 'static) -> Plan {
        Plan { call, run: Box::new(run), unknown: None }
    }

    /// The plan of a call that this dialect does not know. A lenient cloud answers it without an effect: with
    /// an empty object, with 201 for a creation, with 204 for a deletion.
    pub fn unknown(request: &Request) -> Plan {
        let answer = match request.method {
            Method::DELETE => Answer::empty(204),
            Method::POST => Answer::json_text(201, "{}".to_owned()),
            _ => Answer::json_text(200, "{}".to_owned()),
        };
        let plan = Plan::new(Call::new(Op::Other), move |_, _| answer);
        plan.with_unknown(Some("this dialect has no such call".to_owned()))
    }

    /// The same plan with a part that the dialect may not know; the first such part counts.
    pub fn with_unknown(mut self, what: Option<String>) -> Plan {
        self.unknown = self.unknown.or(what);
        self
    }
}

/// How a dialect answers one call.
pub trait Voice: Clone + Send + 'static {
    /// The answer to a call, with errors in the dialect's form.
    fn answer(&self, result: Result<Answer, Error>) -> Answer;
}

/// The same for a dialect whose answers depend on its state: it answers through an [`Arc`] of it.
pub trait SharedVoice: Send + Sync + 'static {
    /// The answer to a call, with errors in the dialect's form.
    fn answer(&self, result: Result<Answer, Error>) -> Answer;
}

impl<S: SharedVoice> Voice for Arc<S> {
    fn answer(&self, result: Result<Answer, Error>) -> Answer {
        S::answer(self, result)
    }
}

/// The plan of a call with a query, which is checked first.
pub fn planned<V, X, F>(voice: &V, call: Call, query: Query<X>, run: F) -> Plan
where
    V: Voice,
    X: Send + 'static,
    F: FnOnce(&V, &Query<X>, &mut Cloud, Duration) -> Result<Answer, Error> + Send + 'static,
{
    let (voice, (query, problem, unknown)) = (voice.clone(), query.checked());
    let call = Call { page: query.page, ..call };
    let plan = Plan::new(call, move |cloud, now| {
        let lost = cloud.items_lost_before(query.page);
        let query = query.empty_first(cloud.begins_with_an_empty_page()).losing(lost);
        let result = match problem {
            None => run(&voice, &query, cloud, now),
            Some(problem) => Err(problem),
        };
        voice.answer(result)
    });
    plan.with_unknown(unknown)
}

/// The plan of a call of the metadata service: `shown` returns the text about the machine that calls. `None`
/// means that the service does not have the path; the answer is the same for a caller that is not a machine
/// of the cloud.
pub fn about_the_asker(
    asker: Asker,
    media_type: &'static str,
    shown: impl FnOnce(&Instance) -> Option<String> + Send + 'static,
) -> Plan {
    Plan::new(Call::new(Op::Other), move |cloud, _| {
        let refused = |why: String| Answer::text(404, "text/plain", why);
        let Some(machine) = asker.machine(cloud) else {
            return refused(format!("no machine of this cloud asks: {asker}\n"));
        };
        shown(machine)
            .map_or_else(|| refused("not found\n".to_owned()), |text| Answer::text(200, media_type, text))
    })
}

/// A body: its content or its fault, and its first unknown field.
pub struct Body<T> {
    /// The content.
    pub value: Result<T, Error>,
    unknown: Vec<String>,
}

impl<T: DeserializeOwned> Body<T> {
    /// Parses the body of a call.
    pub fn of(request: &Request) -> Body<T> {
        let mut reader = serde_json::Deserializer::from_slice(&request.body);
        let mut unknown = Vec::new();
        let value = serde_ignored::deserialize(&mut reader, |path| unknown.push(path.to_string()));
        let value = value.and_then(|value| reader.end().map(|()| value));
        Body { value: value.map_err(Error::from), unknown }
    }
}

/// The same as [`planned`] for a call with a body and no query.
pub fn planned_with<V, T, F>(voice: &V, call: Call, request: &Request, body: Body<T>, run: F) -> Plan
where
    V: Voice,
    T: Send + 'static,
    F: FnOnce(&V, T, &mut Cloud, Duration) -> Result<Answer, Error> + Send + 'static,
{
    let Body { value, unknown } = body;
    let fields =
        (value.is_ok() && !unknown.is_empty()).then(|| format!("of the body: {:.200}", unknown.join(", ")));
    let query = Query::none(request, ());
    planned(voice, call, query, move |voice, _, cloud, now| run(voice, value?, cloud, now))
        .with_unknown(fields)
}

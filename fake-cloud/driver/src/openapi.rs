//! The driver protocol as an OpenAPI document: this table has the calls, and the types have the content.

use super::capabilities::{Capabilities, DriverFacility};
use super::replies::{JournalPage, Problem};
use super::{
    ActiveFault, BarrierStatus, Credential, Fault, Instance, Inventory, LoadBalancer, Match, Route, Settings,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A call of the protocol.
#[derive(Clone, Copy)]
pub struct Operation {
    /// The method in capitals.
    pub method: &'static str,
    /// The path below `/driver/v1`, with names in braces.
    pub path: &'static str,
    /// The facility that it belongs to; `None`: every driver has it.
    pub facility: Option<DriverFacility>,
    /// A summary of what it does.
    summary: &'static str,
    /// The keys of its query, all of them numbers or booleans: name, type, meaning.
    query: &'static [(&'static str, &'static str, &'static str)],
    request: Option<Described>,
    /// The type of its answer; `None`: 204 without a body.
    answer: Option<Described>,
    /// The statuses of errors other than 401 and 422, and their meaning.
    refusals: &'static [(u16, &'static str)],
}

/// The schema of a type.
type Described = fn(&mut SchemaGenerator) -> Value;

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

const fn call(method: &'static str, path: &'static str, summary: &'static str) -> Operation {
    Operation {
        method,
        path,
        facility: None,
        summary,
        query: &[],
        request: None,
        answer: None,
        refusals: &[],
    }
}

impl Operation {
    const fn needs(self, facility: DriverFacility) -> Operation {
        Operation { facility: Some(facility), ..self }
    }

    const fn takes(self, request: Described) -> Operation {
        Operation { request: Some(request), ..self }
    }

    const fn answers(self, answer: Described) -> Operation {
        Operation { answer: Some(answer), ..self }
    }

    const fn once(self) -> Operation {
        Operation {
            refusals: &[(
                409,
                "the id has served: there is one, or one was ended, perhaps before it was there",
            )],
            ..self
        }
    }

    const fn or_404(self) -> Operation {
        Operation { refusals: &[(404, "there is no such thing")], ..self }
    }
}

/// All calls of the protocol.
pub const OPERATIONS: &[Operation] = {
    use DriverFacility::{Barriers, Credentials, Faults, Journal, Objects, Routes, Settings as Set};
    &[
        call("GET", "/capabilities", "What driver and cloud can do").answers(of::<Capabilities>),
        call(
            "POST",
            "/instances",
            "Puts machines there, or changes those with the same ids, power state included: all or none",
        )
        .takes(of::<Vec<Instance>>),
        call("DELETE", "/instances/{id}", "Takes a machine away").or_404(),
        call("GET", "/inventory", "Everything the cloud holds now").answers(of::<Inventory>),
        call(
            "PUT",
            "/load-balancers/{id}",
            "Puts a load balancer there as it is given, or changes the one with its id",
        )
        .needs(Objects)
        .takes(of::<LoadBalancer>),
        Operation {
            query: &[("cascade", "boolean", "Whether what serves it goes too; the harness always says true")],
            ..call("DELETE", "/load-balancers/{id}", "Takes a load balancer away").needs(Objects).or_404()
        },
        call("POST", "/routes", "Puts a route there and gives it an id: the one in the body is empty")
            .needs(Routes)
            .takes(of::<Route>)
            .answers(of::<Route>),
        call("PUT", "/routes/{id}", "Puts a route there as it is given, or changes the one with its id")
            .needs(Routes)
            .takes(of::<Route>)
            .answers(of::<Route>),
        call("DELETE", "/routes/{id}", "Takes a route away").needs(Routes).or_404(),
        Operation {
            query: &[
                ("after", "integer", "Only entries numbered above this"),
                ("wait_ms", "integer", "How long to wait for the first of them, milliseconds; at most 30000"),
            ],
            refusals: &[(410, "entries above `after` are no longer kept")],
            ..call(
                "GET",
                "/journal",
                "Calls of CCMs in order of arrival, as soon as there is one; none after the wait",
            )
            .needs(Journal)
            .answers(of::<JournalPage>)
        },
        call("PUT", "/faults/{id}", "Puts a fault in force under a number that the caller has chosen")
            .needs(Faults)
            .takes(of::<Fault>)
            .answers(of::<ActiveFault>)
            .once(),
        call("GET", "/faults/{id}", "A fault and how often it has hit; until it is cleared")
            .needs(Faults)
            .answers(of::<ActiveFault>)
            .or_404(),
        call("DELETE", "/faults/{id}", "Ends a fault, for good: there will be none of this id, even where there was none")
            .needs(Faults)
            .or_404(),
        call(
            "PUT",
            "/barriers/{id}",
            "Raises a barrier under a number that the caller has chosen: calls that match wait at it before they take effect",
        )
        .needs(Barriers)
        .takes(of::<Match>)
        .answers(of::<BarrierStatus>)
        .once(),
        call("GET", "/barriers/{id}", "A barrier and who waits at it")
            .needs(Barriers)
            .answers(of::<BarrierStatus>)
            .or_404(),
        call(
            "POST",
            "/barriers/{id}/release",
            "Takes a barrier away, for good, and lets its calls go on; what it was at that moment",
        )
        .needs(Barriers)
        .answers(of::<BarrierStatus>)
        .or_404(),
        call("GET", "/settings", "The settings in force, all fields filled")
            .needs(Set)
            .answers(of::<Settings>),
        call("PUT", "/settings", "Changes the settings that are given; all of them as they are then")
            .needs(Set)
            .takes(of::<Settings>)
            .answers(of::<Settings>),
        Operation {
            refusals: &[(409, "another name has that token")],
            ..call("PUT", "/credentials", "Lets a token in under a name, or gives the name a new token")
                .needs(Credentials)
                .takes(of::<Credential>)
        },
    ]
};

const ABOUT: &str = "What ccm-conformance asks of a cloud. Every call carries `Authorization: Bearer TOKEN`, bodies are JSON, \
     and durations are milliseconds. Every driver has the calls without `x-facility`; the others it has where \
     `GET /driver/v1/capabilities` names their facility. A refusal is `{\"error\": \"why\"}` with 401 (the token is missing or \
     wrong), 404, 409, 410 or 422 (the body makes no sense, or the cloud cannot have such a thing). An unknown field of a body \
     is refused, by either side. An answer takes less than 10 s.";

/// The OpenAPI document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = of::<Problem>(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let described = operation.described(&mut generator);
        let path = paths.entry(format!("/driver/v1{}", operation.path)).or_insert_with(|| json!({}));
        path[operation.method.to_lowercase()] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Driver protocol of ccm-conformance", "version": "1", "description": ABOUT, "license": {"name": "Apache-2.0"}},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"Refused": {"description": "Why it is not done", "content": {"application/json": {"schema": problem}}}},
            "schemas": generator.take_definitions(true),
        },
    })
}

impl Operation {
    fn described(&self, generator: &mut SchemaGenerator) -> Value {
        let content = |schema: Value| json!({"application/json": {"schema": schema}});
        let mut responses = Map::new();
        match self.answer {
            Some(answer) => responses
                .insert("200".into(), json!({"description": "Done", "content": content(answer(generator))})),
            None => responses.insert("204".into(), json!({"description": "Done"})),
        };
        let mut refuses = |status: u16, why: &str| {
            let reply = json!({"description": why, "$ref": "#/components/responses/Refused"});
            responses.insert(status.to_string(), reply)
        };
        refuses(401, "the token is missing or wrong");
        self.refusals.iter().for_each(|(status, why)| drop(refuses(*status, why)));
        if self.request.is_some() || !self.query.is_empty() {
            refuses(422, "it makes no sense, or the cloud cannot have such a thing");
        }
        let mut described = json!({"summary": self.summary, "responses": responses});
        let in_path = self.path.contains("{id}");
        let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
        let query = self.query.iter().map(|(name, kind, meaning)| {
            json!({"name": name, "in": "query", "description": meaning, "schema": {"type": kind}})
        });
        let parameters: Vec<Value> = in_path.then_some(id).into_iter().chain(query).collect();
        if !parameters.is_empty() {
            described["parameters"] = json!(parameters);
        }
        if let Some(request) = self.request {
            described["requestBody"] = json!({"required": true, "content": content(request(generator))});
        }
        if let Some(facility) = self.facility {
            described["x-facility"] = json!(facility);
            described["tags"] = json!([facility]);
        }
        described
    }
}

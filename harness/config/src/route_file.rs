//! The routes file: the meaning of the calls of a cloud's API, for a recording proxy in front of it.

use super::enums::API_VERSION;
use super::problem::{Origin, Problem, Problems};
use super::schema::{self, ordered};
use super::schema_check::{Places, walk};
use super::yaml;
use fake_cloud_driver::Op;
use harness_core::files;
use recording_proxy::{ErrorForm, ErrorForms, Overlap, Rewrites, Rule, RuleError, Source, SourceText, Table};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

/// The schema of a routes file.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of_file::<RouteFile>);

/// The meaning of calls, and the form of the API's errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// The meaning of calls.
    pub table: Table,
    /// The form of the API's errors.
    pub errors: ErrorForms,
    /// URLs in its answers that are replaced by that of the proxy.
    pub rewrites: Rewrites,
}

/// The meaning of the calls of a cloud's API. A call is read by the most specific rule that matches it. Two rules that can
/// match the same call are rejected if neither is more specific.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Routes", transform = ordered::<Self>)]
#[schemars(extend("required" = ["apiVersion", "kind", "routes"]))]
pub(crate) struct RouteFile {
    /// Version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: String,
    /// What this file is.
    #[schemars(extend("const" = "Routes"))]
    kind: String,
    /// The answers to calls that a fault rejects. The entry for the status is used, or else the one without a
    /// status.
    errors: Vec<ErrorKeys>,
    /// Beginnings of URLs in the API's answers that would bypass the proxy. In JSON, XML and other text they
    /// are replaced by the URL of the port on which the call arrived.
    #[schemars(example = ["https://api.acme.example"])]
    rewrite: Vec<String>,
    /// The meaning of calls.
    #[schemars(extend("x-missing" = "list what the API's calls mean"))]
    routes: Vec<RouteKeys>,
}

/// One of `errors`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["body"]))]
pub(crate) struct ErrorKeys {
    /// For this HTTP status.
    #[schemars(range(min = 400, max = 599), extend("x-default" = "all others"))]
    status: Option<u16>,
    /// The media type.
    #[schemars(extend("x-default" = "`application/json`"))]
    content_type: Option<String>,
    /// The body; `${STATUS}` in it is the status.
    #[schemars(extend("x-missing" = "write the body"))]
    body: String,
}

/// One of `routes`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["call", "op"]))]
pub(crate) struct RouteKeys {
    /// Method and path. `*` is any method, `{name}` one part of the path, `**` at the end all further parts.
    #[schemars(example = &"GET /v1/servers/{id}", extend("x-missing" = "write 'METHOD /path'"))]
    call: String,
    /// Only calls that meet all of these conditions.
    when: Vec<WhenKeys>,
    /// The operation of the call.
    #[schemars(extend("x-missing" = "name the operation"))]
    op: Option<Op>,
    /// All places with a name of its object: id, name, provider id. The journal shows the first.
    names: Vec<SourceKeys>,
    /// The Service of the load balancer, if the call contains it: the first of these places that exists.
    owner: Vec<SourceKeys>,
    /// The requested page of a list, from 1.
    page: Option<SourceKeys>,
    /// The place in the answer with the id of the created object.
    creates: Option<SourceKeys>,
}

/// A place in a call: one of the first seven.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct SourceKeys {
    /// A part of the path, by its name.
    path: Option<String>,
    /// A parameter of the query.
    query: Option<String>,
    /// A field of a form, in the body or the query; `*` in it is any number: `InstanceId.*`.
    form: Option<String>,
    /// The values of the filter with this name (`Filter.1.Name`, `Filter.1.Value.1` in AWS's Query protocol).
    filter: Option<String>,
    /// A header.
    header: Option<String>,
    /// A JSON pointer into the body; `*` in it is every item of a list.
    json: Option<String>,
    /// A place in an XML body: `/a/b`, `//b`, `//b/@c`, by names without prefixes.
    xpath: Option<String>,
    /// The text around the value, with `{}` in its place.
    #[schemars(example = &"service-uid={}")]
    pattern: Option<String>,
}

/// One of `when`: a place in a call, and its required value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub(crate) struct WhenKeys {
    /// A parameter of the query.
    query: Option<String>,
    /// A field of a form.
    form: Option<String>,
    /// A filter of AWS's Query protocol, by its name.
    filter: Option<String>,
    /// A header.
    header: Option<String>,
    /// A JSON pointer into the body.
    json: Option<String>,
    /// A place in an XML body.
    xpath: Option<String>,
    /// The value.
    #[schemars(extend("x-default" = "any"))]
    is: Option<String>,
    /// Whether it must be absent.
    absent: bool,
}

impl SourceKeys {
    fn source(self) -> Result<Source, RuleError> {
        let SourceKeys { path, query, form, filter, header, json, xpath, pattern } = self;
        Source::parse(SourceText { path, query, form, filter, header, json, xpath, pattern })
    }
}

/// Reads a routes file; `None` if it has faults, which are reported to `problems`.
pub(crate) fn read(file: &Path, problems: &mut Problems) -> Option<Routes> {
    let text = match files::read(file) {
        Ok(text) => text,
        Err(error) => {
            problems.file(file, format!("cannot be read: {error}"));
            return None;
        }
    };
    let root = yaml::tree(&text, file).map_err(|error| problems.yaml(error)).ok()?;
    let before = problems.0.len();
    let (sound, places) = walk(&root, &SCHEMA, Some(file), problems);
    let written: RouteFile = problems.typed(sound, file);
    if problems.0.len() > before {
        return None;
    }
    let mut reading = Reading { file, places, problems };
    let mut rules = Vec::new();
    for (at, keys) in written.routes.into_iter().enumerate() {
        rules.extend(reading.rule(at, keys));
    }
    let forms = written.errors.into_iter().map(|ErrorKeys { status, content_type, body }| ErrorForm {
        status,
        content_type: content_type.unwrap_or_else(|| "application/json".to_owned()),
        body,
    });
    let errors = ErrorForms(forms.collect());
    for (at, url) in written.rewrite.iter().enumerate() {
        let uri = url.parse::<http::Uri>().ok();
        if !uri.is_some_and(|uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")))
        {
            let what = format!("'{url}' is not of the form http://HOST[:PORT][/PATH] or https://..");
            reading.problem(format!("rewrite[{at}]"), what);
        }
    }
    let rewrites = Rewrites::of(written.rewrite);
    if reading.problems.0.len() > before {
        return None;
    }
    match Table::new(rules) {
        Ok(table) => Some(Routes { table, errors, rewrites }),
        Err(overlaps) => {
            overlaps.into_iter().for_each(|overlap| reading.overlap(overlap));
            None
        }
    }
}

struct Reading<'a> {
    file: &'a Path,
    places: Places,
    problems: &'a mut Problems,
}

impl Reading<'_> {
    fn problem(&mut self, key: String, what: String) {
        let line = self.places.line(&key);
        let origin = Origin::File { path: self.file.to_owned(), line };
        self.problems.0.push(Problem { origin, key, what });
    }

    fn rule(&mut self, at: usize, keys: RouteKeys) -> Option<Rule> {
        let mut failed = |part: String, error: RuleError| {
            self.problem(format!("routes[{at}]{part}"), error.to_string());
        };
        let RouteKeys { call, when, op, names, owner, page, creates } = keys;
        let op = op.unwrap_or(Op::Other);
        let mut rule = Rule::new(&call, op).map_err(|error| failed(".call".to_owned(), error)).ok()?;
        for (number, keys) in when.into_iter().enumerate() {
            let WhenKeys { query, form, filter, header, json, xpath, is, absent } = keys;
            let source = SourceKeys { query, form, filter, header, json, xpath, ..SourceKeys::default() };
            let wanted = if absent { None } else { Some(is.as_deref().unwrap_or("*")) };
            let with = source.source().and_then(|source| rule.when(source, wanted));
            rule = with.map_err(|error| failed(format!(".when[{number}]"), error)).ok()?;
        }
        for (number, keys) in names.into_iter().enumerate() {
            let with = keys.source().and_then(|source| rule.naming(source));
            rule = with.map_err(|error| failed(format!(".names[{number}]"), error)).ok()?;
        }
        for (number, keys) in owner.into_iter().enumerate() {
            let with = keys.source().and_then(|source| rule.owned_by(source));
            rule = with.map_err(|error| failed(format!(".owner[{number}]"), error)).ok()?;
        }
        if let Some(keys) = page {
            let with = keys.source().and_then(|source| rule.paged_by(source));
            rule = with.map_err(|error| failed(".page".to_owned(), error)).ok()?;
        }
        if let Some(keys) = creates {
            let with = keys.source().and_then(|source| rule.creating(source));
            rule = with.map_err(|error| failed(".creates".to_owned(), error)).ok()?;
        }
        Some(rule)
    }

    fn overlap(&mut self, Overlap { first, second, same }: Overlap) {
        let earlier = match self.places.line(&format!("routes[{first}]")) {
            Some(line) => format!("the rule in line {line}"),
            None => format!("routes[{first}]"),
        };
        let what = match same {
            true => format!("means the very same calls as {earlier}; keep one"),
            false => format!(
                "a call can fit it and {earlier}, and neither is the narrower; say under 'when' of one what it lacks \
                 ('absent: true') or has"
            ),
        };
        self.problem(format!("routes[{second}]"), what);
    }
}

impl Routes {
    /// The routes in a file.
    ///
    /// # Errors
    /// All its faults, by line.
    pub fn load(file: &Path) -> Result<Routes, Problems> {
        let mut problems = Problems::default();
        match read(file, &mut problems) {
            Some(routes) => problems.or(routes),
            None => Err(problems.sorted()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(routes: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("routes.yaml");
        let text = format!("apiVersion: ccm-conformance/v1\nkind: Routes\nroutes:\n{routes}");
        std::fs::write(&file, text).expect("written");
        let said = Routes::load(&file).expect_err("something is wrong").to_string();
        said.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn mistakes_are_reported_with_file_and_line() {
        for (routes, what) in [
            (
                "  - {call: GET /a, op: lb.list}\n  - {call: GET /a, op: lb.get}\n",
                "routes.yaml:5: routes[1]: means the very same calls as the rule in line 4; keep one",
            ),
            (
                "  - {call: GET /a, when: [{query: name}], op: lb.list}\n  - {call: GET /a, when: [{query: id}], op: lb.get}\n",
                "routes.yaml:5: routes[1]: a call can fit it and the rule in line 4, and neither is the narrower",
            ),
            (
                "  - {call: /a, op: lb.get}\n",
                "routes.yaml:4: routes[0].call: '/a' is not of the form 'METHOD /path'",
            ),
            (
                "  - {call: 'GET /a/{id}', op: lb.get, names: [{path: name}]}\n",
                "routes[0].names[0]: the path has no '{name}'",
            ),
            (
                "  - {call: GET /a, op: lb.get}\nrewrite: [api.example]\n",
                "routes.yaml:5: rewrite[0]: 'api.example' is not of the form http://HOST",
            ),
            ("  - {call: GET /a, op: lb.got}\n", "routes.yaml:4: routes[0].op: 'lb.got' is none of "),
            ("  - {call: GET /a, op: lb.get, creates: {json: id}}\n", "'id' is not a JSON pointer"),
            ("  - {call: GET /a, op: lb.get, names: [{xpath: '//a[1]'}]}\n", "unsupported XPath '//a[1]'"),
            (
                "  - {call: GET /a, op: lb.get, nmes: []}\n",
                "routes[0].nmes: unknown key; did you mean 'names'?",
            ),
        ] {
            let said = said(routes);
            assert!(said.contains(what), "{what} is not in {said}");
        }
    }

    #[test]
    fn the_routes_in_this_repository_are_sound() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/routes"));
        for name in ["aws", "digitalocean", "exoscale", "hcloud", "native", "vsphere"] {
            Routes::load(&folder.join(format!("{name}.yaml")))
                .unwrap_or_else(|problems| panic!("{problems}"));
        }
        assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 6, "each is named here");
    }
}

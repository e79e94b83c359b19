//! The meaning of calls: rules, and which of them matches a call.

use crate::pattern::{PathPattern, RuleError};
use crate::source::{CallView, Place, Source};
use fake_cloud_driver::Op;
use http::Method;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A condition of a rule on a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Present,
    Absent,
    Equal(String),
}

/// A condition of a rule besides method and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) place: Place,
    pub(crate) wanted: Wanted,
}

impl Condition {
    fn holds(&self, seen: &CallView<'_>) -> bool {
        let values = self.place.values(None, seen);
        match &self.wanted {
            Wanted::Present => !values.is_empty(),
            Wanted::Absent => values.is_empty(),
            Wanted::Equal(value) => values.contains(value),
        }
    }

    /// Whether no call fits both.
    fn excludes(&self, other: &Condition) -> bool {
        self.place == other.place
            && match (&self.wanted, &other.wanted) {
                (Wanted::Absent, Wanted::Absent) => false,
                (Wanted::Absent, _) | (_, Wanted::Absent) => true,
                (Wanted::Equal(one), Wanted::Equal(two)) => one != two,
                _ => false,
            }
    }

    /// Whether every call that fits this fits the other.
    fn implies(&self, other: &Condition) -> bool {
        self.place == other.place
            && (self.wanted == other.wanted
                || matches!((&self.wanted, &other.wanted), (Wanted::Equal(_), Wanted::Present)))
    }
}

/// The meaning of one kind of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    method: Option<Method>,
    path: PathPattern,
    when: Vec<Condition>,
    op: Op,
    names: Vec<Source>,
    owner: Vec<Source>,
    page: Option<Source>,
    creates: Option<Source>,
}

impl Rule {
    /// A rule for `METHOD /path`; the method `*` matches all methods.
    ///
    /// # Errors
    /// The text has another form.
    pub fn new(call: &str, op: Op) -> Result<Rule, RuleError> {
        let refused = || RuleError::Call(call.to_owned());
        let (method, path) = call.split_once(' ').ok_or_else(refused)?;
        let method = match method {
            "*" => None,
            word if word.bytes().all(|byte| byte.is_ascii_uppercase()) => {
                Some(Method::from_bytes(word.as_bytes()).map_err(|_| refused())?)
            }
            _ => return Err(refused()),
        };
        let path = PathPattern::parse(path.trim()).map_err(|error| match error {
            RuleError::Call(_) => refused(),
            other => other,
        })?;
        let (names, owner) = (Vec::new(), Vec::new());
        Ok(Rule { method, path, when: Vec::new(), op, names, owner, page: None, creates: None })
    }

    /// Restricts it to calls with this value: `Some("*")` means any value, `None` means that there is none.
    ///
    /// # Errors
    /// Such a call cannot have this value.
    pub fn when(mut self, source: Source, value: Option<&str>) -> Result<Rule, RuleError> {
        let Source { place, .. } = self.checked(source)?;
        let wanted = match value {
            None => Wanted::Absent,
            Some("*") => Wanted::Present,
            Some(value) => Wanted::Equal(value.to_owned()),
        };
        self.when.push(Condition { place, wanted });
        Ok(self)
    }

    /// Takes the name of its object from here.
    ///
    /// # Errors
    /// Such a call cannot have this value.
    pub fn naming(mut self, source: Source) -> Result<Rule, RuleError> {
        let source = self.checked(source)?;
        self.names.push(source);
        Ok(self)
    }

    /// Takes the owner of the load balancer from here, if no earlier source has one.
    ///
    /// # Errors
    /// Such a call cannot have this value.
    pub fn owned_by(mut self, source: Source) -> Result<Rule, RuleError> {
        let source = self.checked(source)?;
        self.owner.push(source);
        Ok(self)
    }

    /// Takes the requested page of a list from here.
    ///
    /// # Errors
    /// Such a call cannot have this value.
    pub fn paged_by(mut self, source: Source) -> Result<Rule, RuleError> {
        self.page = Some(self.checked(source)?);
        Ok(self)
    }

    /// Takes the id of the created object from here in the answer.
    ///
    /// # Errors
    /// An answer cannot have this value.
    pub fn creating(mut self, source: Source) -> Result<Rule, RuleError> {
        match source.place {
            Place::Json(_) | Place::Xpath(_) => {
                self.creates = Some(source);
                Ok(self)
            }
            _ => Err(RuleError::Answer),
        }
    }

    fn checked(&self, source: Source) -> Result<Source, RuleError> {
        if let Place::Path(name) = &source.place
            && !self.path.has(name)
        {
            return Err(RuleError::NoSuchPart(name.clone()));
        }
        let bodiless =
            [Method::GET, Method::HEAD].into_iter().find(|method| self.method.as_ref() == Some(method));
        // A form may also be in the query.
        if let (Some(method), Place::Json(_) | Place::Xpath(_)) = (bodiless, &source.place) {
            return Err(RuleError::NoBody(method.to_string()));
        }
        Ok(source)
    }

    fn fits_head(&self, method: &Method, path: &str) -> bool {
        self.method.as_ref().is_none_or(|own| own == method) && self.path.fits(path)
    }

    fn wants_body(&self) -> bool {
        let places = self.when.iter().map(|condition| &condition.place);
        let sources = self.names.iter().chain(&self.owner).chain(&self.page).map(|source| &source.place);
        places.chain(sources).any(Place::is_of_the_body)
    }

    /// Whether some call fits both.
    fn meets(&self, other: &Rule) -> bool {
        let methods = self.method.is_none() || other.method.is_none() || self.method == other.method;
        let excluded = self.when.iter().any(|own| other.when.iter().any(|one| own.excludes(one)));
        methods && self.path.meets(&other.path) && !excluded
    }

    /// Whether every call that fits this fits the other.
    fn is_within(&self, other: &Rule) -> bool {
        let method = other.method.is_none() || self.method == other.method;
        let when = other.when.iter().all(|one| self.when.iter().any(|own| own.implies(one)));
        method && when && self.path.is_within(&other.path)
    }

    /// Whether it is less specific than the other, and about the same calls.
    fn is_narrower(&self, other: &Rule) -> bool {
        self.is_within(other) && !other.is_within(self)
    }
}

/// The meaning of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) op: Op,
    /// All names that it uses for its object.
    pub(crate) named: Vec<String>,
    pub(crate) resource: Option<String>,
    pub(crate) owner: Option<String>,
    /// The requested page of a list, from 1.
    pub(crate) page: u64,
    /// Values of conditions that are in the body, for the journal's line.
    pub(crate) fields: Vec<(String, String)>,
    /// Whether a rule matches it.
    pub(crate) is_known: bool,
    /// Where its answer has the id of the created object.
    pub(crate) creates: Option<Source>,
}

/// Two rules that conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The earlier one, by its position.
    pub first: usize,
    /// The later one.
    pub second: usize,
    /// Whether both match exactly the same calls.
    pub same: bool,
}

/// All rules. Of those that match a call, the most specific one applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(Arc<Vec<Rule>>);

impl Table {
    /// The table of these rules.
    ///
    /// # Errors
    /// Rules that can both match a call while neither is more specific.
    pub fn new(rules: Vec<Rule>) -> Result<Table, Vec<Overlap>> {
        let mut overlaps = Vec::new();
        for (second, rule) in rules.iter().enumerate() {
            for (first, earlier) in rules[..second].iter().enumerate() {
                if rule.meets(earlier) && !rule.is_narrower(earlier) && !earlier.is_narrower(rule) {
                    let same = rule.is_within(earlier) && earlier.is_within(rule);
                    overlaps.push(Overlap { first, second, same });
                }
            }
        }
        if overlaps.is_empty() { Ok(Table(Arc::new(rules))) } else { Err(overlaps) }
    }

    /// Whether a call like this can be matched only with its body.
    pub(crate) fn wants_body(&self, method: &Method, path: &str) -> bool {
        self.0.iter().any(|rule| rule.wants_body() && rule.fits_head(method, path))
    }

    /// The fields of a call's form that distinguish calls in rules: a rule for this call would have to contain them.
    fn distinguishing_fields(&self, seen: &CallView<'_>) -> Vec<(String, String)> {
        let conditions = self.0.iter().flat_map(|rule| &rule.when);
        let keys: BTreeSet<&String> = conditions
            .filter_map(|condition| match (&condition.place, &condition.wanted) {
                (Place::Form(key), Wanted::Equal(_)) => Some(key),
                _ => None,
            })
            .collect();
        let values = |key: &String| Place::Form(key.clone()).values(None, seen).into_iter().next();
        keys.into_iter().filter_map(|key| Some((key.clone(), values(key)?))).collect()
    }

    /// The meaning of a call.
    pub(crate) fn read(&self, seen: &CallView<'_>) -> Meaning {
        let mut best: Option<&Rule> = None;
        for rule in self.0.iter() {
            let fits = rule.fits_head(seen.method, seen.path) && rule.when.iter().all(|one| one.holds(seen));
            if fits && best.is_none_or(|best| rule.is_narrower(best)) {
                best = Some(rule);
            }
        }
        let Some(rule) = best else {
            return Meaning { fields: self.distinguishing_fields(seen), ..Meaning::unknown() };
        };
        let (mut named, mut shown): (Vec<String>, Vec<String>) = Default::default();
        for source in &rule.names {
            let values = source.values(&rule.path, seen);
            if let (true, Some(first)) = (shown.is_empty(), values.first()) {
                shown.push(source.shown(first));
            }
            named.extend(values);
        }
        let owner = rule.owner.iter().find_map(|source| source.values(&rule.path, seen).into_iter().next());
        named.extend(owner.clone());
        let page =
            rule.page.as_ref().and_then(|source| source.values(&rule.path, seen).first()?.parse().ok());
        let in_body = rule.when.iter().filter_map(|condition| match (&condition.place, &condition.wanted) {
            (Place::Form(key), Wanted::Equal(value)) => Some((key.clone(), value.clone())),
            _ => None,
        });
        Meaning {
            op: rule.op,
            named,
            resource: shown.into_iter().next(),
            owner,
            page: page.unwrap_or(1),
            fields: in_body.collect(),
            is_known: true,
            creates: rule.creates.clone(),
        }
    }
}

impl Meaning {
    fn unknown() -> Meaning {
        Meaning {
            op: Op::Other,
            named: Vec::new(),
            resource: None,
            owner: None,
            page: 1,
            fields: Vec::new(),
            is_known: false,
            creates: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceText;
    use bytes::Bytes;
    use http::HeaderMap;
    use std::cell::OnceCell;

    fn source(key: &str, value: &str) -> Source {
        let value = Some(value.to_owned());
        let mut text = SourceText::default();
        match key {
            "path" => text.path = value,
            "query" => text.query = value,
            "form" => text.form = value,
            "filter" => text.filter = value,
            "json" => text.json = value,
            _ => unreachable!("{key}"),
        }
        Source::parse(text).expect("a source")
    }

    fn rule(call: &str, op: Op) -> Rule {
        Rule::new(call, op).expect("a rule")
    }

    fn read(table: &Table, method: Method, target: &str, body: &str) -> Meaning {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = HeaderMap::new();
        table.read(&CallView {
            method: &method,
            path,
            query,
            headers: &headers,
            body: Bytes::copy_from_slice(body.as_bytes()),
            form: OnceCell::new(),
            json: OnceCell::new(),
        })
    }

    #[test]
    fn the_narrowest_rule_counts() {
        let by_name = rule("GET /v1/servers", Op::InstanceGet).when(source("query", "name"), Some("*"));
        let by_name = by_name.and_then(|rule| rule.naming(source("query", "name"))).expect("a rule");
        let table = Table::new(vec![
            rule("* /v1/servers/**", Op::InstanceWrite),
            rule("GET /v1/servers", Op::InstanceList),
            by_name,
            rule("GET /v1/servers/{id}", Op::InstanceGet).naming(source("path", "id")).expect("a rule"),
        ]);
        let table = table.expect("sound");
        let named = read(&table, Method::GET, "/v1/servers?name=n%201", "");
        assert_eq!(
            (named.op, named.named, named.resource),
            (Op::InstanceGet, vec!["n 1".into()], Some("name=n 1".into()))
        );
        assert_eq!(read(&table, Method::GET, "/v1/servers?page=2", "").op, Op::InstanceList);
        assert_eq!(read(&table, Method::GET, "/v1/servers/7", "").resource.as_deref(), Some("7"));
        assert_eq!(read(&table, Method::DELETE, "/v1/servers/7", "").op, Op::InstanceWrite);
        assert!(!read(&table, Method::GET, "/v2", "").is_known);
    }

    #[test]
    fn a_form_tells_what_one_path_means() {
        let action =
            |name: &str, op| rule("POST /", op).when(source("form", "Action"), Some(name)).expect("a rule");
        let by_id = action("DescribeInstances", Op::InstanceGet)
            .when(source("form", "InstanceId.1"), Some("*"))
            .and_then(|rule| rule.naming(source("form", "InstanceId.*")))
            .expect("a rule");
        let table = Table::new(vec![
            action("DescribeInstances", Op::InstanceList),
            by_id,
            action("CreateRoute", Op::RouteCreate),
        ]);
        let table = table.expect("sound");
        assert!(table.wants_body(&Method::POST, "/") && !table.wants_body(&Method::GET, "/"));
        let one = read(&table, Method::POST, "/", "Action=DescribeInstances&InstanceId.1=i-7");
        assert_eq!((one.op, one.resource.as_deref()), (Op::InstanceGet, Some("InstanceId=i-7")));
        assert_eq!(one.fields, [("Action".to_owned(), "DescribeInstances".to_owned())]);
        assert_eq!(read(&table, Method::POST, "/", "Action=DescribeInstances").op, Op::InstanceList);
        let other = read(&table, Method::POST, "/", "Action=Other&InstanceId.1=i-7");
        assert_eq!((other.is_known, other.fields), (false, vec![("Action".to_owned(), "Other".to_owned())]));
    }

    #[test]
    fn rules_that_get_in_each_others_way_are_found() {
        let when = |key: &str, value: Option<&str>| {
            rule("GET /a", Op::InstanceGet).when(source("query", key), value).expect("a rule")
        };
        let overlaps = |rules: Vec<Rule>| Table::new(rules).expect_err("they overlap");
        let twice = overlaps(vec![rule("GET /a/{x}", Op::LbGet), rule("GET /a/{y}", Op::LbGet)]);
        assert_eq!(twice, [Overlap { first: 0, second: 1, same: true }]);
        let crossed = overlaps(vec![when("name", Some("*")), when("id", Some("*"))]);
        assert_eq!(crossed, [Overlap { first: 0, second: 1, same: false }]);
        let apart = when("name", Some("*")).when(source("query", "id"), None).expect("a rule");
        assert!(Table::new(vec![apart, when("id", Some("*"))]).is_ok());
        assert!(Table::new(vec![when("x", Some("1")), when("x", Some("2")), when("x", Some("*"))]).is_ok());
    }

    #[test]
    fn conditions_that_no_call_can_meet_are_refused() {
        let no_part =
            rule("GET /a/{id}", Op::LbGet).naming(source("path", "name")).expect_err("no such part");
        assert_eq!(no_part, RuleError::NoSuchPart("name".into()));
        let no_body = rule("GET /a", Op::LbGet).naming(source("json", "/name")).expect_err("no body");
        assert_eq!(no_body, RuleError::NoBody("GET".into()));
        let answer = rule("POST /a", Op::LbCreate).creating(source("path", "id")).expect_err("no answer's");
        assert_eq!(answer, RuleError::Answer);
        for bad in ["/a", "get /a", "GET a", "GET"] {
            assert!(matches!(Rule::new(bad, Op::Other), Err(RuleError::Call(_))), "{bad}");
        }
    }
}

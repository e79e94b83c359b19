//! Evaluates the expressions of webhooks and policies (CEL) for a request, as far as the manifests decide them.

use super::request::Request;
use cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// What is known of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It is true.
    Yes,
    /// It is false.
    No,
    /// It cannot be evaluated, because the object lacks a field.
    Fails,
    /// It depends on what the manifests do not show.
    Unknown,
}

impl Truth {
    /// Whether all are true: one that is not decides, whatever is unknown or fails.
    pub fn all(truths: impl IntoIterator<Item = Truth>) -> Truth {
        truths.into_iter().fold(Truth::Yes, |all, one| match (all, one) {
            (Truth::No, _) | (_, Truth::No) => Truth::No,
            (Truth::Unknown, _) | (_, Truth::Unknown) => Truth::Unknown,
            (Truth::Fails, _) | (_, Truth::Fails) => Truth::Fails,
            (Truth::Yes, Truth::Yes) => Truth::Yes,
        })
    }

    /// Whether any is true: one that is decides, and one that fails even more.
    pub fn any(truths: impl IntoIterator<Item = Truth>) -> Truth {
        truths.into_iter().fold(Truth::No, |any, one| match (any, one) {
            (Truth::Fails, _) | (_, Truth::Fails) => Truth::Fails,
            (Truth::Yes, _) | (_, Truth::Yes) => Truth::Yes,
            (Truth::Unknown, _) | (_, Truth::Unknown) => Truth::Unknown,
            (Truth::No, Truth::No) => Truth::No,
        })
    }
}

/// Longer expressions, and those with more brackets inside each other, are not evaluated.
const LONGEST: usize = 4096;
const DEEPEST: usize = 40;
/// The most times that the parts of an expression may be evaluated if its macros are inside each other.
const MOST_TIMES: usize = 1_000_000;
/// Macros that evaluate an expression for each item of a list.
const PER_ITEM: [&str; 5] = [".all(", ".exists(", ".exists_one(", ".filter(", ".map("];

/// Fields whose values a request has but the manifests do not show, or which this model leaves out of its objects.
const NOT_SHOWN: &[&str] = &[
    "metadata.name",
    "metadata.generateName",
    "metadata.uid",
    "metadata.creationTimestamp",
    "metadata.ownerReferences",
    "metadata.managedFields",
    "metadata.resourceVersion",
    "object.status",
    "request.uid",
    "request.name",
    "request.options",
    "request.userInfo.uid",
    "request.userInfo.extra",
    "spec.nodeName",
    "spec.tolerations",
    "spec.volumes",
    "volumeMounts",
    "authorizer",
    "oldObject",
    "params",
];

/// What an expression says of a request. `variables` are the variables of its policy: name and expression. An expression
/// that fails, or needs what the manifests do not show, is unknown.
pub(super) fn truth(expression: &str, request: &Request, variables: &[(String, String)]) -> Truth {
    match expression.trim() {
        "true" => return Truth::Yes,
        "false" => return Truth::No,
        _ => {}
    }
    if !is_decidable(expression, request) {
        return Truth::Unknown;
    }
    let (context, all_known) = context_of(request, variables);
    let all_known = all_known || !names(expression, "variables");
    match value_of(expression, &context) {
        Ok(Some(Cel::Bool(true))) => Truth::Yes,
        Ok(Some(Cel::Bool(false))) => Truth::No,
        Err(ExecutionError::NoSuchKey(_)) if request.is_complete && all_known => Truth::Fails,
        Err(_) if request.is_complete && all_known && asks_for_no_namespace(expression, request) => {
            Truth::Fails
        }
        _ => Truth::Unknown,
    }
}

/// Whether an expression uses the namespace of an object that has none: `namespaceObject` is null then.
fn asks_for_no_namespace(text: &str, request: &Request) -> bool {
    request.namespace.is_none() && names(text, "namespaceObject")
}

/// What expressions about a request may use, and whether that contains all of these variables.
pub(super) fn context_of(
    request: &Request,
    variables: &[(String, String)],
) -> (Context<'static, 'static>, bool) {
    let mut context = Context::default();
    context.add_variable_from_value("request", cel_of(&request.attributes));
    if let Some(object) = &request.object {
        context.add_variable_from_value("object", cel_of(object));
    }
    context.add_variable_from_value("namespaceObject", request.namespace.as_ref().map_or(Cel::Null, cel_of));
    if let Some(params) = &request.params {
        context.add_variable_from_value("params", cel_of(params));
    }
    let decidable = |text: &str| is_decidable(text, request);
    let mut values: HashMap<String, Cel> = HashMap::new();
    let mut all_known = true;
    for (name, text) in variables {
        context.add_variable_from_value("variables", Cel::from(values.clone()));
        match decidable(text).then(|| value_of(text, &context)) {
            Some(Ok(Some(value))) => {
                values.insert(name.clone(), value);
            }
            // One that fails is missing, and so is whatever uses it.
            Some(Err(ExecutionError::NoSuchKey(_))) => {}
            Some(Err(_)) if asks_for_no_namespace(text, request) => {}
            // This evaluator lacks functions of Kubernetes.
            _ => all_known = false,
        }
    }
    context.add_variable_from_value("variables", Cel::from(values));
    (context, all_known)
}

/// The value of an expression; `None` if it cannot be read here.
fn value_of(text: &str, context: &Context<'_, '_>) -> Result<Option<Cel>, ExecutionError> {
    let Ok(program) = Program::compile(text) else { return Ok(None) };
    program.execute(context).map(Some)
}

fn is_decidable(text: &str, request: &Request) -> bool {
    is_short(text, request) && !uses_hidden(text, request)
}

/// Whether the text needs something that the manifests do not show.
pub(super) fn uses_hidden(text: &str, request: &Request) -> bool {
    // A namespace that is null hides nothing.
    let of_no_namespace =
        request.namespace.is_none().then(|| text.replace("namespaceObject.metadata", "namespaceObject"));
    let text = of_no_namespace.as_deref().unwrap_or(text);
    let unseen = request.object.is_none() && names(text, "object");
    let is_shown = |field: &str| match field {
        "metadata.name" => request.shows_name,
        "request.name" => request.attributes["name"].is_string(),
        "params" => request.params.is_some(),
        _ => false,
    };
    let hidden = NOT_SHOWN.iter().filter(|field| !is_shown(field));
    unseen || hidden.chain(request.hidden).any(|field| names(text, field))
}

/// Whether an expression takes little time to read and to evaluate.
pub(super) fn is_short(text: &str, request: &Request) -> bool {
    let mut depth = 0_usize;
    let deepest = text.chars().fold(0, |deepest, sign| {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest.max(depth)
    });
    let macros: usize = PER_ITEM.iter().map(|name| text.matches(name).count()).sum();
    // A request itself has lists of up to four items.
    let longest = |value: &Option<Value>| value.as_ref().map_or(0, longest_list);
    let items = longest(&request.object).max(longest(&request.params)).max(4);
    let times = u32::try_from(macros).ok().and_then(|macros| items.checked_pow(macros));
    text.len() <= LONGEST && deepest <= DEEPEST && times.is_some_and(|times| times <= MOST_TIMES)
}

/// The length of the longest list or map in a value.
fn longest_list(value: &Value) -> usize {
    let inside =
        |values: &mut dyn Iterator<Item = &Value>| values.map(longest_list).max().unwrap_or_default();
    match value {
        Value::Array(items) => items.len().max(inside(&mut items.iter())),
        Value::Object(entries) => entries.len().max(inside(&mut entries.values())),
        _ => 0,
    }
}

/// Whether the text contains these words, not as a part of longer ones.
fn names(text: &str, words: &str) -> bool {
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The value as an expression sees it. Whole numbers are of one type.
fn cel_of(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cel::Int(whole),
            None => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(cel_of).collect())),
        Value::Object(entries) => {
            let all: HashMap<String, Cel> =
                entries.iter().map(|(key, value)| (key.clone(), cel_of(value))).collect();
            Cel::from(all)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(expression: &str) -> Truth {
        let request = Request {
            attributes: json!({"operation": "CREATE", "userInfo": {"username": "me", "groups": ["a", "b"]}}),
            object: Some(json!({
                "metadata": {"labels": {"app": "ccm"}},
                "spec": {"hostNetwork": true, "priority": 1000, "containers": [{"image": "example.test/a:1"}]},
            })),
            namespace: Some(json!({"metadata": {"name": "kube-system", "labels": {"level": "high"}}})),
            params: None,
            is_complete: false,
            shows_name: false,
            hidden: &[],
        };
        let variables = [
            ("images".to_owned(), "object.spec.containers.map(c, c.image)".to_owned()),
            ("broken".to_owned(), "object.spec.absent.field".to_owned()),
        ];
        truth(expression, &request, &variables)
    }

    #[test]
    fn expressions_about_what_is_known_are_decided() {
        for yes in [
            "true",
            "object.spec.hostNetwork",
            "!has(object.spec.hostPID) || object.spec.hostPID == false",
            "object.spec.containers.all(c, c.image.startsWith('example.test/'))",
            "object.metadata.labels['app'] == 'ccm'",
            "'app' in object.metadata.labels",
            "object.spec.priority >= 1000",
            "request.userInfo.username != 'you' && 'a' in request.userInfo.groups",
            "request.operation in ['CREATE', 'UPDATE']",
            "namespaceObject.metadata.labels.level == 'high'",
            "variables.images.exists(i, i.endsWith(':1'))",
            "object.spec.containers.all(c, c.image.matches('^example[.]test/.*'))",
            "size(object.spec.containers) == 1",
        ] {
            assert_eq!(said(yes), Truth::Yes, "{yes}");
        }
        for no in ["false", "!has(object.spec.hostNetwork) || object.spec.hostNetwork == false", "1 > 2"] {
            assert_eq!(said(no), Truth::No, "{no}");
        }
    }

    #[test]
    fn everything_else_is_unknown() {
        let deep = format!("{}true{}", "(".repeat(50), ")".repeat(50));
        let long = "object.spec.containers.all(c, ".repeat(30) + "true" + &")".repeat(30);
        for unknown in [
            "object.metadata.name == 'a'",
            "request.name == 'a'",
            "oldObject == null",
            "params.data.on == 'yes'",
            "object.spec.absent == 1",
            "variables.broken == 1",
            "object.spec.containers",
            "not an expression",
            "authorizer.group('').resource('pods').check('create').allowed()",
            &deep,
            &long,
        ] {
            assert_eq!(said(unknown), Truth::Unknown, "{unknown}");
        }
    }

    #[test]
    fn one_false_expression_decides() {
        assert_eq!(Truth::all([Truth::Yes, Truth::Unknown, Truth::No]), Truth::No);
        assert_eq!(Truth::all([Truth::Yes, Truth::Unknown]), Truth::Unknown);
        assert_eq!(Truth::all([]), Truth::Yes);
        assert_eq!(Truth::any([Truth::No, Truth::Unknown]), Truth::Unknown);
        assert_eq!(Truth::any([Truth::Unknown, Truth::Yes]), Truth::Yes);
    }
}

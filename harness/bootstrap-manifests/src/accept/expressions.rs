//! Expressions (CEL) of webhooks and policies that the API server cannot compile: it refuses the object
//! (`k8s.io/apiserver` `pkg/admission/plugin/cel/compile.go`).

use crate::manifest::{Node, Object};
use cel::Program;
use cel::common::ast::{EntryExpr, Expr, LiteralValue, operators};

/// Variables of every expression of admission.
const EVERYWHERE: &[&str] = &["object", "oldObject", "request", "authorizer", "namespaceObject"];

/// Names that are not variables: types, and libraries whose functions are called by them.
const NAMES: &[&str] = &[
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "type",
    "null_type",
    "dyn",
    "google",
    "format",
    "sets",
    "base64",
    "strings",
    "lists",
    "math",
    "jsonpatch",
    "optional",
    "cel",
    "net",
    "kubernetes",
    "Object",
    "JSONPatch",
];

/// Macros of Kubernetes that this parser does not expand: some of their arguments are names of new variables.
const MACROS: &[&str] = &[
    "bind",
    "existsOne",
    "optFlatMap",
    "optMap",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// Functions whose value is a truth value.
const OF_TRUTH: &[&str] = &[
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "allowed",
    "isSorted",
    "isURL",
    "isIP",
    "isCIDR",
    "isQuantity",
    "isInteger",
    "isGreaterThan",
    "isLessThan",
    "isSemver",
    "hasValue",
    "containsIP",
    "containsCIDR",
];

/// Refuses conditions, validations and variables that cannot be compiled.
pub(super) fn check(object: &Object, refuse: &mut dyn FnMut(&Node, String, &str)) {
    let items = |node: &'_ Node, field: &str| -> Vec<Node> {
        node.get(field).map(Node::items).unwrap_or_default().to_vec()
    };
    match object.kind.as_str() {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for webhook in items(&object.node, "webhooks") {
                each(&items(&webhook, "matchConditions"), EVERYWHERE, true, &[], refuse);
            }
        }
        "ValidatingAdmissionPolicy" => {
            let Some(spec) = object.node.get("spec") else { return };
            let mut known: Vec<&str> = EVERYWHERE.to_vec();
            if spec.get("paramKind").is_some() {
                known.push("params");
            }
            each(&items(spec, "matchConditions"), &known, true, &[], refuse);
            known.push("variables");
            let variables = items(spec, "variables");
            each(&variables, &known, false, &[], refuse);
            each(&items(spec, "validations"), &known, true, &variables, refuse);
        }
        _ => {}
    }
}

fn each(
    items: &[Node],
    known: &[&str],
    must_be_true_or_false: bool,
    variables: &[Node],
    refuse: &mut dyn FnMut(&Node, String, &str),
) {
    for item in items {
        let Some(node) = item.get("expression") else { continue };
        let Some(text) = node.text() else { continue };
        // This parser does not know every extension of Kubernetes, so what it cannot read is not refused.
        let Ok(program) = Program::compile(text) else { continue };
        let root = &program.expression().expr;
        if let Some(name) = undeclared(root, &mut known.to_vec()) {
            let what = format!("the expression '{text}' uses '{name}', which is not a variable there");
            refuse(node, what, "use object, oldObject, request or another variable of the policy");
        } else if must_be_true_or_false && kind_of(root, variables) == Kind::Other {
            let what = format!("the expression '{text}' must evaluate to bool");
            refuse(node, what, "compare the value, for example with '== true'");
        }
    }
}

/// The first name in an expression that is not declared.
fn undeclared<'e>(expr: &'e Expr, known: &mut Vec<&'e str>) -> Option<String> {
    match expr {
        Expr::Ident(name) => {
            let own = name.starts_with(['@', '_']) || NAMES.contains(&name.as_str());
            (!own && !known.contains(&name.as_str())).then(|| name.clone())
        }
        Expr::Select(select) => undeclared(&select.operand.expr, known),
        Expr::Call(call) => {
            let target = call.target.as_ref().and_then(|target| undeclared(&target.expr, known));
            let judged = call.args.iter().filter(|_| !MACROS.contains(&call.func_name.as_str()));
            target.or_else(|| judged.into_iter().find_map(|argument| undeclared(&argument.expr, known)))
        }
        Expr::List(list) => list.elements.iter().find_map(|element| undeclared(&element.expr, known)),
        Expr::Map(map) => map.entries.iter().find_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                undeclared(&entry.key.expr, known).or_else(|| undeclared(&entry.value.expr, known))
            }
            EntryExpr::StructField(field) => undeclared(&field.value.expr, known),
        }),
        Expr::Comprehension(own) => {
            let outer = undeclared(&own.iter_range.expr, known);
            let before = known.len();
            known.push(&own.iter_var);
            known.extend(own.iter_var2.as_deref());
            known.push(&own.accu_var);
            let parts = [&own.accu_init, &own.loop_cond, &own.loop_step, &own.result];
            let inner = parts.into_iter().find_map(|part| undeclared(&part.expr, known));
            known.truncate(before);
            outer.or(inner)
        }
        Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => None,
    }
}

/// The kind of an expression's value, as the compiler of expressions sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// True or false.
    Truth,
    /// Something else, or a field of an object, whose type the compiler does not know.
    Other,
    /// Not known here.
    Unknown,
}

fn kind_of(expr: &Expr, variables: &[Node]) -> Kind {
    match expr {
        Expr::Literal(LiteralValue::Boolean(_)) => Kind::Truth,
        Expr::Literal(_) | Expr::List(_) | Expr::Map(_) => Kind::Other,
        Expr::Select(select) if select.test => Kind::Truth,
        Expr::Select(select) => match root_of(&select.operand.expr) {
            // A field of the request has a type.
            Some("object" | "oldObject" | "params") => Kind::Other,
            Some("variables") => of_variable(&select.field, variables),
            _ => Kind::Unknown,
        },
        Expr::Call(call) => of_call(&call.func_name, &call.args, variables),
        Expr::Comprehension(own) => match &own.result.expr {
            Expr::Ident(name) if *name == own.accu_var => kind_of(&own.accu_init.expr, variables),
            result => kind_of(result, variables),
        },
        Expr::Ident(_) | Expr::Struct(_) | Expr::Unspecified => Kind::Unknown,
    }
}

fn of_call(name: &str, args: &[cel::IdedExpr], variables: &[Node]) -> Kind {
    match name {
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::EQUALS
        | operators::NOT_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::IN => Kind::Truth,
        operators::CONDITIONAL => {
            let branches: Vec<Kind> = args.iter().skip(1).map(|arg| kind_of(&arg.expr, variables)).collect();
            match branches.as_slice() {
                [one, other] if one == other => *one,
                _ => Kind::Unknown,
            }
        }
        operators::INDEX => match args.first().and_then(|own| root_of(&own.expr)) {
            Some("object" | "oldObject" | "params") => Kind::Other,
            _ => Kind::Unknown,
        },
        name if OF_TRUTH.contains(&name) => Kind::Truth,
        "size" | "string" | "int" => Kind::Other,
        _ => Kind::Unknown,
    }
}

fn of_variable(name: &str, variables: &[Node]) -> Kind {
    let own = variables.iter().position(|variable| variable.text_at("name") == Some(name));
    let Some((before, own)) = own.map(|at| (&variables[..at], &variables[at])) else { return Kind::Unknown };
    let program = own.text_at("expression").and_then(|text| Program::compile(text).ok());
    program.map_or(Kind::Unknown, |program| kind_of(&program.expression().expr, before))
}

/// The variable at the beginning of a path of fields.
fn root_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Ident(name) => Some(name),
        Expr::Select(select) if !select.test => root_of(&select.operand.expr),
        Expr::Call(call) if call.func_name == operators::INDEX => root_of(&call.args.first()?.expr),
        _ => None,
    }
}

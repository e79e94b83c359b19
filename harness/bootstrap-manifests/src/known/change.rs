//! The expressions of MutatingAdmissionPolicies (CEL): which change they ask for.

use super::evaluation::{context_of, is_short, uses_hidden};
use super::request::Request;
use crate::workload::is_added_label;
use cel::common::ast::{EntryExpr, Expr, LiteralValue, MapEntryExpr, MapExpr};
use cel::extractors::This;
use cel::{ExecutionError, IdedExpr, Program, Value as Cel};
use serde_json::Value;
use std::sync::Arc;

/// The change that an expression asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// This one: an apply configuration, or the operations of a JSON patch.
    Of(Value),
    /// None, because the expression cannot be evaluated for the request.
    Fails,
    /// The manifests do not show it.
    Unknown,
}

/// The change that an expression asks for. `variables` are those of its policy: name and expression.
pub(super) fn change(expression: &str, request: &Request, variables: &[(String, String)]) -> Change {
    if !is_short(expression, request) {
        return Change::Unknown;
    }
    let Ok(program) = Program::compile(expression) else { return Change::Unknown };
    let mut root = program.expression().clone();
    let mut read = Vec::new();
    prepare(&mut root, &mut read);
    if read.iter().any(|path| uses_hidden(path, request)) {
        return Change::Unknown;
    }
    let (mut context, all_known) = context_of(request, variables);
    if !all_known && read.iter().any(|path| path.starts_with("variables")) {
        return Change::Unknown;
    }
    context.add_variable_from_value("jsonpatch", Cel::Null);
    if context.add_function("escapeKey", escaped).is_err() {
        return Change::Unknown;
    }
    match Cel::resolve(&root, &context) {
        Ok(value) => value.json().map_or(Change::Unknown, Change::Of),
        // Parameters may have defaults of their definition.
        Err(ExecutionError::NoSuchKey(_)) if read.iter().any(|path| path.starts_with("params")) => {
            Change::Unknown
        }
        Err(ExecutionError::NoSuchKey(key)) if may_be_added(&key) => Change::Unknown,
        Err(ExecutionError::NoSuchKey(_)) => Change::Fails,
        Err(_) => Change::Unknown,
    }
}

/// Whether a Pod may have a field or a label that its template lacks: the API server or its controller adds it.
fn may_be_added(key: &str) -> bool {
    const FIELDS: [&str; 12] = [
        "affinity",
        "failureThreshold",
        "finalizers",
        "generateName",
        "labels",
        "limits",
        "ownerReferences",
        "periodSeconds",
        "protocol",
        "requests",
        "successThreshold",
        "timeoutSeconds",
    ];
    FIELDS.contains(&key) || is_added_label(key)
}

/// `jsonpatch.escapeKey`: a key as a JSON pointer spells it.
fn escaped(_library: This<Cel>, key: Arc<String>) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Turns structs (`Object.spec{...}`, `JSONPatch{...}`) into maps, as their types have no meaning here, and collects the
/// paths of fields that the expression reads.
fn prepare(own: &mut IdedExpr, read: &mut Vec<String>) {
    if let Expr::Struct(old) = &mut own.expr {
        let mut entries = std::mem::take(&mut old.entries);
        for entry in &mut entries {
            if let EntryExpr::StructField(field) = &mut entry.expr {
                let name = LiteralValue::String(std::mem::take(&mut field.field).into());
                entry.expr = EntryExpr::MapEntry(MapEntryExpr {
                    key: IdedExpr { id: entry.id, expr: Expr::Literal(name) },
                    value: std::mem::take(&mut field.value),
                    optional: field.optional,
                });
            }
        }
        own.expr = Expr::Map(MapExpr { entries });
    }
    match &mut own.expr {
        Expr::Select(_) => {
            read.extend(path_of(own));
            let Expr::Select(select) = &mut own.expr else { return };
            // Also if it is not part of a plain path, as behind an index.
            read.push(select.field.clone());
            prepare(&mut select.operand, read);
        }
        Expr::Ident(name) => read.push(name.clone()),
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| prepare(target, read));
            call.args.iter_mut().for_each(|argument| prepare(argument, read));
        }
        Expr::List(list) => list.elements.iter_mut().for_each(|element| prepare(element, read)),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    prepare(&mut entry.key, read);
                    prepare(&mut entry.value, read);
                }
            }
        }
        Expr::Comprehension(own) => {
            let parts = [
                &mut own.iter_range,
                &mut own.accu_init,
                &mut own.loop_cond,
                &mut own.loop_step,
                &mut own.result,
            ];
            parts.into_iter().for_each(|part| prepare(part, read));
        }
        Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

/// `object.spec.volumes`, if the expression is such a path.
fn path_of(own: &IdedExpr) -> Option<String> {
    match &own.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) => Some(format!("{}.{}", path_of(&select.operand)?, select.field)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(expression: &str) -> Change {
        let request = Request {
            attributes: json!({"operation": "CREATE"}),
            object: Some(json!({
                "metadata": {"labels": {"app": "ccm"}},
                "spec": {"hostNetwork": true, "containers": [{"name": "a"}, {"name": "b"}]},
            })),
            namespace: None,
            params: None,
            is_complete: false,
            shows_name: false,
            hidden: &[],
        };
        change(expression, &request, &[("key".to_owned(), "'example.test/zone'".to_owned())])
    }

    #[test]
    fn objects_and_patches_are_values() {
        assert_eq!(
            of("Object{spec: Object.spec{hostNetwork: !object.spec.hostNetwork}}"),
            Change::Of(json!({"spec": {"hostNetwork": false}}))
        );
        assert_eq!(
            of("Object{spec: Object.spec{containers: object.spec.containers.map(c,
                Object.spec.containers{name: c.name, env: [Object.spec.containers.env{name: 'A', value: 'b'}]})}}"),
            Change::Of(json!({"spec": {"containers": [
                {"name": "a", "env": [{"name": "A", "value": "b"}]}, {"name": "b", "env": [{"name": "A", "value": "b"}]},
            ]}}))
        );
        assert_eq!(
            of("has(object.spec.nodeSelector) ? [] : [JSONPatch{op: 'add', path: '/spec/nodeSelector', value: {}}] +
                [JSONPatch{op: 'add', path: '/spec/nodeSelector/' + jsonpatch.escapeKey(variables.key), value: '1'}]"),
            Change::Of(json!([
                {"op": "add", "path": "/spec/nodeSelector", "value": {}},
                {"op": "add", "path": "/spec/nodeSelector/example.test~1zone", "value": "1"},
            ]))
        );
        // What is written may be what is not shown.
        assert_eq!(
            of(
                "[JSONPatch{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{operator: 'Exists'}}]"
            ),
            Change::Of(
                json!([{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}])
            )
        );
    }

    #[test]
    fn what_is_not_shown_is_unknown_and_what_is_missing_fails() {
        assert_eq!(of("Object{spec: Object.spec{nodeName: object.spec.nodeName}}"), Change::Unknown);
        assert_eq!(of("Object{metadata: Object.metadata{labels: params.data}}"), Change::Unknown);
        assert_eq!(of("not an expression"), Change::Unknown);
        assert_eq!(
            of("Object{metadata: Object.metadata{labels: {'a': object.metadata.labels.absent}}}"),
            Change::Fails
        );
    }
}

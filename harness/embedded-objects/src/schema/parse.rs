//! Parses the table of types.

use std::collections::HashMap;

use super::types::{Field, Instead, ListType, Schema, Shape, Type, TypeId};

/// Parses the whole table.
///
/// # Panics
/// When the table is invalid. It is part of the program, and the tests parse it.
pub(super) fn parse(text: &'static str) -> Schema {
    let lines = || text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut by_name = HashMap::new();
    for line in lines().filter(|line| !line.starts_with(' ')) {
        let name = line.split(' ').next().expect("a type line begins with its name");
        by_name.insert(name, TypeId(by_name.len()));
    }
    let mut types: Vec<Type> = Vec::new();
    for line in lines() {
        let mut words = line.split(' ');
        if let Some(rest) = line.strip_prefix(' ') {
            let field = field(rest, &by_name);
            types.last_mut().expect("a field line follows a type line").fields.push(field);
        } else {
            let name = words.next().expect("a type line begins with its name");
            let flags: Vec<&str> = words.collect();
            types.push(Type {
                name,
                fields: Vec::new(),
                flat: Vec::new(),
                by_number: Vec::new(),
                atomic: flags.contains(&"atomic"),
                typed: flags.contains(&"typed"),
                open: false,
                by_json: HashMap::new(),
            });
        }
    }
    let flat: Vec<Vec<Field>> = (0..types.len()).map(|at| flatten(&types, at)).collect();
    for (ty, flat) in types.iter_mut().zip(flat) {
        ty.by_json = flat.iter().enumerate().map(|(at, field)| (field.json, at)).collect();
        ty.flat = flat;
        ty.by_number = ty.fields.iter().filter(|field| field.number > 0).cloned().collect();
        ty.by_number.sort_by_key(|field| field.number);
    }
    Schema { types, by_name }
}

fn flatten(types: &[Type], at: usize) -> Vec<Field> {
    let mut flat = Vec::new();
    for field in &types[at].fields {
        match &field.shape {
            Shape::Struct(inner) if field.inline => flat.extend(flatten(types, inner.0)),
            _ => flat.push(field.clone()),
        }
    }
    flat
}

fn field(line: &'static str, names: &HashMap<&'static str, TypeId>) -> Field {
    let mut words = line.split(' ');
    let mut next = || words.next().expect("a field line has number, Go name, JSON name and shape");
    let (number, go, json, shape_text) = (next(), next(), next(), next());
    let mut field = Field {
        number: number.parse().unwrap_or(0),
        go,
        omit_empty: false,
        ..Field::optional(json, shape(shape_text, names))
    };
    for flag in words {
        match flag.split_once('=').unwrap_or((flag, "")) {
            ("o", _) => field.omit_empty = true,
            ("z", _) => field.omit_zero = true,
            ("inline", _) => field.inline = true,
            ("m", _) => field.held = true,
            ("a", _) => field.atomic = true,
            ("p", strategies) => field.patch_strategies = strategies.split(',').collect(),
            ("k", key) => field.merge_key = Some(key),
            ("l", "map") => field.list_type = ListType::Map,
            ("l", "set") => field.list_type = ListType::Set,
            ("l", _) => field.list_type = ListType::Atomic,
            ("K", keys) => field.list_keys = keys.split('+').collect(),
            ("d", default) => field.default = Some(default),
            (other, _) => panic!("the table of types has an unknown flag {other:?} in {line:?}"),
        }
    }
    field
}

fn shape(text: &'static str, names: &HashMap<&'static str, TypeId>) -> Shape {
    if let Some(inner) = text.strip_prefix('*') {
        return Shape::Pointer(Box::new(shape(inner, names)));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Shape::List(Box::new(shape(inner, names)));
    }
    if let Some(inner) = text.strip_prefix("{}") {
        return Shape::Map(Box::new(shape(inner, names)));
    }
    if let Some(name) = text.strip_prefix('@') {
        let id = names.get(name).unwrap_or_else(|| panic!("the table of types lacks {name}"));
        return Shape::Struct(*id);
    }
    match text.split_once(':').unwrap_or((text, "")) {
        ("s", "") => Shape::Text("string"),
        ("s", go) => Shape::Text(go),
        ("i32", "") => Shape::Int(32, "int32"),
        ("i32", go) => Shape::Int(32, go),
        ("i64", "") => Shape::Int(64, "int64"),
        ("i64", go) => Shape::Int(64, go),
        ("f64", _) => Shape::Float,
        ("b", _) => Shape::Bool,
        ("y", _) => Shape::Bytes,
        ("time", _) => Shape::Time,
        ("microtime", _) => Shape::MicroTime,
        ("quantity", _) => Shape::Quantity,
        ("intorstring", _) => Shape::IntOrString,
        ("raw", _) => Shape::Raw,
        ("jsonschema", "") => Shape::JsonSchema(Instead::Nothing),
        ("jsonschema", "list") => Shape::JsonSchema(Instead::List),
        ("jsonschema", "bool") => Shape::JsonSchema(Instead::Bool),
        ("jsonschema", "texts") => Shape::JsonSchema(Instead::Texts),
        ("fields", _) => Shape::FieldsV1,
        _ => panic!("the table of types has an unknown shape {text:?}"),
    }
}

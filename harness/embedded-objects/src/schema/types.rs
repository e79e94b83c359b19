//! The entries of the table of types.

use std::collections::HashMap;

/// The id of a struct type: its position in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(pub(super) usize);

/// What a field for an OpenAPI v3 schema may contain instead of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// Nothing: Go's `JSONSchemaProps`.
    Nothing,
    /// A list of schemas: `JSONSchemaPropsOrArray`.
    List,
    /// True or false: `JSONSchemaPropsOrBool`.
    Bool,
    /// A list of strings: `JSONSchemaPropsOrStringArray`.
    Texts,
}

/// The type of a field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A string; decoding errors contain the Go type's name.
    Text(&'static str),
    /// A whole number of 32 or 64 bits, with its Go type's name.
    Int(u8, &'static str),
    /// A floating point number.
    Float,
    /// True or false.
    Bool,
    /// Bytes, base64 in JSON.
    Bytes,
    /// A point in time of whole seconds.
    Time,
    /// A point in time with microseconds.
    MicroTime,
    /// A resource quantity.
    Quantity,
    /// A number or a string.
    IntOrString,
    /// Any JSON; each member has its own owner.
    Raw,
    /// An OpenAPI v3 schema, or what is allowed instead of it. It differs from any JSON only in protobuf.
    JsonSchema(Instead),
    /// The field set of managedFields.
    FieldsV1,
    /// A struct.
    Struct(TypeId),
    /// A list.
    List(Box<Shape>),
    /// A map with string keys.
    Map(Box<Shape>),
    /// A value that may be missing even if its zero value has a meaning.
    Pointer(Box<Shape>),
}

impl Shape {
    /// The shape without its pointer.
    pub fn bare(&self) -> &Shape {
        match self {
            Shape::Pointer(inner) => inner,
            other => other,
        }
    }
}

/// How server-side apply sees a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// One owner owns the whole list.
    Atomic,
    /// Each item is owned by its value.
    Set,
    /// Each item is owned by its keys.
    Map,
}

/// One field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// The field's number in protobuf; zero if it is not in protobuf.
    pub number: u32,
    /// The field's name in Go.
    pub go: &'static str,
    /// The field's name in JSON.
    pub json: &'static str,
    /// The type of its value.
    pub shape: Shape,
    /// Whether its members belong to the surrounding struct in JSON.
    pub inline: bool,
    /// Whether protobuf has the list in a message of its own, as for a named slice type in Go.
    pub held: bool,
    /// Whether it is omitted when empty.
    pub omit_empty: bool,
    /// Whether it is omitted when zero.
    pub omit_zero: bool,
    /// The strategies of a strategic merge patch: `merge`, `replace`, `retainKeys`.
    pub patch_strategies: Vec<&'static str>,
    /// The key that a strategic merge patch uses to merge a list of structs.
    pub merge_key: Option<&'static str>,
    /// How server-side apply sees the list.
    pub list_type: ListType,
    /// The keys of the items of a list of type map.
    pub list_keys: Vec<&'static str>,
    /// Whether server-side apply treats the struct or map as a whole.
    pub atomic: bool,
    /// The default of a list's key that is missing.
    pub default: Option<&'static str>,
}

/// One struct type.
#[derive(Debug)]
pub struct Type {
    /// Its name in the table, such as `core/v1.Node`.
    pub name: &'static str,
    /// Its fields in protobuf, in Go's order.
    pub fields: Vec<Field>,
    /// Its fields in JSON: those of inline structs are in their place.
    pub flat: Vec<Field>,
    /// The fields that protobuf has, by number.
    pub by_number: Vec<Field>,
    /// Whether server-side apply treats it as a whole.
    pub atomic: bool,
    /// Whether it has apiVersion and kind.
    pub typed: bool,
    /// Whether it may contain fields that it does not name. No built-in type may.
    pub open: bool,
    pub(super) by_json: HashMap<&'static str, usize>,
}

impl Field {
    /// A field that is not in protobuf, left out when empty.
    pub(crate) fn optional(json: &'static str, shape: Shape) -> Field {
        Field {
            number: 0,
            go: json,
            json,
            shape,
            inline: false,
            held: false,
            omit_empty: true,
            omit_zero: false,
            patch_strategies: Vec::new(),
            merge_key: None,
            list_type: ListType::Atomic,
            list_keys: Vec::new(),
            atomic: false,
            default: None,
        }
    }
}

impl Type {
    /// A type with these fields that is not a protobuf message.
    pub(crate) fn of_fields(flat: Vec<Field>) -> Type {
        let by_json = flat.iter().enumerate().map(|(at, field)| (field.json, at)).collect();
        let (fields, by_number) = (Vec::new(), Vec::new());
        Type { name: "", fields, flat, by_number, atomic: false, typed: false, open: false, by_json }
    }

    /// The name of the Go struct alone.
    pub fn go_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Whether it can be sent as protobuf.
    pub fn in_protobuf(&self) -> bool {
        self.fields.is_empty() || self.fields.iter().any(|field| field.number > 0)
    }

    /// The field with this JSON name.
    pub fn field(&self, json: &str) -> Option<&Field> {
        self.by_json.get(json).and_then(|&at| self.flat.get(at))
    }
}

/// All types.
#[derive(Debug)]
pub struct Schema {
    pub(super) types: Vec<Type>,
    pub(super) by_name: HashMap<&'static str, TypeId>,
}

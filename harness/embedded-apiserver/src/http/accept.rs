//! The form in which the client wants its answer.

use embedded_tables::Include;

use embedded_state::query::Query;

/// An encoding of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl Encoding {
    /// All encodings, the default first.
    pub(crate) const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// The media type.
    #[must_use]
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The encoding of a request's body according to its `Content-Type`; an empty one means JSON.
    #[must_use]
    pub(crate) fn of_content(content_type: &str) -> Option<Self> {
        let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if media.is_empty() {
            return Some(Self::Json);
        }
        Self::ALL.into_iter().find(|encoding| encoding.media_type() == media)
    }
}

/// The shape into which an object is converted before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The object itself.
    Object,
    /// A table of columns for people (`as=Table`).
    Table,
    /// The metadata alone (`as=PartialObjectMetadata`).
    Metadata,
    /// A list of metadata (`as=PartialObjectMetadataList`).
    MetadataList,
}

/// The negotiated form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// The encoding.
    pub encoding: Encoding,
    /// The shape of the objects.
    pub shape: Shape,
    /// With line breaks and indents, for people.
    pub pretty: bool,
    /// Which part of an object is in its row of a table.
    pub(crate) include: Include,
    /// Whether the client accepts a compressed answer.
    pub(crate) gzip: bool,
}

impl Form {
    /// The form with the details from the request's parameters and the client's user agent.
    #[must_use]
    pub(crate) fn refined(self, query: &Query, user_agent: &str, accept_encoding: &str) -> Self {
        let gzip = accept_encoding.split(',').any(|coding| coding.trim() == "gzip");
        let pretty = match query.get("pretty") {
            Some(text) => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
            None => ["curl", "Wget", "Mozilla/5.0"].iter().any(|human| user_agent.starts_with(human)),
        };
        let include = query.get("includeObject").and_then(Include::parse).unwrap_or_default();
        Self { pretty, include, gzip, ..self }
    }

    /// The object itself, as JSON.
    pub(crate) const PLAIN: Self = Self {
        encoding: Encoding::Json,
        shape: Shape::Object,
        pretty: false,
        include: Include::Metadata,
        gzip: false,
    };
}

/// One clause of an `Accept` header.
struct Clause<'a> {
    media: String,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header
        .split(',')
        .filter(|clause| !clause.trim().is_empty())
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<(&str, &str)> =
                parts.filter_map(|part| part.split_once('=')).map(|(k, v)| (k.trim(), v.trim())).collect();
            let quality = parameters.iter().find(|(key, _)| *key == "q").and_then(|(_, q)| q.parse().ok());
            Clause { media, parameters, quality: quality.unwrap_or(1.0) }
        })
        .collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

fn accepts(clause: &str, media_type: &str) -> bool {
    clause == media_type
        || clause == "*/*"
        || clause.strip_suffix("/*").is_some_and(|kind| media_type.split('/').next() == Some(kind))
}

/// Negotiates the form of a resource's answer; `None` if the server has nothing that the client accepts.
/// `has_protobuf` says whether the objects themselves can be sent as protobuf; their metadata always can.
#[must_use]
pub(crate) fn negotiate(header: Option<&str>, has_protobuf: impl Fn() -> bool) -> Option<Form> {
    let header = header.unwrap_or_default();
    if header.trim().is_empty() {
        return Some(Form::PLAIN);
    }
    for clause in clauses(header) {
        for encoding in Encoding::ALL {
            if !accepts(&clause.media, encoding.media_type()) {
                continue;
            }
            let value = |wanted: &str| {
                clause.parameters.iter().find(|(key, _)| *key == wanted).map_or("", |(_, value)| *value)
            };
            let shape = match (value("as"), value("g"), value("v")) {
                ("", "", "") => Shape::Object,
                ("Table", "meta.k8s.io", "v1" | "v1beta1") if encoding != Encoding::Protobuf => Shape::Table,
                ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => Shape::Metadata,
                ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => Shape::MetadataList,
                _ => continue,
            };
            if encoding == Encoding::Protobuf && shape == Shape::Object && !has_protobuf() {
                continue;
            }
            return Some(Form { encoding, shape, ..Form::PLAIN });
        }
    }
    None
}

/// Whether a header names a media type that the server has, in any form.
#[must_use]
pub(crate) fn knows_a_media_type(header: &str) -> bool {
    let known = |clause: &Clause<'_>| {
        Encoding::ALL.iter().any(|encoding| accepts(&clause.media, encoding.media_type()))
    };
    clauses(header).iter().any(known)
}

/// The encoding of discovery in the aggregated form; `None` if the client wants the plain form.
#[must_use]
pub(crate) fn aggregated(header: Option<&str>) -> Option<Encoding> {
    for clause in clauses(header.unwrap_or_default()) {
        let value = |wanted: &str| {
            clause.parameters.iter().find(|(key, _)| *key == wanted).map_or("", |(_, value)| *value)
        };
        for encoding in Encoding::ALL {
            if !accepts(&clause.media, encoding.media_type()) {
                continue;
            }
            match (value("g"), value("v"), value("as")) {
                ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => return Some(encoding),
                ("", "", "") => return None,
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_both_sides_know_is_taken() {
        let form = |header| negotiate(Some(header), || true).map(|form| (form.encoding, form.shape));
        assert_eq!(form("*/*"), Some((Encoding::Json, Shape::Object)));
        assert_eq!(
            form("application/vnd.kubernetes.protobuf,application/json"),
            Some((Encoding::Protobuf, Shape::Object))
        );
        assert_eq!(
            form("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"),
            Some((Encoding::Json, Shape::Metadata))
        );
        assert_eq!(
            form("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
            Some((Encoding::Json, Shape::Table))
        );
        assert_eq!(
            form("application/json;as=Strange;v=v1;g=x,application/yaml"),
            Some((Encoding::Yaml, Shape::Object))
        );
        let without = |header| negotiate(Some(header), || false).map(|form| form.encoding);
        assert_eq!(without("application/vnd.kubernetes.protobuf,application/json"), Some(Encoding::Json));
        assert_eq!(without("application/vnd.kubernetes.protobuf"), None);
        assert_eq!(
            without("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
            Some(Encoding::Protobuf)
        );
        assert_eq!(form("text/html"), None);
        let v2 = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        assert_eq!(
            aggregated(Some(&format!("application/json;{v2},application/json"))),
            Some(Encoding::Json)
        );
        let protobuf = Encoding::Protobuf.media_type();
        assert_eq!(aggregated(Some(&format!("{protobuf};{v2}"))), Some(Encoding::Protobuf));
        assert_eq!(aggregated(Some(&format!("{protobuf},application/json;{v2}"))), None);
        assert_eq!(form("application/yaml;q=0.5, application/json"), Some((Encoding::Json, Shape::Object)));
    }
}

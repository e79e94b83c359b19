//! Turns YAML events into trees of values with their places, document by document.

use super::node::{Entry, Node, Style, Value};
use super::scalar::resolve;
use super::source::{Place, Problem, Severity, Source};
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, StructureStyle};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Maximum number of values in one text once its anchors are expanded; a 10 MB manifest has about one million.
const MOST_VALUES: usize = 4_000_000;
/// Maximum number of values that come from anchors; hand-written manifests have a few hundred.
const MOST_BORROWED: usize = 200_000;
/// Maximum number of problems that are reported for one text.
const MOST_PROBLEMS: usize = 20;

/// What is at a place where YAML has a value.
fn kind_of(event: &Event<'_>) -> &'static str {
    match event {
        Event::SequenceEnd { .. } => "end of a sequence",
        Event::MappingEnd { .. } => "end of a mapping",
        Event::DocumentStart { .. } | Event::DocumentEnd { .. } => "boundary of a document",
        _ => "end of the text",
    }
}

/// The documents of a text without empty ones, and what is wrong with the others.
pub(super) fn documents(source: &Source) -> (Vec<Node>, Vec<Problem>) {
    let options = granit_parser::options! { emit_comments: false };
    let parser = Parser::new_from_str_with_options(&source.text, options);
    let mut reading = Reading {
        source,
        parser,
        anchors: HashMap::new(),
        documents: 0,
        is_unread: false,
        values: 0,
        borrowed: 0,
        problems: Vec::new(),
    };
    let mut found = Vec::new();
    if let Some(line) = directive(&source.text) {
        let what = String::from("begins with a YAML directive, at which kubectl stops to read the file");
        reading.report(Fault { line, column: 1, what, hint: "remove the line" });
    }
    loop {
        match reading.document() {
            Ok(Some(node)) if reading.is_unread => reading.ignore(&node),
            Ok(Some(node)) => found.extend((!node.is_null()).then_some(node)),
            Ok(None) => break,
            Err(fault) => {
                reading.report(fault);
                let large = reading.values > MOST_VALUES || reading.borrowed > MOST_BORROWED;
                let enough = reading.problems.len() >= MOST_PROBLEMS || large;
                // Documents after a broken one are read too, so that one run shows all problems.
                if enough || !matches!(reading.parser.proceed_next_document(), Ok(true)) {
                    break;
                }
            }
        }
    }
    (found, reading.problems)
}

/// The line of the first directive at the beginning of a document. kubectl cuts a file at its lines `---` before it reads the
/// YAML, so the directive becomes a document of its own (`YAMLReader` in apimachinery); one after `...` does not matter.
fn directive(text: &str) -> Option<u32> {
    let mut begins = true;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("---") {
            begins = true;
        } else if begins && line.starts_with('%') {
            return u32::try_from(at + 1).ok();
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            begins = false;
        }
    }
    None
}

struct Reading<'t> {
    source: &'t Source,
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Rc<Node>>,
    documents: usize,
    /// Whether the document begins after a line `...` without a line `---`. kubectl cuts a file at its lines `---`, and reads
    /// the first document of each part.
    is_unread: bool,
    values: usize,
    borrowed: usize,
    problems: Vec<Problem>,
}

/// Why a document cannot be read.
struct Fault {
    line: u32,
    column: u32,
    what: String,
    hint: &'static str,
}

impl From<ScanError> for Fault {
    fn from(error: ScanError) -> Fault {
        let (line, column) = place(error.marker());
        let hint = "fix the YAML; 'kubectl apply --dry-run=client' shows the same place";
        Fault { line, column, what: format!("is not YAML: {}", error.info()), hint }
    }
}

fn place(marker: &Marker) -> (u32, u32) {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    (number(marker.line()).max(1), number(marker.col()).saturating_add(1))
}

fn fault(span: &Span, what: String, hint: &'static str) -> Fault {
    let (line, column) = place(&span.start);
    Fault { line, column, what, hint }
}

impl<'t> Reading<'t> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, Fault> {
        self.parser.next_event().transpose().map_err(Fault::from)
    }

    fn document(&mut self) -> Result<Option<Node>, Fault> {
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart => {}
                Event::DocumentStart(is_explicit, ..) => {
                    self.anchors.clear();
                    self.is_unread = self.documents > 0 && !is_explicit;
                    self.documents += 1;
                }
                Event::DocumentEnd => {}
                Event::StreamEnd => return Ok(None),
                event => return self.node(event, &span).map(Some),
            }
        }
        Ok(None)
    }

    fn count(&mut self, span: &Span) -> Result<(), Fault> {
        self.values += 1;
        if self.values > MOST_VALUES {
            let what = format!("contains more than {MOST_VALUES} values");
            return Err(fault(span, what, "split the file, or remove objects that do not affect the boot"));
        }
        Ok(())
    }

    /// Counts the values that an anchor adds, before they are copied.
    fn borrow(&mut self, span: &Span, size: usize) -> Result<(), Fault> {
        self.borrowed = self.borrowed.saturating_add(size);
        if self.borrowed > MOST_BORROWED {
            let what = format!("contains more than {MOST_BORROWED} values once its anchors are expanded");
            return Err(fault(span, what, "use fewer anchors and aliases"));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'t>, span: &Span) -> Result<Node, Fault> {
        self.count(span)?;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let as_text = tag.is_some_and(|tag| tag.core_suffix() == Some("str"));
                let (value, style) = match style {
                    ScalarStyle::Plain if !as_text => (resolve(&text), Style::Plain),
                    ScalarStyle::Plain => (Value::Text(text.into_owned()), Style::Plain),
                    ScalarStyle::Literal | ScalarStyle::Folded => {
                        (Value::Text(text.into_owned()), Style::Lines)
                    }
                    _ => (Value::Text(text.into_owned()), Style::Quoted),
                };
                let end = bytes(&span.end).max(bytes(&span.start));
                Ok(self.remember(anchor, node(value, span, end, style)))
            }
            Event::SequenceStart(style, anchor, _) => self.list(span, style, anchor),
            Event::MappingStart(style, anchor, _) => self.map(span, style, anchor),
            Event::Alias(id) => self.alias(id, span),
            other => Err(fault(span, format!("is not YAML: unexpected {}", kind_of(&other)), "fix the YAML")),
        }
    }

    fn remember(&mut self, anchor: usize, node: Node) -> Node {
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::new(node.clone()));
        }
        node
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<Node, Fault> {
        let Some(target) = self.anchors.get(&id).cloned() else {
            let what = String::from("an alias refers to a value that contains it, or to another document");
            return Err(fault(span, what, "write the value out"));
        };
        self.borrow(span, size(&target))?;
        Ok(borrowed(Node::clone(&target)))
    }

    fn list(&mut self, span: &Span, style: StructureStyle, anchor: usize) -> Result<Node, Fault> {
        let mut items = Vec::new();
        let mut end = bytes(&span.end);
        loop {
            match self.next()? {
                Some((Event::SequenceEnd, last)) => {
                    if style == StructureStyle::Flow {
                        end = bytes(&last.end);
                    }
                    break;
                }
                Some((event, at)) => {
                    let alias = matches!(event, Event::Alias(_));
                    let item = self.node(event, &at)?;
                    end = end.max(if alias { bytes(&at.end) } else { item.bytes.end });
                    items.push(item);
                }
                None => return Err(fault(span, String::from("a list does not end"), "fix the YAML")),
            }
        }
        let style = if style == StructureStyle::Flow { Style::Flow } else { Style::Block };
        Ok(self.remember(anchor, node(Value::List(items), span, end, style)))
    }

    fn map(&mut self, span: &Span, style: StructureStyle, anchor: usize) -> Result<Node, Fault> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut keys = HashSet::new();
        let mut merged: Vec<Node> = Vec::new();
        let mut end = bytes(&span.end);
        loop {
            let (event, at) = match self.next()? {
                Some((Event::MappingEnd, last)) => {
                    if style == StructureStyle::Flow {
                        end = bytes(&last.end);
                    }
                    break;
                }
                Some(next) => next,
                None => return Err(fault(span, String::from("a map does not end"), "fix the YAML")),
            };
            let plain = matches!(&event, Event::Scalar(_, ScalarStyle::Plain, ..));
            let key = self.node(event, &at)?;
            let Some(text) = key_text(&key, &self.source.text) else {
                let what = format!("a key is {}", key.kind());
                let hint = "keys of manifests are strings; render templates first ('helm template', 'kustomize build')";
                return Err(fault(&at, what, hint));
            };
            let (event, value_at) = self
                .next()?
                .ok_or_else(|| fault(&at, format!("the key '{text}' has no value"), "fix the YAML"))?;
            let alias = matches!(event, Event::Alias(_));
            let value = self.node(event, &value_at)?;
            end = end.max(if alias { bytes(&value_at.end) } else { value.bytes.end }).max(bytes(&at.end));
            if plain && text == "<<" {
                merged.push(value);
                continue;
            }
            let (line, column) = place(&at.start);
            if !keys.insert(text.clone()) {
                // So does kubectl; other clients refuse the document.
                self.problems.push(Problem {
                    place: Place { file: self.source.name.clone(), line, column },
                    severity: Severity::Ignored,
                    what: format!("the key '{text}' is given twice; the last one counts"),
                    hint: String::from("keep one of them"),
                });
                entries.retain(|entry| entry.key != text);
            }
            entries.push(Entry { key: text, key_bytes: key.bytes, line, column, value });
        }
        for entry in merged.iter().flat_map(merge_sources).flat_map(Node::entries) {
            if keys.insert(entry.key.clone()) {
                self.borrow(span, size(&entry.value))?;
                entries.push(Entry { value: borrowed(entry.value.clone()), ..entry.clone() });
            }
        }
        let style = if style == StructureStyle::Flow { Style::Flow } else { Style::Block };
        Ok(self.remember(anchor, node(Value::Map(entries), span, end, style)))
    }

    fn ignore(&mut self, document: &Node) {
        self.problems.push(Problem {
            place: Place { file: self.source.name.clone(), line: document.line, column: document.column },
            severity: Severity::Ignored,
            what: String::from(
                "kubectl does not read this document, as it begins after '...' and not after '---'",
            ),
            hint: String::from("write a line '---' before it"),
        });
    }

    fn report(&mut self, fault: Fault) {
        let place = Place { file: self.source.name.clone(), line: fault.line, column: fault.column };
        let lines = || self.source.text.lines().skip(fault.line.saturating_sub(2) as usize).take(2);
        // The line itself, or the one before it: an action on a line of its own ends up in the next key.
        let (what, hint) = match lines().find(|line| line.contains("{{")) {
            Some(line) => (
                format!("the template is not rendered: {}", shorten(line.trim())),
                "render first: 'helm template ... | ccm-conformance bootstrap check -'",
            ),
            None if fault.what.contains("flow mapping") && lines().any(|line| line.contains("${")) => {
                (fault.what, "quote '${...}': its brace ends the mapping")
            }
            None => (fault.what, fault.hint),
        };
        self.problems.push(Problem { place, severity: Severity::Unreadable, what, hint: hint.to_owned() });
    }
}

/// The first eighty characters.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

fn bytes(marker: &Marker) -> usize {
    marker.byte_offset().unwrap_or_default()
}

fn node(value: Value, span: &Span, end: usize, style: Style) -> Node {
    let (line, column) = place(&span.start);
    let start = bytes(&span.start);
    Node { value, bytes: start..end.max(start), line, column, style, borrowed: false }
}

/// Keys keep their spelling: `on` stays `on`.
fn key_text(key: &Node, text: &str) -> Option<String> {
    match &key.value {
        Value::Text(text) => Some(text.clone()),
        Value::List(_) | Value::Map(_) => None,
        _ if key.borrowed => key.scalar(),
        _ => text.get(key.bytes.clone()).map(|spelling| spelling.trim().to_owned()),
    }
}

fn merge_sources(value: &Node) -> Vec<&Node> {
    match &value.value {
        Value::List(items) => items.iter().collect(),
        _ => vec![value],
    }
}

fn size(node: &Node) -> usize {
    match &node.value {
        Value::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Map(entries) => 1 + entries.iter().map(|entry| size(&entry.value)).sum::<usize>(),
        _ => 1,
    }
}

fn borrowed(mut node: Node) -> Node {
    node.borrowed = true;
    node.value = match node.value {
        Value::List(items) => Value::List(items.into_iter().map(borrowed).collect()),
        Value::Map(entries) => Value::Map(
            entries.into_iter().map(|entry| Entry { value: borrowed(entry.value), ..entry }).collect(),
        ),
        other => other,
    };
    node
}

//! Values in XML, by a small subset of XPath.

use crate::pattern::RuleError;
use quick_xml::Reader;
use quick_xml::events::Event;

/// Elements by their names, without prefixes: from the root (`/a/b`) or anywhere (`//b`); of these an attribute
/// (`//b/@c`) or the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Xpath {
    anywhere: bool,
    steps: Vec<String>,
    attribute: Option<String>,
}

impl Xpath {
    pub(crate) fn parse(text: &str) -> Result<Xpath, RuleError> {
        let refused = || RuleError::Xpath(text.to_owned());
        let (anywhere, rest) = match text.strip_prefix("//") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('/').ok_or_else(refused)?),
        };
        let mut steps: Vec<String> = rest.split('/').map(str::to_owned).collect();
        if steps.last().is_some_and(|last| last == "text()") {
            steps.pop();
        }
        let attribute = match steps.last().and_then(|last| last.strip_prefix('@')) {
            Some(name) => {
                let name = name.to_owned();
                steps.pop();
                Some(name)
            }
            None => None,
        };
        let is_name = |name: &String| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if steps.is_empty() || !steps.iter().chain(&attribute).all(is_name) {
            return Err(refused());
        }
        Ok(Xpath { anywhere, steps, attribute })
    }

    /// All values, as far as the text is valid XML.
    pub(crate) fn values(&self, xml: &[u8]) -> Vec<String> {
        let mut reader = Reader::from_reader(xml);
        let (mut path, mut found, mut text): (Vec<String>, Vec<String>, String) = Default::default();
        loop {
            match reader.read_event() {
                Ok(Event::Start(element)) => {
                    path.push(local(element.local_name().as_ref()));
                    self.attribute_of(&path, &element, &mut found);
                    text.clear();
                }
                Ok(Event::Empty(element)) => {
                    path.push(local(element.local_name().as_ref()));
                    self.attribute_of(&path, &element, &mut found);
                    path.pop();
                }
                Ok(Event::Text(part)) => text.push_str(&part.decode().unwrap_or_default()),
                Ok(Event::CData(part)) => text.push_str(&String::from_utf8_lossy(&part)),
                Ok(Event::GeneralRef(entity)) => text.push_str(&entity_text(&entity)),
                Ok(Event::End(_)) => {
                    if self.attribute.is_none() && self.is_at(&path) && !text.trim().is_empty() {
                        found.push(text.trim().to_owned());
                    }
                    text.clear();
                    path.pop();
                }
                Ok(Event::Eof) | Err(_) => return found,
                Ok(_) => {}
            }
        }
    }

    fn is_at(&self, path: &[String]) -> bool {
        if self.anywhere { path.ends_with(&self.steps) } else { *path == *self.steps }
    }

    fn attribute_of(
        &self,
        path: &[String],
        element: &quick_xml::events::BytesStart<'_>,
        found: &mut Vec<String>,
    ) {
        let Some(wanted) = self.attribute.as_ref().filter(|_| self.is_at(path)) else { return };
        for attribute in element.attributes().flatten() {
            if local(attribute.key.local_name().as_ref()) == *wanted {
                found.push(String::from_utf8_lossy(&attribute.value).into_owned());
            }
        }
    }
}

fn local(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn entity_text(name: &[u8]) -> String {
    let known = match name {
        b"amp" => "&",
        b"lt" => "<",
        b"gt" => ">",
        b"quot" => "\"",
        b"apos" => "'",
        _ => "",
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(path: &str, xml: &str) -> Vec<String> {
        Xpath::parse(path).expect("a path").values(xml.as_bytes())
    }

    #[test]
    fn names_lead_to_texts_and_attributes() {
        let xml = r#"<?xml version="1.0"?><R xmlns="urn:x"><L><item id="7"><Name>a &amp; b</Name></item>
            <item id="8"><Name> c </Name></item></L><Name/></R>"#;
        assert_eq!(values("/R/L/item/Name", xml), ["a & b", "c"]);
        assert_eq!(values("//item/@id", xml), ["7", "8"]);
        assert_eq!(values("//Name/text()", xml), ["a & b", "c"]);
        assert!(values("/L", xml).is_empty() && values("//Name", "{}").is_empty());
    }

    #[test]
    fn unsupported_expressions_are_refused() {
        for bad in ["Name", "/", "//a[1]", "/a/b:c", "/a//b", "/@x"] {
            assert!(matches!(Xpath::parse(bad), Err(RuleError::Xpath(_))), "{bad}");
        }
    }
}

//! Queries of the `hcloud` dialect: filters, label selectors, order and pages.

use super::super::{Answer, Request};
use super::errors::Fail;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;

/// Items in a page unless a call says otherwise.
const USUAL_PER_PAGE: u64 = 25;
/// Greatest number of items a call may ask for.
const GREATEST_PER_PAGE: u64 = 50;

/// The query of a call.
#[derive(Debug)]
pub(super) struct Query {
    filters: Vec<(String, String)>,
    sort: Vec<(String, Direction)>,
    page: u64,
    per_page: u64,
    selector: Option<Selector>,
    /// What is wrong with it.
    pub(super) problem: Option<Fail>,
    /// A parameter that is not known.
    pub(super) unknown: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

impl Query {
    /// The query of a list with these filters, some of which may be given many times, that can be sorted by these keys.
    pub(super) fn list(request: &Request, filters: &[&str], sorts: &[&str]) -> Query {
        let mut query = Query::empty();
        for (key, value) in request.query() {
            match key.as_str() {
                "page" => query.page = query.number(&key, &value, u64::MAX),
                "per_page" => query.per_page = query.number(&key, &value, GREATEST_PER_PAGE),
                "sort" => query.add_sort(&value, sorts),
                "label_selector" if filters.contains(&"label_selector") => query.add_selector(value),
                known if filters.contains(&known) => query.filters.push((key, value)),
                _ => query.unknown = Some(format!("the parameter {key:.40} of the query")),
            }
        }
        query
    }

    /// The query of a call that has none.
    pub(super) fn none(request: &Request) -> Query {
        let mut query = Query::empty();
        query.unknown =
            request.query().next().map(|(key, _)| format!("the parameter {key:.40} of the query"));
        query
    }

    fn empty() -> Query {
        Query {
            filters: Vec::new(),
            sort: Vec::new(),
            page: 1,
            per_page: USUAL_PER_PAGE,
            selector: None,
            problem: None,
            unknown: None,
        }
    }

    fn number(&mut self, key: &str, value: &str, greatest: u64) -> u64 {
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        match value.parse::<u64>() {
            Ok(number) if digits && (1..=greatest).contains(&number) => number,
            _ => {
                let range = if greatest == u64::MAX {
                    "1 or more".to_owned()
                } else {
                    format!("from 1 to {greatest}")
                };
                self.problem.get_or_insert(Fail::field(key, &format!("must be a number, {range}")));
                1
            }
        }
    }

    fn add_sort(&mut self, value: &str, sorts: &[&str]) {
        let (key, direction) = match value.split_once(':') {
            None => (value, Some(Direction::Ascending)),
            Some((key, "asc")) => (key, Some(Direction::Ascending)),
            Some((key, "desc")) => (key, Some(Direction::Descending)),
            Some((key, _)) => (key, None),
        };
        match direction.filter(|_| sorts.contains(&key)) {
            Some(direction) => self.sort.push((key.to_owned(), direction)),
            None => {
                self.problem.get_or_insert(Fail::field("sort", "is no field this list can be sorted by"));
            }
        }
    }

    fn add_selector(&mut self, value: String) {
        match Selector::parse(&value) {
            Some(selector) => self.selector = Some(selector),
            None => {
                self.problem.get_or_insert(Fail::field("label_selector", "is no label selector"));
            }
        }
        self.filters.push(("label_selector".to_owned(), value));
    }

    /// All filters, as they were given.
    pub(super) fn filters(&self) -> &[(String, String)] {
        &self.filters
    }

    /// Whether an object fits: a filter given many times is met by any of its values.
    pub(super) fn fits(&self, key: &str, value: &str) -> bool {
        let mut wanted =
            self.filters.iter().filter(|(known, _)| known == key).map(|(_, wanted)| wanted).peekable();
        wanted.peek().is_none() || wanted.any(|wanted| wanted == value)
    }

    /// Whether an object with these labels fits.
    pub(super) fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.matches(label))
    }

    /// The value a label must have, if the selector says so.
    pub(super) fn wanted_label(&self, key: &str) -> Option<&str> {
        self.selector.iter().flat_map(|selector| &selector.0).find_map(|term| match term {
            Term::In(known, values) if known == key && values.len() == 1 => {
                values.first().map(String::as_str)
            }
            _ => None,
        })
    }

    /// One page of the list `items` under the name `key`, in the order asked for; by id when nothing is.
    /// `value` is the text of an item by the key it is sorted by, `show` what is shown of it.
    pub(super) fn page<T, S: Serialize>(
        &self,
        key: &str,
        limit: u32,
        mut items: Vec<T>,
        value: impl Fn(&T, &str) -> String,
        show: impl FnMut(T) -> S,
    ) -> Answer {
        if !self.sort.is_empty() {
            items.sort_by(|a, b| self.order(|key| (value(a, key), value(b, key))));
        }
        let per_page = self.per_page.min(u64::from(limit));
        let total = items.len() as u64;
        let last = total.div_ceil(per_page).max(1);
        let skip = usize::try_from((self.page - 1).saturating_mul(per_page)).unwrap_or(usize::MAX);
        let take = usize::try_from(per_page).unwrap_or(usize::MAX);
        let shown: Vec<S> = items.into_iter().skip(skip).take(take).map(show).collect();
        let pagination = Pagination {
            page: self.page,
            per_page,
            previous_page: (self.page > 1).then(|| self.page - 1),
            next_page: (self.page < last).then(|| self.page + 1),
            last_page: last,
            total_entries: total,
        };
        Answer::json(200, &Page { key, items: shown, meta: Meta { pagination } })
    }

    fn order(&self, values: impl Fn(&str) -> (String, String)) -> Ordering {
        let orders = self.sort.iter().map(|(key, direction)| {
            let (a, b) = values(key);
            match direction {
                // Numbers have no zeros in front, so the shorter one is the smaller one.
                Direction::Ascending if key == "id" => (a.len(), a).cmp(&(b.len(), b)),
                Direction::Descending if key == "id" => (b.len(), b).cmp(&(a.len(), a)),
                Direction::Ascending => a.cmp(&b),
                Direction::Descending => b.cmp(&a),
            }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

struct Page<'a, S> {
    key: &'a str,
    items: Vec<S>,
    meta: Meta,
}

impl<S: Serialize> Serialize for Page<'_, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry(self.key, &self.items)?;
        map.serialize_entry("meta", &self.meta)?;
        map.end()
    }
}

#[derive(Serialize)]
struct Meta {
    pagination: Pagination,
}

#[derive(Serialize)]
struct Pagination {
    page: u64,
    per_page: u64,
    previous_page: Option<u64>,
    next_page: Option<u64>,
    last_page: u64,
    total_entries: u64,
}

/// A label selector: all of its terms hold.
#[derive(Debug, PartialEq, Eq)]
struct Selector(Vec<Term>);

#[derive(Debug, PartialEq, Eq)]
enum Term {
    Has(String),
    Lacks(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

impl Selector {
    fn parse(text: &str) -> Option<Selector> {
        let mut terms = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let inside = rest.find('(').filter(|open| rest.find(',').is_none_or(|comma| *open < comma));
            let from = inside.map_or(Some(0), |open| rest[open..].find(')').map(|close| open + close))?;
            let (term, after) = match rest[from..].find(',') {
                Some(comma) => (&rest[..from + comma], Some(&rest[from + comma + 1..])),
                None => (rest, None),
            };
            terms.push(Term::parse(term.trim())?);
            // A comma at the end would begin a term that is not there.
            rest = match after.map(str::trim) {
                Some("") => return None,
                after => after.unwrap_or_default(),
            };
        }
        (!terms.is_empty()).then_some(Selector(terms))
    }

    fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|term| match term {
            Term::Has(key) => label(key).is_some(),
            Term::Lacks(key) => label(key).is_none(),
            Term::In(key, values) => {
                label(key).is_some_and(|value| values.iter().any(|wanted| wanted == value))
            }
            Term::NotIn(key, values) => label(key).is_none_or(|value| values.iter().all(|not| not != value)),
        })
    }
}

impl Term {
    fn parse(text: &str) -> Option<Term> {
        let key = |text: &str| Some(text.trim().to_owned()).filter(|key| is_label_key(key));
        let one = |text: &str| Some(vec![text.trim().to_owned()]).filter(|one| is_label_value(&one[0]));
        if let Some((name, value)) = text.split_once("!=") {
            return Some(Term::NotIn(key(name)?, one(value)?));
        }
        if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return Some(Term::In(key(name)?, one(value)?));
        }
        if let Some(name) = text.strip_prefix('!') {
            return Some(Term::Lacks(key(name)?));
        }
        if let Some((head, list)) = text.split_once('(') {
            let list = list.strip_suffix(')')?;
            let values: Vec<String> = list.split(',').map(|value| value.trim().to_owned()).collect();
            if !values.iter().all(|value| is_label_value(value)) {
                return None;
            }
            let (name, word) = head.trim().rsplit_once(char::is_whitespace)?;
            return match word {
                "in" => Some(Term::In(key(name)?, values)),
                "notin" => Some(Term::NotIn(key(name)?, values)),
                _ => None,
            };
        }
        Some(Term::Has(key(text)?))
    }
}

/// Whether a text can be a label's key: a name, or a domain, a slash and a name.
pub(super) fn is_label_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| {
        (1..=253).contains(&domain.len())
            && domain
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
    };
    !name.is_empty() && is_label_value(name) && domain.is_none_or(is_domain)
}

/// Whether a text can be a label's value: up to 63 letters, digits, and `-`, `_`, `.` inside.
pub(super) fn is_label_value(value: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    value.len() <= 63
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && ends(value.chars().next())
        && ends(value.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str) -> bool {
        let labels = [("app", "web"), ("hcloud-ccm/service-uid", "4be1"), ("empty", "")];
        let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        Selector::parse(selector).unwrap_or_else(|| panic!("{selector} is a selector")).matches(label)
    }

    #[test]
    fn selectors_of_every_form() {
        for yes in [
            "app=web",
            "app==web",
            "app",
            "!other",
            "app!=db",
            "other!=db",
            "app in (db,web)",
            "app in (db, web), empty",
            "app notin (db)",
            "hcloud-ccm/service-uid=4be1",
            "app=web,empty=",
            " app = web , !other ",
        ] {
            assert!(matches(yes), "{yes}");
        }
        for no in
            ["app=db", "!app", "other", "app!=web", "app in (db)", "app notin (db,web)", "app=web,other"]
        {
            assert!(!matches(no), "{no}");
        }
    }

    #[test]
    fn what_is_no_selector() {
        for bad in [
            "",
            ",",
            "app,",
            "=web",
            "app=a b",
            "app in web",
            "app in (web",
            "app on (web)",
            "a/b/c",
            "app=ü",
            "!",
        ] {
            assert_eq!(Selector::parse(bad), None, "{bad}");
        }
    }
}

//! Queries of the `hcloud` dialect: filters, label selectors, order and pages.

use super::errors;
use fake_cloud_kit::{self as kit, Answer, Request};
use serde::Serialize;
use std::cmp::Ordering;

/// The default number of items in a page.
const USUAL_PER_PAGE: u64 = 25;
/// The largest number of items that a call may request.
const GREATEST_PER_PAGE: u64 = 50;

/// The query of a call.
pub(super) type Query = kit::Query<Besides>;

/// The parts of a query other than filters and pages.
#[derive(Debug, Default)]
pub(super) struct Besides {
    sort: Vec<(String, Direction)>,
    selector: Option<Selector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

/// The query of a list with these filters, some of which may occur several times, that can be sorted by these keys.
pub(super) fn list(request: &Request, filters: &[&str], sorts: &[&str]) -> Query {
    let known: Vec<&str> = filters.iter().copied().chain(["sort"]).collect();
    let mut query = Query::list(request, &known, Some(GREATEST_PER_PAGE), Besides::default());
    for value in query.take("sort") {
        match order(&value, sorts) {
            Some(order) => query.besides.sort.push(order),
            None => query.refuse(errors::field("sort", "is not a field this list can be sorted by")),
        }
    }
    if let Some(text) = query.filter(SELECTOR) {
        match Selector::parse(text) {
            Some(selector) => query.besides.selector = Some(selector),
            None => query.refuse(errors::field(SELECTOR, "is not a label selector")),
        }
    }
    query
}

/// The query of a call that accepts none.
pub(super) fn none(request: &Request) -> Query {
    Query::none(request, Besides::default())
}

const SELECTOR: &str = "label_selector";

fn order(value: &str, sorts: &[&str]) -> Option<(String, Direction)> {
    let (key, direction) = match value.split_once(':') {
        None | Some((_, "asc")) => (value.split(':').next()?, Direction::Ascending),
        Some((key, "desc")) => (key, Direction::Descending),
        Some(_) => return None,
    };
    sorts.contains(&key).then(|| (key.to_owned(), direction))
}

impl Besides {
    /// Whether an object with these labels is selected.
    pub(super) fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.matches(label))
    }

    /// The required value of a label, if the selector has one.
    pub(super) fn wanted_label(&self, key: &str) -> Option<&str> {
        self.selector.iter().flat_map(|selector| &selector.0).find_map(|term| match term {
            Term::In(known, values) if known == key && values.len() == 1 => {
                values.first().map(String::as_str)
            }
            _ => None,
        })
    }

    fn order(&self, values: impl Fn(&str) -> (String, String)) -> Ordering {
        let orders = self.sort.iter().map(|(key, direction)| {
            let (a, b) = values(key);
            match direction {
                // Numbers have no leading zeros, so the shorter one is the smaller one.
                Direction::Ascending if key == "id" => (a.len(), a).cmp(&(b.len(), b)),
                Direction::Descending if key == "id" => (b.len(), b).cmp(&(a.len(), a)),
                Direction::Ascending => a.cmp(&b),
                Direction::Descending => b.cmp(&a),
            }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

/// One page of the list `items` under the name `key`, in the requested order, by default ordered by id.
/// `value` is the text of an item for the key that it is sorted by, `show` its shown form.
pub(super) fn page<T, S: Serialize>(
    query: &Query,
    key: &str,
    limit: u32,
    mut items: Vec<T>,
    value: impl Fn(&T, &str) -> String,
    show: impl FnMut(T) -> S,
) -> Answer {
    if !query.besides.sort.is_empty() {
        items.sort_by(|a, b| query.besides.order(|key| (value(a, key), value(b, key))));
    }
    let per_page = query.per_page.unwrap_or(USUAL_PER_PAGE).min(u64::from(limit));
    let total = items.len() as u64;
    let last = query.last_page(per_page, total);
    let shown: Vec<S> = query.cut(per_page, items.into_iter()).0.into_iter().map(show).collect();
    let pagination = Pagination {
        page: query.page,
        per_page,
        previous_page: (query.page > 1).then(|| query.page - 1),
        next_page: (query.page < last).then(|| query.page + 1),
        last_page: last,
        total_entries: total,
    };
    Answer::page(key, &shown, &OfPage { meta: Meta { pagination } })
}

#[derive(Serialize)]
struct OfPage {
    meta: Meta,
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

/// A label selector: all of its terms have to match.
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
            // A trailing comma would begin a term that does not exist.
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

/// Whether a text is a valid label key: a name, or a domain, a slash and a name.
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

/// Whether a text is a valid label value: up to 63 letters, digits, and `-`, `_`, `.` inside.
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
    fn invalid_selectors_are_refused() {
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

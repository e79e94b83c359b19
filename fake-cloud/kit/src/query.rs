//! Queries: filters and pages.

use super::error::Error;
use super::request::{Call, Request};
use fake_cloud_driver::Op;

/// The query of a call; `X` has the parts other than filters and pages.
#[derive(Debug)]
pub struct Query<X = ()> {
    filters: Vec<(String, String)>,
    /// The requested page, from 1.
    pub page: u64,
    /// The requested number of items in a page, if the caller sets it.
    pub per_page: Option<u64>,
    /// The dialect's other parts.
    pub besides: X,
    problem: Option<Error>,
    /// The first unknown parameter.
    unknown: Option<String>,
    /// Whether a page without items comes first.
    empty_first: bool,
    /// How many items are missing before the requested page.
    lost: u64,
}

impl<X> Query<X> {
    /// The query of a list that can be filtered by these keys, some of which may occur several times. `most`:
    /// the largest number of items that may be requested.
    pub fn list(request: &Request, filters: &[&str], most: Option<u64>, besides: X) -> Query<X> {
        Query::sized("per_page", request, filters, most, besides)
    }

    /// The same with another parameter for the number of items in a page.
    pub fn sized(size: &str, request: &Request, filters: &[&str], most: Option<u64>, besides: X) -> Query<X> {
        let mut query = Query::new(besides);
        for (key, value) in request.query() {
            match key.as_str() {
                "page" => query.page = query.number(key, &value, None),
                known if known == size => query.per_page = Some(query.number(key, &value, most)),
                known if filters.contains(&known) => query.filters.push((key, value)),
                _ => query.does_not_know(key),
            }
        }
        query
    }

    /// The query of a call that accepts none.
    pub fn none(request: &Request, besides: X) -> Query<X> {
        let mut query = Query::new(besides);
        request.query().for_each(|(key, _)| query.does_not_know(key));
        query
    }

    fn new(besides: X) -> Query<X> {
        Query {
            filters: Vec::new(),
            page: 1,
            per_page: None,
            besides,
            problem: None,
            unknown: None,
            empty_first: false,
            lost: 0,
        }
    }

    /// Records an unknown part; the first one counts.
    pub fn does_not_know(&mut self, key: String) {
        self.unknown.get_or_insert(key);
    }

    fn number(&mut self, parameter: String, value: &str, most: Option<u64>) -> u64 {
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        match value.parse::<u64>() {
            Ok(number) if digits && (1..=most.unwrap_or(u64::MAX)).contains(&number) => number,
            _ => {
                self.refuse(Error::Number { parameter, most });
                1
            }
        }
    }

    /// Records a fault; the first one counts.
    pub fn refuse(&mut self, problem: Error) {
        self.problem.get_or_insert(problem);
    }

    /// Takes the first unknown parameter, so that it is not reported again.
    pub fn take_unknown(&mut self) -> Option<String> {
        self.unknown.take()
    }

    /// Removes empty filters, for APIs that ignore them.
    pub fn without_empty(mut self) -> Query<X> {
        self.filters.retain(|(_, value)| !value.is_empty());
        self
    }

    /// Takes the values of a parameter that is not a filter.
    pub fn take(&mut self, key: &str) -> Vec<String> {
        let of_key = self.filters.extract_if(.., |(known, _)| known == key);
        of_key.map(|(_, value)| value).collect()
    }

    /// All filters, unchanged.
    pub fn filters(&self) -> &[(String, String)] {
        &self.filters
    }

    /// The value of a filter that can occur once; the last one if there are several.
    pub fn filter(&self, key: &str) -> Option<&str> {
        self.filters.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Whether an object with this value matches: if a filter occurs several times, any of its values is enough.
    pub fn fits(&self, key: &str, value: &str) -> bool {
        let mut wanted = self.filters.iter().filter(|(known, _)| known == key).peekable();
        wanted.peek().is_none() || wanted.any(|(_, wanted)| wanted == value)
    }

    /// The call of a list with these filters.
    pub fn call(&self, op: Op) -> Call {
        self.filters.iter().fold(Call::new(op), |call, (key, value)| call.keyed(key, value))
    }

    /// The same query, with an empty page before the others if `empty_first` is true.
    pub(super) fn empty_first(self, empty_first: bool) -> Query<X> {
        Query { empty_first, ..self }
    }

    /// The same query, with so many items missing before its page.
    pub(super) fn losing(self, lost: u64) -> Query<X> {
        Query { lost, ..self }
    }

    /// The items of the requested page, with pages of `size` items, and whether there are more after it.
    pub fn cut<T>(&self, size: u64, items: impl Iterator<Item = T>) -> (Vec<T>, bool) {
        let page = if self.empty_first { self.page - 1 } else { self.page };
        if page == 0 {
            return (Vec::new(), items.count() > 0);
        }
        let skip = (page - 1).saturating_mul(size).saturating_add(self.lost);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let mut rest = items.skip(skip);
        let found = rest.by_ref().take(usize::try_from(size).unwrap_or(usize::MAX)).collect();
        (found, rest.next().is_some())
    }

    /// The number of the last page for `total` items in pages of `size`; there is always one.
    pub fn last_page(&self, size: u64, total: u64) -> u64 {
        let shown = total.saturating_sub(self.lost);
        (shown.div_ceil(size) + u64::from(self.empty_first && total > 0)).max(1)
    }

    /// The query, its fault, and its unknown part.
    pub(super) fn checked(mut self) -> (Query<X>, Option<Error>, Option<String>) {
        let unknown = self.unknown.take().map(|key| format!("the parameter {key:.40} of the query"));
        let problem = self.problem.take();
        (self, problem, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Bytes;
    use hyper::{HeaderMap, Method};

    fn query(text: &str) -> Query {
        let uri = format!("/things?{text}").parse().expect("a URI");
        let request = Request { method: Method::GET, uri, headers: HeaderMap::new(), body: Bytes::new() };
        Query::list(&request, &["name", "sort"], Some(50), ())
    }

    #[test]
    fn pages_are_cut_and_know_whether_there_are_more() {
        assert_eq!(query("").cut(2, 1..=5), (vec![1, 2], true));
        assert_eq!(query("page=3").cut(2, 1..=5), (vec![5], false));
        assert_eq!(query("page=18446744073709551615").cut(2, 1..=5), (vec![], false));
        let last = |query: Query| [5, 4, 0].map(|total| query.last_page(2, total));
        assert_eq!((last(query("")), last(query("").empty_first(true))), ([3, 2, 1], [4, 3, 1]));
    }

    #[test]
    fn an_empty_page_may_come_first_and_leads_to_the_others() {
        let cut = |text, items: Vec<u8>| query(text).empty_first(true).cut(2, items.into_iter());
        assert_eq!(
            (cut("", vec![1, 2, 3]), cut("page=2", vec![1, 2, 3]), cut("page=3", vec![1, 2, 3])),
            ((vec![], true), (vec![1, 2], true), (vec![3], false))
        );
        assert_eq!(cut("", vec![]), (vec![], false));
    }

    #[test]
    fn items_may_be_missing_before_a_page() {
        let cut = |text, lost| query(text).losing(lost).cut(1, [1, 2, 3, 4].into_iter());
        assert_eq!((cut("", 0), cut("page=2", 1)), ((vec![1], true), (vec![3], true)));
        assert_eq!((cut("page=3", 2), query("page=3").losing(2).last_page(1, 4)), ((vec![], false), 2));
    }

    #[test]
    fn numbers_out_of_range_are_refused_and_the_first_is_named() {
        for (text, named) in [("page=0&per_page=x", "page"), ("per_page=51", "per_page"), ("page=+1", "page")]
        {
            let (_, problem, _) = query(text).checked();
            let Some(Error::Number { parameter, .. }) = problem else { panic!("{text}: {problem:?}") };
            assert_eq!(parameter, named, "{text}");
        }
        assert!(query("page=7&per_page=50").checked().1.is_none());
    }

    #[test]
    fn filters_are_met_by_any_of_their_values_and_the_rest_is_not_known() {
        let mut found = query("name=a&name=b&sort=name&colour=red");
        assert_eq!((found.take("sort"), found.filter("name")), (vec!["name".to_owned()], Some("b")));
        assert!(found.fits("name", "a") && !found.fits("name", "c") && found.fits("other", "x"));
        assert_eq!(found.checked().2.as_deref(), Some("the parameter colour of the query"));
        assert_eq!(query("name=&name=").without_empty().filters(), []);
    }
}

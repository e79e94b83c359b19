//! Queries: filters and pages.

use super::error::Error;
use super::request::{Call, Request};
use fake_cloud_driver::Op;

/// The query of a call; `X` is what a dialect has in it besides filters and pages.
#[derive(Debug)]
pub struct Query<X = ()> {
    filters: Vec<(String, String)>,
    /// The page asked for, from 1.
    pub page: u64,
    /// How many items a page is to have, if the caller says so.
    pub per_page: Option<u64>,
    /// What the dialect has besides.
    pub besides: X,
    problem: Option<Error>,
    /// The first parameter that is not known.
    unknown: Option<String>,
    /// Whether a page without items comes first.
    empty_first: bool,
}

impl<X> Query<X> {
    /// The query of a list that can be filtered by these keys, some of which may be given many times. `most`: the
    /// greatest number of items that may be asked for.
    pub fn list(request: &Request, filters: &[&str], most: Option<u64>, besides: X) -> Query<X> {
        Query::sized("per_page", request, filters, most, besides)
    }

    /// The same where another parameter says how many items a page is to have.
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

    /// The query of a call that has none.
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
        }
    }

    /// Says that something of it is not known; what is said first counts.
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

    /// Says that something is wrong with it; what is said first counts.
    pub fn refuse(&mut self, problem: Error) {
        self.problem.get_or_insert(problem);
    }

    /// The first parameter that is not known, which then is nobody's business any more.
    pub fn take_unknown(&mut self) -> Option<String> {
        self.unknown.take()
    }

    /// Leaves out filters that say nothing, for APIs where an empty filter is none.
    pub fn without_empty(mut self) -> Query<X> {
        self.filters.retain(|(_, value)| !value.is_empty());
        self
    }

    /// Takes the values of a parameter that is no filter.
    pub fn take(&mut self, key: &str) -> Vec<String> {
        let of_key = self.filters.extract_if(.., |(known, _)| known == key);
        of_key.map(|(_, value)| value).collect()
    }

    /// All filters, as they were given.
    pub fn filters(&self) -> &[(String, String)] {
        &self.filters
    }

    /// The value of a filter that can be given once; of several the last one.
    pub fn filter(&self, key: &str) -> Option<&str> {
        self.filters.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Whether an object with that value fits: a filter given many times is met by any of its values.
    pub fn fits(&self, key: &str, value: &str) -> bool {
        let mut wanted = self.filters.iter().filter(|(known, _)| known == key).peekable();
        wanted.peek().is_none() || wanted.any(|(_, wanted)| wanted == value)
    }

    /// What a list with these filters is about.
    pub fn call(&self, op: Op) -> Call {
        self.filters.iter().fold(Call::new(op), |call, (key, value)| call.keyed(key, value))
    }

    /// The same query of a list that begins with a page without items, where that is said.
    pub(super) fn empty_first(self, empty_first: bool) -> Query<X> {
        Query { empty_first, ..self }
    }

    /// The items of the page asked for, of pages of `size` items, and whether there are more after it.
    pub fn cut<T>(&self, size: u64, items: impl Iterator<Item = T>) -> (Vec<T>, bool) {
        let page = if self.empty_first { self.page - 1 } else { self.page };
        if page == 0 {
            return (Vec::new(), items.count() > 0);
        }
        let skip = usize::try_from((page - 1).saturating_mul(size)).unwrap_or(usize::MAX);
        let mut rest = items.skip(skip);
        let found = rest.by_ref().take(usize::try_from(size).unwrap_or(usize::MAX)).collect();
        (found, rest.next().is_some())
    }

    /// The last of the pages of `size` items that `total` items make; there is always one.
    pub fn last_page(&self, size: u64, total: u64) -> u64 {
        (total.div_ceil(size) + u64::from(self.empty_first && total > 0)).max(1)
    }

    /// Itself, what is wrong with it, and what of it is not known.
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

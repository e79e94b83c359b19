//! Lists of names in sentences.

/// The first names of a list, and how many follow: `a, b and 10 more`. At least two are left out, as a single name is not
/// longer than its count.
pub fn first_of<N: AsRef<str>>(names: &[N], shown: usize) -> String {
    let joined = |names: &[N]| names.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match names.len().checked_sub(shown) {
        Some(more @ 2..) => format!("{} and {more} more", joined(&names[..shown])),
        _ => joined(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_list_is_cut() {
        assert_eq!(first_of::<&str>(&[], 2), "");
        assert_eq!(first_of(&["a", "b", "c"], 2), "a, b, c");
        assert_eq!(first_of(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }
}

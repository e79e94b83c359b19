//! For programs that are not confined: paths in their arguments and environment are rewritten to the real
//! paths of the files.

use super::mount::Mount;

/// Replaces each mount path by the real path of its files, if it is a whole path or the beginning of a longer one.
pub(crate) fn rewrite(text: &str, mounts: &[Mount]) -> String {
    let mut longest_first: Vec<_> = mounts.iter().collect();
    longest_first.sort_by_key(|mount| std::cmp::Reverse(mount.target.as_os_str().len()));
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let starts_path =
            before.is_none_or(|before: char| !(before.is_alphanumeric() || "/._-".contains(before)));
        let hit = longest_first.iter().filter(|_| starts_path && first == '/').find_map(|mount| {
            let target = mount.target.to_str()?;
            let after = rest.strip_prefix(target)?;
            let ends = after
                .chars()
                .next()
                .is_none_or(|next| next == '/' || !(next.is_alphanumeric() || "._-".contains(next)));
            ends.then(|| (mount.source.to_string_lossy().into_owned(), after))
        });
        match hit {
            Some((source, after)) => {
                result.push_str(&source);
                before = Some('/');
                rest = after;
            }
            None => {
                result.push(first);
                before = Some(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn paths_are_rewritten_at_their_borders_only() {
        let mount = |source: &str, target: &str| Mount::new(PathBuf::from(source), PathBuf::from(target));
        let mounts = [mount("/tmp/a", "/etc/cloud"), mount("/tmp/b", "/etc/cloud/deep")];
        let cases = [
            ("--config=/etc/cloud/x.yaml", "--config=/tmp/a/x.yaml"),
            ("/etc/cloud", "/tmp/a"),
            ("/etc/cloud/deep/y", "/tmp/b/y"),
            ("/etc/cloudy", "/etc/cloudy"),
            ("/usr/etc/cloud", "/usr/etc/cloud"),
            ("a:/etc/cloud:b", "a:/tmp/a:b"),
            ("ü", "ü"),
        ];
        for (text, expected) in cases {
            assert_eq!(rewrite(text, &mounts), expected, "{text}");
        }
    }
}

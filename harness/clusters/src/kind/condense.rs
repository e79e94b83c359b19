//! Shortens long logs of kind, kubeadm and kubelets.

use std::collections::HashSet;

/// The last `count` informative lines: without stack traces and without lines of the level info of Kubernetes' logger; of
/// lines that differ only in numbers, only the last one.
pub(super) fn condense(text: &str, count: usize) -> String {
    let all: Vec<&str> = text.lines().map(str::trim_end).collect();
    let is_frame = |at: usize| {
        let place = |at: usize| all.get(at).is_some_and(|line| line.starts_with('\t'));
        // A stack frame is a function's name and, indented on the next line, its place.
        place(at) || (place(at + 1) && !all[at].contains(char::is_whitespace))
    };
    let mut seen = HashSet::new();
    let mut kept: Vec<&str> = (0..all.len())
        .rev()
        .filter(|at| !all[*at].is_empty() && !is_frame(*at) && !is_information(all[*at]))
        .filter(|at| seen.insert(all[*at].replace(|mark: char| mark.is_ascii_digit(), "")))
        .map(|at| all[at])
        .take(count)
        .collect();
    kept.reverse();
    kept.join("\n")
}

/// Whether a line begins as in `I1121 12:34:42.514242`.
fn is_information(line: &str) -> bool {
    let mut marks = line.chars();
    marks.next() == Some('I')
        && marks.by_ref().take(4).all(|mark| mark.is_ascii_digit())
        && marks.next() == Some(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_and_noise_is_removed() {
        let log = "\
I1121 12:34:42.514242     127 round_trippers.go:632] \"Response\" status=\"\"
E1121 12:34:42.7     172 kubelet.go:3531] \"node not registered yet\"
E1121 12:34:42.8     172 kubelet.go:3531] \"node not registered yet\"

error: error execution phase wait-control-plane: no answer
k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow.(*Runner).Run.func1
\tk8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow/runner.go:262
main.main
\tk8s.io/kubernetes/cmd/kubeadm/kubeadm.go:25
";
        let expected = "\
E1121 12:34:42.8     172 kubelet.go:3531] \"node not registered yet\"
error: error execution phase wait-control-plane: no answer";
        assert_eq!(condense(log, 10), expected);
        assert_eq!(condense(log, 1), "error: error execution phase wait-control-plane: no answer");
    }
}

//! What errors of the operating system mean, in words and with a remedy. A user never reads `(os error 2)`.

use std::io::{Error, ErrorKind};
use std::process::ExitStatus;

/// How a program ended: `exit code 3`, or what Rust says of the signal that ended it.
pub fn ended(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// What precedes the system's number in the text of an error.
const NUMBER: &str = " (os error ";

/// Why the system refused something, with a remedy if there is one: about a file or folder, or a connection.
pub fn why(error: &Error) -> String {
    let text = error.to_string();
    // Errors that do not come from the system are in words. A library may add the path of a temporary file to the
    // system's error.
    if error.raw_os_error().is_none() && !text.contains(NUMBER) {
        return text;
    }
    let words = match error.kind() {
        ErrorKind::NotFound => "there is no such file or folder; check the path",
        ErrorKind::PermissionDenied => "permission denied; check who may read or write it",
        ErrorKind::NotADirectory => "a part of the path is a file, not a folder",
        ErrorKind::IsADirectory => "it is a folder, not a file",
        ErrorKind::AlreadyExists => "it exists already",
        ErrorKind::ConnectionRefused => "connection refused: no program listens there",
        ErrorKind::ConnectionReset => "the other side closed the connection",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "no network leads to that address",
        ErrorKind::AddrInUse => {
            "another program uses that address; choose another port, or stop that program"
        }
        ErrorKind::AddrNotAvailable => "this machine does not have that address",
        _ => return plain(&text),
    };
    words.to_owned()
}

/// Why the system did not create or write a file or folder.
pub fn why_not_written(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "its folder does not exist, or takes no files; check it".to_owned(),
        _ => why(error),
    }
}

/// Why the system did not start a program.
pub fn why_not_started(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            "there is no such program, or not the interpreter that it names; check the path".to_owned()
        }
        ErrorKind::PermissionDenied => "it may not be executed; check its mode ('chmod +x')".to_owned(),
        _ => why(error),
    }
}

/// Why the system does not let a program listen on an address.
pub fn why_not_listening(error: &Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "permission denied; choose a port above 1023".to_owned(),
        _ => why(error),
    }
}

/// A text without the numbers of the system's errors.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(NUMBER) {
        plain.push_str(before);
        let digits = after.trim_start_matches(|c: char| c.is_ascii_digit());
        rest = match digits.strip_prefix(')') {
            Some(end) => end,
            None => {
                plain.push_str(NUMBER);
                after
            }
        };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_the_system_is_left() {
        for number in 1..=133 {
            let error = Error::from_raw_os_error(number);
            for words in
                [why(&error), why_not_written(&error), why_not_started(&error), why_not_listening(&error)]
            {
                assert!(!words.contains("os error") && !words.is_empty(), "{number}: {words}");
            }
        }
        assert_eq!(why(&Error::from_raw_os_error(28)), "No space left on device");
        assert_eq!(why(&Error::from_raw_os_error(111)), "connection refused: no program listens there");
        assert_eq!(why(&Error::other("is not text")), "is not text");
    }

    #[test]
    fn texts_of_libraries_lose_the_number_and_nothing_else() {
        let text = "a: Connection refused (os error 111); b: No such file (os error 2)";
        assert_eq!(plain(text), "a: Connection refused; b: No such file");
        for same in ["", "no number (os error x)", "cut (os error 12"] {
            assert_eq!(plain(same), same);
        }
    }
}

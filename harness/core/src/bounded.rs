//! Reads the output of other programs, whose size is unknown. All output of drivers, CCMs, tools and containers is read
//! here, so that it cannot exhaust the memory of this process.

use std::io::{Error, ErrorKind, Read, Result};
use std::process::{Child, Command, Output, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Maximum length of a line, in bytes.
pub const LONGEST_LINE: usize = 64 << 10;
/// The mark at the end of a line whose rest was cut.
const LINE_CUT: &str = "... (the rest of the line was cut)";
/// Maximum size of a tool's standard output, in bytes.
pub const MOST_OF_A_TOOL: usize = 64 << 20;
/// How much is kept of the end of a tool's standard error, in bytes.
const ERRORS_KEPT: usize = 1 << 20;
/// Maximum size of the body of an HTTP answer, in bytes.
pub const MOST_OF_A_BODY: usize = 16 << 20;

/// The lines of a stream. A line that is too long is cut and returned as soon as that is known, as its end may never
/// come.
#[derive(Debug)]
pub struct Lines<R> {
    from: BufReader<R>,
    /// Whether the next bytes are the rest of a line that was cut.
    in_rest: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads the lines of that stream.
    pub fn of(from: R) -> Lines<R> {
        Lines { from: BufReader::new(from), in_rest: false }
    }

    /// The next line without its line end, with invalid UTF-8 replaced; `None` at the end of the stream.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn next(&mut self) -> Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let part = self.from.fill_buf().await?;
            if part.is_empty() {
                let is_end = line.is_empty();
                self.in_rest = false;
                return Ok((!is_end).then(|| text(&line)));
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(part.len());
            let taken = if self.in_rest { 0 } else { length.min(LONGEST_LINE - line.len()) };
            line.extend_from_slice(&part[..taken]);
            if taken == length || self.in_rest {
                self.from.consume(end.map_or(length, |end| end + 1));
                match (end, self.in_rest) {
                    (None, _) => continue,
                    (Some(_), true) => {
                        self.in_rest = false;
                        continue;
                    }
                    (Some(_), false) => return Ok(Some(text(&line))),
                }
            }
            self.from.consume(taken);
            self.in_rest = true;
            return Ok(Some(text(&line) + LINE_CUT));
        }
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}

/// The beginning of data that is read in pieces.
#[derive(Debug)]
pub struct Beginning {
    bytes: Vec<u8>,
    most: usize,
    is_cut: bool,
}

impl Beginning {
    /// Keeps the first `most` bytes.
    pub fn of(most: usize) -> Beginning {
        Beginning { bytes: Vec::new(), most, is_cut: false }
    }

    /// Adds the next piece. Returns whether all of it was kept.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        let fits = piece.len().min(self.most - self.bytes.len());
        self.bytes.extend_from_slice(&piece[..fits]);
        self.is_cut |= fits < piece.len();
        !self.is_cut
    }

    /// The text, with invalid UTF-8 replaced. If it was cut, its end says so.
    pub fn into_text(self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if self.is_cut {
            text.push_str(&format!("\n(cut after {})\n", size(self.most)));
        }
        text
    }

    /// The bytes.
    ///
    /// # Errors
    /// There were more than the maximum.
    pub fn whole(self) -> Result<Vec<u8>> {
        if self.is_cut { Err(too_much(self.most)) } else { Ok(self.bytes) }
    }
}

/// The end of data that is read in pieces.
#[derive(Debug)]
struct End {
    bytes: Vec<u8>,
    most: usize,
}

impl End {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() > 2 * self.most {
            self.bytes.drain(..self.bytes.len() - self.most);
        }
    }

    fn last(mut self) -> Vec<u8> {
        self.bytes.drain(..self.bytes.len().saturating_sub(self.most));
        self.bytes
    }
}

fn size(bytes: usize) -> String {
    if bytes >> 20 > 0 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn too_much(most: usize) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("it wrote more than the maximum of {}", size(most)))
}

/// Runs a tool to its end: returns its status, all of standard output, and the end of standard error. It is killed when
/// this is dropped.
///
/// # Errors
/// It cannot be run, or writes more than [`MOST_OF_A_TOOL`] to standard output, for which it is killed.
pub async fn output(command: &mut tokio::process::Command) -> Result<Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let reading = async {
        let mut stdout = Beginning::of(MOST_OF_A_TOOL);
        if let Some(mut from) = out {
            let mut piece = vec![0; 16 << 10];
            loop {
                let length = from.read(&mut piece).await?;
                if length == 0 {
                    break;
                }
                if !stdout.push(&piece[..length]) {
                    return Err(too_much(MOST_OF_A_TOOL));
                }
            }
        }
        stdout.whole()
    };
    let complaining = async {
        let mut stderr = End { bytes: Vec::new(), most: ERRORS_KEPT };
        if let Some(mut from) = err {
            let mut piece = vec![0; 16 << 10];
            loop {
                let length = from.read(&mut piece).await?;
                if length == 0 {
                    break;
                }
                stderr.push(&piece[..length]);
            }
        }
        Ok(stderr.last())
    };
    let (stdout, stderr) = tokio::try_join!(reading, complaining)?;
    Ok(Output { status: child.wait().await?, stdout, stderr })
}

/// Like [`output`], for callers without an async runtime.
///
/// # Errors
/// Those of [`output`].
pub fn output_of(command: &mut Command) -> Result<Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let complaining = scope.spawn(move || {
            let mut stderr = End { bytes: Vec::new(), most: ERRORS_KEPT };
            each_piece(err, |piece| {
                stderr.push(piece);
                true
            })?;
            Ok::<_, Error>(stderr.last())
        });
        let stdout = read_whole(out, MOST_OF_A_TOOL);
        if stdout.is_err() {
            end(&mut child);
        }
        let stderr = complaining.join().unwrap_or_else(|_| Err(Error::other("it could not be read")));
        let status = child.wait()?;
        Ok(Output { status, stdout: stdout?, stderr: stderr? })
    })
}

/// Reads a stream to its end.
///
/// # Errors
/// It cannot be read, or has more than `most` bytes.
pub fn read_whole(from: Option<impl Read>, most: usize) -> Result<Vec<u8>> {
    let mut kept = Beginning::of(most);
    each_piece(from, |piece| kept.push(piece))?;
    kept.whole()
}

/// Kills a program; it is not an error if it has already ended.
fn end(child: &mut Child) {
    let _ = child.kill();
}

fn each_piece(from: Option<impl Read>, mut take: impl FnMut(&[u8]) -> bool) -> Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    let mut piece = vec![0; 16 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) if !take(&piece[..length]) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The text of an HTTP answer: its first [`MOST_OF_A_BODY`] bytes.
///
/// # Errors
/// The connection broke.
pub async fn body(mut response: reqwest::Response) -> reqwest::Result<String> {
    let mut kept = Beginning::of(MOST_OF_A_BODY);
    while let Some(piece) = response.chunk().await? {
        if !kept.push(&piece) {
            break;
        }
    }
    Ok(kept.into_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(bytes: &[u8]) -> Vec<String> {
        let (mut lines, mut all) = (Lines::of(bytes), Vec::new());
        while let Some(line) = lines.next().await.expect("it can be read") {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_are_whole_or_cut_and_none_is_lost() {
        assert_eq!(lines_of(b"a\n\r\nb\r\n\xffc").await, ["a", "", "b", "\u{fffd}c"]);
        assert_eq!(lines_of(b"").await, Vec::<String>::new());
        let exactly = "x".repeat(LONGEST_LINE);
        assert_eq!(lines_of(format!("{exactly}\nb\n").as_bytes()).await, [exactly.clone(), "b".to_owned()]);
        let longer = format!("a\n{exactly}yy\nb\n{exactly}zz");
        let cut = format!("{exactly}{LINE_CUT}");
        assert_eq!(lines_of(longer.as_bytes()).await, ["a", &cut, "b", &cut]);
    }

    #[tokio::test]
    async fn an_endless_line_is_reported_and_uses_bounded_memory() {
        let mut lines = Lines::of(tokio::io::repeat(b'x'));
        let first = lines.next().await.expect("it can be read").expect("a line");
        assert_eq!(first.len(), LONGEST_LINE + LINE_CUT.len());
    }

    #[tokio::test]
    async fn a_tool_that_writes_without_an_end_is_ended() {
        let endless = "while :; do printf %01024d 0; done";
        let mut command = tokio::process::Command::new("sh");
        let error = output(command.args(["-c", "cat /dev/zero"])).await.expect_err("too much");
        assert_eq!(error.to_string(), "it wrote more than the maximum of 64 MiB");
        let error = output_of(Command::new("sh").args(["-c", "cat /dev/zero"])).expect_err("too much");
        assert_eq!(error.to_string(), "it wrote more than the maximum of 64 MiB");
        // The end of standard error is kept.
        let line = format!("echo fine; ({endless}) | head -c 5000000 >&2; echo last >&2; exit 3");
        let mut command = tokio::process::Command::new("sh");
        for ended in
            [output(command.args(["-c", &line])).await, output_of(Command::new("sh").args(["-c", &line]))]
        {
            let ended = ended.expect("it ends");
            assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(3), &b"fine\n"[..]));
            assert_eq!(ended.stderr.len(), ERRORS_KEPT);
            assert!(ended.stderr.ends_with(b"last\n"));
        }
    }

    #[test]
    fn cut_text_is_marked() {
        let mut kept = Beginning::of(1024);
        assert!(kept.push(b"abc") && !kept.push(&[b'x'; 2000]));
        let text = kept.into_text();
        assert!(text.starts_with("abcxx") && text.ends_with("\n(cut after 1 KiB)\n"), "{text}");
        read_whole(Some(std::io::repeat(0)), 10).expect_err("more than ten bytes");
    }
}

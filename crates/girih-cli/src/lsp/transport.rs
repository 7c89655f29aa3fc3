//! Messages between the server and its client: a header with the length, an empty line, JSON.
//!
//! In: bytes of standard input. Out: messages, or one sentence on the error in the bytes.
//!
//! ```text
//! Content-Length: 17\r\n
//! \r\n
//! {"jsonrpc":"2.0"}
//! ```
//!
//! Invariants: memory grows with what has arrived, never with the length that a header claims; a header's line and a message
//! have a greatest length.

use std::io::{self, BufRead, Read};
use std::thread::{self, JoinHandle};

use lsp_server::{Connection, Message};

/// The most bytes of one line of a header.
const HEADER: u64 = 4096;
/// The most bytes of one message.
const MESSAGE: u64 = 256 << 20;

/// The threads that read and write.
pub struct Threads {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Threads {
    /// Waits until both are done; returns their error.
    pub fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        ended(self.reader)?;
        ended(self.writer)
    }
}

/// A connection over standard input and output.
pub fn stdio() -> io::Result<(Connection, Threads)> {
    let (server, Connection { sender, receiver }) = Connection::memory();
    let writer = thread::Builder::new().name("lsp-writer".to_string()).spawn(move || {
        let mut to = io::stdout().lock();
        receiver.into_iter().try_for_each(|message| message.write(&mut to))
    })?;
    let reader = thread::Builder::new().name("lsp-reader".to_string()).spawn(move || {
        let mut from = io::stdin().lock();
        while let Some(message) = read(&mut from)? {
            let last = matches!(&message, Message::Notification(n) if n.method == "exit");
            // A server that has ended hears nothing more.
            if sender.send(message).is_err() || last {
                break;
            }
        }
        Ok(())
    })?;
    Ok((server, Threads { reader, writer }))
}

/// The next message; none where the client has ended between two messages.
fn read(from: &mut impl BufRead) -> io::Result<Option<Message>> {
    let mut length = None;
    loop {
        let mut line = vec![];
        from.by_ref().take(HEADER).read_until(b'\n', &mut line)?;
        if line.is_empty() && length.is_none() {
            return Ok(None);
        }
        let Some(line) = line.strip_suffix(b"\n") else {
            return Err(wrong(match line.len() as u64 {
                HEADER => format!("a line of a header has more than {HEADER} bytes"),
                _ => "it ends within a header".to_string(),
            }));
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = line.split_once(':') else {
            return Err(wrong(format!("expected a header `Name: value`, found {line:?}")));
        };
        if name.eq_ignore_ascii_case("Content-Length") {
            let value = value.trim();
            let count: u64 =
                value.parse().map_err(|_| wrong(format!("expected Content-Length to be a number, found {value:?}")))?;
            if count > MESSAGE {
                return Err(wrong(format!("Content-Length is {count}; a message has {MESSAGE} bytes at most")));
            }
            length = Some(count);
        }
    }
    let length = length.ok_or_else(|| wrong("the header has no Content-Length".to_string()))?;
    let mut body = vec![];
    from.by_ref().take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Err(wrong(format!("it ends after {} of {length} bytes", body.len())));
    }
    serde_json::from_slice(&body).map(Some).map_err(|e| wrong(format!("its JSON cannot be read: {e}")))
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text to its end: the methods of its messages, or the error.
    fn methods(text: &str) -> Result<Vec<String>, String> {
        let mut from = text.as_bytes();
        let mut found = vec![];
        while let Some(message) = read(&mut from).map_err(|e| e.to_string())? {
            match message {
                Message::Request(r) => found.push(r.method),
                Message::Notification(n) => found.push(n.method),
                Message::Response(_) => found.push("response".to_string()),
            }
        }
        Ok(found)
    }

    fn message(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    const A: &str = r#"{"jsonrpc":"2.0","method":"a","id":1}"#;
    const B: &str = r#"{"jsonrpc":"2.0","method":"b","params":{"text":"é"}}"#;

    #[test]
    fn messages_follow_each_other() {
        assert_eq!(methods(""), Ok(vec![]));
        assert_eq!(methods(&(message(A) + &message(B))), Ok(vec!["a".to_string(), "b".to_string()]));
        let typed = format!("content-length:{}\nContent-Type: text\n\n{A}", A.len());
        assert_eq!(methods(&typed), Ok(vec!["a".to_string()]));
    }

    #[test]
    fn a_message_cut_anywhere_is_refused() {
        let whole = message(A);
        for end in 1..whole.len() {
            let said = methods(&whole[..end]).unwrap_err();
            assert!(said.starts_with("it ends "), "{end}: {said}");
        }
    }

    #[test]
    fn a_length_that_is_none_is_refused_before_memory_is_taken() {
        for (text, part) in [
            ("Content-Length: 99999999999999\r\n\r\n{}", "a message has 268435456 bytes at most"),
            ("Content-Length: 268435456\r\n\r\n{}", "it ends after 2 of 268435456 bytes"),
            ("Content-Length: 99999999999999999999\r\n\r\n{}", "to be a number"),
            ("Content-Length: -1\r\n\r\n{}", "to be a number"),
            ("Content-Type: text\r\n\r\n{}", "no Content-Length"),
            ("\r\n", "no Content-Length"),
            ("nonsense\r\n\r\n", "expected a header"),
            ("Content-Length: 2\r\n\r\n{}", "its JSON cannot be read"),
        ] {
            let said = methods(text).unwrap_err();
            assert!(said.contains(part), "{text:?}: {said}");
        }
        assert!(methods(&"x".repeat(5000)).unwrap_err().contains("more than 4096 bytes"));
        assert!(methods(&message(&"[".repeat(100_000))).unwrap_err().contains("its JSON cannot be read"));
    }
}

//! `--serve`: the page at a port of this machine, which shows the newest version of the file.
//!
//! In: a port. Out: answers to a browser on the same machine until Ctrl-C: `/` is the page, made anew for each request, and
//! `/events` tells it that there is another version of the file. What is wrong with a file is shown in place of its page.
//!
//! Invariants: it listens on 127.0.0.1 alone, and answers only requests that were meant for that, so that no page of somebody
//! else's can read it through a name of theirs; it reads the file it was given and no other.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::{content, title};
use crate::cli::ExplainArgs;
use crate::failure::Failure;

/// Requests that are answered at the same time; a browser has a few.
const MOST: usize = 32;
/// Bytes of a request that are read.
const LONGEST: usize = 16 << 10;
/// How often a file and Ctrl-C are looked at.
const TICK: Duration = Duration::from_millis(100);
/// A stream that says nothing for so long might have lost its reader.
const QUIET: Duration = Duration::from_secs(10);

pub fn run(args: &ExplainArgs, port: u16) -> Result<(), Failure> {
    let failed = |e: io::Error| {
        let help = "another program may have the port; `--serve 0` takes one that is free";
        Failure::usage(format!("127.0.0.1:{port} cannot be listened on: {e}; {help}"))
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    listener.set_nonblocking(true).map_err(failed)?;
    outln!("http://127.0.0.1:{port}/  (Ctrl-C ends it)")?;
    let open = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        while !girih::interrupted() {
            match listener.accept() {
                Ok((stream, _)) if open.load(Ordering::Relaxed) < MOST => {
                    open.fetch_add(1, Ordering::Relaxed);
                    let open = &open;
                    scope.spawn(move || {
                        // A browser that goes away is no failure of ours.
                        let _ = answer(stream, args, port);
                        open.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                _ => std::thread::sleep(TICK / 5),
            }
        }
    });
    Ok(())
}

fn answer(mut stream: TcpStream, args: &ExplainArgs, port: u16) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(30)))?;
    let Some(request) = read(&mut stream)? else {
        return respond(&mut stream, "400 Bad Request", "text/plain", "this is no request that a browser sends\n");
    };
    if !request.host.is_some_and(|host| is_ours(&host, port)) {
        return respond(&mut stream, "403 Forbidden", "text/plain", "only http://127.0.0.1 is answered\n");
    }
    match request.path.split_once('?').unwrap_or((&request.path, "")) {
        ("/", _) => {
            let version = version(args);
            let page = match super::page(args) {
                Ok(page) => page,
                Err(failure) => content::problem(&title(args), &failure.text()),
            };
            respond(&mut stream, "200 OK", "text/html; charset=utf-8", &content::live(&page, &version))
        }
        ("/events", seen) => events(&mut stream, args, seen),
        _ => respond(&mut stream, "404 Not Found", "text/plain", "there is one page: /\n"),
    }
}

struct Request {
    path: String,
    host: Option<String>,
}

/// The request, without what may follow its head; `None` where it is not one.
fn read(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => return Ok(None),
            n => bytes.extend_from_slice(part.get(..n).unwrap_or_default()),
        }
        if bytes.len() > LONGEST {
            return Ok(None);
        }
    }
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

fn parse(head: &str) -> Option<Request> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (Some("GET"), Some(path), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return None;
    };
    if !version.starts_with("HTTP/1.") || !path.starts_with('/') {
        return None;
    }
    let host = lines.take_while(|l| !l.is_empty()).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_string())
    });
    Some(Request { path: path.to_string(), host })
}

/// Whether a request was meant for this machine by its own name.
fn is_ours(host: &str, port: u16) -> bool {
    let name = host.strip_suffix(&format!(":{port}")).unwrap_or(if port == 80 { host } else { "" });
    matches!(name, "127.0.0.1" | "localhost")
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nX-Content-Type-Options: \
         nosniff\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

/// Tells a page that was made of one version when there is another.
fn events(stream: &mut TcpStream, args: &ExplainArgs, seen: &str) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n: begins\n\n";
    stream.write_all(head.as_bytes())?;
    stream.flush()?;
    let mut said = Instant::now();
    while !girih::interrupted() {
        let now = version(args);
        // A file that is being replaced is not there for a moment.
        if now != seen && now != NONE {
            stream.write_all(b"data: changed\n\n")?;
            return stream.flush();
        }
        if said.elapsed() > QUIET {
            stream.write_all(b": nothing new\n\n")?;
            stream.flush()?;
            said = Instant::now();
        }
        std::thread::sleep(TICK);
    }
    Ok(())
}

/// The version of what has none: an expression, or a file that cannot be looked at.
const NONE: &str = "none";

/// What changes when the file does.
fn version(args: &ExplainArgs) -> String {
    let of = |path: &Path| -> Option<String> {
        let about = std::fs::metadata(path).ok()?;
        let since = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(format!("{}-{}", since.as_nanos(), about.len()))
    };
    args.kernel.file.as_deref().and_then(of).unwrap_or_else(|| NONE.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_others_refused() {
        let request = parse("GET /events?12-3 HTTP/1.1\r\nHost: localhost:7411\r\nAccept: */*\r\n\r\n").unwrap();
        assert_eq!((request.path.as_str(), request.host.as_deref()), ("/events?12-3", Some("localhost:7411")));
        for wrong in
            ["", "POST / HTTP/1.1\r\n\r\n", "GET http://x/ HTTP/1.1\r\n\r\n", "GET / FTP\r\n\r\n", "GET /\r\n\r\n"]
        {
            assert!(parse(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        assert!(is_ours("127.0.0.1:7411", 7411) && is_ours("localhost:7411", 7411) && is_ours("localhost", 80));
        for other in ["evil.example:7411", "127.0.0.1:80", "localhost", "", "127.0.0.1.evil.example:7411"] {
            assert!(!is_ours(other, 7411), "{other}");
        }
    }
}

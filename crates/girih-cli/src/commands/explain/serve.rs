//! `--serve`: the page at a port of this machine, which shows the newest version of the file.
//!
//! In: a port. Out: answers to a browser on the same machine until Ctrl-C: `/` is the page, made anew for each request, and
//! `/events` tells it that there is another version of the file. The errors of a wrong file are shown in place of its page.
//!
//! Invariants: it listens on 127.0.0.1 alone, and answers only requests that name this address and that no other site's page
//! made; it reads the given file and no other. A whole request has a time limit, and when all connections are taken the
//! oldest is closed, first those that have not sent their request: no client shuts others out.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use girih_page::explain;

use super::title;
use crate::cli::ExplainArgs;
use crate::failure::Failure;

/// Requests that are answered at the same time; a browser has a few.
const MOST: usize = 32;
/// The time limit for a browser's request, and for taking an answer.
const ASKING: Duration = Duration::from_secs(5);
const TAKING: Duration = Duration::from_secs(60);
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
    let places = Places::default();
    std::thread::scope(|scope| {
        while !girih::interrupted() {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(TICK / 5);
                continue;
            };
            let Ok(place) = places.take(&stream) else { continue };
            let (places, mut refused) = (&places, stream.try_clone());
            let begun = std::thread::Builder::new().spawn_scoped(scope, move || {
                // A browser may go away at any time: that is not an error.
                let _ = answer(stream, args, port, &|| places.asked(place));
                places.leave(place);
            });
            if begun.is_err() {
                places.leave(place);
                let say = |s: &mut TcpStream| respond(s, "503 Service Unavailable", "text/plain", "too many threads\n");
                let _ = refused.as_mut().map(say);
            }
        }
    });
    Ok(())
}

/// The connections that are open.
#[derive(Default)]
struct Places(Mutex<(u64, Vec<Connection>)>);

struct Connection {
    number: u64,
    stream: TcpStream,
    /// Its request is complete.
    asked: bool,
}

impl Places {
    fn all(&self) -> MutexGuard<'_, (u64, Vec<Connection>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection; where all are taken, the oldest of the others is closed.
    fn take(&self, stream: &TcpStream) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let (next, open) = &mut *self.all();
        if open.len() >= MOST {
            let oldest = open.iter().position(|c| !c.asked).unwrap_or(0);
            let _ = open.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        *next += 1;
        open.push(Connection { number: *next, stream, asked: false });
        Ok(*next)
    }

    fn asked(&self, number: u64) {
        self.all().1.iter_mut().filter(|c| c.number == number).for_each(|c| c.asked = true);
    }

    fn leave(&self, number: u64) {
        self.all().1.retain(|c| c.number != number);
    }
}

/// Answers a request; `asked` is called when it has been read.
fn answer(mut stream: TcpStream, args: &ExplainArgs, port: u16, asked: &dyn Fn()) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let request = read(&mut stream, Instant::now() + ASKING)?;
    asked();
    let Some(request) = request else {
        return respond(&mut stream, "400 Bad Request", "text/plain", "this is not a request that a browser sends\n");
    };
    if let Err(why) = request.is_for_us(port) {
        return respond(&mut stream, "403 Forbidden", "text/plain", why);
    }
    match request.path.split_once('?').unwrap_or((&request.path, "")) {
        ("/", _) => {
            let version = version(args);
            let page = match super::page(args) {
                Ok(page) => page,
                Err(failure) => explain::problem(&title(args), &failure.text()),
            };
            respond(&mut stream, "200 OK", "text/html; charset=utf-8", &explain::live(&page, &version))
        }
        ("/events", seen) => events(&mut stream, args, seen),
        _ => respond(&mut stream, "404 Not Found", "text/plain", "there is one page: /\n"),
    }
}

struct Request {
    path: String,
    /// The values of the headers with these names, in order.
    host: Vec<String>,
    origin: Vec<String>,
    site: Vec<String>,
}

impl Request {
    /// Refuses a request that was not meant for this page, or that neither the page nor a person made; the error says why.
    fn is_for_us(&self, port: u16) -> Result<(), &'static str> {
        if !matches!(&self.host[..], [host] if is_ours(host, port)) {
            return Err("only http://127.0.0.1 is answered\n");
        }
        let own = |origin: &String| origin.strip_prefix("http://").is_some_and(|host| is_ours(host, port));
        // Browsers say who made a request: this page, a person, or a page of another site or port.
        let here = |site: &String| matches!(site.as_str(), "same-origin" | "none");
        if !self.origin.iter().all(own) || !self.site.iter().all(here) {
            return Err("requests of other pages are not answered\n");
        }
        Ok(())
    }
}

/// The head of a request; `None` if the bytes are not a request, or take too long.
fn read(stream: &mut TcpStream, until: Instant) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|w| w == b"\r\n\r\n") {
        let Some(left) = until.checked_duration_since(Instant::now()).filter(|t| !t.is_zero()) else { return Ok(None) };
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(None),
            Ok(n) => bytes.extend_from_slice(part.get(..n).unwrap_or_default()),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(None),
            Err(e) => return Err(e),
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
    let headers: Vec<(&str, &str)> = lines.take_while(|l| !l.is_empty()).filter_map(|l| l.split_once(':')).collect();
    let said = |wanted: &str| {
        let of = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        of.map(|(_, value)| value.trim().to_string()).collect()
    };
    Some(Request { path: path.to_string(), host: said("host"), origin: said("origin"), site: said("sec-fetch-site") })
}

/// Returns true if a request names this machine's own address.
fn is_ours(host: &str, port: u16) -> bool {
    let name = host.strip_suffix(&format!(":{port}")).unwrap_or(if port == 80 { host } else { "" });
    matches!(name, "127.0.0.1" | "localhost")
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let until = Instant::now() + TAKING;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nX-Content-Type-Options: \
         nosniff\r\nConnection: close\r\n\r\n"
    );
    write(stream, head.as_bytes(), until)?;
    write(stream, body.as_bytes(), until)?;
    stream.flush()
}

/// Writes all, or as much as is taken in time.
fn write(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.checked_duration_since(Instant::now()).filter(|t| !t.is_zero());
        stream.set_write_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => bytes = bytes.get(n..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Tells a page that was made of one version when there is another.
fn events(stream: &mut TcpStream, args: &ExplainArgs, seen: &str) -> io::Result<()> {
    stream.set_write_timeout(Some(TAKING))?;
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

/// The version of an expression, or of a file that cannot be looked at.
const NONE: &str = "none";

/// The file's version: its time of modification and length.
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
        assert_eq!((request.path.as_str(), &request.host[..]), ("/events?12-3", &["localhost:7411".to_string()][..]));
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

    #[test]
    fn requests_of_other_pages_are_refused() {
        let answered = |headers: &str| {
            let head = format!("GET / HTTP/1.1\r\n{headers}\r\n\r\n");
            parse(&head).unwrap().is_for_us(7411).is_ok()
        };
        let host = "Host: 127.0.0.1:7411";
        for own in ["", "\r\nSec-Fetch-Site: none", "\r\nsec-fetch-site: same-origin\r\nOrigin: http://127.0.0.1:7411"]
        {
            assert!(answered(&format!("{host}{own}")), "{own}");
        }
        for other in [
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
            "SEC-FETCH-SITE: none\r\nSec-Fetch-Site: cross-site",
            "Origin: http://evil.example",
            "Origin: null",
            "Origin: http://127.0.0.1:80",
            "Origin: https://127.0.0.1:7411",
            "Host: evil.example",
        ] {
            assert!(!answered(&format!("{host}\r\n{other}")), "{other}");
        }
        assert!(!answered("Accept: */*"));
    }
}

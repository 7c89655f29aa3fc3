//! A browser that a test clicks in: Chromium without a window, driven over two pipes by its own protocol.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Lab;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Flags that keep it from doing anything of its own accord.
const FLAGS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
];
const DEADLINE: Duration = Duration::from_secs(120);

/// A page in a browser of its own.
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// The errors of the page.
    pub errors: Vec<String>,
}

/// The browser that is installed. Without one a test says so and passes, unless `GIRIH_BROWSER=1` wants it: `make browser`.
fn installed() -> Option<&'static str> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let found = NAMES.into_iter().find(there);
    if found.is_none() {
        let missing = format!("none of {} is installed: apt install chromium", NAMES.join(", "));
        assert!(std::env::var_os("GIRIH_BROWSER").is_none(), "{missing}");
        eprintln!("skipped: {missing}");
    }
    found
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors, which nobody else owns.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    }
}

impl Browser {
    /// Opens an address in a window of 1280 x 800; `None` where no browser is installed.
    pub fn open(lab: &Lab, url: &str) -> Option<Browser> {
        let name = installed()?;
        let ((commands, to), (from, answers)) = (pipe(), pipe());
        let (reads, writes) = (commands.as_raw_fd(), answers.as_raw_fd());
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let profile = lab.path(&format!("profile-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let mut command = Command::new(name);
        command.args(FLAGS).arg(format!("--user-data-dir={profile}")).arg("about:blank");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let prepare = move || {
            // SAFETY: both calls may be made between fork and exec. The copies lie above 4, so that neither is overwritten.
            unsafe {
                let (reads, writes) = (libc::fcntl(reads, libc::F_DUPFD, 10), libc::fcntl(writes, libc::F_DUPFD, 10));
                if libc::dup2(reads, 3) < 0 || libc::dup2(writes, 4) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                #[cfg(target_os = "linux")]
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            }
            Ok(())
        };
        // SAFETY: as above.
        let child = unsafe { command.pre_exec(prepare) }.spawn().unwrap();
        drop((commands, answers));
        let (send, receive) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(File::from(from));
            let mut bytes = vec![];
            while lines.read_until(0, &mut bytes).is_ok_and(|n| n > 0) {
                bytes.pop();
                let Ok(value) = serde_json::from_slice(&bytes) else { break };
                if send.send(value).is_err() {
                    break;
                }
                bytes.clear();
            }
        });
        let mut b = Browser { child, to: File::from(to), from: receive, next: 0, session: None, errors: vec![] };
        let target = b.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = b.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        b.session = attached["sessionId"].as_str().map(String::from);
        for part in ["Page", "Runtime", "Log"] {
            b.call(&format!("{part}.enable"), json!({}));
        }
        b.window(1280, 800);
        b.call("Page.navigate", json!({ "url": url }));
        b.until("document.readyState === 'complete' && location.href !== 'about:blank'");
        Some(b)
    }

    /// Opens a file of the lab.
    pub fn open_file(lab: &Lab, path: &str) -> Option<Browser> {
        Browser::open(lab, &format!("file://{path}"))
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(&[0]).unwrap();
        loop {
            let answer = self.from.recv_timeout(DEADLINE).unwrap_or_else(|e| panic!("{method}: {e}"));
            match answer["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.errors.push(answer["params"].to_string()),
                Some("Log.entryAdded") if answer["params"]["entry"]["level"] == "error" => {
                    self.errors.push(answer["params"].to_string());
                }
                _ if answer["id"] == self.next => {
                    assert!(answer["error"].is_null(), "{method}: {answer}");
                    return answer["result"].clone();
                }
                _ => {}
            }
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// A number that an expression gives.
    #[track_caller]
    pub fn number(&mut self, expression: &str) -> f64 {
        self.eval(expression).as_f64().unwrap_or_else(|| panic!("{expression} is not a number"))
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn until(&mut self, expression: &str) {
        let start = Instant::now();
        while self.eval(&format!("Boolean({expression})")) != true {
            assert!(start.elapsed() < DEADLINE, "{expression}: not within {DEADLINE:?}; {:?}", self.errors);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Clicks in the middle of the element that an expression gives, as a mouse does: an element that lies over it gets the click.
    #[track_caller]
    pub fn click(&mut self, element: &str) {
        let place = self.eval(&format!(
            "(() => {{ const e = {element}; e.scrollIntoView({{ block: 'nearest', inline: 'nearest' }}); const r = \
             e.getBoundingClientRect(); return [r.x + Math.min(r.width, 200) / 2, r.y + r.height / 2]; }})()"
        ));
        for (kind, buttons) in [("mousePressed", 1), ("mouseReleased", 0)] {
            let params = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "buttons": buttons, "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// Presses a key that has a name, such as `ArrowRight`.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Makes the window another size.
    pub fn window(&mut self, width: u32, height: u32) {
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    pub fn dark(&mut self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// With `GIRIH_SCREENSHOTS=DIR`, a picture of the page goes there.
    pub fn picture(&mut self, name: &str) {
        let Some(dir) = std::env::var_os("GIRIH_SCREENSHOTS") else { return };
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let path = std::path::PathBuf::from(dir).join(format!("{name}.png"));
        std::fs::write(path, base64(shot["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let (mut out, mut bits, mut count) = (vec![], 0u32, 0);
    for c in text.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

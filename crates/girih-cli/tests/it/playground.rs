//! The playground in a browser: type, see, run, find a race, share, load again. `make browser` builds it and names its folder.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::lab::Lab;
use crate::lab::browser::Browser;

/// A file server for a folder, which ends with the value.
struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The playground at a port of this machine; `None` where it is not built.
fn served() -> Option<Served> {
    let Some(folder) = std::env::var_os("GIRIH_PLAYGROUND") else {
        eprintln!("skipped: GIRIH_PLAYGROUND names no folder; see `make browser`");
        return None;
    };
    let mut command = Command::new("python3");
    command.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0", "--directory"]).arg(folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{line}"));
    Some(Served { url: format!("http://127.0.0.1:{port}/"), child })
}

fn page(lab: &Lab, hash: &str) -> Option<(Served, Browser)> {
    let served = served()?;
    let mut b = Browser::open(lab, &format!("{}{hash}", served.url))?;
    b.until("document.querySelector('#state').textContent.startsWith('compiled')");
    Some((served, b))
}

const STATE: &str = "document.querySelector('#state').textContent";

/// Sets the text as typing does.
fn write(b: &mut Browser, text: &str) {
    let text = serde_json::to_string(text).unwrap();
    b.eval(&format!(
        "(() => {{ const s = document.querySelector('#source'); s.value = {text}; s.dispatchEvent(new Event('input')); return 1; }})()"
    ));
}

fn choose(b: &mut Browser, list: &str, value: &str) {
    b.eval(&format!(
        "(() => {{ const s = document.querySelector('#{list}'); s.value = '{value}'; s.dispatchEvent(new Event('change')); return 1; }})()"
    ));
}

/// 6.3 MB of the module are 1.5 MB with Brotli.
#[test]
fn in_a_browser_the_module_is_small() {
    let Some(folder) = std::env::var_os("GIRIH_PLAYGROUND") else { return };
    let size = std::fs::metadata(std::path::Path::new(&folder).join("girih.wasm")).unwrap().len();
    assert!(size < 6_300_000, "the module has {size} bytes: a crate that the page does not need has come in");
}

#[test]
fn in_a_browser_a_text_is_compiled_as_it_is_typed() {
    let lab = Lab::new("playground");
    let Some((_served, mut b)) = page(&lab, "") else { return };
    b.until("document.querySelectorAll('[data-stage=cuda] .ln').length > 20");
    b.picture("playground");
    // The line with the cursor lights up its counterparts, and a line of the CUDA that of the source.
    b.eval(
        "(() => { const s = document.querySelector('#source'), at = s.value.indexOf('exp '); s.focus(); s.setSelectionRange(at, at); \
         s.dispatchEvent(new Event('click')); return 1; })()",
    );
    assert!(b.number("document.querySelectorAll('[data-stage=cuda] .ln.on').length") > 0.0);
    let lit = "[...document.querySelectorAll('#shown .ln.on')].map(l => l.textContent).join()";
    assert!(b.eval(lit).as_str().unwrap().contains("exp "));
    b.click("document.querySelector('[data-stage=cuda] .ln.on')");
    assert!(b.eval(lit).as_str().unwrap().contains("exp "));
    b.picture("playground-chosen");
    // Stages and views that are open stay open.
    b.click("document.querySelector('[data-stage=kernel]')");
    b.click("document.querySelector('[data-view=rules]')");
    let text = b.eval("document.querySelector('#source').value").as_str().unwrap().to_string();
    write(&mut b, &text.replace("@softmax", "@another"));
    b.until("!document.querySelector('#views').classList.contains('old')");
    assert_eq!(b.eval("document.querySelector('#rules').hidden"), false);
    b.click("document.querySelector('[data-view=stages]')");
    b.until("document.querySelector('[data-stage=cuda] .lines').textContent.includes('another')");
    assert_eq!(b.eval("document.querySelector('[data-stage=kernel]').classList.contains('folded')"), false);
    // Another target.
    choose(&mut b, "target", "cpu");
    b.until("document.querySelector('[data-stage=c]')");
    // An error, and its line.
    write(&mut b, &text.replacen("iota", "iotta", 1));
    b.until("document.querySelectorAll('#notes li.error').length === 1");
    assert!(b.eval(STATE).as_str().unwrap().contains("does not compile"));
    assert_eq!(b.number("document.querySelectorAll('#shown .ln.wrong').length"), 1.0);
    b.picture("playground-error");
    // A model has a graph.
    choose(&mut b, "examples", "model: softmax");
    b.until(
        "!document.querySelector('[data-view=graph]').hidden && document.querySelectorAll('.graph .node').length > 0",
    );
    b.click("document.querySelector('[data-view=graph]')");
    b.until("!document.querySelector('#graph').hidden");
    b.dark(true);
    b.picture("playground-graph-dark");
    assert_eq!(b.errors, [""; 0]);
    assert_eq!(b.number("document.documentElement.scrollWidth"), 1280.0);
    b.dark(false);
    b.window(390, 800);
    b.click("document.querySelector('[data-view=stages]')");
    b.picture("playground-narrow");
    assert!(b.number("document.documentElement.scrollWidth") <= 390.0);
}

#[test]
fn in_a_browser_a_race_is_found_and_shared() {
    let lab = Lab::new("playground-race");
    let Some((served, mut b)) = page(&lab, "") else { return };
    choose(&mut b, "examples", "race");
    b.until("!document.querySelector('#views').classList.contains('old')");
    b.click("document.querySelector('#run')");
    b.until("document.querySelector('#outcome pre.array')");
    assert_eq!(b.eval("document.querySelector('#outcome pre.array').textContent"), "[28.0]");
    b.click("document.querySelector('#simulate')");
    b.until("document.querySelector('#outcome .linked .ln')");
    assert!(
        b.eval("document.querySelector('#outcome p').textContent")
            .as_str()
            .unwrap()
            .contains("found, beside the source")
    );
    assert!(b.number("document.querySelectorAll('#shown .ln.wrong').length") >= 1.0);
    b.picture("playground-race");
    b.click("document.querySelector('#share')");
    b.until("location.hash.startsWith('#1')");
    let address = b.eval("location.href").as_str().unwrap().to_string();
    assert_eq!(b.errors, [""; 0]);
    // The address alone brings the text back.
    let mut again = Browser::open(&lab, &address).unwrap();
    again.until("document.querySelector('#source').value.includes('@race')");
    again.until("document.querySelector('#state').textContent.startsWith('compiled')");
    assert_eq!(again.errors, [""; 0]);
    drop(served);
}

#[test]
fn in_a_browser_a_kernel_in_python_is_traced() {
    let lab = Lab::new("playground-python");
    let Some((_served, mut b)) = page(&lab, "") else { return };
    if b.eval("fetch('pyodide/pyodide.mjs', { method: 'HEAD' }).then(r => r.ok)") != true {
        eprintln!("skipped: the playground was built without Pyodide");
        return;
    }
    choose(&mut b, "examples", "Python: vector_add");
    b.until("document.querySelector('#notes li') || document.querySelector('[data-stage=cuda] .lines').textContent.includes('add_kernel')");
    assert_eq!(b.eval("document.querySelector('#notes').textContent"), "");
    // The line of the sum, and the addition in the CUDA.
    b.eval(
        "(() => { const s = document.querySelector('#source'), at = s.value.indexOf('a + b'); s.focus(); s.setSelectionRange(at, at); \
         s.dispatchEvent(new Event('click')); return 1; })()",
    );
    assert!(b.number("document.querySelectorAll('[data-stage=cuda] .ln.on').length") > 0.0);
    b.picture("playground-python");
    b.click("document.querySelector('#run')");
    b.until("document.querySelectorAll('#outcome pre.array').length === 3");
    b.click("document.querySelector('#simulate')");
    b.until("document.querySelector('#outcome .linked .ln')");
    assert!(b.eval("document.querySelector('#outcome p').textContent").as_str().unwrap().starts_with("Nothing found"));
    // The lesson of docs/afternoon.md, whose launch is NumPy's, which is not there.
    let text = b.eval("document.querySelector('#source').value").as_str().unwrap().to_string();
    choose(&mut b, "examples", "Python: softmax");
    b.until("document.querySelector('[data-stage=cuda] .lines').textContent.includes('softmax_kernel')");
    b.click("document.querySelector('#run')");
    b.until("document.querySelectorAll('#outcome pre.array').length === 2");
    write(&mut b, &text);
    // Mistakes have their lines: of the language, and of a run.
    write(&mut b, &text.replace("tl.arange", "tl.arrange"));
    b.until("document.querySelectorAll('#notes li.error').length === 1");
    let lines = "[...document.querySelectorAll('#shown .ln.wrong')].map(l => l.textContent).join()";
    assert!(b.eval(lines).as_str().unwrap().contains("arrange"));
    write(&mut b, &text.replace("a + b, mask=inside", "a + b"));
    b.until("!document.querySelector('#views').classList.contains('old')");
    b.click("document.querySelector('#run')");
    b.until("document.querySelectorAll('#notes li.error').length === 1");
    assert!(b.eval(lines).as_str().unwrap().contains("tl.store"));
    // Python of a text reaches neither the browser nor other hosts.
    write(&mut b, &format!("import js\njs.fetch('/')\n{text}"));
    b.until("!document.querySelector('#views').classList.contains('old') || document.querySelector('#notes li')");
    assert_eq!(b.errors, [""; 0]);
}

#[test]
fn in_a_browser_a_strange_address_does_no_harm() {
    let lab = Lab::new("playground-hostile");
    for hash in ["#1%%%", "#1AAAA", &format!("#1{}", "A".repeat(200_000)), "#rules", "#1W10"] {
        let Some((_served, mut b)) = page(&lab, hash) else { return };
        assert!(
            b.eval("document.querySelector('#source').value").as_str().unwrap().contains("entry"),
            "{}",
            &hash[..6]
        );
    }
    // Names are text, not markup.
    let Some((_served, mut b)) = page(&lab, "") else { return };
    write(&mut b, "# <img src=x onerror=alert(1)>\ntorch.ones(2) # </script><b id=evil>");
    b.until("!document.querySelector('#views').classList.contains('old')");
    assert_eq!(b.number("document.querySelectorAll('#evil, img').length"), 0.0);
    assert_eq!(b.errors, [""; 0]);
    // A worker that is made as the compiler's is obeys the page: it evaluates no text, and asks no other host.
    let says = |code: &str| {
        let code = serde_json::to_string(&format!(
            "self.addEventListener('securitypolicyviolation', (e) => postMessage(e.effectiveDirective)); {code}"
        ))
        .unwrap();
        format!(
            "new Promise((done) => {{ const made = URL.createObjectURL(new Blob([{code}], {{ type: 'text/javascript' }})); \
             new Worker(made, {{ type: 'module' }}).onmessage = (m) => done(m.data); }})"
        )
    };
    assert_eq!(b.eval(&says("try { eval('postMessage(1)'); } catch {}")), "script-src");
    assert_eq!(b.eval(&says("fetch('http://localhost:9/').then(() => postMessage(2), () => {});")), "connect-src");
}

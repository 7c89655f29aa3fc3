//! `girih explain`: the page is whole or not there, needs nothing else, is small, and does what it says when it is clicked on.

use crate::lab;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use lab::browser::Browser;
use lab::{ADD, GATE, Lab, Running, err, expect, finish, out, until};
use serde_json::Value;

/// The data of a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").expect("data");
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn stage<'d>(data: &'d Value, name: &str) -> &'d Value {
    data["stages"].as_array().unwrap().iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("no stage {name}"))
}

/// The lines of a stage that have a number, without blanks around.
fn lines_of(stage: &Value, number: &Value) -> Vec<String> {
    let text: Vec<&str> = stage["text"].as_str().unwrap().lines().collect();
    let links = stage["links"].as_array().unwrap().iter();
    let with = links.filter(|l| l[1].as_array().unwrap().contains(number));
    with.map(|l| text[l[0].as_u64().unwrap() as usize - 1].trim().to_string()).collect()
}

/// The number of the only line that has a text in it.
fn number_of(stage: &Value, text: &str) -> Value {
    let at = stage["text"].as_str().unwrap().lines().position(|l| l.contains(text)).unwrap() as u64 + 1;
    let link = stage["links"].as_array().unwrap().iter().find(|l| l[0] == at).unwrap_or_else(|| panic!("{text}"));
    link[1][0].clone()
}

fn page(lab: &Lab, args: &[&str]) -> String {
    let path = lab.path("page.html");
    expect(&lab.girih(&[&["explain"], args, &["--html", &path]].concat()), 0, "");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn lines_of_all_stages_that_were_made_for_one_operation_are_linked() {
    let lab = Lab::new("explain-links");
    let add = lab.file("add.mlir", ADD);
    for (target, source) in [("x86-64-v4", "c"), ("sm_80", "cuda")] {
        let data = data(&page(&lab, &[&add, "--target", target]));
        let number = number_of(stage(&data, "source"), "%z = addf");
        assert_eq!(lines_of(stage(&data, "cuda_tile"), &number).len(), 1, "{target}");
        for (name, text) in [("loop", "x + y"), ("tile", "x + y"), ("kernel", "addf x, y"), (source, "x + y")] {
            let lines = lines_of(stage(&data, name), &number);
            assert!(lines.iter().any(|l| l.contains(text)), "{target} {name}: {lines:?}");
            // Nothing of the operations beside it.
            assert!(!lines.iter().any(|l| l.contains("load") || l.contains("store")), "{target} {name}: {lines:?}");
        }
        let store = number_of(stage(&data, "source"), "store_ptr_tko");
        for name in ["loop", "tile", "kernel"] {
            assert!(lines_of(stage(&data, name), &store).iter().any(|l| l.starts_with("store c[")), "{target} {name}");
        }
        assert!(
            lines_of(stage(&data, source), &store).iter().any(|l| l.contains("c[") || l.contains("c +")),
            "{target}"
        );
    }
}

#[test]
fn most_lines_of_every_stage_are_linked_for_products_and_attention_too() {
    let lab = Lab::new("explain-share");
    let linear = "torch.nn.functional.silu(torch.nn.Linear(256, 128)(torch.randn(64, 256)))";
    let attention = "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 4, 64, 32), torch.randn(1, 4, 64, 32), \
                     torch.randn(1, 4, 64, 32))";
    for model in [linear, attention, "torch.softmax(torch.randn(64, 300), -1)"] {
        for target in ["x86-64-v4", "sm_80", "sm_90a"] {
            let data = data(&page(&lab, &["-c", model, "--target", target]));
            for s in data["stages"].as_array().unwrap() {
                let name = s["name"].as_str().unwrap();
                if !matches!(name, "loop" | "tile" | "kernel") {
                    continue;
                }
                // Without heads of kernels, declarations of memory, closing lines, and statements that only order threads.
                let unlinked = [
                    "}",
                    "kernel ",
                    "loop kernel",
                    "tile kernel",
                    "slot ",
                    "shared ",
                    "tensor ",
                    "barrier",
                    "syncwarp",
                    "commit",
                    "wait",
                    "fence",
                    "arrive",
                    "init ",
                    "poll",
                    "wgmma commit",
                    "wgmma wait",
                    "registers",
                    "copy commit",
                    "copy wait",
                    "global",
                    "require",
                ];
                let linked: Vec<u64> = s["links"].as_array().unwrap().iter().map(|l| l[0].as_u64().unwrap()).collect();
                let text = s["text"].as_str().unwrap();
                let of = (1..)
                    .zip(text.lines())
                    .filter(|(_, l)| !l.trim().is_empty() && !unlinked.iter().any(|u| l.trim().starts_with(u)));
                let (all, with) =
                    of.fold((0, 0), |(all, with), (n, _)| (all + 1, with + u32::from(linked.contains(&n))));
                assert!(with * 10 >= all * 9, "{name} of {model} for {target}: {with} of {all} lines");
            }
        }
    }
}

#[test]
fn rules_are_there_with_diffs_and_refusals() {
    let lab = Lab::new("explain-rules");
    let add = lab.file("add.mlir", ADD);
    let data = data(&page(&lab, &[&add, "--target", "x86-64-v4"]));
    let steps = data["steps"].as_array().unwrap();
    // The page has the same rules as `-vv` prints.
    let printed = out(&lab.girih(&["compile", &add, "--target", "x86-64-v4", "-vv"]));
    let applied: usize = steps.iter().map(|s| s["applied"].as_array().unwrap().len()).sum();
    let skipped: usize = steps.iter().map(|s| s["skipped"].as_array().unwrap().len()).sum();
    assert_eq!(applied, printed.lines().filter(|l| l.starts_with("+++ ") && !l.contains(" makes `")).count());
    assert_eq!(skipped, printed.lines().filter(|l| l.starts_with("--- ") && l.contains(" skipped at ")).count());
    let vectorise = steps.iter().find(|s| s["name"].as_str().unwrap().ends_with("_vectorise")).unwrap();
    assert!(vectorise["diff"].as_str().unwrap().contains("vector("), "{vectorise}");
    assert!(printed.contains(vectorise["diff"].as_str().unwrap()));
    let rule = &data["rules"][vectorise["name"].as_str().unwrap()];
    assert!(!rule["first"].as_str().unwrap().is_empty(), "{}", data["rules"]);
}

#[test]
fn a_model_has_its_graph_and_what_its_kernels_take() {
    let lab = Lab::new("explain-model");
    let gate = lab.file("gate.json", GATE);
    let text = page(&lab, &[&gate, "--arg", "x=randn:f32[8x64]", "--arg", "w=randn:f32[32x64]", "--profile"]);
    assert_eq!(text.matches("class=\"node\"").count(), 2, "{text}");
    assert!(text.contains(">linear</text>") && text.contains(">silu</text>") && text.contains("of limit"));
    assert!(text.contains("A run takes "), "{text}");
    // Every launch of a run has its time, and none of loading.
    for row in text.split("<tr data-kernel=").skip(1) {
        let row = row.split("</tr>").next().unwrap();
        assert_eq!(row.contains(" %</td>"), !row.contains("at load"), "{row}");
    }
    let data = data(&text);
    // Both operations are one kernel's.
    let kernels = data["kernels"].as_array().unwrap();
    let run: Vec<&Value> = kernels.iter().filter(|k| k["sources"].as_array().unwrap().len() == 2).collect();
    assert_eq!(run.len(), 1, "{kernels:?}");
    // A layer that runs another one's code is linked with it.
    let two = "torch.relu(torch.nn.Linear(64, 64)(torch.relu(torch.nn.Linear(64, 64)(torch.randn(8, 64)))))";
    let text = page(&lab, &["-c", two]);
    assert!(text.contains("runs the code of "), "{text}");
    let data = self::data(&text);
    let torch = stage(&data, "torch");
    let relus: Vec<&Value> =
        data["kernels"].as_array().unwrap().iter().flat_map(|k| k["sources"].as_array().unwrap()).collect();
    assert!(relus.iter().all(|n| !lines_of(stage(&data, "kernel"), n).is_empty() || lines_of(torch, n).is_empty()));
    assert!(stage(&data, "source")["links"].as_array().unwrap().len() == 1);
    let o = lab.girih(&["explain", &lab.file("add.mlir", ADD), "--profile", "--html", &lab.path("x.html")]);
    expect(&o, 2, "--profile works with models only");
    let o = lab.girih(&["explain", &gate, "--profile", "--target", "sm_80", "--html", &lab.path("x.html")]);
    expect(&o, 2, "leave out --target");
}

#[test]
fn a_page_is_whole_or_not_there() {
    let lab = Lab::new("explain-whole");
    let add = lab.file("add.mlir", ADD);
    let o = lab.girih(&["explain", &add, "--html", &lab.path("no/such/folder.html")]);
    expect(&o, 1, "folder.html");
    assert!(err(&o).starts_with("error[") && err(&o).contains("cannot be written"), "{}", err(&o));
    let wrong = lab.file("wrong.mlir", &ADD.replace("addf %x", "addf %nothing"));
    expect(&lab.girih(&["explain", &wrong, "--html", &lab.path("wrong.html")]), 1, "wrong.mlir");
    assert_eq!(lab.names(), ["add.mlir", "wrong.mlir"]);
    expect(&lab.girih(&["explain", &add]), 2, "--html FILE, or show it with --serve");
    // Users' names do not become markup.
    let text = page(&lab, &["-c", "torch.relu(torch.randn(4)) # </script><b>&"]);
    assert!(!text.contains("</script><b>"));
    // Nothing is loaded from anywhere.
    assert!(!text.contains("src=") && text.contains("default-src 'none'"));
}

#[test]
fn kernel_ir_by_hand_is_explained() {
    let lab = Lab::new("explain-by-hand");
    let kernel = "kernel twice(x: ptr<f32>) threads 32 scratch 0 {\n  v: f32 = load x[tx]\n  store x[tx] = v\n}\n";
    let file = lab.file("twice.kir", kernel);
    let data = data(&page(&lab, &[&file, "--target", "sm_80"]));
    let number = number_of(stage(&data, "kernel"), "store x");
    let lines = lines_of(stage(&data, "cuda"), &number);
    assert!(lines.len() == 1 && lines[0].contains("x["), "{lines:?}");
}

#[test]
fn the_assembly_is_the_last_stage() {
    let lab = Lab::new("explain-assembly");
    let add = lab.file("add.mlir", ADD);
    for given in [vec![add.as_str()], vec!["-c", "torch.randn(64) + 1"]] {
        let data = data(&page(&lab, &given));
        let last = data["stages"].as_array().unwrap().last().unwrap();
        assert_eq!(last["name"], "assembly");
        let sum = number_of(stage(&data, "source"), if given.len() == 1 { "%z = addf" } else { "+" });
        let lines = lines_of(last, &sum);
        assert!(lines.iter().any(|l| l.contains("add")), "{lines:?}");
        assert_eq!(last["kernels"].as_array().unwrap().len(), 1, "{}", last["kernels"]);
    }
    // Without a compiler it says so, and a GPU's is left out without its tools.
    let path = lab.path("none.html");
    expect(&finish(lab.command(&["explain", &add, "--html", &path]).env("GIRIH_CC", "/nowhere/cc")), 0, "");
    let data = data(&std::fs::read_to_string(path).unwrap());
    let text = stage(&data, "assembly")["text"].as_str().unwrap();
    assert!(text.starts_with("// ") && text.contains("/nowhere/cc"), "{text}");
    let path = lab.path("gpu.html");
    let mut command = lab.command(&["explain", &add, "--target", "sm_80", "--html", &path]);
    expect(&finish(command.env("GIRIH_CUDA_LIBS", "/nowhere")), 0, "");
    let data = self::data(&std::fs::read_to_string(path).unwrap());
    assert_eq!(data["stages"].as_array().unwrap().last().unwrap()["name"], "cuda");
}

#[test]
fn the_schedule_is_a_stage() {
    let lab = Lab::new("explain-schedule");
    let add = lab.file("add.mlir", ADD);
    for given in [vec![add.as_str()], vec!["-c", "torch.softmax(torch.randn(8, 64), -1)"]] {
        for target in ["x86-64-v4", "sm_90a"] {
            let given: Vec<&str> = given.iter().copied().chain(["--target", target]).collect();
            let data = data(&page(&lab, &given));
            let stage = stage(&data, "schedule");
            let compiled = lab.girih(&[&["compile"], &given[..], &["--ir", "schedule"]].concat());
            let printed = String::from_utf8(compiled.stdout).unwrap();
            assert_eq!(stage["text"].as_str().unwrap().trim_end(), printed.trim_end());
            let line = stage["kernels"][0][1].as_u64().unwrap() as usize;
            assert!(printed.lines().nth(line - 1).unwrap().starts_with("kernel "), "{printed}");
        }
    }
}

/// A product converts integers as it reads them, however often it needs an element.
#[test]
fn a_product_of_converted_integers_is_one_kernel() {
    let lab = Lab::new("explain-integers");
    let bytes = "torch.randint(-9, 9, (4096, 4096), dtype=torch.int8)";
    let product = format!("{bytes}.int() @ {bytes}.transpose(0, 1).int()");
    for target in ["x86-64-v4", "sm_90a"] {
        let compiled = lab.girih(&["compile", "-c", &product, "--target", target, "--ir", "schedule"]);
        let printed = String::from_utf8(compiled.stdout).unwrap();
        assert_eq!(printed.lines().filter(|l| l.starts_with("kernel ")).count(), 1, "{printed}");
    }
}

#[test]
fn a_model_begins_with_its_run() {
    let lab = Lab::new("explain-begin");
    let data = data(&page(&lab, &["-c", "torch.nn.Linear(64, 512)(torch.randn(8, 64))", "--target", "x86-64-v4"]));
    for name in ["loop", "tile", "kernel", "c"] {
        let stage = stage(&data, name);
        let kernels = stage["kernels"].as_array().unwrap();
        assert!(kernels[0][0].as_str().unwrap().contains("pack"), "weights are packed at load: {kernels:?}");
        let run = kernels.iter().find(|k| !k[0].as_str().unwrap().contains("pack")).unwrap();
        assert_eq!(stage["begin"], run[1], "{name}");
    }
}

#[test]
fn in_a_browser_a_line_lights_up_its_counterparts() {
    let lab = Lab::new("explain-browser");
    let add = lab.file("add.mlir", ADD);
    page(&lab, &[&add, "--target", "x86-64-v4"]);
    let Some(mut b) = Browser::open_file(&lab, &lab.path("page.html")) else { return };
    b.until("document.querySelectorAll('.pane .ln').length > 20");
    let line = |stage: &str, text: &str| {
        format!(
            "[...document.querySelectorAll('[data-stage={stage}] .ln')].find(l => l.textContent.includes('{text}'))"
        )
    };
    let lit = |stage: &str| format!("document.querySelectorAll('[data-stage={stage}] .ln.on').length");
    b.picture("explain-stages");
    b.click(&line("source", "%z = addf"));
    assert_eq!(b.number(&lit("source")), 1.0);
    assert!(b.number(&lit("tile")) >= 1.0 && b.number(&lit("c")) >= 1.0);
    // They are in view, and coloured.
    let visible = "(() => { const l = document.querySelector('[data-stage=c] .ln.on'), r = l.getBoundingClientRect(), p = \
                   l.closest('.lines').getBoundingClientRect(); return r.top >= p.top && r.bottom <= p.bottom; })()";
    assert_eq!(b.eval(visible), true);
    assert!(b.number("document.querySelectorAll('[data-stage=source] .k').length") > 3.0);
    // A folded stage shows the number of its lines; a click opens it.
    assert!(b.eval("document.querySelector('[data-stage=kernel] .count').textContent").as_str() >= Some("1"));
    b.click("document.querySelector('[data-stage=kernel]')");
    b.until(&format!("{} >= 1", lit("kernel")));
    b.picture("explain-chosen");
    // From the C back to the source.
    b.click("document.querySelector('[data-stage=c] .ln.on')");
    assert_eq!(b.number(&lit("source")), 1.0);
    // Arrows go to its counterpart, and to the next line; the address leads there.
    let at = "[...document.querySelectorAll('.ln.at')].map(l => l.closest('.pane').dataset.stage).join()";
    assert_eq!(b.eval(at), "c");
    b.press("ArrowLeft");
    assert_eq!(b.eval(at), "kernel");
    let here = b.number("Number(document.querySelector('.ln.at').dataset.n)");
    b.press("ArrowDown");
    let below = b.number("Number(document.querySelector('.ln.at').dataset.n)");
    assert!(below > here, "{below} {here}");
    assert_eq!(b.eval("location.hash"), format!("#stages/kernel/{below}"));
    let address = b.eval("location.href").as_str().unwrap().to_string();
    let mut linked = Browser::open(&lab, &address).unwrap();
    linked.until("document.querySelector('.ln.at')");
    assert_eq!(linked.eval(at), "kernel");
    assert_eq!(linked.number("Number(document.querySelector('.ln.at').dataset.n)"), below);
    b.press("Escape");
    assert_eq!(b.number("document.querySelectorAll('.ln.on').length"), 0.0);
    // A text is found in all stages.
    b.press("/");
    b.eval("(() => { const f = document.activeElement; f.value = 'addf'; f.dispatchEvent(new Event('input')); return 1; })()");
    assert!(b.number("document.querySelectorAll('[data-stage=source] .ln.found').length") > 0.0);
    assert_eq!(b.eval("document.querySelector('.bar .chip').dataset.found"), "1");
    b.picture("explain-found");
    b.press("Escape");
    assert_eq!(b.number("document.querySelectorAll('.ln.found').length"), 0.0);
    b.dark(true);
    b.click(&line("source", "store_ptr_tko"));
    b.picture("explain-dark");

    // Rules, back and forth.
    b.click("document.querySelector('[data-view=rules]')");
    let at = "document.querySelector('#position').textContent";
    let first = b.eval(at);
    assert!(first.as_str().unwrap().starts_with("1 of "), "{first}");
    b.click("document.querySelector('#forth')");
    b.press("ArrowRight");
    assert!(b.eval(at).as_str().unwrap().starts_with("3 of "));
    b.picture("explain-rules-dark");
    b.dark(false);
    b.click("document.querySelector('#back')");
    assert!(b.eval(at).as_str().unwrap().starts_with("2 of "));
    assert!(b.number("document.querySelectorAll('.diff .plus').length") > 0.0);
    b.picture("explain-rules");
    assert_eq!(b.errors, [""; 0]);
    // Nothing sticks out of a window of 1280 pixels.
    assert_eq!(b.number("document.documentElement.scrollWidth"), 1280.0);
    assert!(b.eval("document.querySelector('#stages').hidden && !document.querySelector('#rules').hidden") == true);
    assert_eq!(b.number("document.querySelector('#stages').getBoundingClientRect().height"), 0.0);
}

#[test]
fn in_a_browser_the_graph_chooses_lines_and_kernels() {
    let lab = Lab::new("explain-graph");
    let model = "torch.nn.functional.silu(torch.nn.Linear(64, 32)(torch.softmax(torch.tanh(torch.sin(torch.tanh(torch.randn(8, 64)))), -1)))";
    page(&lab, &["-c", model, "--profile"]);
    let Some(mut b) = Browser::open_file(&lab, &lab.path("page.html")) else { return };
    b.click("document.querySelector('[data-view=graph]')");
    b.until("!document.querySelector('#graph').hidden");
    let node = "[...document.querySelectorAll('.graph .node')].find(n => n.textContent.includes('softmax'))";
    b.click(node);
    assert_eq!(b.number("document.querySelectorAll('.graph .node.on').length"), 1.0);
    let kernels = b.eval("[...document.querySelectorAll('tr[data-kernel]')].map(r => [r.title.includes('softmax'), r.classList.contains('on')])");
    // The kernels that compute it, and no others.
    let kernels = kernels.as_array().unwrap();
    assert!(kernels.iter().all(|k| k[0] == k[1]) && kernels.iter().any(|k| k[1] == true), "{kernels:?}");
    assert!(kernels.iter().any(|k| k[1] == false), "{kernels:?}");
    b.picture("explain-graph");
    // It grows around the pointer, moves with it, and shrinks until all of it is there.
    let width = "document.querySelector('.graph').getBoundingClientRect().width";
    let natural = b.number(width);
    let wheel = "(() => { const c = document.querySelector('.canvas'), n = document.querySelectorAll('.graph .node')[1], r = n.getBoundingClientRect(); \
                 c.dispatchEvent(new WheelEvent('wheel', { deltaY: -500, ctrlKey: true, clientX: r.x + r.width / 2, clientY: r.y + r.height / 2, \
                 bubbles: true, cancelable: true })); const s = n.getBoundingClientRect(), box = c.getBoundingClientRect(); \
                 return s.x + s.width / 2 > box.x && s.y + s.height / 2 > box.y && s.x + s.width / 2 < box.right && s.y + s.height / 2 < box.bottom; })()";
    assert_eq!(b.eval(wheel), true, "the node under the pointer is still in sight");
    assert!(b.number(width) > natural * 3.0);
    let drag = "(() => { const c = document.querySelector('.canvas'), at = c.scrollTop, p = (t, o) => \
                new PointerEvent(t, { bubbles: true, button: 0, ...o }); c.dispatchEvent(p('pointerdown', { clientX: 300, clientY: 300 })); \
                document.dispatchEvent(p('pointermove', { clientX: 300, clientY: 260 })); document.dispatchEvent(p('pointerup', {})); \
                return c.scrollTop - at; })()";
    assert_eq!(b.number(drag), 40.0);
    b.click("document.querySelector('[data-zoom=fit]')");
    b.until("document.querySelector('.canvas').scrollHeight <= document.querySelector('.canvas').clientHeight + 1");
    b.click("document.querySelector('[data-zoom=in]')");
    assert!(b.number(width) <= natural * 1.26);
    // An operation leads to the kernel of the run that computes it, not to that which packs its weights.
    b.click("[...document.querySelectorAll('.graph .node')].find(n => n.textContent.startsWith('aten.linear'))");
    b.click("document.querySelector('[data-view=stages]')");
    b.click("document.querySelector('[data-stage=loop]')");
    let shown = "(() => { const p = document.querySelector('[data-stage=loop] .lines'), t = p.getBoundingClientRect(); return \
                 [...p.querySelectorAll('.ln.on')].filter(l => { const r = l.getBoundingClientRect(); return r.top >= t.top - 1 && \
                 r.bottom <= t.bottom + 1; }).length; })()";
    b.until(&format!("{shown} > 0"));
    b.click("document.querySelector('[data-view=graph]')");
    b.click(node);
    b.click("document.querySelector('[data-view=stages]')");
    assert!(b.number("document.querySelectorAll('[data-stage=tile] .ln.on').length") > 0.0);
    assert_eq!(b.errors, [""; 0]);
}

fn get(port: u16, host: &str, path: &str) -> String {
    asked(port, path, &format!("Host: {host}"))
}

fn asked(port: u16, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\n{headers}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_served_page_follows_its_file() {
    let lab = Lab::new("explain-serve");
    let add = lab.file("add.mlir", ADD);
    let mut command = lab.command(&["explain", &add, "--target", "x86-64-v4", "--serve", "0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 64];
    let n = child.stdout.as_mut().unwrap().read(&mut first).unwrap();
    let said = String::from_utf8_lossy(&first[..n]).to_string();
    let port: u16 = said.strip_prefix("http://127.0.0.1:").unwrap().split('/').next().unwrap().parse().unwrap();
    let mut server = Running::new(child);
    let own = format!("127.0.0.1:{port}");

    let page = get(port, &own, "/");
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("EventSource(\"/events?"), "{page}");
    assert!(get(port, "somebody.example", "/").starts_with("HTTP/1.1 403"));
    assert!(get(port, &own, "/../../etc/passwd").starts_with("HTTP/1.1 404"));
    for other in ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: http://somebody.example"] {
        assert!(asked(port, "/", &format!("Host: {own}\r\n{other}")).starts_with("HTTP/1.1 403"), "{other}");
    }
    // Half a request ends with its sender, and any number of slow senders shuts nobody out.
    TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(b"GET / HT").unwrap();
    let slow = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET / HT").unwrap();
        stream
    };
    let slow: Vec<TcpStream> = (0..100).map(slow).collect();
    let start = Instant::now();
    assert!(get(port, &own, "/").starts_with("HTTP/1.1 200 OK"));
    assert!(start.elapsed() < Duration::from_secs(60));
    // A request has its time as a whole, a byte now and then gives it no more.
    let mut drip = slow.into_iter().next_back().unwrap();
    let ends = Instant::now() + Duration::from_secs(100);
    while drip.write_all(b"x").is_ok() {
        assert!(Instant::now() < ends, "it is never ended");
        std::thread::sleep(Duration::from_millis(200));
    }

    // A page of an older version is told at once that there is a newer one.
    let version = page.split("/events?").nth(1).unwrap().split('"').next().unwrap().to_string();
    lab.file("add.mlir", &ADD.replace("addf %x", "mulf %x"));
    assert!(get(port, &own, &format!("/events?{version}")).contains("data: changed"));
    assert!(get(port, &own, "/").contains("mulf %x"));
    // The file's errors are shown.
    lab.file("add.mlir", &ADD.replace("addf %x", "addf %nothing"));
    let wrong = get(port, &own, "/");
    assert!(
        wrong.contains("class=\"problem\"") && wrong.contains("%nothing") && wrong.contains("EventSource"),
        "{wrong}"
    );

    // A browser shows the mended file without being asked.
    if let Some(mut b) = Browser::open(&lab, &format!("http://127.0.0.1:{port}/")) {
        b.until("document.querySelector('.problem')");
        lab.file("add.mlir", &ADD.replace("%z", "%mended"));
        b.until("document.querySelector('[data-stage=source]')?.textContent.includes('%mended')");
    }
    let taken = lab.girih(&["explain", &add, "--serve", &port.to_string()]);
    expect(&taken, 2, "--serve 0");
    server.interrupt();
    until("it ends", || TcpStream::connect(("127.0.0.1", port)).is_err());
    server.wait();
}

//! The report of a simulation as one page: numbers and pictures, nothing that is not in the file.
//!
//! In: the kernels of a run, perhaps beside those of the same run with other knobs. Out: HTML with inline SVG, and panes of source
//! that a script fills. Names and all other texts of users are escaped.
//!
//! * what it costs, beside what it cost before          * the warps of one block, statement by statement
//! * the lanes of each access of shared memory by bank   * global memory by array
//! * the CUDA, line by line, with what each line costs    * each statement beside its CUDA and the line that it comes from

use std::collections::BTreeMap;
use std::fmt::Write;

use girih_compiler::explain::StageText;
use girih_compiler::kernel::sim::{Estimate, Instruction, Recording, Report, Request, Requests, Row as Counted};
use serde_json::{Value, json};

use crate::{Page, escaped};

/// The report on a kernel in one run, with the line of its CUDA for each row and for each finding.
pub struct Seen {
    pub report: Report,
    pub estimate: Option<Estimate>,
    /// By row of the report.
    pub cuda: Vec<Option<u32>>,
    /// The CUDA, where it is asked for.
    pub source: Option<String>,
    /// Kernel IR, CUDA and their source, linked by statements, where they are asked for.
    pub linked: Vec<StageText>,
}

/// A run, and what it is called.
pub struct Variant<'a> {
    pub name: String,
    pub seen: &'a [Seen],
}

/// Pictures of accesses that a kernel has at most; the worst.
const MOST_ACCESSES: usize = 12;
/// Lines of a picture of shared memory.
const MOST_ROWS: usize = 40;

const STYLE: &str = include_str!("assets/simulation.css");
const SCRIPT: &str = include_str!("assets/simulation.js");

/// The page of a run; `before` is the same run with other knobs.
pub fn page(title: &str, after: &Variant<'_>, before: Option<&Variant<'_>>) -> String {
    let body = format!("<h1>{}</h1>\n{}", escaped(title), reports(after, before));
    let script = format!("{SCRIPT}Reports(document.body, readData());\n");
    Page { title, style: STYLE, body: &body, data: Some(&data(after)), script: &script }.text()
}

/// The reports as markup, whose panes the script fills.
pub fn reports(after: &Variant<'_>, before: Option<&Variant<'_>>) -> String {
    let mut out = String::new();
    if let Some(before) = before {
        let _ = writeln!(out, "<p>{} beside {}.</p>", escaped(&after.name), escaped(&before.name));
    }
    for (at, seen) in after.seen.iter().enumerate() {
        let other = before.and_then(|b| b.seen.iter().find(|s| s.report.kernel == seen.report.kernel).map(|s| (b, s)));
        kernel(&mut out, at, (after, seen), other);
    }
    out
}

/// The data that the script shows.
pub fn data(after: &Variant<'_>) -> Value {
    json!({ "kernels": after.seen.iter().map(|seen| stages(&seen.linked)).collect::<Vec<_>>() })
}

/// The panes of a kernel.
fn stages(all: &[StageText]) -> Value {
    all.iter()
        .map(|s| {
            let language = if s.name == "source" { "cuda_tile" } else { &s.name };
            let title = if s.name == "source" { "your source" } else { &s.name };
            crate::stage(s, title, language, false)
        })
        .collect()
}

fn kernel(
    out: &mut String,
    number: usize,
    (after, seen): (&Variant<'_>, &Seen),
    before: Option<(&Variant<'_>, &Seen)>,
) {
    let r = &seen.report;
    let _ = writeln!(
        out,
        "<section id=\"kernel-{number}\">\n<h2>{}</h2>\n<p>{} of {} threads, schedule {} (seed {})</p>",
        escaped(&r.kernel),
        if r.blocks == 1 { "1 block".to_string() } else { format!("{} blocks", r.blocks) },
        r.threads,
        r.policy.name(),
        r.seed
    );
    findings(out, r);
    costs(out, (&after.name, r), before.map(|(v, s)| (v.name.as_str(), &s.report)));
    if let Some(estimate) = &seen.estimate {
        let _ = writeln!(out, "<pre class=\"note\">{}</pre>", escaped(estimate.to_string().trim_end()));
    }
    arrays(out, r);
    for (variant, seen) in before.into_iter().chain([(after, seen)]) {
        let of = if before.is_some() { format!(": {}", escaped(&variant.name)) } else { String::new() };
        if let Some(recording) = &seen.report.recording {
            let _ = writeln!(out, "<h3>The warps of one block{of}</h3>");
            timeline(out, recording);
            let _ = writeln!(out, "<h3>Shared memory by bank{of}</h3>");
            accesses(out, &seen.report, recording);
        }
    }
    source(out, seen);
    let _ = writeln!(
        out,
        "<h3>What each line comes from</h3>\n<p class=\"note\">Click a line, here or above: the same statement lights up in all of \
         them.</p>\n<div class=\"linked\" data-kernel=\"{number}\"></div>\n</section>"
    );
}

fn findings(out: &mut String, r: &Report) {
    if r.is_clean() {
        *out += "<p class=\"good\">Nothing found.</p>\n";
        return;
    }
    for finding in &r.findings {
        let _ = writeln!(out, "<pre class=\"bad\">{}</pre>", escaped(finding.to_string().trim_end()));
    }
    if r.stopped.is_some() {
        let _ = writeln!(out, "<pre class=\"bad\">{}</pre>", escaped(r.stop().trim_end()));
    }
}

/// A row of numbers: their label, and the function that reads one from a report.
type Row = (&'static str, fn(&Report) -> f64);

const ROWS: [Row; 9] = [
    ("thread-statements", |r| r.total.executions as f64),
    ("barriers", |r| r.barriers as f64),
    ("bytes of shared memory for each block", |r| r.shared_bytes as f64),
    ("wavefronts of shared memory", |r| r.total.shared.taken as f64),
    ("of them by conflicts of banks", |r| (r.total.shared.taken - r.total.shared.least) as f64),
    ("bytes of global memory", |r| r.total.global.bytes as f64),
    ("sectors of global memory", |r| r.total.global.taken as f64),
    ("of them more than needed", |r| (r.total.global.taken - r.total.global.least) as f64),
    ("products on the matrix unit, by threads", |r| {
        r.instructions().get(&Instruction::Matrix).copied().unwrap_or(0) as f64
    }),
];

fn costs(out: &mut String, (name, after): (&str, &Report), before: Option<(&str, &Report)>) {
    let head = match before {
        Some((before, _)) => format!("<th>{}</th><th>{}</th><th>change</th>", escaped(before), escaped(name)),
        None => "<th></th>".to_string(),
    };
    let _ = writeln!(out, "<table>\n<thead><tr><th></th>{head}</tr></thead>\n<tbody>");
    for (what, of) in ROWS {
        let now = of(after);
        let cells = match before {
            Some((_, before)) => {
                let was = of(before);
                let change = match (was, now) {
                    (a, b) if a == b => String::new(),
                    (0.0, _) => "new".to_string(),
                    (_, 0.0) => "none left".to_string(),
                    (a, b) => format!("{:.2}x", b / a),
                };
                format!("<td>{was}</td><td>{now}</td><td>{change}</td>")
            }
            None => format!("<td>{now}</td>"),
        };
        let _ = writeln!(out, "<tr><td>{what}</td>{cells}</tr>");
    }
    *out += "</tbody>\n</table>\n";
}

/// Global memory by array, in order of their names.
fn arrays(out: &mut String, r: &Report) {
    let Some(recording) = &r.recording else { return };
    let mut all: BTreeMap<&str, Requests> = BTreeMap::new();
    for row in &r.rows {
        if let (Some(name), g) = (recording.arrays.get(&row.statement.number), row.counts.global)
            && g.requests > 0
        {
            let sum = all.entry(name).or_default();
            sum.requests += g.requests;
            sum.bytes += g.bytes;
            sum.taken += g.taken;
            sum.least += g.least;
        }
    }
    if all.is_empty() {
        return;
    }
    *out += "<h3>Global memory by array</h3>\n<table>\n<thead><tr><th>array</th><th>requests</th><th>bytes</th><th>sectors</th>\
             <th>needed</th><th></th></tr></thead>\n<tbody>\n";
    for (name, g) in all {
        let _ = writeln!(
            out,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td{}>{:.2}x</td></tr>",
            escaped(name),
            g.requests,
            g.bytes,
            g.taken,
            g.least,
            if g.taken > g.least { " class=\"bad\"" } else { "" },
            g.ratio()
        );
    }
    *out += "</tbody>\n</table>\n";
}

/// The colours of warps' activities.
const KINDS: [(&str, &str, &[Instruction]); 7] = [
    ("arithmetic", "#9aa7b4", &[]),
    ("matrix unit", "#7b5cd6", &[Instruction::Matrix]),
    ("shared memory", "#2f8f6b", &[Instruction::SharedLoad, Instruction::SharedStore]),
    ("global memory", "#c77d1e", &[Instruction::GlobalLoad, Instruction::GlobalStore, Instruction::Atomic]),
    ("copies begun", "#2d7dd2", &[Instruction::AsyncCopy]),
    ("shuffle", "#b04fa0", &[Instruction::Shuffle]),
    ("waits", "#d64545", &[Instruction::Barrier]),
];

fn colour(kind: Instruction) -> &'static str {
    KINDS.iter().find(|(.., kinds)| kinds.contains(&kind)).map_or(KINDS[0].1, |k| k.1)
}

const WIDTH: f64 = 1000.0;

fn timeline(out: &mut String, r: &Recording) {
    let t = &r.timeline;
    let warps = t.bins.len();
    let count = t.bins.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let steps = count as u64 * t.width;
    let scale = (WIDTH - 70.0) / count as f64;
    let height = warps * 16 + if r.flights.is_empty() { 20 } else { 36 };
    *out += "<p class=\"key\">";
    for (name, colour, _) in KINDS {
        let _ = write!(out, "<span><i style=\"background:{colour}\"></i>{name}</span>");
    }
    let _ = writeln!(
        out,
        "</p>\n<figure class=\"wide\"><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"What {warps} warps do in {steps} \
         steps\">"
    );
    for (warp, bins) in t.bins.iter().enumerate() {
        let y = warp as f64 * 16.0;
        let _ = writeln!(out, "<text x=\"0\" y=\"{}\">warp {warp}</text>", y + 11.0);
        for (at, bin) in bins.iter().enumerate() {
            // The kinds of a bin above each other, as much of the height as they are of its steps.
            let mut below = y + 14.0;
            for (_, colour, _) in KINDS {
                let part: u64 = bin.iter().filter(|(kind, _)| self::colour(**kind) == colour).map(|(_, n)| n).sum();
                if part > 0 {
                    let tall = 14.0 * part as f64 / t.width as f64;
                    below -= tall;
                    let x = 60.0 + at as f64 * scale;
                    let _ = writeln!(
                        out,
                        "<rect x=\"{x:.1}\" y=\"{below:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" fill=\"{colour}\"/>",
                        scale + 0.1
                    );
                }
            }
        }
    }
    let under = warps as f64 * 16.0;
    if !r.flights.is_empty() {
        let _ = writeln!(out, "<text x=\"0\" y=\"{}\">in flight</text>", under + 12.0);
        for flight in &r.flights {
            let x = |step: u64| 60.0 + step as f64 / t.width as f64 * scale;
            let (from, until) = (x(flight.from), x(flight.until.unwrap_or(steps)));
            let _ = writeln!(
                out,
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.2}\" height=\"10\" fill=\"#2d7dd2\" fill-opacity=\".25\"/>",
                under + 4.0,
                (until - from).max(0.5)
            );
        }
    }
    let _ = writeln!(
        out,
        "<text x=\"60\" y=\"{0}\">0</text><text x=\"{1}\" y=\"{0}\" text-anchor=\"end\">{steps} steps</text>\n</svg>\n<figcaption \
         class=\"note\">A step is a statement of a warp, not a time; loops and arrays of a thread take none. Where all threads meet, they \
         go on together. A column is {2}, \
         each kind as tall as its part of them.</figcaption></figure>",
        height - 3,
        WIDTH - 4.0,
        if t.width == 1 { "one step".to_string() } else { format!("{} steps", t.width) }
    );
}

/// The accesses of shared memory whose requests take most, each with its lanes by bank.
fn accesses(out: &mut String, r: &Report, recording: &Recording) {
    let mut all: Vec<(&Counted, &Request)> =
        r.rows.iter().filter_map(|row| Some((row, recording.requests.get(&row.statement.number)?))).collect();
    all.sort_by_key(|(row, _)| {
        std::cmp::Reverse((row.counts.shared.taken - row.counts.shared.least, row.counts.shared.taken))
    });
    if all.is_empty() {
        *out += "<p class=\"note\">It does not use shared memory.</p>\n";
    }
    let left_out = all.len().saturating_sub(MOST_ACCESSES);
    for (row, request) in all.into_iter().take(MOST_ACCESSES) {
        let (bad, s) = (request.taken > request.least, &row.statement);
        let _ = writeln!(
            out,
            "<details{}><summary{}>line {}: {}{}</summary>",
            if bad { " open" } else { "" },
            if bad { " class=\"bad\"" } else { "" },
            s.line,
            match (bad, request.taken) {
                (true, taken) => format!("{taken} wavefronts where {} would do", request.least),
                (false, 1) => "one wavefront".to_string(),
                (false, taken) => format!("{taken} wavefronts, all needed"),
            },
            s.from.as_ref().map_or(String::new(), |from| format!(", from {}", escaped(from)))
        );
        banks(out, &s.text, request);
        *out += "</details>\n";
    }
    if left_out > 0 {
        let more = if left_out == 1 { "Another access takes".into() } else { format!("{left_out} more accesses take") };
        let _ = writeln!(out, "<p class=\"note\">{more} no more than these.</p>");
    }
}

/// Shared memory as lines of 32 banks; an element has the colour of the lane that accesses it.
fn banks(out: &mut String, text: &str, request: &Request) {
    let mut words: BTreeMap<u64, u32> = BTreeMap::new();
    for lane in (0..32).filter(|l| request.lanes >> l & 1 == 1) {
        let first = request.address[lane as usize];
        for word in first / 4..=(first + u64::from(request.bytes.max(1)) - 1) / 4 {
            words.entry(word).or_insert(lane);
        }
    }
    let mut rows: Vec<u64> = words.keys().map(|w| w / 32).collect();
    rows.dedup();
    let cut = rows.len() > MOST_ROWS;
    rows.truncate(MOST_ROWS);
    let height = rows.len() * 14 + 18;
    let _ = writeln!(
        out,
        "<figure class=\"wide\"><svg viewBox=\"0 0 560 {height}\" width=\"560\" role=\"img\" aria-label=\"Banks that lanes touch\">"
    );
    for bank in (0..32).step_by(4) {
        let _ = writeln!(out, "<text x=\"{}\" y=\"10\">{bank}</text>", 82 + bank * 15);
    }
    for (at, row) in rows.iter().enumerate() {
        let y = at * 14 + 16;
        let _ = writeln!(out, "<text x=\"0\" y=\"{}\">byte {}</text>", y + 10, row * 128);
        for bank in 0..32 {
            let (x, lane) = (80 + bank * 15, words.get(&(row * 32 + bank)));
            match lane {
                None => {
                    let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"14\" height=\"12\" fill=\"#8882\"/>");
                }
                Some(lane) => {
                    let _ = writeln!(
                        out,
                        "<rect x=\"{x}\" y=\"{y}\" width=\"14\" height=\"12\" fill=\"hsl({},65%,55%)\"><title>bank {bank}, lane \
                         {lane}</title></rect><text x=\"{}\" y=\"{}\" text-anchor=\"middle\" style=\"fill:#000;font-size:8px\">{lane}</text>",
                        lane * 11,
                        x + 7,
                        y + 9
                    );
                }
            }
        }
    }
    let _ = writeln!(
        out,
        "</svg>\n<figcaption><code>{}</code><br><span class=\"note\">Columns are banks, lines 128 bytes of shared memory, numbers lanes; \
         lanes of 16 bytes are served eight at a time.{}</span></figcaption></figure>",
        escaped(text),
        if cut { " Further lines are left out." } else { "" }
    );
}

/// The CUDA of a kernel with the cost of each line; without CUDA, its statements.
fn source(out: &mut String, seen: &Seen) {
    let r = &seen.report;
    *out += "<h3>The source, with what each line takes</h3>\n<div class=\"wide\"><table class=\"lined\">\n<thead><tr><th>line</th>\
             <th>threads</th><th>banks</th><th>sectors</th><th>bytes</th><th></th></tr></thead>\n<tbody>\n";
    let by_line: BTreeMap<u32, &Counted> =
        r.rows.iter().zip(&seen.cuda).filter_map(|(row, line)| Some((line.as_ref().copied()?, row))).collect();
    let ratio = |q: &Requests| match q.requests {
        0 => "<td></td>".to_string(),
        _ => format!("<td{}>{:.2}x</td>", if q.taken > q.least { " class=\"bad\"" } else { "" }, q.ratio()),
    };
    let language = if seen.source.is_some() { "cuda" } else { "kernel" };
    let mut line = |number: u32, row: Option<&Counted>, text: &str| {
        let cells = row.map_or("<td></td><td></td><td></td><td></td>".to_string(), |row| {
            let c = &row.counts;
            let bytes = c.shared.bytes + c.global.bytes;
            let bytes = if bytes > 0 { bytes.to_string() } else { String::new() };
            format!("<td>{}</td>{}{}<td>{bytes}</td>", c.executions, ratio(&c.shared), ratio(&c.global))
        });
        let statement = row.map_or(String::new(), |row| {
            let s = &row.statement;
            let from = s.from.as_ref().map_or(String::new(), |from| format!(", from {from}"));
            let title = format!("Kernel IR, line {}: {}{from}", s.line, s.text);
            format!(" data-statement=\"{}\" title=\"{}\"", s.number, escaped(&title))
        });
        let text = escaped(text);
        let _ =
            writeln!(out, "<tr{statement}><td>{number}</td>{cells}<td data-language=\"{language}\">{text}</td></tr>");
    };
    match &seen.source {
        Some(text) => {
            // Functions in front of the kernel are not statements.
            let first = by_line.keys().next().map_or(1, |n| n.saturating_sub(3).max(1));
            for (n, text) in (1..).zip(text.lines()).skip(first as usize - 1) {
                line(n, by_line.get(&n).copied(), text);
            }
        }
        None => r.rows.iter().for_each(|row| line(row.statement.line, Some(row), &row.statement.text)),
    }
    *out += "</tbody>\n</table></div>\n";
}

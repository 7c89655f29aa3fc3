//! The explorer's page.
//!
//! In: an explained compilation, perhaps with a profile. Out: HTML. Its script shows JSON ([`data`]); the graph and the
//! table of kernels are markup.
//!
//! Views: *stages*, *rules*, and of a model the *graph*.

use std::collections::BTreeMap;
use std::fmt::Write;

use girih_compiler::explain::{Drawing, Explained, Kernel, SourceId, StageText, Step};
use girih_compiler::pipeline;
use serde_json::{Value, json};

use crate::{Page, drawing, escaped};

const STYLE: &str = include_str!("assets/explain.css");
const SCRIPT: &str = include_str!("assets/explain.js");
/// The script that reloads a served page.
const RELOAD: &str = include_str!("assets/reload.js");

/// A graph of more operations is not drawn: nobody could read it.
const MOST_NODES: usize = 3000;

/// The times of a model's run, as the table of its kernels shows them.
pub struct Times {
    /// One for each launch of the run, in order.
    pub launches: Vec<Time>,
    /// A sentence or two on the whole run.
    pub about: String,
}

/// The time of a launch.
pub struct Time {
    /// `1.2 ms`
    pub time: String,
    /// Its part of the kernels' time, in percent.
    pub share: f64,
    /// `4 MB`
    pub bytes: String,
    /// The part that it reaches of the machine's limit, in percent.
    pub of_limit: f64,
}

pub fn page(title: &str, explained: &Explained, times: Option<&Times>) -> String {
    let body = head(title, &explained.target, explained.drawing.is_some()) + &views(explained, times);
    let data = data(explained);
    Page {
        title,
        style: STYLE,
        body: &body,
        data: Some(&data),
        script: &format!("{SCRIPT}new Explorer(document.body, readData());\n"),
    }
    .text()
}

/// The views as markup, which the script fills.
pub fn views(explained: &Explained, times: Option<&Times>) -> String {
    let mut body =
        "<main id=\"stages\"><div class=\"bar\"></div><div class=\"panes\"></div></main>\n\
             <main id=\"rules\" hidden><div class=\"list\"><div class=\"bar\"><input type=\"search\" placeholder=\"Find\" aria-label=\"Find a \
             rule, a site or a reason\"><label><input type=\"checkbox\" checked> changes only</label><span><button id=\"back\" title=\"The rule \
             before\">◀</button> <span id=\"position\"></span> <button id=\"forth\" title=\"The next rule\">▶</button></span></div><ol \
             role=\"listbox\"></ol></div><div class=\"step\"></div></main>\n".to_string();
    if let Some(drawing) = &explained.drawing {
        body += "<main id=\"graph\" hidden><div class=\"drawing\"><div class=\"zoom\"><button data-zoom=\"out\" title=\"Smaller \
                 (-)\">−</button><button data-zoom=\"fit\" title=\"All of it (0)\">fit</button><button data-zoom=\"in\" title=\"Larger \
                 (+)\">+</button></div><div class=\"canvas\">";
        body += &graph(drawing);
        body += "</div></div><div class=\"kernels\">";
        body += &kernels(drawing, times);
        body += "</div></main>\n";
    }
    body
}

/// The page in place of one that cannot be made.
pub fn problem(title: &str, message: &str) -> String {
    let body =
        format!("<header><h1>{}</h1></header>\n<pre class=\"problem\">{}</pre>\n", escaped(title), escaped(message));
    Page { title, style: STYLE, body: &body, data: None, script: "" }.text()
}

/// The same page, which loads itself anew when the version it was made of is not the newest.
pub fn live(page: &str, version: &str) -> String {
    let script = RELOAD.replace("/events", &format!("/events?{version}"));
    page.replacen("</body>", &format!("<script>\n{script}</script>\n</body>"), 1)
}

fn head(title: &str, target: &str, graph: bool) -> String {
    let mut views = vec![("stages", "Stages"), ("rules", "Rules")];
    if graph {
        views.push(("graph", "Graph"));
    }
    let tabs = views.iter().map(|(view, name)| {
        format!("<button role=\"tab\" data-view=\"{view}\" aria-selected=\"false\">{name}</button>")
    });
    format!(
        "<header><h1 title=\"{0}\">{0}</h1><span>for {1}</span><nav role=\"tablist\">{2}</nav></header>\n",
        escaped(title),
        escaped(target),
        tabs.collect::<String>()
    )
}

/// The stages that are open at first; the others are one click away.
fn folded(stages: &[StageText], stage: &StageText) -> bool {
    let first = stages.first().is_some_and(|s| s.name == stage.name);
    !first && !matches!(stage.name.as_str(), "tile" | "c" | "cuda")
}

/// The name by which the script knows a stage's language.
fn language(e: &Explained, name: &str) -> String {
    let model = e.stages.iter().any(|s| s.name == "tensor");
    match name {
        // Tile programs that were made from another text have places in that.
        "source" if model || !e.places.is_empty() => "python",
        "source" => "cuda_tile",
        name => name,
    }
    .to_string()
}

/// The data that the script shows.
pub fn data(e: &Explained) -> Value {
    let stages = e.stages.iter().map(|s| {
        let title = if s.name == "source" { "your source" } else { &s.name };
        let mut stage = crate::stage(s, title, &language(e, &s.name), folded(&e.stages, s));
        if let Some(begin) = begin(e, s) {
            stage["begin"] = json!(begin);
        }
        stage
    });
    let kernels = e.drawing.iter().flat_map(|d| &d.kernels);
    let kernels =
        kernels.map(|k| json!({ "name": k.name, "sources": k.sources.iter().map(|s| s.0).collect::<Vec<_>>() }));
    json!({
        "stages": stages.collect::<Vec<_>>(),
        "steps": e.steps.iter().map(step).collect::<Vec<_>>(),
        "rules": rules(&e.steps),
        "kernels": kernels.collect::<Vec<_>>(),
        "hint": "Click a line: those of the same operation light up in every stage. Arrows go on, Esc clears, / finds.",
    })
}

/// The line of the first kernel of a model's run, behind those that run when it is loaded; of the first line of a script that became
/// the kernel.
fn begin(e: &Explained, stage: &StageText) -> Option<u32> {
    if stage.name == "source" && !e.places.is_empty() {
        return stage.lines.first().map(|(line, _)| *line);
    }
    let kernel = e.drawing.as_ref()?.kernels.iter().find(|k| !k.at_load)?;
    let name = kernel.same_as.as_ref().unwrap_or(&kernel.name);
    stage.kernels.iter().find(|(n, _)| n == name).map(|(_, line)| *line)
}

fn step(s: &Step) -> Value {
    let language = match s.name.as_bytes().first() {
        Some(b'o') => "torch",
        Some(b'n') => "tensor",
        Some(b'l') => "loop",
        _ => "tile",
    };
    json!({
        "name": s.name,
        "kernel": s.kernel,
        "number": s.number,
        "applied": s.applied,
        "skipped": s.skipped,
        "diff": s.diff,
        "language": language,
    })
}

/// The descriptions of the rules that ran, by the names of the steps.
fn rules(steps: &[Step]) -> Value {
    let all = pipeline::descriptions();
    let mut out = BTreeMap::new();
    for step in steps {
        if out.contains_key(&step.name) {
            continue;
        }
        // A rule's number differs between the lists of targets.
        let bare = step.name.split_once(':').map_or("", |(_, bare)| bare);
        let short =
            bare.split_once('_').filter(|(n, _)| n.bytes().all(|b| b.is_ascii_digit())).map_or(bare, |(_, s)| s);
        let found =
            all.iter().find(|r| r.name.as_bytes().first() == step.name.as_bytes().first() && r.short() == short);
        if let Some(rule) = found {
            out.insert(step.name.clone(), json!({ "first": rule.first_sentence(), "text": rule.doc.trim() }));
        }
    }
    json!(out)
}

/// The kernel that draws a node: the last of the run that computes it, or of loading.
fn group(drawing: &Drawing, source: SourceId) -> Option<usize> {
    let of = |k: &(usize, &Kernel)| k.1.sources.contains(&source);
    let all = || drawing.kernels.iter().enumerate();
    let last = all().rev().filter(|(_, k)| !k.at_load).find(of).or_else(|| all().rev().find(of));
    last.map(|(at, _)| at)
}

fn graph(drawing: &Drawing) -> String {
    if drawing.nodes.len() > MOST_NODES {
        let (n, most) = (drawing.nodes.len(), MOST_NODES);
        return format!("<p class=\"note\">The model has {n} operations; more than {most} are not drawn.</p>");
    }
    let boxes: Vec<drawing::Box> = drawing
        .nodes
        .iter()
        .map(|node| {
            let group = group(drawing, node.source);
            let kernel = group.and_then(|g| drawing.kernels.get(g));
            let mut title = format!("{} {}\n{}", node.op, node.name, node.ty);
            if let Some(kernel) = kernel {
                let _ = write!(title, "\nkernel {}", kernel.name);
            }
            let label = node.op.split_once('.').map_or(node.op.as_str(), |(_, op)| op);
            let under = if node.name.is_empty() { &node.ty } else { &node.name };
            let (label, under) = (label.to_string(), under.clone());
            drawing::Box { label, under, title, id: node.source.0, group, reads: node.inputs.clone() }
        })
        .collect();
    drawing::svg(&boxes)
}

/// The launches of a run, with their times if these were measured.
fn kernels(drawing: &Drawing, times: Option<&Times>) -> String {
    let columns = if times.is_some() { "<th>time</th><th>share</th><th>bytes</th><th>of limit</th>" } else { "" };
    let mut out = format!("<table><thead><tr><th>kernel</th>{columns}<th>operations</th></tr></thead>\n<tbody>\n");
    let mut launches = times.iter().flat_map(|t| &t.launches);
    for (at, kernel) in drawing.kernels.iter().enumerate() {
        let mut cells = String::new();
        if times.is_some() {
            // The run's launches alone have times.
            cells = match if kernel.at_load { None } else { launches.next() } {
                Some(Time { time, share, bytes, of_limit }) => format!(
                    "<td>{}</td><td class=\"part\" style=\"--part:{share:.1}\">{share:.1} %</td><td>{}</td><td>{of_limit:.0} %</td>",
                    escaped(time),
                    escaped(bytes)
                ),
                None => "<td></td><td></td><td></td><td></td>".to_string(),
            };
        }
        let mut title = kernel.operations.join("\n");
        if let Some(same) = &kernel.same_as {
            let _ = write!(title, "\nruns the code of {same}");
        }
        let when = if kernel.at_load { " <span class=\"note\">at load</span>" } else { "" };
        let _ = writeln!(
            out,
            "<tr data-kernel=\"{at}\" title=\"{}\" style=\"--group:{}\"><td><i></i><code>{}</code>{when}</td>{cells}<td>{}</td></tr>",
            escaped(title.trim()),
            drawing::colour(at),
            escaped(&kernel.name),
            kernel.operations.len()
        );
    }
    out += "</tbody></table>\n";
    out += &match times {
        Some(times) => format!("<p>{}</p>", escaped(&times.about)),
        None => "<p class=\"note\">With <code>--profile</code> the table has the time of each kernel.</p>".to_string(),
    };
    out
}

//! Runs folders of ONNX models with their inputs, many in one process; `tests/onnx_nodes.py` writes and compares them.
//!
//! A folder holds `model.onnx` and `input_0.pb`, `input_1.pb`, ... (one `TensorProto` each, named as the model's
//! inputs). For each folder a line is printed: its name, a tab, and `ok` with the types of the outputs, whose elements
//! are then in `output_0.bin`, ... beside the model; or `refused` or `failed` with the reason.
//!
//! The device is `eval`, `cpu`, `cuda` for the GPU of this machine, or the name of one whose kernels are simulated; all of their
//! CUDA must be emitted.
//! `sm_80:8` runs them under eight schedules, which must give the same bits.
//!
//!     girih-onnx-nodes eval cases/test_abs cases/test_acos
//!     girih-onnx-nodes sm_90a cases/test_abs

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use girih::model::{Model, Tensor};
use girih::{CachePolicy, Device, Options, Simulated};
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::{ConstData, Constant, Elem, Graph, eval};
use girih_compiler::source::onnx;
use girih_compiler::tile::target::Target;

enum Outcome {
    Done(Vec<(Elem, Vec<u64>, Vec<u8>)>),
    /// Said so when it was compiled.
    Refused(String),
    Failed(String),
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().replace('\t', " ")
}

fn said(list: &[Diagnostic]) -> String {
    let one = |d: &Diagnostic| format!("{} {}", d.code.text(), d.message);
    list.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn bytes_of(c: &Constant) -> &[u8] {
    match &c.data {
        ConstData::Bytes(bytes) => bytes,
        ConstData::External { .. } => &[],
    }
}

fn run(folder: &Path, compiled: Option<&(Options, u64)>) -> Outcome {
    let read = |name: &str| std::fs::read(folder.join(name)).map(Bytes::from);
    let model = match read("model.onnx") {
        Ok(bytes) => bytes,
        Err(e) => return Outcome::Failed(e.to_string()),
    };
    let mut arguments = vec![];
    while let Ok(bytes) = read(&format!("input_{}.pb", arguments.len())) {
        match onnx::read_tensor(&bytes) {
            Ok(constant) => arguments.push(constant),
            Err(d) => return Outcome::Refused(said(&[d])),
        }
    }
    let graph = match onnx::import_for(&model, &onnx::Options::default(), &arguments) {
        Ok(graph) => graph,
        Err(list) => return Outcome::Refused(said(&list)),
    };
    match compiled {
        Some((options, schedules)) => compile(graph, &arguments, options, *schedules),
        None => evaluate(&graph, &arguments),
    }
}

/// The argument of each input, in their order.
fn ordered<'a>(graph: &Graph, arguments: &'a [Constant]) -> Result<Vec<&'a Constant>, String> {
    let find = |name: &str| arguments.iter().find(|a| a.name == name).ok_or(format!("no argument {name}"));
    graph.inputs.iter().map(|i| find(&graph.values[i.value].name)).collect()
}

fn evaluate(graph: &Graph, arguments: &[Constant]) -> Outcome {
    let inputs = match ordered(graph, arguments) {
        Ok(inputs) => inputs,
        Err(e) => return Outcome::Failed(e),
    };
    let tensors = inputs.iter().map(|c| eval::Tensor::from_bytes(c.elem, &c.shape, bytes_of(c)));
    let Some(tensors) = tensors.collect::<Option<Vec<_>>>() else { return Outcome::Failed("an input is short".into()) };
    match eval::evaluate(graph, &tensors, &eval::no_files, &eval::Options::default()) {
        Ok(outputs) => Outcome::Done(outputs.iter().map(|t| (t.elem, t.shape.clone(), t.to_bytes())).collect()),
        Err(e) => Outcome::Failed(e.to_string()),
    }
}

fn tensor(c: &Constant) -> girih::Result<Tensor> {
    let mut tensor = Tensor::zeroed(c.elem, &c.shape)?;
    let to = tensor.buffer_mut().bytes_mut();
    let bytes = bytes_of(c).get(..to.len()).ok_or_else(|| girih::Error::argument("an input is short"))?;
    to.copy_from_slice(bytes);
    Ok(tensor)
}

fn compile(graph: Graph, arguments: &[Constant], options: &Options, schedules: u64) -> Outcome {
    let inputs = match ordered(&graph, arguments) {
        Ok(inputs) => inputs,
        Err(e) => return Outcome::Failed(e),
    };
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let run = || {
        let tensors: Vec<Tensor> = inputs.iter().map(|c| tensor(c)).collect::<girih::Result<_>>()?;
        let named: Vec<(&str, &Tensor)> = inputs.iter().map(|c| c.name.as_str()).zip(&tensors).collect();
        let mut options = options.clone();
        if options.device != Device::Sim {
            return Model::from_graph(graph)?.with_options(options).run(&named);
        }
        options.watcher = Some(watcher(seen.clone()));
        options.schedules = Some(schedules);
        Model::from_graph(graph)?.with_options(options).run(&named)
    };
    let outputs = run();
    match outputs {
        Ok(_) if faults(&seen).is_some() => Outcome::Failed(faults(&seen).unwrap_or_default()),
        Ok(outputs) => {
            let one = |t: &Tensor| (t.elem(), t.shape().to_vec(), t.buffer().bytes().to_vec());
            Outcome::Done(outputs.iter().map(|(_, t)| one(t)).collect())
        }
        // An error of ours is not a refusal.
        Err(girih::Error::Program(list)) if list.iter().all(|d| d.code != Code::InternalBug) => {
            Outcome::Refused(said(&list))
        }
        Err(girih::Error::Program(list)) => Outcome::Failed(said(&list)),
        Err(e) => Outcome::Failed(e.to_string()),
    }
}

/// Keeps what the simulator finds wrong, and which kernels have no CUDA.
fn watcher(seen: Arc<Mutex<Vec<String>>>) -> girih::Watcher {
    Arc::new(move |simulated: &Simulated<'_>| {
        let name = &simulated.report.kernel;
        let Ok(mut seen) = seen.lock() else { return };
        seen.extend(simulated.report.findings.iter().map(|f| format!("{name}: {}", first_line(&f.to_string()))));
        if simulated.cuda().is_none() {
            seen.push(format!("{name}: no CUDA"));
        }
    })
}

fn faults(seen: &Mutex<Vec<String>>) -> Option<String> {
    seen.lock().ok().filter(|seen| !seen.is_empty()).map(|seen| seen.join("; "))
}

fn report(folder: &Path, outcome: Outcome) -> String {
    match outcome {
        Outcome::Done(outputs) => {
            let mut types = vec![];
            for (i, (elem, shape, bytes)) in outputs.iter().enumerate() {
                if let Err(e) = std::fs::write(folder.join(format!("output_{i}.bin")), bytes) {
                    return format!("failed\t{e}");
                }
                let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
                types.push(format!("{elem}:{}", dims.join(",")));
            }
            format!("ok\t{}", types.join(";"))
        }
        Outcome::Refused(why) => format!("refused\t{}", first_line(&why)),
        Outcome::Failed(why) => format!("failed\t{}", first_line(&why)),
    }
}

/// How a model is compiled for a device, and under how many schedules it is simulated; `None` inside for the evaluator.
fn compiled_for(device: &str) -> Option<Option<(Options, u64)>> {
    let (device, schedules) = device.split_once(':').unwrap_or((device, "1"));
    let schedules = schedules.parse::<u64>().ok().filter(|n| *n > 0)?;
    let options = Options::default().cache(CachePolicy::Off);
    match device {
        "eval" => Some(None),
        "cpu" => Some(Some((options, schedules))),
        "cuda" => Some(Some((options.device(Device::Cuda), schedules))),
        _ => {
            let target = Target::named(device).filter(|target| target.axes.threads > 1)?;
            Some(Some((Options { simulated: Some(target), ..options.device(Device::Sim) }, schedules)))
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(compiled) = args.next().and_then(|device| compiled_for(&device)) else {
        eprintln!("usage: girih-onnx-nodes eval|cpu|cuda|TARGET[:SCHEDULES] FOLDER...");
        std::process::exit(2);
    };
    for folder in args {
        let folder = Path::new(&folder);
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = catch_unwind(AssertUnwindSafe(|| run(folder, compiled.as_ref())));
        let line = match outcome {
            Ok(outcome) => report(folder, outcome),
            Err(_) => "failed\tpanicked".into(),
        };
        println!("{name}\t{line}");
        let _ = std::io::stdout().flush();
    }
}

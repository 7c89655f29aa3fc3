//! Saved models of another version or processor: nothing of their machine code is run, they are compiled anew, and it is said.

use crate::folder;

use std::path::Path;
use std::sync::Arc;

use folder::Folder;
use girih::model::{Model, Tensor};
use girih::{Options, Stage};
use girih_compiler::graph::Elem;
use girih_compiler::tile::schedule::Schedule;

/// Writes a saved model again with another header, whose hash is right.
fn change(from: &Path, to: &Path, edit: impl Fn(&mut serde_json::Value)) {
    let file = std::fs::read(from).unwrap();
    let length = u64::from_le_bytes(file[16..24].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&file[56..56 + length]).unwrap();
    let parts = &file[56 + length..];
    edit(&mut header);
    let header = header.to_string();
    let header = format!("{header:width$}", width = (56 + header.len()).next_multiple_of(4096) - 56);
    let mut out = file[..16].to_vec();
    out.extend((header.len() as u64).to_le_bytes());
    out.extend(blake3::hash(header.as_bytes()).as_bytes());
    out.extend(header.as_bytes());
    out.extend(parts);
    std::fs::write(to, out).unwrap();
}

fn x() -> Tensor {
    let numbers: Vec<f32> = (0..4 * 64).map(|i| (i % 13) as f32 - 6.0).collect();
    Tensor::from_slice(&numbers, &[4, 64]).unwrap()
}

fn run(model: &Model) -> Vec<f32> {
    model.run(&[("x", &x())]).unwrap()[0].1.buffer().to_vec().unwrap()
}

#[test]
fn another_version_or_processor_is_compiled_anew_and_told() {
    let folder = Folder::new("others");
    let (path, other) = (folder.0.join("model.girih"), folder.0.join("other.girih"));
    let inputs = [("x".to_string(), Elem::F32, vec![4, 64])];
    let model = Model::from_expression("torch.nn.Linear(64, 32)(torch.relu(x))", &inputs).unwrap();
    let wanted = run(&model);
    model.save(&path).unwrap();

    let load = |path: &Path| Model::load(path, Options::default()).unwrap();
    let same = load(&path);
    assert_eq!(run(&same), wanted);
    assert_eq!(same.recompiled(), None);

    let told = |edit: &dyn Fn(&mut serde_json::Value)| {
        change(&path, &other, edit);
        let model = load(&other);
        assert_eq!(run(&model), wanted);
        model.recompiled().expect("it is compiled anew")
    };
    let own = env!("CARGO_PKG_VERSION");
    let version = format!("it was saved by girih 0.0.9, and this is {own}");
    assert_eq!(told(&|h| h["version"] = "0.0.9".into()), version);
    assert_eq!(told(&|h| h["abi"] = 0.into()), format!("it was saved by girih {own}, and this is {own}"));
    let lacking = "it was saved for a processor with tile9000, which this one lacks";
    assert_eq!(told(&|h| h["features"].as_array_mut().unwrap().push("tile9000".into())), lacking);
    // Machine code that would crash is not run where it is refused, and is told where it is damaged.
    let crash = |h: &mut serde_json::Value| {
        h["version"] = "0.0.9".into();
        h["objects"].as_array_mut().unwrap().clear();
    };
    assert_eq!(told(&crash), version);
    let of_object = |h: &mut serde_json::Value| {
        let number = h["objects"][0][1].as_u64().unwrap() as usize;
        h["parts"][number][1] = "0".repeat(64).into();
    };
    change(&path, &other, of_object);
    let error = Model::load(&other, Options::default()).err().unwrap().to_string();
    assert!(error.contains("is damaged: part") && error.contains("is not what was written"), "{error}");
    // Code for this processor with another plan: another number of threads makes other kernels, or packs otherwise.
    assert_eq!(
        told(&|h| h["plan"] = "another".into()),
        "this machine compiles it otherwise: its processor, caches or threads are others"
    );
}

/// The text of a graph has other names than the graph where those were not unique.
#[test]
fn layers_of_one_name_are_not_compiled_anew() {
    let folder = Folder::new("names");
    let path = folder.0.join("model.girih");
    let inputs = [("x".to_string(), Elem::F32, vec![4, 64])];
    for text in
        ["torch.nn.Linear(32, 16)(torch.nn.Linear(64, 32)(x))", "torch.nn.Linear(64, 8)(x) * torch.nn.Linear(64, 8)(x)"]
    {
        let model = Model::from_expression(text, &inputs).unwrap();
        let wanted = run(&model);
        model.save(&path).unwrap();
        let loaded = Model::load(&path, Options::default()).unwrap();
        assert_eq!(run(&loaded), wanted);
        assert_eq!(loaded.recompiled(), None, "{text}");
    }
}

/// The file has arrays that were computed from the parameters it was saved with.
#[test]
fn parameters_that_are_bound_before_the_first_run_count() {
    let folder = Folder::new("parameters");
    let path = folder.0.join("model.girih");
    let inputs = [("x".to_string(), Elem::F32, vec![4, 64])];
    let model = Model::from_expression("torch.nn.Linear(64, 32, bias=False)(x)", &inputs).unwrap();
    model.save(&path).unwrap();
    let loaded = Model::load(&path, Options::default()).unwrap();
    let weight = loaded.inputs().into_iter().find(|port| port.name != "x").unwrap();
    let zeros = Tensor::from_slice(&[0f32; 32 * 64], &[32, 64]).unwrap();
    loaded.bind_parameters(vec![(&weight.name, zeros)]).unwrap();
    assert_eq!(run(&loaded), [0.0; 4 * 32]);
    assert_eq!(loaded.recompiled(), None);
}

#[test]
fn a_model_keeps_the_schedule_that_it_was_saved_with() {
    let folder = Folder::new("schedule");
    let (path, other) = (folder.0.join("model.girih"), folder.0.join("other.girih"));
    let inputs = [("x".to_string(), Elem::F32, vec![4, 64])];
    let model = || Model::from_expression("torch.softmax(x, 1)", &inputs).unwrap();
    let text = model().ir(Stage::Schedule).unwrap();
    // Without its last step, which vectorises.
    let last = text.lines().rfind(|l| l.contains("vector ")).unwrap();
    let schedule = Schedule::parse("s", &text.replace(last, "")).unwrap();
    let scheduled = model().with_options(Options { schedule: Some(Arc::new(schedule)), ..Options::default() });
    assert_ne!(scheduled.ir(Stage::Kernel).unwrap(), model().ir(Stage::Kernel).unwrap());
    let wanted = run(&scheduled);
    scheduled.save(&path).unwrap();
    let loaded = Model::load(&path, Options::default()).unwrap();
    assert_eq!(loaded.ir(Stage::Kernel).unwrap(), scheduled.ir(Stage::Kernel).unwrap());
    assert_eq!((run(&loaded), loaded.recompiled()), (wanted, None));

    change(&path, &other, |h| h["schedule"] = "schedule of my day".into());
    let error = Model::load(&other, Options::default()).err().unwrap().to_string();
    assert!(error.contains("its header contradicts itself"), "{error}");
}

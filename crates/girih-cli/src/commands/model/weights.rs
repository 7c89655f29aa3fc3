//! Files of weights alone, as lists of their tensors.
//!
//! ```text
//! llama.gguf: GGUF of llama, 2 tensors, 452 B
//! q  Q4_K  [3, 256]  432 B
//! b   F32       [5]  20 B
//! ```

use std::path::Path;

use girih::model::{Format, Weights};
use girih_compiler::base::label::visible;
use girih_compiler::base::{Code, Diagnostic};

use crate::columns;
use crate::commands::run::profile::size;
use crate::failure::Failure;
use crate::render::{self, Source};

/// Prints the tensors of a file.
pub fn list(path: &Path, format: Format) -> Result<(), Failure> {
    let weights = Weights::read(path, format)?;
    let (count, bytes) = (weights.tensors.len(), weights.bytes());
    let s = if count == 1 { "" } else { "s" };
    let what = match (format, &weights.architecture) {
        (Format::Safetensors, _) => "safetensors".to_string(),
        (Format::Gguf, None) => "GGUF".to_string(),
        (Format::Gguf, Some(of)) => format!("GGUF of {}", visible(of)),
    };
    outln!("{}: {what}, {count} tensor{s}, {}", visible(&path.display().to_string()), size(bytes as f64))?;
    let row = |t: &girih::model::Weight| {
        let extents: Vec<String> = t.shape.iter().map(u64::to_string).collect();
        let shape = format!("[{}]", extents.join(", "));
        vec![visible(&t.name).into_owned(), visible(&t.kind).into_owned(), shape, size(t.bytes as f64)]
    };
    out!("{}", columns::table(&weights.tensors.iter().map(row).collect::<Vec<_>>()))
}

/// The error of a command that needs more than weights.
pub fn without_graph(path: &Path, format: Format) -> Failure {
    let message = "the file holds weights, and no graph that computes with them";
    let help = match format {
        Format::Safetensors => {
            "name the folder that has the model's config.json, `girih run DIR` or `girih generate DIR`; or a graph whose constants name \
             the file (docs/models/huggingface.md)"
        }
        Format::Gguf => {
            "name the folder that has the same model's config.json and safetensors, `girih run DIR` or `girih generate DIR`"
        }
    };
    let source = Source { name: path.display().to_string(), ..Source::default() };
    render::one(
        &source,
        &Diagnostic::error(Code::File, format!("{}: {message}", path.display())).help(help.to_string()),
    );
    Failure::Said(1)
}

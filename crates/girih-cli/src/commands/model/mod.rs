//! The commands on models: ONNX files, graphs that PyTorch captured, Hugging Face folders, one-line expressions.

pub mod arguments;
mod folder;
pub mod weights;

use std::path::{Path, PathBuf};

use girih::Options;
use girih::model::{Format, Model, OnnxModel, Weights};
use girih_compiler::base::{Code, Diagnostic};

use crate::cli::KernelArgs;
use crate::failure::Failure;
use crate::render::{self, Source};
use arguments::Arguments;
use folder::Folder;

/// A model on the command line.
pub enum Given {
    File(PathBuf),
    Folder(Folder),
    Expression(String),
    /// A file of weights, which no graph comes with.
    Weights(PathBuf, Format),
}

/// The model that the command was given, if any.
pub fn given(args: &KernelArgs) -> Option<Given> {
    match (&args.expression, &args.file) {
        (Some(text), _) => Some(Given::Expression(text.clone())),
        (None, Some(path)) if path.is_dir() => Some(Given::Folder(Folder::new(path, &args.folder))),
        (None, Some(file)) if is_model(file) => Some(Given::File(file.clone())),
        (None, Some(file)) => Weights::format_of(file).map(|format| Given::Weights(file.clone(), format)),
        _ => None,
    }
}

/// Models are known by their names.
pub fn is_model(path: &Path) -> bool {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    ["onnx", "json"].contains(&ending.as_str())
}

impl Given {
    /// The source that messages point into.
    pub fn source(&self) -> Source {
        match self {
            Given::File(path) | Given::Folder(Folder { path, .. }) | Given::Weights(path, _) => {
                Source { name: path.display().to_string(), ..Source::default() }
            }
            Given::Expression(text) => {
                Source { name: "<expression>".into(), text: text.as_str().into(), ..Source::default() }
            }
        }
    }

    /// Returns true for an ONNX file, whose dimensions can be fixed.
    pub fn is_onnx(&self) -> bool {
        matches!(self, Given::File(path) if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx")))
    }

    /// Answers a question, `-c help` or `-c 'help NAME'`; returns true if it was one. A file of weights alone is listed, and is an error.
    pub fn answers(&self) -> Result<bool, Failure> {
        if let Given::Weights(path, format) = self {
            weights::list(path, *format)?;
            return Err(weights::without_graph(path, *format));
        }
        let Given::Expression(text) = self else { return Ok(false) };
        let Some(answer) = girih_compiler::source::expr::asked(text) else { return Ok(false) };
        out!("{}", answer.map_err(Failure::usage)?)?;
        Ok(true)
    }

    /// Reads the model. The names of a one-liner have the types of its arguments. An ONNX file that cannot be compiled for
    /// all shapes is compiled for those of the arguments and similar ones; arguments that this model does not take are
    /// removed.
    pub fn open(&self, arguments: &mut Arguments, options: Options) -> Result<Model, Failure> {
        if let Given::Weights(path, format) = self {
            return Err(weights::without_graph(path, *format));
        }
        if let Given::Folder(folder) = self {
            arguments.number(&[])?;
            return Ok(folder.open().map_err(|f| f.at(&self.source()))?.with_options(options));
        }
        self.read(arguments, options).map_err(Failure::within(&self.source()))
    }

    fn read(&self, arguments: &mut Arguments, options: Options) -> girih::Result<Model> {
        let path = match self {
            Given::Expression(text) => {
                arguments.number(&[])?;
                return Ok(Model::from_expression(text, &arguments.types())?.with_options(options));
            }
            Given::File(path) if !self.is_onnx() => {
                arguments.number(&[])?;
                return Ok(Model::from_file(path)?.with_options(options));
            }
            Given::File(path) | Given::Folder(Folder { path, .. }) | Given::Weights(path, _) => path,
        };
        let extents = std::mem::take(&mut arguments.symbols);
        let dims: Vec<(&str, i64)> = extents.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let open = OnnxModel::from_file(path)?.with_options(options).with_dims(&dims)?;
        arguments.number(open.strings())?;
        let (model, limits) = open.into_fitting(&arguments.arrays())?;
        if let Some(limits) = limits {
            say!("note: {limits}");
            arguments.keep(&model);
        }
        Ok(model)
    }
}

/// Refuses flags that mean something for tile programs only.
pub fn refuse_flags(flags: &[(&str, bool)]) -> Result<(), Failure> {
    match flags.iter().find(|(_, set)| *set) {
        Some((flag, _)) => Err(Failure::usage(format!("{flag} works with tile programs only, not with models"))),
        None => Ok(()),
    }
}

/// `girih check`: reads the model and lowers it to primitives; whether that went well.
pub fn check(path: &Path, json: bool) -> Result<bool, Failure> {
    let given = Given::File(path.to_path_buf());
    let source = given.source();
    let outcome = given.read(&mut Arguments::default(), Options::default()).and_then(|model| model.check());
    let diagnostics = match outcome {
        Ok(()) => return Ok(true),
        Err(girih::Error::Program(diagnostics)) => diagnostics,
        Err(other) => {
            let code = other.code().unwrap_or(Code::File);
            vec![Diagnostic::error(code, other.to_string())]
        }
    };
    for d in &diagnostics {
        if json {
            outln!("{}", render::json(&source, d))?;
        } else {
            render::one(&source, d);
        }
    }
    Ok(false)
}

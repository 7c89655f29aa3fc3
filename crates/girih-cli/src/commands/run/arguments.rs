//! From argument specifications to buffers and scalars.

use girih::spec::ArgSpec;
use girih::{Arg, Buffer, Param, ParamKind, npy, values};
use girih_compiler::base::label::visible;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::Elem;
use girih_compiler::num::DType;

use crate::failure::Failure;
use crate::render::{self, Source};
use crate::source::suggestion;

/// One value per parameter.
#[derive(Debug, Default)]
pub struct Arguments {
    pub values: Vec<Value>,
}

#[derive(Debug)]
pub enum Value {
    Scalar { dtype: DType, bits: u64 },
    Buffer(Buffer),
    Same(usize),
    Pointers(Vec<usize>),
}

/// The position of the parameter of that name, or at that position.
pub fn position(source: &Source, params: &[Param], name: &str) -> Result<usize, Failure> {
    let found = params.iter().position(|p| p.name == name).or_else(|| {
        let i = name.parse::<usize>().ok()?;
        (i < params.len()).then_some(i)
    });
    found.ok_or_else(|| {
        let mut d = Diagnostic::error(Code::BadArgument, format!("the kernel has no parameter `{name}`"));
        d = d.help(suggestion("parameters", name, params.iter().map(|p| p.name.as_str())));
        render::one(source, &d);
        Failure::Said(1)
    })
}

/// The position, among the arguments that are buffers of their own, of the buffer that a parameter has.
pub fn result(source: &Source, params: &[Param], arguments: &Arguments, name: &str) -> Result<usize, Failure> {
    let i = position(source, params, name)?;
    let owner = arguments.owner(i).filter(|owner| matches!(arguments.values.get(*owner), Some(Value::Buffer(_))));
    let owner =
        owner.ok_or_else(|| Failure::usage(format!("`{name}` is not a buffer, so it cannot be saved or printed")));
    Ok(arguments.values.iter().take(owner?).filter(|value| matches!(value, Value::Buffer(_))).count())
}

impl Arguments {
    /// Takes arguments from the flags first, then from the launch comment; a missing or surplus argument is an error.
    pub fn resolve(
        source: &Source,
        params: &[Param],
        flags: &[(String, String)],
        comment: Vec<(String, ArgSpec)>,
    ) -> Result<Arguments, Failure> {
        let mut specs: Vec<Option<ArgSpec>> = vec![None; params.len()];
        for (name, spec) in comment {
            let i = position(source, params, &name)?;
            specs[i] = Some(spec);
        }
        for (name, spec) in flags {
            let i = position(source, params, name)?;
            specs[i] = Some(spec.parse().map_err(|e| Failure::usage(format!("--arg {name}: {e}")))?);
        }
        let missing: Vec<String> = params
            .iter()
            .zip(&specs)
            .filter(|(_, s)| s.is_none())
            .map(|(p, _)| format!("{}: {}", p.name, p.kind))
            .collect();
        if !missing.is_empty() {
            let mut d = Diagnostic::error(Code::BadArgument, format!("no value is given for {}", missing.join(", ")));
            d.help = Some("give each with `--arg NAME=SPEC`, or in a `// launch:` comment".to_string());
            render::one(source, &d);
            return Err(Failure::Said(1));
        }
        let mut values = Vec::with_capacity(params.len());
        for (i, (param, spec)) in params.iter().zip(specs).enumerate() {
            let Some(spec) = spec else { continue };
            values.push(value(source, params, i, param, spec)?);
        }
        Ok(Arguments { values })
    }

    /// Borrowed for a launch.
    pub fn views(&mut self) -> Vec<Arg<'_>> {
        self.values
            .iter_mut()
            .map(|v| match v {
                Value::Scalar { dtype, bits } => Arg::scalar(*dtype, *bits),
                Value::Buffer(b) => Arg::from(b),
                Value::Same(i) => Arg::same_as(*i),
                Value::Pointers(of) => Arg::pointers(of),
            })
            .collect()
    }

    /// The same values in memory of their own.
    pub fn duplicate(&self) -> girih::Result<Arguments> {
        let copy = |v: &Value| {
            Ok(match v {
                Value::Scalar { dtype, bits } => Value::Scalar { dtype: *dtype, bits: *bits },
                Value::Buffer(b) => Value::Buffer(b.duplicate()?),
                Value::Same(i) => Value::Same(*i),
                Value::Pointers(of) => Value::Pointers(of.clone()),
            })
        };
        Ok(Arguments { values: self.values.iter().map(copy).collect::<girih::Result<_>>()? })
    }

    /// The buffer behind parameter `i`.
    pub fn buffer(&self, i: usize) -> Option<&Buffer> {
        match self.values.get(self.owner(i)?)? {
            Value::Buffer(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// The argument that parameter `i` has the memory of; `None` where arguments name each other in a circle.
    fn owner(&self, i: usize) -> Option<usize> {
        let mut at = i;
        for _ in 0..=self.values.len() {
            match self.values.get(at)? {
                Value::Same(next) => at = *next,
                _ => return Some(at),
            }
        }
        None
    }

    /// Restores the contents of the buffer of parameter `i` from `before`.
    pub fn restore(&mut self, before: &Arguments, i: usize) {
        if let (Some(Value::Buffer(now)), Some(Value::Buffer(then))) = (self.values.get_mut(i), before.values.get(i)) {
            now.bytes_mut().copy_from_slice(then.bytes());
        }
    }
}

fn value(source: &Source, params: &[Param], i: usize, param: &Param, spec: ArgSpec) -> Result<Value, Failure> {
    let within = Failure::within(source);
    let reference = |name: &str| position(source, params, name);
    Ok(match spec {
        ArgSpec::Scalar { dtype, bits } => Value::Scalar { dtype, bits },
        ArgSpec::Fill { fill, dtype, shape, seed } => {
            // Without a seed each parameter gets its own.
            let seed = seed.unwrap_or(i as u64 + 1);
            Value::Buffer(Buffer::filled(fill, dtype, &shape, seed).map_err(within)?)
        }
        ArgSpec::File { path, dtype } => {
            let mut buffer = npy::read(&path).map_err(&within)?;
            if let Some(dtype) = dtype {
                buffer = buffer.reinterpret(dtype).map_err(&within)?;
            }
            match param.kind {
                ParamKind::Scalar(_) if buffer.shape().is_empty() => {
                    Value::Scalar { dtype: buffer.dtype(), bits: buffer.get(0) }
                }
                _ => Value::Buffer(buffer),
            }
        }
        ArgSpec::Same(name) => Value::Same(reference(&name)?),
        ArgSpec::Pointers(names) => {
            Value::Pointers(names.iter().map(|n| reference(n)).collect::<Result<Vec<usize>, Failure>>()?)
        }
    })
}

/// An array as nested lists; long axes are cut in the middle. The integers of a model may be unsigned, or index the strings
/// in `words`.
pub fn show_as(buffer: &Buffer, elem: Elem, words: &[&str]) -> String {
    let element = |i: u64| match words.get(i as usize) {
        Some(word) => format!("\"{}\"", visible(&word.replace('\\', "\\\\").replace('"', "\\\""))),
        None if elem.unsigned => buffer.get(i).to_string(),
        None => values::text(buffer.dtype(), buffer.get(i)),
    };
    format!("{}  ({elem}{})", values::nested(buffer.shape(), &element), shape_text(buffer))
}

/// `f32[4x128]`.
pub fn type_text(buffer: &Buffer) -> String {
    format!("{}{}", buffer.dtype(), shape_text(buffer))
}

fn shape_text(buffer: &Buffer) -> String {
    let shape: Vec<String> = buffer.shape().iter().map(u64::to_string).collect();
    format!("[{}]", shape.join("x"))
}

//! The parts of the generated C that models and programs share: kernels, the code that runs them, and messages.

use girih_compiler::base::Code;
use girih_compiler::loops::ir::{Kernel, Stmt, assertion_code};
use girih_compiler::loops::walk;
use girih_compiler::pipeline::{self, Lowered};
use girih_compiler::tile::target::Target;

use super::super::expr::string;
use super::super::label;
use crate::error::{Error, Result};

/// The messages that every library has, with their names in C; results are numbered from 1.
const MESSAGES: [(&str, &str); 6] = [
    ("GIRIH_EXTENT", "an extent is out of its range"),
    ("GIRIH_TOO_LARGE", "an array or a grid is too large, or an extent is negative"),
    ("GIRIH_NO_MEMORY", "there is no arena, or no scratch memory"),
    ("GIRIH_STEP", "the step of a loop is not positive"),
    ("GIRIH_STOPPED", "a kernel stopped"),
    ("GIRIH_MEMORY", "a kernel asks for too many bytes"),
];

/// The C before the functions of a library.
pub struct Source {
    pub text: String,
    messages: Vec<String>,
}

impl Source {
    /// Kernels and the code that runs them. `command` compiles the file.
    ///
    /// # Errors
    /// Kernels that have no C.
    pub fn new(name: &str, command: &str, kernels: &[&Lowered], target: &Target) -> Result<Source> {
        let all: Vec<_> = kernels.iter().map(|k| &k.kernel).collect();
        // Kernels come before the headers: a macro of a header could have the name of one of their values.
        let kernels_text = pipeline::emit_library(&all, target).map_err(|d| Error::Program(vec![d]))?;
        let mut text = format!("// {command}\n{POSIX}{kernels_text}");
        text += &format!("\n#include \"{name}.h\"\n#include <string.h>\n\ntypedef {name}_threads girih_threads;\n");
        text += "#define GIRIH_HELPER static inline __attribute__((unused))\n";
        text += "enum {\n";
        for (number, (word, _)) in MESSAGES.iter().enumerate() {
            text += &format!("  {word} = {},\n", number + 1);
        }
        text += "};\n";
        text += include_str!("runtime.c");
        let mut source = Source { text, messages: MESSAGES.iter().map(|(_, m)| m.to_string()).collect() };
        source.text += "\n";
        for (n, kernel) in kernels.iter().enumerate() {
            let said = source.said(&kernel.loops);
            source.text += &format!("static const girih_said girih_said_{n}[] = {{{said}{{-1, 0}}}};\n");
        }
        Ok(source)
    }

    /// The sites of a kernel's assertions with their messages.
    fn said(&mut self, kernel: &Kernel) -> String {
        let mut out = String::new();
        walk::visit(&kernel.body, &mut |stmt| {
            let Stmt::Assert { message, site, .. } = stmt else { return };
            let op = kernel.sites.get(*site).map_or("", |s| s.op.as_str());
            let before = if assertion_code(op) == Code::AssertFailed { "assertion failed: " } else { "" };
            let text = format!("{before}{message}, in {}", label(&kernel.name));
            let known = self.messages.iter().position(|m| *m == text);
            let number = known.unwrap_or(self.messages.len());
            if known.is_none() {
                self.messages.push(text);
            }
            out += &format!("{{{}, {}}}, ", site.0, number + 1);
        });
        out
    }

    /// The whole file.
    pub fn finish(mut self, name: &str) -> String {
        self.text += &format!(
            "\nconst char *{name}_message(int result) {{\n  static const char *const text[] = {{\n    \"\",\n"
        );
        for message in &self.messages {
            self.text += &format!("    {},\n", string(message));
        }
        self.text +=
            "  };\n  return result >= 0 && (size_t)result < sizeof text / sizeof *text ? text[result] : \"\";\n}\n";
        self.text
    }
}

/// Under `-std=c11` headers declare POSIX functions only if the source asks for them.
const POSIX: &str = "#ifndef _POSIX_C_SOURCE\n#define _POSIX_C_SOURCE 200809L\n#endif\n";

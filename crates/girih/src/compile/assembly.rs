//! The machine code of an explained compilation: its last stage.
//!
//! In: the stages; the last one is C or CUDA, with the operations of its lines. Out: one stage more, whose instructions are
//! linked with the operations of the line that they were compiled from:
//!
//! ```text
//! c          77  f32x16 z = x + y;                              [340]
//! assembly  112    5d:  vaddps (%rsi,%rax,4),%zmm0,%zmm0        [340]
//! ```
//! An instruction of a function that was inlined belongs to the line of the call. Disassemblers print that before instructions:
//! `objdump -d -l --inlines`, and `nvdisasm -c -g` for code that NVRTC compiled with `-lineinfo`.

use std::collections::BTreeMap;

use girih_compiler::explain::{Explained, SourceId, StageText};
use girih_compiler::pipeline::Stage;

use super::cc;
use super::scratch::Scratch;
use super::version::Tools;
use crate::cuda::{Places, Toolchain};
use crate::error::{Error, Result};
use crate::options::Options;

/// Sources up to this size are compiled in a second or two.
const MOST_BYTES: usize = 256 << 10;
/// The name of the file that holds the source.
const SOURCE: &str = "kernels.c";

/// Adds the machine code; in place of a text that there is none of, why. Without NVIDIA's tools the code of a GPU is left out.
pub(super) fn add(explained: &mut Explained, options: &Options) {
    let Some(source) = explained.stages.last() else { return };
    let gpu = source.name == Stage::Cuda.name();
    if !gpu && source.name != Stage::C.name() {
        return;
    }
    let listing = match source.text.len() {
        n if n > MOST_BYTES => Err(Error::argument(format!(
            "the source has {} KB; the assembly of up to {} KB is shown",
            n >> 10,
            MOST_BYTES >> 10
        ))),
        _ if gpu => of_gpu(source, &explained.target),
        _ => of_processor(source, options),
    };
    let stage = match listing {
        Ok(listing) => listing.stage(source),
        Err(Error::Cuda(crate::cuda::Error::Missing { .. })) => return,
        Err(why) => StageText { text: format!("// {why}\n"), ..StageText::default() },
    };
    explained.stages.push(StageText { name: "assembly".into(), ..stage });
}

fn of_processor(source: &StageText, options: &Options) -> Result<Listing> {
    let tools = Tools::default();
    let compiler = tools.compiler(options)?;
    let disassembler = cc::find(Some("objdump")).map_err(|_| {
        Error::argument(
            "the assembly is read by `objdump`, which comes with binutils, and it was not found".to_string(),
        )
    })?;
    let scratch = Scratch::new().map_err(|e| Error::file("a folder for the source", e.to_string()))?;
    let [file, object] = [SOURCE, "kernels.o"].map(|name| scratch.path().join(name));
    std::fs::write(&file, &source.text).map_err(|e| Error::file(&file, e.to_string()))?;
    compiler.compile_with_lines(&file, &object)?;
    Ok(Listing::of_objdump(&disassembler.output(&["-d", "-l", "--inlines", "--no-show-raw-insn"], &object)?))
}

fn of_gpu(source: &StageText, target: &str) -> Result<Listing> {
    let toolchain = Toolchain::find(&Places::from_environment())?;
    Ok(Listing::of_nvdisasm(&toolchain.listing(&source.text, target)?))
}

/// Code with, for each line, the lines of the source that it was compiled from: first that of the function, then those of the
/// calls that it was inlined at.
#[derive(Default)]
struct Listing {
    lines: Vec<(String, Vec<u32>)>,
}

impl Listing {
    fn of_objdump(text: &str) -> Listing {
        let mut listing = Listing::default();
        let mut from = vec![];
        for line in text.lines() {
            if let Some(name) = line.strip_suffix(">:").and_then(|l| l.split_once(" <")).map(|(_, name)| name) {
                listing.lines.push((format!("{name}:"), vec![]));
            } else if line.starts_with(' ') && line.contains(":\t") {
                listing.lines.push((line.replace('\t', "  "), from.clone()));
            } else if let Some(call) = line.strip_prefix("inlined by ") {
                from.extend(place(call).filter(|at| !from.contains(at)));
            } else if line.contains('/') {
                from = place(line).into_iter().collect();
            }
        }
        listing
    }

    fn of_nvdisasm(text: &str) -> Listing {
        let mut listing = Listing::default();
        let (mut from, mut ended) = (vec![], false);
        for line in text.lines() {
            if let Some(place) = line.trim_start().strip_prefix("//## File ") {
                if std::mem::take(&mut ended) {
                    from.clear();
                }
                let number = |s: &str| -> Option<u32> {
                    let (_, rest) = s.split_once("line ")?;
                    rest.split([' ', ',']).next()?.parse().ok()
                };
                from.extend(place.split(" inlined at ").filter_map(number));
            } else if line.trim_start().starts_with("/*") {
                ended = true;
                listing.lines.push((line.trim_end().to_string(), from.clone()));
            } else if line.starts_with('.') && line.ends_with(':') {
                listing.lines.push((line.to_string(), vec![]));
            }
        }
        listing
    }

    /// The stage, linked through the lines of the source.
    fn stage(self, source: &StageText) -> StageText {
        let operations: BTreeMap<u32, &Vec<SourceId>> = source.lines.iter().map(|(line, of)| (*line, of)).collect();
        let (mut text, mut lines, mut kernels) = (String::new(), vec![], BTreeMap::new());
        for (at, (instruction, from)) in self.lines.into_iter().enumerate() {
            text += &instruction;
            text.push('\n');
            let at = at as u32 + 1;
            let Some((line, of)) = from.iter().find_map(|line| Some((line, operations.get(line)?))) else { continue };
            lines.push((at, (*of).clone()));
            let kernel = source.kernels.partition_point(|(_, begin)| begin <= line).checked_sub(1);
            kernel.map(|kernel| kernels.entry(kernel).or_insert(at));
        }
        let named = |(kernel, at): (usize, u32)| Some((source.kernels.get(kernel)?.0.clone(), at));
        StageText { text, lines, kernels: kernels.into_iter().filter_map(named).collect(), ..StageText::default() }
    }
}

/// The line of `/tmp/x/kernels.c:12 (discriminator 3)`; `None` for other files.
fn place(text: &str) -> Option<u32> {
    let (file, line) = text.split(" (").next()?.rsplit_once(':')?;
    (file.rsplit('/').next() == Some(SOURCE)).then(|| line.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_inlined_functions_belong_to_the_call() {
        let text = "k.o:     file format elf64-x86-64\n\n\nDisassembly of section .text:\n\n0000000000000000 <girih_0>:\ngirih_0():\n\
                    /tmp/a/kernels.c:40\n   0:\ttest   %rdx,%rdx\nload():\n/tmp/a/kernels.c:7 (discriminator 3)\n\
                    inlined by /tmp/a/kernels.c:41 (girih_0)\n  10:\tvmovups (%rdi),%zmm0\ninlined by /tmp/a/kernels.c:41 (girih_0)\n\
                    \x20 17:\tvaddps %zmm0,%zmm0,%zmm0\n/usr/include/x.h:41\n  1e:\tret\n";
        let lines = Listing::of_objdump(text).lines;
        let from: Vec<&[u32]> = lines.iter().map(|(_, from)| &from[..]).collect();
        assert_eq!(from, [&[][..], &[40], &[7, 41], &[7, 41], &[]]);
        assert_eq!(lines[0].0, "girih_0:");

        let source = StageText {
            lines: vec![(40, vec![SourceId(1)]), (41, vec![SourceId(2)])],
            kernels: vec![("k".into(), 30), ("l".into(), 50)],
            ..StageText::default()
        };
        let stage = Listing { lines }.stage(&source);
        assert_eq!(stage.lines, [(2, vec![SourceId(1)]), (3, vec![SourceId(2)]), (4, vec![SourceId(2)])]);
        assert_eq!(stage.kernels, [("k".to_string(), 2)]);
    }

    #[test]
    fn lines_of_sass_are_read() {
        let text = ".text.k:\n        //## File \"girih.cu\", line 12\n        /*0000*/                   MOV R1, c[0x0][0x28] ;\n\
                    \t//## File \"girih.cu\", line 3 inlined at \"girih.cu\", line 14\n\t//## File \"girih.cu\", line 14\n\
                    \x20       /*0010*/                   FADD R2, R2, R3 ;\n";
        let lines = Listing::of_nvdisasm(text).lines;
        let from: Vec<&[u32]> = lines.iter().map(|(_, from)| &from[..]).collect();
        assert_eq!(from, [&[][..], &[12], &[3, 14, 14]]);
    }
}

//! Machine code of kernels, and behind it the kernels' IR.
//!
//! ```text
//! a cubin (ELF), or nothing                   the driver's part: it takes the length from the ELF's own tables
//! 7f 47 69 72 69 68 4b 0a   u64 length        of what follows, little-endian
//! {"target": "sm_90a", "kernels": [{"entry", "shared", "globals", "kernel", "tile"}]}
//! ```
//! The stand-in for a driver runs the Kernel IR on the simulator, so that what launches kernels can be tested without a GPU.

use girih_compiler::emit::cuda::Unit;
use girih_compiler::kernel::ir::Kernel;
use girih_compiler::kernel::{self, verify};
use girih_compiler::loops;
use girih_compiler::loops::print::Dialect;
use girih_compiler::pipeline::Lowered;
use serde_json::{Value as Json, json};

const MAGIC: [u8; 8] = *b"\x7fGirihK\n";
/// Longer texts are taken for damage.
const MOST: u64 = 1 << 28;

/// A kernel of an image.
#[derive(Clone, Debug)]
pub struct Described {
    /// The name by which the driver finds it.
    pub entry: String,
    /// Bytes of shared memory that a launch asks for.
    pub dynamic_shared: u64,
    /// The names of the kernel's globals in the module.
    pub globals: Vec<String>,
    pub kernel: Kernel,
    /// The loop kernel that it was lowered from.
    pub tile: loops::ir::Kernel,
}

/// The kernels of a unit behind its machine code.
pub fn write(cubin: &[u8], unit: &Unit, lowered: &[&Lowered], target: &str) -> Vec<u8> {
    let one = |(entry, lowered): (_, &&Lowered)| {
        let entry: &girih_compiler::emit::cuda::Entry = entry;
        json!({
            "entry": entry.name.as_str(),
            "shared": entry.dynamic_shared,
            "globals": entry.globals,
            "kernel": kernel::print::print(&lowered.kernel),
            "tile": loops::print::print(&lowered.tile, Dialect::Tile),
        })
    };
    let kernels: Vec<Json> = unit.entries.iter().zip(lowered).map(one).collect();
    let text = json!({ "target": target, "kernels": kernels }).to_string();
    let mut out = cubin.to_vec();
    out.extend(MAGIC);
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.into_bytes());
    out
}

/// Bytes of an image from a place on; `None` where there are not as many.
pub type Bytes<'a> = dyn Fn(u64, usize) -> Option<Vec<u8>> + 'a;

/// The target and the kernels of an image whose length is not known.
///
/// # Errors
/// Why it is not an image of Girih's.
pub fn read(bytes: &Bytes<'_>) -> Result<(String, Vec<Described>), String> {
    let cut = || "it is cut off".to_string();
    let start = if bytes(0, 4).as_deref() == Some(b"\x7fELF") { elf_length(bytes).ok_or_else(cut)? } else { 0 };
    if bytes(start, 8).as_deref() != Some(&MAGIC) {
        return Err("Girih did not make it".to_string());
    }
    let length = long(bytes, start + 8).filter(|n| *n <= MOST).ok_or_else(cut)?;
    let text = bytes(start + 16, length as usize).ok_or_else(cut)?;
    let all: Json = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
    let target = all["target"].as_str().unwrap_or_default().to_string();
    let kernels = all["kernels"].as_array().ok_or("it names no kernels")?;
    Ok((target, kernels.iter().map(described).collect::<Result<_, _>>()?))
}

fn described(one: &Json) -> Result<Described, String> {
    let text = |name: &str| one[name].as_str().ok_or_else(|| format!("a kernel has no {name}"));
    let kernel = kernel::parse::parse(text("kernel")?).map_err(|d| d.message)?;
    if let Some(wrong) = verify::verify(&kernel).first() {
        return Err(wrong.clone());
    }
    let (tile, dialect) = loops::parse::parse(text("tile")?).map_err(|d| d.message)?;
    if let Some(wrong) = loops::verify::verify(&tile, dialect).first() {
        return Err(wrong.message.clone());
    }
    let dynamic_shared = one["shared"].as_u64().ok_or("a kernel has no shared")?;
    let globals = one["globals"].as_array().map_or(&[][..], |all| all);
    let globals = globals.iter().map(|name| name.as_str().unwrap_or_default().to_string()).collect();
    Ok(Described { entry: text("entry")?.to_string(), dynamic_shared, globals, kernel, tile })
}

fn word(bytes: &Bytes<'_>, at: u64) -> Option<u64> {
    Some(u16::from_le_bytes(bytes(at, 2)?.try_into().ok()?).into())
}

fn long(bytes: &Bytes<'_>, at: u64) -> Option<u64> {
    Some(u64::from_le_bytes(bytes(at, 8)?.try_into().ok()?))
}

/// The length of a 64-bit ELF file: the end of the last of its tables and sections.
fn elf_length(bytes: &Bytes<'_>) -> Option<u64> {
    let (programs, sections) = (long(bytes, 0x20)?, long(bytes, 0x28)?);
    let [program, count, section, entries] = [0x36, 0x38, 0x3a, 0x3c].map(|at| word(bytes, at));
    let (section, entries) = (section?, entries?);
    let mut end = programs.checked_add(program? * count?)?.max(sections.checked_add(section * entries)?);
    for n in 0..entries {
        let at = sections + n * section;
        let kind = long(bytes, at)? >> 32;
        // Sections without bytes in the file: SHT_NULL, SHT_NOBITS.
        if kind != 0 && kind != 8 {
            end = end.max(long(bytes, at + 24)?.checked_add(long(bytes, at + 32)?)?);
        }
    }
    (end <= MOST).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use girih_compiler::emit::cuda::emit;
    use girih_compiler::tile::target::Target;

    const COPY: &str = "kernel copy(x: ptr<f32>, y: ptr<f32>) threads 64 scratch 0 shared 0 {
  v: f32 = load x[tx]
  store y[tx] = v
}
";

    fn of(bytes: &[u8]) -> Result<(String, Vec<Described>), String> {
        read(&|at, n| {
            let at = usize::try_from(at).ok()?;
            bytes.get(at..at.checked_add(n)?).map(<[u8]>::to_vec)
        })
    }

    /// An ELF file with one section, whose table stands before the section's contents.
    fn elf() -> Vec<u8> {
        let mut out = vec![0; 64 + 64 + 40];
        out[..4].copy_from_slice(b"\x7fELF");
        out[0x28..0x30].copy_from_slice(&64u64.to_le_bytes());
        out[0x3a..0x3e].copy_from_slice(&[64, 0, 1, 0]);
        out[64 + 4] = 1;
        out[64 + 24..64 + 32].copy_from_slice(&128u64.to_le_bytes());
        out[64 + 32..64 + 40].copy_from_slice(&40u64.to_le_bytes());
        out
    }

    #[test]
    fn what_is_cut_off_or_not_ours_is_refused() {
        let kernel = kernel::parse::parse(COPY).unwrap();
        let unit = emit(&[&kernel], &Target::named("sm_80").unwrap()).unwrap_or_else(|r| panic!("{}", r.message));
        let lowered = Lowered { kernel, loops: Default::default(), tile: Default::default() };
        for code in [vec![], elf()] {
            let image = write(&code, &unit, &[&lowered], "sm_80");
            let (target, kernels) = of(&image).unwrap();
            assert_eq!((target.as_str(), kernels[0].entry.as_str()), ("sm_80", "copy_kernel"));
            assert_eq!(kernels[0].kernel, lowered.kernel);
            for n in 0..image.len() {
                assert!(of(&image[..n]).is_err(), "{n} of {} bytes", image.len());
            }
            for at in code.len()..image.len() {
                let mut damaged = image.clone();
                damaged[at] = damaged[at].wrapping_add(0x81);
                let _ = of(&damaged);
            }
        }
        assert_eq!(of(&elf()).unwrap_err(), "Girih did not make it");
        for at in 0..elf().len() {
            let mut damaged = elf();
            damaged[at] = 0xff;
            assert!(of(&damaged).is_err());
        }
    }
}

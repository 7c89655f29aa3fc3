//! Kernels at their goals: launches, registers, spills, the unit that multiplies, and how long a GPU takes to issue them.
//!
//! The machine code says how many instructions a warp issues in the loop around the matrix unit, for how many operations. All
//! operations of a kernel take that many instructions again and again, and a multiprocessor issues four at a time:
//!
//! ```text
//! 631 instructions for 64 x 128 x 64 and 64 x 64 x 128   -->   89 us for 4 x 16 heads of 2048 x 64 on 132 multiprocessors
//! ```
//! The table is on the page `docs/gpu.md`, which is compared with it; versions of NVIDIA's compiler differ by a few instructions.

use std::fmt::Write as _;
use std::path::Path;

use girih::cuda::Toolchain;
use girih::{Device, Options, model::Model};
use girih_compiler::kernel::parse::parse;
use girih_compiler::pipeline::Stage;
use girih_compiler::tile::target::Target;

struct Goal {
    name: &'static str,
    target: &'static str,
    expression: String,
    launches: usize,
    product: Option<Product>,
}

/// What the matrix unit multiplies.
struct Product {
    /// An instruction that must be there.
    unit: &'static str,
    /// Operations of one, where its name does not say them.
    each: Option<f64>,
    operations: f64,
    /// Microseconds: the most that issuing may take.
    most: f64,
}

fn half(shape: &str) -> String {
    format!("torch.randn({shape}, dtype=torch.float16)")
}

/// A square product of f16.
fn square(name: &'static str, n: u32, unit: &'static str, most: f64) -> Goal {
    let one = half(&format!("{n}, {n}"));
    let product = Product { unit, each: None, operations: 2.0 * f64::from(n).powi(3), most };
    Goal { name, target: "sm_90a", expression: format!("{one} @ {one}"), launches: 1, product: Some(product) }
}

/// Attention of 16 heads; each of `rows` rows has `keys` keys in the mean.
fn attention(name: &'static str, (shape, more): (&str, &str), unit: &'static str, operations: f64, most: f64) -> Goal {
    let one = half(shape);
    let expression = format!("torch.nn.functional.scaled_dot_product_attention({one}, {one}, {one}{more})");
    let product = Some(Product { unit, each: None, operations, most });
    Goal { name, target: "sm_90a", expression, launches: 1, product }
}

/// The same square product on sm_100a, in tensor memory: one thread begins products of 128 x `cols` x 16.
fn in_tensor_memory(goal: Goal, cols: f64, most: f64) -> Goal {
    let product = goal.product.map(|p| Product { unit: "UTCHMMA", each: Some(2.0 * 128.0 * cols * 16.0), most, ..p });
    Goal { target: "sm_100a", product, ..goal }
}

fn goals() -> Vec<Goal> {
    let bytes = "torch.randint(-9, 9, (4096, 4096), dtype=torch.int8)";
    let plain = |name, expression, launches| Goal { name, target: "sm_90a", expression, launches, product: None };
    vec![
        // Issuing takes no longer than the matrix unit does.
        square("f16, 4096^3", 4096, "HGMMA.64x256x16.F32", 139.0),
        square("f16, 2048^3", 2048, "HGMMA.64x256x16.F32", 17.3),
        square("f16, 1024^3", 1024, "HGMMA.64x128x16.F32", 2.2),
        in_tensor_memory(square("f16, 4096^3, sm_100a", 4096, "", 0.0), 256.0, 61.0),
        Goal {
            name: "int8, 4096^3, transposed",
            target: "sm_90a",
            expression: format!("{bytes}.int() @ {bytes}.transpose(0, 1).int()"),
            launches: 1,
            product: Some(Product {
                unit: "IGMMA.64x256x32.S8.S8",
                each: None,
                operations: 2.0 * 4096f64.powi(3),
                most: 69.0,
            }),
        },
        // FlashAttention-3 takes 165 and 210 us for these shapes, and half of that where half of the keys are masked.
        attention(
            "attention, 4 x 16 heads of 2048 x 64",
            ("4, 16, 2048, 64", ""),
            "HGMMA.64x128x16.F32",
            4.0 * 64.0 * 2048.0 * 2048.0 * 64.0,
            1.15 * 165.0,
        ),
        attention(
            "attention, 16 heads of 4096 x 128",
            ("1, 16, 4096, 128", ""),
            "HGMMA.64x64x16.F32",
            4.0 * 16.0 * 4096.0 * 4096.0 * 128.0,
            1.15 * 210.0,
        ),
        attention(
            "the same, causal",
            ("1, 16, 4096, 128", ", is_causal=True"),
            "HGMMA.64x64x16.F32",
            2.0 * 16.0 * 4096.0 * 4096.0 * 128.0,
            1.15 * 105.0,
        ),
        plain(
            "attention of one row, 32 heads of 4096 x 128",
            format!(
                "torch.nn.functional.scaled_dot_product_attention({}, {1}, {1})",
                half("1, 32, 1, 128"),
                half("1, 32, 4096, 128")
            ),
            2,
        ),
        plain("softmax of 8 rows of 65536", "torch.softmax(torch.randn(8, 65536), -1)".into(), 1),
        plain("softmax of 4 rows of 32768", "torch.softmax(torch.randn(4, 32768), -1)".into(), 1),
    ]
}

/// Operations of an instruction of a warp, its part of those of its group: `HGMMA.64x256x16.F32`.
fn operations(opcode: &str) -> Option<f64> {
    let mut words = opcode.rsplit(' ').next()?.split('.');
    let (unit, shape) = (words.next()?, words.next()?);
    let extents: Vec<f64> = shape.split('x').map_while(|n| n.parse().ok()).collect();
    (unit.ends_with("GMMA") && extents.len() == 3).then(|| extents.iter().product::<f64>() * 2.0 / 4.0)
}

/// The row of a goal in the table, and what is not reached.
fn row(tools: &Toolchain, goal: &Goal) -> (String, Vec<String>) {
    let target = Target::named(goal.target).expect("a target");
    let gpu = target.gpu.expect("a GPU");
    let options = Options { target: Some(target.clone()), ..Options::default().device(Device::Sim) };
    let model = Model::from_expression(&goal.expression, &[]).expect("a model").with_options(options);
    let text = model.ir(Stage::Kernel).unwrap_or_else(|e| panic!("{}: {e}", goal.name));
    let starts: Vec<usize> = text.match_indices("\nkernel ").map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let (mut registers, mut spilled, mut issued) = (0, 0, None);
    for (from, to) in starts.iter().zip(ends) {
        let lines: Vec<&str> = text[*from..to].lines().filter(|l| !l.starts_with('#')).collect();
        let kernel = parse(&lines.join("\n")).unwrap_or_else(|d| panic!("{}: {}", goal.name, d.message));
        let object = super::compiled(tools, &[&kernel], goal.target);
        let sass = tools.sass(&object).unwrap_or_else(|e| panic!("{}: {e}", goal.name));
        let [resources] = object.kernels.as_slice() else { panic!("{}: {:?}", goal.name, object.kernels) };
        let function = sass.functions.iter().find(|f| f.name == resources.name).expect("the function");
        registers = registers.max(resources.registers);
        spilled += resources.spill_stores + resources.spill_loads;
        spilled += (function.count("LDL") + function.count("STL")) as u32;
        let Some(Product { unit, each, operations: all, .. }) = goal.product else { continue };
        if let Some(inner) = function.innermost(&|i| i.is(unit)) {
            let of_loop: f64 =
                inner.iter().filter_map(|i| each.filter(|_| i.is(unit)).or_else(|| operations(&i.opcode))).sum();
            let instructions = all / of_loop * inner.len() as f64;
            let rate = 4.0 * f64::from(target.axes.workers) * gpu.clock;
            issued = Some((inner.len(), instructions / rate * 1e6));
        }
    }
    let launches = starts.len();
    let mut wrong = vec![];
    if launches > goal.launches {
        wrong.push(format!("{launches} launches, at most {}", goal.launches));
    }
    if spilled > 0 {
        wrong.push(format!("{spilled} bytes or instructions of spills"));
    }
    let [unit, loops] = match (&goal.product, issued) {
        (None, _) => ["-".to_string(), "-".to_string()],
        (Some(Product { unit, .. }), None) => {
            wrong.push(format!("no loop with {unit}"));
            [unit.to_string(), "-".to_string()]
        }
        (Some(Product { unit, most, .. }), Some((length, time))) => {
            if time > *most {
                wrong.push(format!("issued in {time:.1} us, at most {most:.1}"));
            }
            [format!("`{unit}`"), format!("{length} in {time:.1} us, at most {most:.1}")]
        }
    };
    let row = format!("| {} | {launches} | {registers} | {spilled} | {unit} | {loops} |", goal.name);
    (row, wrong.into_iter().map(|why| format!("{}: {why}", goal.name)).collect())
}

#[test]
#[ignore = "needs NVRTC and nvdisasm: `make cuda`"]
fn kernels_are_at_their_goals() {
    let tools = super::toolchain();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gpu.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let (mut table, mut wrong) = (String::new(), vec![]);
    for goal in goals() {
        let (row, missed) = row(&tools, &goal);
        writeln!(table, "{row}").expect("a string");
        wrong.extend(missed);
    }
    assert!(wrong.is_empty(), "{}\n{table}", wrong.join("\n"));
    assert!(
        table.lines().all(|row| page.lines().any(|line| alike(line, row))),
        "docs/gpu.md has another table:\n{table}"
    );
}

/// Returns true if two rows differ by no more than the compiler's version makes them: in registers, and a tenth of the loop.
fn alike(a: &str, b: &str) -> bool {
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let (a, b) = (cells(a), cells(b));
    let fixed = |row: &[String]| [1, 2, 4, 5].map(|at| row.get(at).cloned());
    let length = |row: &[String]| row.get(6)?.split(' ').next()?.parse::<f64>().ok();
    let goal = |row: &[String]| Some(row.get(6)?.split("at most").nth(1)?.to_string());
    let near = match (length(&a), length(&b)) {
        (Some(a), Some(b)) => (a / b - 1.0).abs() <= 0.1,
        (a, b) => a == b,
    };
    fixed(&a) == fixed(&b) && near && goal(&a) == goal(&b)
}

#[test]
fn rows_of_other_versions_are_alike() {
    let row = "| f16 | 1 | 168 | 0 | `HGMMA` | 98 in 24.6 us, at most 139.0 |";
    assert!(alike(row, "| f16 | 1 | 160 | 0 | `HGMMA` | 103 in 25.8 us, at most 139.0 |"));
    for (from, to) in [("| 1 |", "| 2 |"), ("| 0 |", "| 8 |"), ("HGMMA", "HMMA"), ("98 in", "149 in"), ("139", "140")] {
        assert!(!alike(row, &row.replace(from, to)), "{to}");
    }
    assert!(alike("| a | 3 | 36 | 0 | - | - |", "| a | 3 | 32 | 0 | - | - |"));
}

#[test]
fn a_warp_has_a_part_of_what_its_group_multiplies() {
    assert_eq!(operations("HGMMA.64x256x16.F32"), Some(2.0 * 64.0 * 256.0 * 16.0 / 4.0));
    assert_eq!(operations("@P0 IGMMA.64x64x32.S8.S8"), Some(2.0 * 64.0 * 64.0 * 32.0 / 4.0));
    assert_eq!(operations("FFMA"), None);
}

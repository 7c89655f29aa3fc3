//! Loop IR of models is the same text whatever the machine; Tile IR is not. Both read back.

use girih_compiler::loops::ir::{LoopKind, Place, Stmt};
use girih_compiler::loops::parse::parse;
use girih_compiler::loops::print::{Dialect, print};
use girih_compiler::loops::walk;
use girih_compiler::pipeline::{self, Lowered, Options, Silent};
use girih_compiler::source::expr;
use girih_compiler::tile::target::Target;

const MODELS: &[&str] = &[
    "torch.nn.RMSNorm(2048)(torch.randn(1, 32, 2048))",
    "torch.nn.Linear(3584, 3584)(torch.randn(512, 3584))",
    "torch.nn.functional.gelu(torch.randn(32, 18944))",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 4, 128, 64), torch.randn(1, 4, 512, 64), \
     torch.randn(1, 4, 512, 64))",
    "torch.nn.Conv2d(3, 16, 3, padding=1)(torch.randn(2, 3, 20, 20))",
    "torch.softmax(torch.randn(B, 100000), -1)",
    "torch.randn(4, 200000).sum(1)",
    "torch.nn.functional.silu(torch.nn.Linear(256, 300)(torch.randn(B, 256)))",
    "torch.cat([torch.randn(20000, i) for i in range(1, 30)], 1)",
];

fn targets() -> Vec<Target> {
    let narrow = Target::cpu().with_vectors(16, 16);
    let small = Target::cpu().with_caches([8 << 10, 64 << 10, 1 << 20]).with_workers(1);
    let many = Target::cpu().with_caches([48 << 10, 4 << 20, 32 << 20]).with_workers(64);
    let named = Target::NAMES.into_iter().filter_map(Target::named);
    [narrow, small, many].into_iter().chain(named).collect()
}

/// Every kernel of a model, placed for a target; and the text of Loop IR.
fn lowered(text: &str, target: Target) -> (Vec<Lowered>, String) {
    let options = Options { target, ..Options::default() };
    let graph = expr::evaluate(text, &[]).unwrap().graph;
    let model = pipeline::lower_model(&graph, &options, &mut Silent).unwrap();
    let lower = |kernel: &girih_compiler::loops::ir::Kernel| {
        pipeline::lower_loops(kernel.clone(), &options, &mut options.rewrites(), &mut Silent).unwrap()
    };
    let open = model.plan.load.iter().chain(&model.plan.steps).map(|s| lower(&s.kernel));
    let text = open.map(|l| print(&l.loops, Dialect::Loop)).collect();
    let placed = model.scheduled.load.iter().chain(&model.scheduled.steps).map(|s| lower(&s.kernel)).collect();
    (placed, text)
}

#[test]
fn loop_ir_is_the_same_for_every_target() {
    for text in MODELS {
        let mut placed = std::collections::BTreeSet::new();
        let (_, first) = lowered(text, Target::cpu());
        for target in targets() {
            let (kernels, loops) = lowered(text, target.clone());
            assert_eq!(loops, first, "{text} on {target:?}");
            assert!(loops.contains(") open:") && !loops.contains("bx"), "{loops}");
            for l in &kernels {
                for (kernel, dialect) in [(&l.loops, Dialect::Loop), (&l.tile, Dialect::Tile)] {
                    let text = print(kernel, dialect);
                    let (back, read) = parse(&text).unwrap();
                    assert_eq!((print(&back, read), read), (text, dialect));
                }
            }
            placed.insert(kernels.iter().map(|l| print(&l.tile, Dialect::Tile)).collect::<String>());
        }
        assert!(placed.len() > 1, "{text} is placed alike on all machines");
    }
}

/// A nest of free loops over the whole iteration space with one sum in it, and nothing cut.
#[test]
fn a_product_is_one_plain_nest() {
    let (_, text) = lowered(MODELS[1], Target::cpu());
    for line in ["for i in 0..512: free", "for j in 0..3584: free", "for k in 0..3584: reduce contraction m=i n=j k=k"]
    {
        assert_eq!(text.matches(line).count(), 1, "{text}");
    }
    assert_eq!(text.matches("for ").count(), 3, "{text}");
    let (_, text) = lowered(MODELS[3], Target::cpu());
    assert!(text.contains("for key in 0..512: serial stream score="), "{text}");
}

#[test]
fn blocks_stand_outermost_and_become_the_grid() {
    for text in MODELS {
        for target in targets() {
            for l in lowered(text, target).0 {
                let grid = l.kernel.grid.expect("an open kernel has a grid");
                let mut blocks = 0;
                walk::visit(&l.tile.body, &mut |s| {
                    let Stmt::For(f) = s else { return };
                    if matches!(f.place, Place::Block { .. }) {
                        assert_eq!(f.kind, LoopKind::Free);
                        blocks += 1;
                    }
                });
                let one = grid.iter().all(|n| n.is_const(1));
                assert!(one || blocks > 0, "{text}: {grid:?}");
            }
        }
    }
}

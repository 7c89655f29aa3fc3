use super::*;
use crate::graph::Graph;
use crate::loops::model::eval;
use crate::loops::print::{Dialect, print};
use crate::loops::verify::verify;
use crate::tile::tests::{context, gpu, plan_of};

/// Applies a line to a plan; what is printed of its step reads back as the step.
fn one(plan: &mut Plan, line: &str, ctx: &Context) -> Result<(), String> {
    let line = Line::parse(line).unwrap()?;
    let step = Step::read(&line, plan)?;
    let printed = step.line(plan).to_string();
    assert_eq!(Line::parse(&printed).unwrap().and_then(|line| Step::read(&line, plan)), Ok(step.clone()), "{printed}");
    let before = plan.clone();
    let done = step.apply(plan, ctx);
    assert!(done.is_ok() || *plan == before, "{line}: a refused step changes something");
    done
}

/// The results of a plan on small whole numbers, whose sums are exact in any order.
fn results(graph: &Graph, plan: &Plan) -> Vec<Vec<u8>> {
    let input = |(n, input): (usize, &crate::graph::Input)| {
        let shape = &graph.values[input.value].shape;
        let elements: i64 = shape.iter().map(|d| eval::at_symbols(d, &[])).product();
        (0..elements).flat_map(|i| ((i * 7 + n as i64 * 5) % 9 - 4).to_f32()).collect()
    };
    let inputs: Vec<Vec<u8>> = graph.inputs.iter().enumerate().map(input).collect();
    eval::run(plan, &[], &inputs, &|_| vec![]).unwrap()
}

trait ToBytes {
    fn to_f32(self) -> [u8; 4];
}

impl ToBytes for i64 {
    fn to_f32(self) -> [u8; 4] {
        (self as f32).to_le_bytes()
    }
}

/// The kernels of a model after lines; after each of them the results are those of before.
fn steps(text: &str, lines: &[&str], ctx: &Context) -> String {
    let (graph, mut plan) = plan_of(text);
    let want = results(&graph, &plan);
    for line in lines {
        one(&mut plan, line, ctx).unwrap_or_else(|why| panic!("{text}: {line}: {why}"));
        for step in plan.load.iter().chain(&plan.steps) {
            assert_eq!(verify(&step.kernel, Dialect::Loop), [], "{}", print(&step.kernel, Dialect::Loop));
            assert_eq!(step.args.len(), step.kernel.params.len(), "{line}");
        }
        assert!(results(&graph, &plan) == want, "{text}: {line}: other results");
    }
    plan.load.iter().chain(&plan.steps).map(|step| print(&step.kernel, Dialect::Loop)).collect()
}

const LINEAR: &str = "torch.nn.Linear(100, 40)(torch.randn(6, 100))";
const ROWS: &str = "torch.randn(3, 100).sum(-1)";
const ATTENTION: &str =
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(8, 16), torch.randn(40, 16), torch.randn(40, 16))";
const TWO: &str = "x = torch.randn(6, 60); (torch.nn.Linear(60, 40)(x).relu(), torch.nn.Linear(60, 32)(x))";

#[test]
fn the_results_of_a_model_stay_as_they_are() {
    let (cpu, gpu) = (context(), gpu(&[]));
    let made = steps("torch.randn(6, 4, 10).sum((0, 2))", &["merge k_sum.k"], &cpu);
    assert!(made.contains("for k in 0..60: reduce combine add(sum_1) from 0.0"), "{made}");
    let made = steps(LINEAR, &["pack k_linear.weight"], &cpu);
    assert!(made.starts_with("loop kernel k_pack_weight(weight: ptr f32, weight_packed: ptr f32)"), "{made}");
    assert!(made.contains("load weight_packed["), "{made}");
    let made = steps(LINEAR, &["swap k_linear.k"], &cpu);
    assert!(made.contains("contraction m=j n=i k=k a=weight_1 b=x_1"), "{made}");
    let conv = "torch.nn.Conv2d(2, 3, 3, padding=1)(torch.randn(2, 2, 28, 28))";
    let made = steps(conv, &["swap k_conv2d.k0 by batch"], &cpu);
    assert!(made.contains("m=(b0, b1, j) n=i"), "{made}");
    let made = steps(conv, &["swap k_conv2d.k0"], &cpu);
    assert!(made.contains("m=j n=i"), "{made}");
    for ctx in [&cpu, &gpu] {
        // 30 divides 100 as little as 7 does: the last part reads zeros.
        for length in [1, 7, 30, 50, 99] {
            let made = steps(LINEAR, &[&format!("split_k k_linear.k by {length}")], ctx);
            let parts = 100_u32.div_ceil(length);
            assert!(made.contains(&format!("for part in 0..{parts}: reduce")), "{made}");
            let made = steps(ROWS, &[&format!("split_k k_sum.k by {length}")], ctx);
            assert!(made.contains(&format!("for part in 0..{parts}: reduce combine add(sum_1) from 0.0")), "{made}");
        }
    }
}

/// Attention in parts: keys that do not divide, and parts that a mask hides from a row.
#[test]
fn parts_of_attention_are_joined() {
    let of = |rows: u32| format!("torch.randn(2, {rows}, 16)");
    let text = |more: &str| {
        format!("torch.nn.functional.scaled_dot_product_attention({}, {1}, {1}{more}).relu()", of(5), of(50))
    };
    let floats = |all: &[Vec<u8>]| -> Vec<f32> {
        all.iter()
            .flatten()
            .copied()
            .collect::<Vec<u8>>()
            .chunks(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    };
    for text in [text(""), text(", is_causal=True")] {
        for length in [1, 7, 25, 32, 49] {
            let (graph, mut plan) = plan_of(&text);
            let want = floats(&results(&graph, &plan));
            let line = format!("split_k k_attention_relu.key by {length}");
            one(&mut plan, &line, &gpu(&[])).unwrap_or_else(|why| panic!("{text}: {line}: {why}"));
            assert_eq!(plan.steps.len(), 2);
            for step in &plan.steps {
                assert_eq!(verify(&step.kernel, Dialect::Loop), [], "{}", print(&step.kernel, Dialect::Loop));
                assert_eq!(step.args.len(), step.kernel.params.len(), "{line}");
            }
            let have = floats(&results(&graph, &plan));
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5;
            assert!(want.len() == 160 && want.iter().zip(&have).all(near), "{text}: {line}: {want:?} {have:?}");
        }
    }
}

#[test]
fn steps_follow_one_another() {
    let cpu = context();
    let two = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| line.replace('@', "k_linear_relu_linear")).collect();
        steps(TWO, &lines.iter().map(String::as_str).collect::<Vec<_>>(), &cpu)
    };
    let made = two(&["split_k @.k by 20", "split_k @.k by 13"]);
    for kernel in ["_parts(", "_parts_2(", "("] {
        assert!(made.contains(&format!("loop kernel k_linear_relu_linear{kernel}")), "{made}");
    }
    two(&["pack @.weight", "split_k @.k_1 by 20"]);
    two(&["pack @.weight, @.weight1"]);
    two(&["split_k @.k by 20", "pack @.weight1"]);
    two(&["swap @.k_1", "swap @.k"]);
    steps(LINEAR, &["swap k_linear.k", "split_k k_linear.k by 25", "swap k_linear_parts.k"], &cpu);
    steps("torch.randn(1200).sum()", &["split_k k_sum.k by 77", "split_k k_sum.part by 5"], &cpu);
    // A weight is written in panels once.
    let made = steps(
        "fc = torch.nn.Linear(64, 64, bias=False); fc(fc(torch.randn(8, 64)).relu())",
        &["pack k_linear.weight", "pack k_linear_relu_linear.weight"],
        &cpu,
    );
    assert_eq!(made.matches("loop kernel k_pack_").count(), 1, "{made}");
}

#[test]
fn a_step_says_why_it_is_refused() {
    let (cpu, gpu) = (context(), gpu(&[]));
    for (text, line, ctx, why) in [
        (LINEAR, "split_k k_linear.k by 100", &cpu, "a sum of 100 is one part"),
        (LINEAR, "split_k k_linear.k by 0", &cpu, "a whole number from 1 on"),
        (LINEAR, "split_k k_linear.k", &cpu, "expected `by` and how many iterations a part has"),
        (LINEAR, "split_k k_linear.j by 4", &cpu, "it is not the loop of a sum"),
        (LINEAR, "split_k k_linaer.k by 4", &cpu, "unknown kernel `k_linaer`; did you mean `k_linear`?"),
        (LINEAR, "split_k k by 4", &cpu, "expected `KERNEL.LOOP`"),
        (LINEAR, "split_k k_linear.q by 4", &cpu, "unknown loop `q`"),
        (LINEAR, "merge k_linear.k", &cpu, "it does more than the loop inside"),
        (LINEAR, "merge k_linear.i", &cpu, "the two are not reductions"),
        (LINEAR, "swap k_linear.k by all", &cpu, "unexpected `all`; "),
        (
            LINEAR,
            "pack k_linear.x",
            &cpu,
            "`x`: it is not the right operand of a sum that is known when the model is loaded",
        ),
        (LINEAR, "pack k_linear.wieght", &cpu, "unknown array `wieght`; did you mean `weight`?"),
        (LINEAR, "pack k_linear.weight by pairs", &cpu, "its terms cannot be paired: "),
        (LINEAR, "pack k_linear.weight", &gpu, "the target reads no panels"),
        (LINEAR, "pack", &cpu, "expected `KERNEL.ARRAY`"),
        (LINEAR, "unroll k_linear.k", &cpu, "`unroll` is not a step of the section `model`"),
        (ROWS, "split_k k_sum.k by 1000", &cpu, "its rows are one part"),
        (ATTENTION, "split_k k_attention.key by 40", &cpu, "40 keys are one part"),
        (ROWS, "swap k_sum.k", &cpu, "it is not the loop of a sum"),
        ("torch.randn(B, 100).sum(0)", "split_k k_sum.k by 4", &cpu, "it is not the loop of a sum"),
        (
            "torch.randn(4, B) @ torch.randn(B, 8)",
            "split_k k_matmul.k by 4",
            &cpu,
            "its sum is as long as the launch says",
        ),
        ("torch.nn.Linear(64, 16)(torch.randn(8, 64))", "pack k_linear.weight", &cpu, "it is smaller than a panel"),
        ("torch.randn(10, 4, B).sum((0, 2))", "merge k_sum.k", &cpu, "an extent is not a constant"),
    ] {
        let (_, mut plan) = plan_of(text);
        let said = one(&mut plan, line, ctx).unwrap_err();
        assert!(said.contains(why), "{text}: {line}: {said}");
    }
}

#[test]
fn every_primitive_has_a_form_that_reads() {
    let (_, plan) = plan_of(LINEAR);
    for word in words() {
        let line = Line { targets: vec!["k_linear.q".into()], ..Line::new(word) };
        let said = Step::read(&line, &plan).unwrap_err();
        assert!(!said.contains("is not a step"), "{word}: {said}");
    }
}

//! Texts and the graphs they make. Types and values here were worked out by hand or read off PyTorch.

use super::{Given, evaluate};
use crate::graph::{Elem, Fill, Graph, Op, Role};

fn graph(text: &str) -> Graph {
    with(text, &[])
}

fn with(text: &str, inputs: &[Given]) -> Graph {
    match evaluate(text, inputs) {
        Ok(e) => e.graph,
        Err(errors) => panic!("{text}\n{:?}", errors.iter().map(|e| &e.message).collect::<Vec<_>>()),
    }
}

/// The messages of a text that is refused.
fn errors(text: &str) -> Vec<String> {
    match evaluate(text, &[]) {
        Ok(_) => panic!("{text} is accepted"),
        Err(errors) => errors.into_iter().map(|e| e.message).collect(),
    }
}

/// `name: type[shape] role` of each input.
fn inputs(g: &Graph) -> Vec<String> {
    let one = |i: &crate::graph::Input| {
        let v = &g.values[i.value];
        let shape: Vec<String> = v.shape.iter().map(|d| g.ix_text(d)).collect();
        let role = if i.role == Role::Parameter { " parameter" } else { "" };
        format!("{}: {}[{}]{role}", v.name, v.elem, shape.join(", "))
    };
    g.inputs.iter().map(one).collect()
}

/// `name: type[shape]` of each output.
fn outputs(g: &Graph) -> Vec<String> {
    let one = |o: &crate::graph::Output| {
        let v = &g.values[o.value];
        let shape: Vec<String> = v.shape.iter().map(|d| g.ix_text(d)).collect();
        format!("{}: {}[{}]", o.name, v.elem, shape.join(", "))
    };
    g.outputs.iter().map(one).collect()
}

/// The source operations in order.
fn operations(g: &Graph) -> Vec<String> {
    let name = |n: &crate::graph::Node| match &n.op {
        Op::Source { name, .. } => Some(name.clone()),
        _ => None,
    };
    g.nodes.values().filter_map(name).collect()
}

#[test]
fn rms_norm_of_the_article() {
    let g = graph("torch.nn.RMSNorm(2048)(torch.randn(1,32,2048))");
    assert_eq!(operations(&g), ["aten.rms_norm"]);
    assert_eq!(inputs(&g), ["x: f32[1, 32, 2048]", "weight: f32[2048] parameter"]);
    assert_eq!(outputs(&g), ["out: f32[1, 32, 2048]"]);
    assert_eq!(g.inputs[0].fill, Fill::Normal);
    assert_eq!(g.inputs[1].fill, Fill::Constant(1.0));
}

#[test]
fn gelu_of_the_article() {
    let g = graph("x=torch.randn(32,18944);0.5*x*(1+torch.tanh(0.797*(x+0.044*x*x*x)))");
    assert_eq!(inputs(&g), ["x: f32[32, 18944]"]);
    assert_eq!(outputs(&g), ["out: f32[32, 18944]"]);
    // One for each operator: 0.5*x, 0.044*x, *x, *x, x+, 0.797*, tanh, 1+, and the last product.
    let mul = operations(&g).iter().filter(|n| *n == "aten.mul").count();
    assert_eq!((mul, operations(&g).len()), (6, 9));
}

#[test]
fn linear_of_the_article() {
    let g = graph("torch.nn.Linear(3584,3584)(torch.randn(512,3584))");
    assert_eq!(operations(&g), ["aten.linear"]);
    let expected = ["x: f32[512, 3584]", "weight: f32[3584, 3584] parameter", "bias: f32[3584] parameter"];
    assert_eq!(inputs(&g), expected);
    // PyTorch draws weights uniformly from +-1/sqrt(in_features).
    let bound = 1.0 / 3584f64.sqrt();
    assert_eq!(g.inputs[1].fill, Fill::Uniform { lo: -bound, hi: bound });
}

#[test]
fn classes_name_their_weights_by_path() {
    let g = graph(
        "
        class Block(nn.Module):
            def __init__(self, dim, hidden=None):
                super().__init__()
                self.norm = nn.LayerNorm(dim)
                self.layers = nn.ModuleList([nn.Linear(dim, dim, bias=False) for _ in range(2)])
                self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
                self.scale = nn.Parameter(torch.ones(dim))
            def forward(self, x):
                for layer in self.layers:
                    x = x + layer(self.norm(x))
                return self.mlp(x) * self.scale
        model = Block(8).eval()
        with torch.no_grad():
            y = model(torch.randn(2, 8))
        y
        ",
    );
    let expected = [
        "x: f32[2, 8]",
        "norm.weight: f32[8] parameter",
        "norm.bias: f32[8] parameter",
        "layers.0.weight: f32[8, 8] parameter",
        "layers.1.weight: f32[8, 8] parameter",
        "mlp.0.weight: f32[32, 8] parameter",
        "mlp.0.bias: f32[32] parameter",
        "mlp.2.weight: f32[8, 32] parameter",
        "mlp.2.bias: f32[8] parameter",
        "scale: f32[8] parameter",
    ];
    assert_eq!(inputs(&g), expected);
    let names: Vec<&str> = g.origins.values().map(|o| o.name.as_str()).collect();
    assert!(names.contains(&"layers.1") && names.contains(&"mlp.0"), "{names:?}");
    let origin = &g.origins[g.nodes.values().next().unwrap().origin];
    assert_eq!(origin.place.as_ref().map(|p| p.line), Some(11), "the line of `self.norm(x)`");
}

#[test]
fn two_modules_are_told_apart_by_their_variables() {
    let g = graph("a = nn.Linear(4, 8); b = nn.Linear(8, 2, bias=False); b(a(torch.randn(3, 4)).relu())");
    assert_eq!(
        inputs(&g)[1..],
        ["a.weight: f32[8, 4] parameter", "a.bias: f32[8] parameter", "b.weight: f32[2, 8] parameter"]
    );
    let g = graph("torch.randn(2) + torch.randn(2) * torch.rand(2)");
    assert_eq!(inputs(&g).len(), 3);
    assert_eq!(inputs(&g)[1], "x1: f32[2]");
}

#[test]
fn undefined_extents_are_symbols() {
    let g = graph("x = torch.randn(B, 2 * S, 64); y = x.reshape(B, -1); y, x.shape[0] * x, x[:, :S]");
    assert_eq!(inputs(&g), ["x: f32[B, S*2, 64]"]);
    assert_eq!(outputs(&g)[0], "out0: f32[B, S*128]");
    assert_eq!(outputs(&g)[2], "out2: f32[B, S, 64]");
}

#[test]
fn given_names_are_inputs() {
    let given = [
        Given { name: "q".into(), elem: Elem::F16, shape: vec![Some(4), Some(8)] },
        Given { name: "n".into(), elem: Elem::I64, shape: vec![None] },
    ];
    let g = with("q * 2.5 + n.sum()", &given);
    assert_eq!(inputs(&g), ["q: f16[4, 8]", "n: i64[n_0]"]);
    assert_eq!(outputs(&g), ["out: f16[4, 8]"]);
}

#[test]
fn types_promote_as_in_pytorch() {
    let elem = |text: &str| graph(text).values[graph(text).outputs[0].value].elem;
    for (text, expected) in [
        ("torch.arange(4) + 1", Elem::I64),
        ("torch.arange(4) + 1.5", Elem::F32),
        ("torch.arange(4) / 2", Elem::F32),
        ("torch.arange(4).half() * 2.5", Elem::F16),
        ("torch.randn(4).double() + torch.randn(4)", Elem::F64),
        ("torch.randn(4).half() + torch.randn(4).bfloat16()", Elem::F32),
        ("torch.randn(4) > 0", Elem::BOOL),
        ("(torch.randn(4) > 0) + 1", Elem::I64),
        ("torch.randn(4).half() * torch.tensor(2.0)", Elem::F16),
        ("torch.full((2,), 3)", Elem::I64),
        ("torch.zeros(2, dtype=torch.bfloat16)", Elem::BF16),
        ("torch.tensor([[1, 2], [3, 4.5]])", Elem::F32),
    ] {
        assert_eq!(elem(text), expected, "{text}");
    }
}

#[test]
fn an_element_that_its_type_cannot_hold_is_refused() {
    for text in [
        "torch.full((2,), 300, dtype=torch.uint8)",
        "torch.full((2,), 128, dtype=torch.int8)",
        "torch.full((2,), 1e20, dtype=torch.int64)",
        "torch.full((2,), 7e4, dtype=torch.float16)",
        "torch.full_like(x, 256)",
        "x.masked_fill(x > 1, 300)",
        "torch.where(x > 1, x, 300)",
        "torch.where(x > 1, -256, x)",
        "torch.add(x, x, alpha=300)",
        "torch.clamp(x, min=300)",
        "torch.clamp(x, max=-1)",
        "torch.nn.functional.pad(x, (1, 1), value=300)",
    ] {
        let got = errors(&format!("x = torch.tensor([1, 2], dtype=torch.uint8); {text}"));
        assert!(got.iter().any(|e| e.contains("outside the range")), "{text}: {got:?}");
    }
    for text in ["torch.full((2,), -255, dtype=torch.uint8)", "torch.full((2,), 300, dtype=torch.bool)", "x + 300"] {
        graph(&format!("x = torch.tensor([1, 2], dtype=torch.uint8); {text}"));
    }
}

#[test]
fn indexing() {
    let shape = |text: &str| {
        let g = graph(&format!("x = torch.randn(4, 5, 6); {text}"));
        let v = &g.values[g.outputs[0].value];
        v.shape.iter().map(|d| d.as_const().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(shape("x[0]"), [5, 6]);
    assert_eq!(shape("x[:, 1:3]"), [4, 2, 6]);
    assert_eq!(shape("x[..., ::2]"), [4, 5, 3]);
    assert_eq!(shape("x[:, None, -1]"), [4, 1, 6]);
    assert_eq!(shape("x[-3:, -2:]"), [3, 2, 6]);
    assert_eq!(shape("x[[0, 2]]"), [2, 5, 6]);
    assert_eq!(shape("x[:, torch.tensor([0, 1, 1])]"), [4, 3, 6]);
    assert_eq!(shape("x[:, x.shape[1] // 2:]"), [4, 3, 6]);
    assert_eq!(shape("x.T if False else x.transpose(0, 2)"), [6, 5, 4]);
    assert_eq!(shape("torch.stack([x[i] for i in range(len(x)) if i % 2 == 0])"), [2, 5, 6]);
}

#[test]
fn changes_in_place() {
    let g = graph("x = torch.zeros(4, 4); x[1] = 2.0; x[:, 2] += 1; x += 1; x");
    assert_eq!(outputs(&g), ["out: f32[4, 4]"]);
    let refused = errors("x = torch.randn(4); y = x.view(2, 2); x += 1; y");
    assert!(refused[0].contains("shares its memory"), "{refused:?}");
}

#[test]
fn python_itself() {
    let shape = |text: &str| {
        let g = graph(&format!("{text}\ntorch.zeros(n)"));
        g.values[g.outputs[0].value].shape[0].as_const().unwrap()
    };
    assert_eq!(shape("n = -7 // 2 + 10"), 6);
    assert_eq!(shape("n = (-7) % 3"), 2);
    assert_eq!(shape("a, *b = [1, 2, 3, 4]; n = sum(b) + len(b) * a"), 12);
    assert_eq!(shape("n = 1\nfor i in range(5):\n    if i == 3:\n        break\n    n += i\nelse:\n    n = 99"), 4);
    assert_eq!(shape("f = lambda x, y=2: x ** y\nn = f(3) + f(2, y=3)"), 17);
    assert_eq!(shape("def f(*args, k=1, **rest):\n    return len(args) + k + len(rest)\nn = f(1, 2, k=3, z=4)"), 6);
    assert_eq!(shape("n = 0\nwhile n < 7: n += 2"), 8);
    assert_eq!(shape("d = {'a': 2, 'b': 3}\nn = sum(v for k, v in d.items() if k in ('a', 'b'))"), 5);
    assert_eq!(shape("n = int(math.sqrt(50)) if 1 < 2 <= 2 and not None else 0"), 7);
    assert_eq!(
        shape(
            "class A:\n    k = 3\n    def __init__(self, n): self.n = n\n    @property\n    def m(self): return self.n * self.k\nn = A(2).m"
        ),
        6
    );
    assert_eq!(shape("import torch.nn as nn, math as m\nfrom math import floor\nn = floor(m.pi)"), 3);
}

/// A text for which PyTorch raises an error is refused, and gets no value.
#[test]
fn what_has_no_value_is_refused() {
    let mut wrong = vec![];
    for name in "sum mean amax amin std var logsumexp any all count_nonzero nansum var_mean".split(' ') {
        wrong.push(format!("torch.{name}(torch.randn(2, 2), dim=[0, 0])"));
        wrong.push(format!("torch.{name}(torch.randn(2, 2), dim=[1, -1])"));
    }
    for name in "max min amax amin argmax argmin".split(' ') {
        for shape in ["0", "0, 3", "3, 0", "0, 0"] {
            wrong.push(format!("torch.{name}(torch.randn({shape}))"));
        }
        wrong.push(format!("torch.{name}(torch.randn(2, 0), dim=1)"));
        wrong.push(format!("torch.{name}(torch.randn(0, 2), dim=0)"));
    }
    for text in [
        "torch.where(torch.randn(3), 1.0, 2.0)",
        "torch.where(torch.arange(3), 1.0, 2.0)",
        "torch.zeros(3).masked_fill(torch.arange(3), 2.0)",
        "torch.flip(torch.zeros(2, 2), [0, 0])",
        "torch.zeros(2, 2).permute(0, 0)",
        "torch.tensor([True]) - torch.tensor([True])",
        "-torch.tensor([True])",
        "torch.add(torch.arange(3), torch.arange(3), alpha=0.5)",
        "torch.randn(0, 3)[torch.tensor([0])]",
        "F.hardtanh(torch.randn(3), 0.6, 0.4)",
    ] {
        wrong.push(text.into());
    }
    for text in wrong {
        assert!(!errors(&text).is_empty(), "{text}");
    }
}

#[test]
fn refusals_say_what_to_write() {
    for (text, expected) in [
        ("torch.sofmax(x, 1)", "`torch.sofmax` is not supported"),
        ("x = torch.randn(3); x +", "expected an expression, found the end of the line"),
        ("x = torch.randn(3); y", "the name `y` is not defined"),
        (
            "x = torch.randn(3)\nif x.sum() > 0: x = -x\nx",
            "the values of a tensor are not known while the text is evaluated",
        ),
        (
            "torch.randn(2, 3) @ torch.randn(2, 3)",
            "matmul: a matrix product of [2, 3] and [2, 3] does not fit: 3 columns meet 2 rows",
        ),
        ("torch.randn(3) + torch.randn(4)", "add: the shapes [3] and [4] do not broadcast"),
        ("try: x = 1", "`try` is not supported here"),
        ("import numpy as np", "the module `numpy` is not supported"),
        ("'text'", "a string cannot be an output"),
        ("x = 1 / 0", "division by zero"),
        ("", "the text ends without a value"),
        ("nn.Linear(4, 4, biass=False)", "Linear has no argument `biass`"),
        ("torch.relu()", "relu needs the argument `input`: relu(input: Tensor)"),
        ("nn.Linear(4, 4)", "the text's value is a module of class Linear, not a tensor"),
        ("torch.randn(3).item()", "the values of a tensor are not known while the text is evaluated"),
        (
            "torch.zeros(1000000, 1000000, 1000000)",
            "a tensor of shape [1000000, 1000000, 1000000] is larger than any memory",
        ),
    ] {
        let got = errors(text);
        assert_eq!(got[0], expected, "{text}");
    }
}

#[test]
fn problems_that_do_not_depend_on_each_other_are_said_together() {
    let got = errors("a = torch.foo(1)\nb = torch.bar(2) + torch.baz(3)\nc = a + b\nc");
    assert_eq!(got.len(), 3, "{got:?}");
    let got = errors("a = (1\nb = )\nc = 2 +");
    assert!(!got.is_empty());
}

#[test]
fn every_text_ends() {
    let deep = "(".repeat(5000);
    let chain = format!("x = torch.randn(2)\n{}x", "x + ".repeat(400));
    for text in [
        "while True: pass",
        "x = ()\nwhile True: x = (x,)",
        "x = []\nfor i in range(90000):\n    y = [x]\n    x = y\nx",
        "def f(): return f()\nf()",
        "f = lambda: 1\nfor i in range(50000): f = lambda g=f: g\nf",
        "x = [0] * 10 ** 9",
        "x = 'a' * 10 ** 9",
        "x = '' * 9 ** 18",
        "x = [] * 9 ** 18",
        "x = () * 9 ** 18",
        "x = 2 ** 5000",
        "for i in range(10 ** 12): pass",
        "class A: pass\nwhile True:\n    class A(A): pass",
        "class M(nn.Module):\n    def __init__(self): self.m = self\nM().to(torch.float16)",
        "x = torch.randn(4)\nwhile True: x = x + 1",
        &deep,
        "\u{0}\u{1}",
        "x = '",
        "torch.arange(1e300)",
        "torch.arange(0, -9223372036854775807, -1)",
        "torch.randn(9223372036854775807, 9223372036854775807)",
        "x = torch.randn(4)[9223372036854775807]",
    ] {
        let _ = evaluate(text, &[]);
    }
    assert!(evaluate(&chain, &[]).is_ok());
}

/// Texts cut short and with bytes exchanged are refused or accepted, but never panic.
#[test]
fn mutations() {
    let text = "class N(nn.Module):\n def __init__(s, d=4):\n  super().__init__(); s.w = nn.Parameter(torch.ones(d))\n \
                def forward(s, x): return F.rms_norm(x, (4,), s.w)[..., 1::2] ** 2 if d else {1: [x]}\n\
                x = torch.randn(B, 4); y = [N()(x * i) for i in range(2) if i != -1]; torch.cat(y, dim=-1), x @ x.T";
    let bytes = text.as_bytes();
    for end in 0..bytes.len() {
        let _ = evaluate(&text[..end], &[]);
    }
    let mut seed = 7u64;
    for _ in 0..400 {
        let mut changed = bytes.to_vec();
        for _ in 0..2 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (seed >> 33) as usize % changed.len();
            changed[at] = b"()[]:;.,=*+-\n x0'\"nT"[(seed >> 20) as usize % 20];
        }
        if let Ok(text) = std::str::from_utf8(&changed) {
            let _ = evaluate(text, &[]);
        }
    }
}

/// Every operation of the table has a rule that does not need the feature `models`, and every signature can be read.
#[test]
fn the_table_is_whole() {
    use super::library::{Does, GROUPS, params};
    let mut wrong = vec![];
    for (_, entries) in GROUPS {
        for e in *entries {
            if params(e.sig).is_none() {
                wrong.push(format!("{} cannot be read", e.sig));
            }
            if let Does::Aten(name) | Does::View(name) = e.does
                && !crate::graph::decompose::of_expressions().any(|rule| rule.handles.contains(&name))
            {
                wrong.push(format!("{name} has no rule"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(super::table().iter().all(|k| !k.doc.is_empty()));
}

/// The examples of the page are accepted, or refused with the message that follows them.
#[test]
fn the_page() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models/expressions.md");
    let page = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    assert!(blocks.len() >= 4);
    for (at, block) in blocks.iter().enumerate() {
        let (kind, text) = block.split_once('\n').unwrap();
        match kind {
            "python" => drop(graph(text)),
            "python refused" => {
                let said = blocks[at + 1].strip_prefix("text\n").unwrap().trim();
                assert_eq!(errors(text)[0], said);
            }
            other => assert_eq!(other, "text"),
        }
    }
}

//! A model stopped after any number of rewrites computes the same: the part that is not rewritten runs as written.

use girih::model::{Model, Tensor};
use girih::{CachePolicy, Options};
use girih_compiler::graph::Elem;

fn filled(shape: &[u64], step: i64) -> Tensor {
    let n = shape.iter().product::<u64>() as i64;
    let values: Vec<f32> = (0..n).map(|i| ((i * step) % 17 - 8) as f32 / 8.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

#[test]
fn a_model_stopped_early_computes_the_same() {
    let text = "torch.nn.functional.scaled_dot_product_attention(q, k, v).relu() @ w";
    let shapes: [(&str, &[u64]); 4] = [("q", &[2, 5, 16]), ("k", &[2, 9, 16]), ("v", &[2, 9, 16]), ("w", &[16, 24])];
    let types: Vec<_> = shapes.iter().map(|(n, s)| (n.to_string(), Elem::F32, s.to_vec())).collect();
    let arrays: Vec<(&str, Tensor)> = shapes.iter().zip([3, 5, 7, 11]).map(|((n, s), k)| (*n, filled(s, k))).collect();
    let given: Vec<(&str, &Tensor)> = arrays.iter().map(|(n, t)| (*n, t)).collect();
    let run = |stop_after: Option<usize>| -> Vec<f64> {
        let options = Options { stop_after, ..Options::default().cache(CachePolicy::Off) };
        let model = Model::from_expression(text, &types).unwrap().with_options(options);
        let (_, out) = model.run(&given).unwrap().remove(0);
        (0..out.buffer().elements()).map(|e| f32::from_bits(out.buffer().get(e) as u32).into()).collect()
    };
    let want = run(None);
    assert!(want.iter().any(|v| v.abs() > 0.1));
    for most in (0..12).chain([20, 30, 50]) {
        for (a, b) in run(Some(most)).iter().zip(&want) {
            assert!((a - b).abs() < 1e-4, "{most}: {a}, not {b}");
        }
    }
}

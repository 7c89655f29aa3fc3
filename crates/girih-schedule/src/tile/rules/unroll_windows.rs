//! `unroll_windows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::Context;
use crate::tile::edit;
use crate::tile::primitives::{self, Step, look, windows};
use crate::tile::rules::axis_site;

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "unroll_windows",
    doc: "\
Unrolls the windows of poolings and of convolutions by channel, so that vectors run along the positions of the result, and
splits off the positions whose windows reach into the padding.

```text
for j in 0..n: free                              for j in 0..1: free
  local s                                          ... with masks
  s = 0.0                                        for j in 0..16: free
  for k in 0..3: reduce                            %x0 = load x[j]
    %x = load x[j + k - 1]                         %s0 = 0.0 + %x0
      where j + k - 1 >= 0 else 0.0     -->        %x1 = load x[j + 1]
    s <- s + %x                                    %s1 = %s0 + %x1
  store y[j] = s                                   %x2 = load x[j + 2]
                                                   %s2 = %s1 + %x2
                                                   store y[j + 1] = %s2
```

Each element keeps the order of its sum. The two innermost loops are split where a condition begins or ceases to hold (where
channels are innermost, the two around them), and the innermost one also where its whole vectors end; if the machine can mask
lanes off, the vectors at the edges keep their masks instead. Loops of unknown length stay whole. Up to six rows of an image are
computed together: each weight is loaded once for them, and so is what their windows have in common. Weights that lie a window
apart from channel to channel are copied before each row of the image, so that channels lie side by side; up to eight windows
along the row are then computed together.

Refuses windows of more than 64 positions (16 where neighbours load elements that lie backwards) or of unknown size, folds that
hold anything but loads and arithmetic, and results or loads that lie apart.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    if !p.open {
        return vec![];
    }
    let (facts, mut steps) = (p.facts(), vec![]);
    look(p, &mut |at, f| {
        if !f.is_free_unplaced() {
            return true;
        }
        let chain = edit::free_chain(f);
        let inner = chain[chain.len() - 1];
        if !inner.body.iter().any(windows::is_fold) {
            return true;
        }
        let site = axis_site(p, inner.axis);
        if let Some((_, together)) = log.outcome(site, windows::expand(&mut p.clone(), ctx, &facts, f, None)) {
            steps.push(Step::Windows { at, together });
        }
        false
    });
    steps
}

#[cfg(test)]
mod tests {
    use crate::tile::primitives::windows::{in_vectors, pieces};
    use crate::tile::tests::{apply, context, kernel, refusals, text, without_masks};

    fn window(positions: u32, by: u32, extent: u32) -> String {
        format!(
            r#"loop kernel k(x: ptr f32, y: ptr f32) open:
  for i in 0..4: free
    for j in 0..{extent}: free
      local s: f32
      s = 0.0
      for k in 0..{positions}: reduce combine add(s) from 0.0
        v: f32 = load x[i*64 + j*{by} + k - 1] where j*{by} + k - 1 >= 0 and j*{by} + k - 1 < 64 else 0.0
        s0: f32 = s
        s1: f32 = v + s0
        s = s1
      r: f32 = s
      store y[i*{extent} + j] = r
"#
        )
    }

    #[test]
    fn the_interior_has_no_masks_and_whole_vectors() {
        let (out, _) = apply("unroll_windows", &kernel(&window(3, 1, 64)), &without_masks());
        let out = text(&out);
        let loops: Vec<&str> = out.lines().map(str::trim).filter(|l| l.starts_with("for")).collect();
        let want =
            ["i in 0..4", "j in 0..1", "j_1 in 0..48", "j_2 in 0..8", "j_3 in 0..4", "j_4 in 0..2", "j_5 in 0..1"];
        assert_eq!(loops, want.map(|l| format!("for {l}: free")));
        assert!(!out.contains("where"), "{out}");
        // The first and the last element have two positions each.
        assert_eq!(out.matches("= load").count(), 4 * 3 + 2 * 2, "{out}");
    }

    #[test]
    fn rows_share_what_their_windows_have_in_common() {
        let k = r#"loop kernel k(x: ptr f32, w: ptr f32, y: ptr f32) open:
  for c in 0..8: free
    for i in 0..22: free
      for j in 0..16: free
        local s: f32
        s = 0.0
        for k in 0..3: reduce
          for l in 0..3: reduce combine add(s) from 0.0
            v: f32 = load x[c*384 + (i + k - 1)*16 + j] where i + k - 1 >= 0 and i + k - 1 < 22 else 0.0
            u: f32 = load w[c*9 + k*3 + l]
            p: f32 = v * u
            s0: f32 = s
            s1: f32 = p + s0
            s = s1
        r: f32 = s
        store y[c*352 + i*16 + j] = r
"#;
        let rows = |text: &str| {
            let (out, log) = apply("unroll_windows", &kernel(text), &context());
            assert_eq!(log.applied, ["loop j"]);
            let out = crate::tile::tests::text(&out);
            let trips = out.lines().filter_map(|l| l.trim().strip_prefix("for i")?.split_once("..")?.1.split_once(':'));
            trips.map(|(n, _)| n.to_string()).collect::<Vec<_>>()
        };
        // Twenty rows between the first and the last one, five at a time; nineteen, five at a time and four.
        assert_eq!(rows(k), ["1", "4", "1"]);
        assert_eq!(rows(&k.replace("22", "21")), ["1", "3", "1", "1"]);
        // A value of the channel stands between its loop and the rows.
        let biased = k.replace("    for i in", "    bias: f32 = load w[c]\n    for i in");
        let biased = biased.replace("r: f32 = s\n", "r0: f32 = s\n        r: f32 = r0 + bias\n");
        assert_eq!(rows(&biased), ["1", "4", "1"]);
        // Threads share the rows of a lone image.
        let lone = k.replace("c in 0..8", "c in 0..1").replace("  for c in 0..1: free\n", "").replace("c*384 + ", "");
        let lone = lone.replace("c*9 + ", "").replace("c*352 + ", "").replace("\n  ", "\n");
        assert_eq!(rows(&lone), ["1", "20", "1"]);
    }

    #[test]
    fn strides_round_the_interior() {
        let extents = |ctx| {
            let (out, _) = apply("unroll_windows", &kernel(&window(3, 2, 33)), &ctx);
            let out = text(&out);
            let loops = out.lines().map(str::trim).filter_map(|l| l.strip_prefix("for j"));
            loops.filter_map(|l| Some(l.split_once("..")?.1.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(extents(without_masks()), ["1: free", "16: free", "8: free", "4: free", "3: free", "1: free"]);
        assert_eq!(extents(context()), ["16: free", "1: free", "16: free"]);
    }

    #[test]
    fn vectors_at_the_edges_have_lanes_that_are_off() {
        let (out, _) = apply("unroll_windows", &kernel(&window(3, 1, 64)), &context());
        let out = text(&out);
        let loops: Vec<&str> = out.lines().map(str::trim).filter(|l| l.starts_with("for")).collect();
        let want = ["i in 0..4", "j in 0..16", "j_1 in 0..32", "j_2 in 0..16"];
        assert_eq!(loops, want.map(|l| format!("for {l}: free")));
        assert_eq!(out.matches("where").count(), 2, "{out}");
        assert_eq!(in_vectors(14, (2, 12), 16), [(0, 14)]);
        assert_eq!(in_vectors(64, (0, 62), 16), [(0, 48), (48, 64)]);
    }

    #[test]
    fn other_folds_say_why_not() {
        let why = |text: &str| refusals("unroll_windows", text, &context());
        assert_eq!(why(&window(65, 1, 64)), ["loop j: its windows have many positions"]);
        assert_eq!(why(&window(3, 8, 8)), ["loop j: its loads lie apart"]);
        assert_eq!(why(&window(17, 2, 24).replace("+ j*2", "+ 64 - j*2")), ["loop j: its loads lie apart"]);
        assert_eq!(
            why(&window(3, 1, 64).replace("store y[i*64 + j]", "store y[j*4 + i]")),
            ["loop j: its results lie apart"]
        );
        let unknown = window(3, 1, 64).replace("for k in 0..3", "for k in 0..max(bx, 3)");
        assert_eq!(why(&unknown), ["loop j: the bounds of its reduction are not constants"]);
    }

    #[test]
    fn channels_side_by_side_get_a_copy_of_their_weights() {
        let k = r#"loop kernel k(x: ptr f32, w: ptr f32, y: ptr f32) open:
  for i in 0..6: free
    for j in 0..11: free
      for c in 0..32: free
        local s: f32
        s = 0.0
        for k in 0..3: reduce combine add(s) from 0.0
          v: f32 = load x[(i*11 + j + k - 1)*32 + c] where j + k - 1 >= 0 and j + k - 1 < 11 else 0.0
          u: f32 = load w[c*3 + k]
          p: f32 = v * u
          s0: f32 = s
          s1: f32 = p + s0
          s = s1
        r: f32 = s
        store y[(i*11 + j)*32 + c] = r
"#;
        let (out, log) = apply("unroll_windows", &kernel(k), &context());
        assert_eq!(log.applied, ["loop c"]);
        let out = text(&out);
        let loops: Vec<&str> = out.lines().map(str::trim).filter_map(|l| l.strip_prefix("for ")).collect();
        // The copy of a row's weights; the edges, and groups of five and four of the nine columns between them.
        let want = ["i 6", "k 3", "c 32", "j 1", "c 32", "j 1", "c 32", "j 1", "c 32", "j 1", "c 32"];
        let heads = loops.iter().map(|l| l.replace(" in 0..", " ").replace(": free", ""));
        let heads: Vec<String> = heads.map(|l| format!("{}{}", &l[..1], &l[l.find(' ').unwrap_or(0)..])).collect();
        assert_eq!(heads, want, "{out}");
        assert!(out.contains("[k, c] = u") && !out.contains("where"), "{out}");
        assert_eq!(out.matches("= load x").count(), 2 + 7 + 6 + 2, "{out}");
    }

    #[test]
    fn rows_of_unknown_length_stay_whole() {
        let k = kernel(
            &window(3, 1, 64)
                .replace("+ k - 1 < 64", "+ k - 1 < n")
                .replace("0..64", "0..n")
                .replace("k(", "k(n: i64 in 1..4096, "),
        );
        let (out, log) = apply("unroll_windows", &k, &context());
        assert_eq!(log.applied, ["loop j"]);
        let text = text(&out);
        assert!(text.contains("for j in 0..n: free") && !text.contains("reduce"), "{text}");
        // The middle of a window always lies inside the array.
        assert!(text.contains("load x[i*64 + j + 1 - 1]"), "{text}");
    }

    #[test]
    fn pieces_are_vectors_first() {
        assert_eq!(pieces(30, 1, 29, 16), [(0, 1), (1, 17), (17, 25), (25, 29), (29, 30)]);
        assert_eq!(pieces(7, 0, 7, 16), [(0, 4), (4, 7)]);
        assert_eq!(pieces(5, 1, 3, 1), [(0, 1), (1, 3), (3, 5)]);
        assert_eq!(pieces(0, 0, 0, 16), []);
    }
}

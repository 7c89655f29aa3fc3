//! `keep_rows`

use crate::base::rule::{Log, Rule};
use crate::loops::ir::*;
use crate::tile::primitives::stage_row::{self, Rows, pass};
use crate::tile::primitives::{self, Names, Step};
use crate::tile::target::MemoryKind;
use crate::tile::{Context, edit};

pub const RULE: Rule<Kernel, Context> = Rule {
    name: "keep_rows",
    doc: "\
Loads a row only once, into a tile of the block, if the threads of the block go through it more than once.

```text
for k in 0..1000: reduce thread combine max(m)   local x_k: f32[1000]
  m <- max(x[b*1000 + k], m)                     for i in 0..1000: free
for k in 0..1000: reduce thread combine add(s)     x_k[i] = x[b*1000 + i]
  s <- exp(x[b*1000 + k] - m) + s         -->    for k in 0..1000: reduce thread combine max(m)
for j in 0..1000: free                             m <- max(x_k[k], m)
  y[b*1000 + j] = exp(x[b*1000 + j] - m) / s     for k in 0..1000: reduce thread combine add(s)
                                                   s <- exp(x_k[k] - m) + s
                                                 for j in 0..1000: free
                                                   y[b*1000 + j] = exp(x_k[j] - m) / s
```

`keep_tiles` then keeps the tile in the threads' registers; a tile that is too long for them stays in shared memory.

Knob: `keep_rows` (0 turns the rule off).

Refuses rows of unknown length, rows that leave no room in shared memory for a second block, and arrays that the kernel stores to.
",
    run: |p, ctx, log| primitives::run(p, ctx, log, policy),
};

fn policy(p: &Kernel, ctx: &Context, log: &mut Log) -> Vec<Step> {
    if !p.open {
        return vec![];
    }
    let names = Names::of(p);
    let mut steps = vec![];
    for body in edit::block_bodies(&p.body) {
        let passes: Vec<usize> = (0..body.len()).filter(|at| pass(&body[*at]).is_some()).collect();
        let folds = passes.iter().any(|at| pass(&body[*at]).is_some_and(|f| f.combine.is_some()));
        let readers = stage_row::readers(body, &passes);
        let loops: Vec<&For> = readers.iter().filter_map(|at| pass(&body[*at])).collect();
        let Some(first) = loops.first().filter(|_| folds) else { continue };
        let site = p.axes.get(first.axis).map_or(String::new(), |a| format!("row along {}", a.name));
        let fits = Rows::of(p, body, &readers).and_then(|rows| fits(ctx, &rows));
        if log.described(site, fits.map(|bytes| format!("{bytes} bytes"))) {
            steps.push(Step::StageRow { loops: loops.into_iter().filter_map(|f| names.name(f)).collect() });
        }
    }
    steps
}

/// The bytes of rows that leave room for a second block.
fn fits(ctx: &Context, rows: &Rows) -> Result<u64, String> {
    let (bytes, extent) = (rows.bytes(), rows.extent());
    let room = ctx.target.bytes_of(MemoryKind::Shared) / 2;
    match () {
        _ if !ctx.knobs.keep_rows => Err("knob off".into()),
        _ if bytes > room => Err(format!("{extent} elements take {bytes} bytes of shared memory, more than {room}")),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::tests::{apply, gpu, kernel, refusals, schedule, text};

    const ROWS: &str = r#"tile kernel k(x: ptr f32, y: ptr f32) open:
  for b in 0..64: free block(x)
    local m: f32
    m = -inf
    for k in 0..1000: reduce thread combine max(m) from -inf x 256
      x1: f32 = load x[b*1000 + k]
      m0: f32 = m
      m1: f32 = max(x1, m0)
      m = m1
    top: f32 = m
    for j in 0..1000: free
      x2: f32 = load x[b*1000 + j]
      d: f32 = x2 - top
      store y[b*1000 + j] = d
"#;

    #[test]
    fn a_row_is_loaded_once() {
        let (out, log) = apply("keep_rows", &kernel(ROWS), &gpu(&[]));
        assert_eq!(log.applied, ["row along k: 4000 bytes"]);
        let made = text(&out);
        assert_eq!(made.matches("load x[").count(), 1, "{made}");
        for line in
            ["local x_k: f32[1000]\n", "x_1: f32 = load x[b*1000 + i]\n", "x1: f32 = x_k[k]\n", "x2: f32 = x_k[j]\n"]
        {
            assert!(made.contains(line), "{line}{made}");
        }
        // Nothing is read twice.
        let once = ROWS.replace("load x[b*1000 + j]", "load x[b*1000 + j + 1]");
        assert_eq!(refusals("keep_rows", &once, &gpu(&[])), Vec::<String>::new());
    }

    #[test]
    fn it_stays_in_registers_where_it_fits() {
        let all = |rows: &str, knobs: &[&str]| text(&schedule(&kernel(rows), &gpu(knobs)));
        let made = all(ROWS, &[]);
        assert!(made.contains("local x_k: f32[256, 4] private\n") && made.contains("*512 + t*2 + "), "{made}");
        // Rows that divide have no test, those shorter than the threads one element each.
        let even = all(&ROWS.replace("1000", "1024"), &[]);
        assert!(!even.contains("test") && even.contains("t*4 + "), "{even}");
        assert!(all(&ROWS.replace("1000", "100"), &[]).contains("f32[256, 1] private"));
        for made in [all(&ROWS.replace("1000", "20000"), &[]), all(ROWS, &["keep_tiles=0"])] {
            assert!(made.contains("shared\n") && !made.contains("private"), "{made}");
        }
    }

    #[test]
    fn what_cannot_be_kept_says_why() {
        for (from, to, why) in [
            ("1000", "90000", "row along k: 90000 elements take 360000 bytes of shared memory, more than 116224"),
            ("store y[", "store x[", "row along k: the kernel stores to its array"),
            ("for j in 0..1000", "for j in 0..999", "row along k: its length is not known, or not the same everywhere"),
        ] {
            assert_eq!(refusals("keep_rows", &ROWS.replace(from, to), &gpu(&[])), [why], "{to}");
        }
        assert_eq!(refusals("keep_rows", ROWS, &gpu(&["keep_rows=0"])), ["row along k: knob off"]);
    }
}

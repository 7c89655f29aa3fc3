//! Breaks a statement that is too long for one line.
//!
//! In: a statement on one line and the number of columns. Out: its lines, all after the first [`INDENT`] deeper.
//!
//! ```text
//! %x, %t0 = load_view_tko weak %x_tiles[%bx, %i0]
//!     : partition_view<tile=(2x512), tensor_view<64x512xi32, strides=[512,1]>>, tile<i32> -> tile<2x512xi32>, token
//! ```
//!
//! A line is broken before the values that a loop carries and before the arguments of a body, else before its types,
//! else before the arrow, else after a comma, the outermost first. A line without such a place stays long. Only blanks
//! change.

/// The most columns of a line.
pub(super) const WIDTH: usize = 110;

/// Columns by which a continuation is indented from its statement.
pub(super) const INDENT: usize = 4;

/// The lines of a statement that may take `width` columns; the caller indents them.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![];
    let mut rest = text;
    let mut room = width;
    while rest.chars().count() > room {
        let Some(at) = break_place(rest, room) else { break };
        lines.push(rest[..at].trim_end().to_string());
        rest = rest[at..].trim_start();
        room = width.saturating_sub(INDENT);
    }
    lines.push(rest.to_string());
    lines
}

/// The best place to break a line that is too long.
fn break_place(text: &str, room: usize) -> Option<usize> {
    let places = places(text);
    let best = places.iter().map(|&(rank, _)| rank).min()?;
    let fits = |at: usize| text[..at].trim_end().chars().count() <= room;
    // The last place of the best kind that fits; if none fits, the next kind is tried.
    let mut ranks: Vec<usize> = places.iter().map(|&(rank, _)| rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let last = |rank: usize| places.iter().rev().find(|&&(r, at)| r == rank && fits(at)).map(|&(_, at)| at);
    ranks.into_iter().find_map(last).or_else(|| places.iter().find(|p| p.0 == best).map(|p| p.1))
}

/// The blanks at which a line may be broken: the rank of each (less is better), and the place after it.
fn places(text: &str) -> Vec<(usize, usize)> {
    const COMMA: usize = 3;
    let bytes = text.as_bytes();
    let mut out = vec![];
    let (mut depth, mut quoted, mut at) = (0usize, false, 0);
    while at < bytes.len() {
        let (before, after) = (&text[..at], text.get(at + 1..).unwrap_or(""));
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' | b'<' | b'{' => depth += 1,
            b'>' if before.ends_with('-') => {}
            b')' | b']' | b'>' | b'}' => depth = depth.saturating_sub(1),
            b' ' if at == 0 => {}
            b' ' if depth == 0 && before.ends_with('>') && !before.ends_with("->") && opens_more(after) => {
                out.push((0, at + 1));
            }
            b' ' if depth == 0 && after.starts_with("optimization_hints") => out.push((0, at + 1)),
            b' ' if depth == 0 && after.starts_with(": ") => out.push((1, at + 1)),
            b' ' if depth == 0 && after.starts_with("-> ") => out.push((2, at + 1)),
            b' ' if before.ends_with(',') => out.push((COMMA + depth, at + 1)),
            _ => {}
        }
        at += 1;
    }
    out
}

/// Returns true at the values that a loop carries, and at the arguments of a body.
fn opens_more(text: &str) -> bool {
    text.starts_with("iter_values(") || text.starts_with('(')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(width: usize, lines: &[&str]) {
        assert_eq!(wrap(&lines.join(" "), width), lines);
    }

    #[test]
    fn a_line_that_fits_stays() {
        check(28, &["%s = addi %a, %b : tile<i32>"]);
    }

    #[test]
    fn types_go_first_then_the_arrow() {
        check(45, &["%x, %t = load_ptr_tko weak %p, %in, %zero", ": tile<8xptr<f32>>, tile<8xi1> -> token"]);
        check(28, &["%x, %t = load_ptr_tko %p", ": tile<1024xptr<f32>>", "-> tile<1024xf32>, token"]);
    }

    #[test]
    fn a_loop_is_broken_before_what_it_carries() {
        check(
            64,
            &[
                "%s = for %k in (%a to %b, step %c) : tile<i32>",
                "iter_values(%x = %y, %z = %w) -> (tile<f32>, tile<f32>) {",
            ],
        );
        check(62, &["%m = reduce %x dim=1 identities=[0.0 : f32]", ": tile<8xf32> -> tile<f32> (%e: tile<f32>) {"]);
        check(75, &["%m = reduce %x dim=1 identities=[0.0 : f32] : tile<8xf32> -> tile<f32>", "(%e: tile<f32>) {"]);
    }

    #[test]
    fn parameters_fill_lines() {
        check(40, &["entry @k(%a: tile<ptr<f32>>,", "%b: tile<ptr<f32>>, %n: tile<i32>,", "%m: tile<i32>) {"]);
    }

    #[test]
    fn strings_stay_whole() {
        check(50, &["%t = print_tko \"a, b : c \\\" -> d, e, f, g\", %a", ": tile<i32> -> token"]);
    }
}

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
    while rest.chars().nth(room).is_some() {
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
    // The last place of the best kind that fits.
    let fitting = places(text, room);
    let best = fitting.iter().map(|&(rank, _)| rank).min();
    if let Some((_, at)) = fitting.iter().rev().find(|&&(rank, _)| Some(rank) == best) {
        return Some(*at);
    }
    let all = places(text, usize::MAX);
    let best = all.iter().map(|&(rank, _)| rank).min()?;
    all.iter().find(|p| p.0 == best).map(|p| p.1)
}

/// The blanks at which a line may be broken so that its first part takes at most `room` columns: the rank of each (less is better), and
/// the place after it.
fn places(text: &str, room: usize) -> Vec<(usize, usize)> {
    const COMMA: usize = 3;
    let bytes = text.as_bytes();
    let mut out = vec![];
    let (mut depth, mut quoted, mut at) = (0usize, false, 0);
    // The columns of the text so far, without blanks at its end, and the place up to which they are counted.
    let (mut columns, mut counted) = (0, 0);
    while at < bytes.len() {
        crate::base::work::look();
        // Lines break between characters.
        if !text.is_char_boundary(at) {
            at += 1;
            continue;
        }
        if bytes[at] == b' ' {
            let own = text[..at].trim_end().len();
            columns += text.get(counted..own).map_or(0, |more| more.chars().count());
            counted = counted.max(own);
            if columns > room {
                break;
            }
        }
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
    fn columns_are_characters() {
        check(12, &["%é, %é, %é,", "%é, %é"]);
        // A place behind the last column counts where there is none before.
        check(12, &["%a_long_name_of_a_value,", "%b"]);
    }

    #[test]
    fn strings_stay_whole() {
        check(50, &["%t = print_tko \"a, b : c \\\" -> d, e, f, g\", %a", ": tile<i32> -> token"]);
    }
}

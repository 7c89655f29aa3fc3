//! Graphs in layers, as SVG: each node below what it reads, edges as curves that pass between the nodes of the layers they cross.
//!
//! In: boxes with the numbers of the boxes that they read, which come before them. Out: an SVG. After Sugiyama, Tagawa and Toda
//! ("Methods for visual understanding of hierarchical system structures", 1981): layers by the longest path, the order within
//! a layer by the mean of neighbours, places by least squares under that order.
//!
//! ```text
//!    [matmul]              layer 0
//!     |     \
//!  [silu]    |             layer 1: the edge from matmul to mul passes beside silu
//!      \    /
//!      [mul]               layer 2
//! ```

use std::fmt::Write;

use super::escaped;

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Box {
    pub label: String,
    /// Smaller, below the label.
    pub under: String,
    /// Shown where the pointer rests.
    pub title: String,
    /// The name by which a script knows the node.
    pub id: u32,
    /// Boxes of a group have a colour.
    pub group: Option<usize>,
    pub reads: Vec<usize>,
}

const HEIGHT: f64 = 34.0;
const LAYER: f64 = 62.0;
const GAP: f64 = 14.0;
/// An edge's way between nodes.
const WAY: f64 = 6.0;
/// Edges that cross more layers than this together are drawn straight: their order would take too long to find.
const MOST_WAYS: usize = 20_000;
const SWEEPS: usize = 8;

/// An item of a layer: a box, or a bend of an edge.
#[derive(Clone, Debug, Default)]
struct Place {
    layer: usize,
    width: f64,
    /// Neighbours in the layer above, and in the one below.
    above: Vec<usize>,
    below: Vec<usize>,
    /// The centre.
    x: f64,
}

/// The colour of a group, between light and dark so that both grounds take it.
pub fn colour(group: usize) -> String {
    // Neighbouring groups differ most: steps by the golden angle.
    format!("hsl({:.0} 62% 58%)", (group as f64 * 137.508 + 205.0) % 360.0)
}

/// The drawing.
pub fn svg(boxes: &[Box]) -> String {
    let (mut places, ways) = places(boxes);
    let layers = ordered(&mut places);
    arrange(&mut places, &layers);
    let left = places.iter().map(|p| p.x - p.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = places.iter().map(|p| p.x + p.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let (left, width) = if boxes.is_empty() { (0.0, 0.0) } else { (left - GAP, right - left + 2.0 * GAP) };
    let height = layers.len() as f64 * LAYER + GAP;
    let mut out = format!(
        "<svg class=\"graph\" viewBox=\"{left:.0} 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
         aria-label=\"{} operations and what they read\">\n<g class=\"edges\">\n",
        boxes.len()
    );
    let top = |p: &Place| p.layer as f64 * LAYER + GAP;
    for way in &ways {
        let mut path = String::new();
        let mut last: Option<(f64, f64)> = None;
        for (at, place) in way.iter().filter_map(|n| places.get(*n)).enumerate() {
            let (enters, leaves) = match at {
                0 => (top(place) + HEIGHT, top(place) + HEIGHT),
                _ if at + 1 == way.len() => (top(place), top(place)),
                _ => (top(place), top(place) + HEIGHT),
            };
            match last {
                None => drop(write!(path, "M{:.1} {enters:.1}", place.x)),
                Some((x, y)) => {
                    let middle = (y + enters) / 2.0;
                    let _ = write!(path, "C{x:.1} {middle:.1} {0:.1} {middle:.1} {0:.1} {enters:.1}", place.x);
                    if leaves > enters {
                        let _ = write!(path, "V{leaves:.1}");
                    }
                }
            }
            last = Some((place.x, leaves));
        }
        let ends = (way.first().and_then(|n| boxes.get(*n)), way.last().and_then(|n| boxes.get(*n)));
        if let (Some(from), Some(to)) = ends {
            let _ = writeln!(out, "<path d=\"{path}\" data-from=\"{}\" data-to=\"{}\"/>", from.id, to.id);
        }
    }
    out += "</g>\n";
    for (b, place) in boxes.iter().zip(&places) {
        let (x, y) = (place.x - place.width / 2.0, top(place));
        let group = b.group.map_or(String::new(), |g| format!(" data-group=\"{g}\""));
        let fill = b.group.map_or(String::new(), |g| format!(" style=\"--group:{}\"", colour(g)));
        let _ = writeln!(
            out,
            "<g class=\"node\" data-id=\"{}\"{group}{fill} tabindex=\"0\"><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{:.1}\" height=\"{HEIGHT}\" rx=\"5\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"under\" x=\"{:.1}\" \
             y=\"{:.1}\">{}</text></g>",
            b.id,
            escaped(&b.title),
            place.width,
            place.x,
            y + 14.5,
            escaped(&cut(&b.label)),
            place.x,
            y + 27.5,
            escaped(&cut(&b.under)),
        );
    }
    out + "</svg>\n"
}

/// Letters of a label that fit.
const LETTERS: usize = 24;

fn cut(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        // The end of a path says more than its beginning.
        Some(_) => {
            let from = text.chars().count() - (LETTERS - 1);
            format!("…{}", text.chars().skip(from).collect::<String>())
        }
        None => text.to_string(),
    }
}

fn width(b: &Box) -> f64 {
    let letters = |text: &str| text.chars().count().min(LETTERS) as f64;
    (letters(&b.label) * 7.0).max(letters(&b.under) * 6.0).max(40.0) + 14.0
}

/// The boxes in their layers, then the ways of long edges; and the places that each edge passes, from the box that is read.
fn places(boxes: &[Box]) -> (Vec<Place>, Vec<Vec<usize>>) {
    let mut layer = vec![0usize; boxes.len()];
    let reads = |at: usize| boxes[at].reads.iter().copied().filter(move |r| *r < at);
    for at in 0..boxes.len() {
        layer[at] = reads(at).map(|r| layer[r] + 1).max().unwrap_or(0);
    }
    // A box that reads nothing stands right above its first reader.
    let mut first = vec![usize::MAX; boxes.len()];
    for (at, own) in layer.iter().enumerate() {
        reads(at).for_each(|r| first[r] = first[r].min(*own));
    }
    for (at, (own, first)) in layer.iter_mut().zip(&first).enumerate() {
        if reads(at).next().is_none() && *first != usize::MAX {
            *own = first.saturating_sub(1);
        }
    }
    let mut out: Vec<Place> =
        boxes.iter().zip(&layer).map(|(b, l)| Place { layer: *l, width: width(b), ..Place::default() }).collect();
    let mut ways = vec![];
    for at in 0..boxes.len() {
        for read in reads(at) {
            let mut way = vec![read];
            for between in layer[read] + 1..layer[at] {
                if out.len() < boxes.len() + MOST_WAYS {
                    way.push(out.len());
                    out.push(Place { layer: between, width: WAY, ..Place::default() });
                }
            }
            way.push(at);
            for pair in way.windows(2) {
                out[pair[0]].below.push(pair[1]);
                out[pair[1]].above.push(pair[0]);
            }
            ways.push(way);
        }
    }
    (out, ways)
}

/// The layers, each in an order in which few edges cross.
fn ordered(places: &mut [Place]) -> Vec<Vec<usize>> {
    let count = places.iter().map(|p| p.layer + 1).max().unwrap_or(0);
    let mut layers = vec![vec![]; count];
    for (at, place) in places.iter().enumerate() {
        layers[place.layer].push(at);
    }
    let mut rank: Vec<f64> = vec![0.0; places.len()];
    let set = |layer: &[usize], rank: &mut Vec<f64>| {
        let half = layer.len() as f64 / 2.0;
        layer.iter().enumerate().for_each(|(i, at)| rank[*at] = i as f64 - half);
    };
    layers.iter().for_each(|l| set(l, &mut rank));
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        for step in 0..count {
            let number = if down { step } else { count - 1 - step };
            let mean = |at: &usize| {
                let near = if down { &places[*at].above } else { &places[*at].below };
                match near.len() {
                    0 => rank[*at],
                    n => near.iter().map(|o| rank[*o]).sum::<f64>() / n as f64,
                }
            };
            let mut keyed: Vec<(f64, usize)> = layers[number].iter().map(|at| (mean(at), *at)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            layers[number] = keyed.into_iter().map(|(_, at)| at).collect();
            set(&layers[number], &mut rank);
        }
    }
    layers
}

/// Gives every place its centre: as near to its neighbours' as the order and the widths allow.
fn arrange(places: &mut [Place], layers: &[Vec<usize>]) {
    for layer in layers {
        let mut x = 0.0;
        for at in layer {
            places[*at].x = x + places[*at].width / 2.0;
            x += places[*at].width + GAP;
        }
        for at in layer {
            places[*at].x -= x / 2.0;
        }
    }
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        for step in 0..layers.len() {
            let layer = &layers[if down { step } else { layers.len() - 1 - step }];
            let wish = |at: &usize| {
                let p = &places[*at];
                let near: Vec<f64> = p.above.iter().chain(&p.below).map(|o| places[*o].x).collect();
                if near.is_empty() { p.x } else { near.iter().sum::<f64>() / near.len() as f64 }
            };
            let wishes: Vec<f64> = layer.iter().map(wish).collect();
            let widths: Vec<f64> = layer.iter().map(|at| places[*at].width).collect();
            for (at, x) in layer.iter().zip(apart(&wishes, &widths)) {
                places[*at].x = x;
            }
        }
    }
}

/// The centres nearest to wishes, by least squares, in this order and without overlap: pool adjacent violators.
fn apart(wishes: &[f64], widths: &[f64]) -> Vec<f64> {
    let mut offsets = vec![0.0; wishes.len()];
    for i in 1..wishes.len() {
        offsets[i] = offsets[i - 1] + (widths[i - 1] + widths[i]) / 2.0 + GAP;
    }
    // Runs of equal value: their sum and their length.
    let mut runs: Vec<(f64, usize)> = vec![];
    for (wish, offset) in wishes.iter().zip(&offsets) {
        runs.push((wish - offset, 1));
        while let [.., (a, n), (b, m)] = runs[..]
            && a / n as f64 > b / m as f64
        {
            runs.truncate(runs.len() - 2);
            runs.push((a + b, n + m));
        }
    }
    let values = runs.into_iter().flat_map(|(sum, n)| std::iter::repeat_n(sum / n as f64, n));
    values.zip(offsets).map(|(value, offset)| value + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(reads: &[&[usize]]) -> Vec<Box> {
        let one = |(id, reads): (usize, &&[usize])| Box {
            label: format!("op{id}"),
            id: id as u32,
            reads: reads.to_vec(),
            ..Box::default()
        };
        reads.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_node_stands_below_what_it_reads_and_beside_nothing_it_touches() {
        let all = boxes(&[&[], &[0], &[1], &[0, 2], &[], &[3, 4], &[0, 5]]);
        let (mut places, ways) = places(&all);
        let layers = ordered(&mut places);
        arrange(&mut places, &layers);
        for (b, at) in all.iter().zip(0..) {
            assert!(b.reads.iter().all(|r| places[*r].layer < places[at].layer));
        }
        // A box that reads nothing stands right above its reader.
        assert_eq!(places[4].layer + 1, places[5].layer);
        for layer in &layers {
            for pair in layer.windows(2) {
                let (a, b) = (&places[pair[0]], &places[pair[1]]);
                assert!(b.x - a.x >= (a.width + b.width) / 2.0 + GAP - 1e-6, "{a:?} {b:?}");
            }
        }
        // The edge from 0 to 6 passes every layer between.
        let long = ways.iter().find(|w| w.first() == Some(&0) && w.last() == Some(&6)).unwrap();
        assert_eq!(long.len(), places[6].layer - places[0].layer + 1);
        let drawn = svg(&all);
        assert_eq!((drawn.matches("<path").count(), drawn.matches("class=\"node\"").count()), (ways.len(), all.len()));
    }

    #[test]
    fn wishes_are_met_where_there_is_room() {
        assert_eq!(apart(&[0.0, 100.0], &[10.0, 10.0]), [0.0, 100.0]);
        // Too near: both give way alike.
        assert_eq!(apart(&[50.0, 50.0], &[10.0, 10.0]), [38.0, 62.0]);
        assert_eq!(svg(&[]).matches("node").count(), 0);
    }

    #[test]
    fn labels_are_text() {
        let one = Box { label: "<script>".into(), title: "a & b".into(), ..Box::default() };
        let drawn = svg(&[one]);
        assert!(drawn.contains("&lt;script&gt;") && drawn.contains("a &amp; b") && !drawn.contains("<script>"));
        assert_eq!(cut(&"x".repeat(30)).chars().count(), LETTERS);
    }
}

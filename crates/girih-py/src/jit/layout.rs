//! Checks that a kernel is told how an array lies in memory.
//!
//! A kernel gets the address of an array's first element and nothing of its strides, unless the launch passes them.
//! In: the shapes and strides of the arrays that are not contiguous in row-major order, and the integers of the launch.
//! Out: the first array whose strides the kernel would have to know and is not told.
//!
//! ```text
//! x[::2]       strides (2)       the kernel must be told 2
//! x[:, :64]    strides (128, 1)  128
//! x.T          strides (1, 64)   64, unless all arrays of the launch that lie so are used together, element by element
//! ```

/// Shape and strides, in elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
}

impl Layout {
    /// The axes that have more than one element, innermost last: extent and stride.
    fn axes(&self) -> impl DoubleEndedIterator<Item = (i64, i64)> {
        self.shape.iter().copied().zip(self.strides.iter().copied()).filter(|(n, _)| *n > 1)
    }

    /// The strides that do not follow from the axes within, in row-major order. A stride of 1 needs no word.
    fn surprising(&self) -> impl Iterator<Item = i64> {
        let mut expected = 1;
        self.axes().rev().filter_map(move |(extent, stride)| {
            let surprise = stride != expected;
            expected = extent.saturating_mul(stride);
            (surprise && stride != 1).then_some(stride)
        })
    }

    /// Returns true if the elements fill their memory: some order of the axes is row-major.
    fn is_dense(&self) -> bool {
        let mut axes: Vec<(i64, i64)> = self.axes().collect();
        axes.sort_by_key(|&(_, stride)| stride);
        let mut expected = 1;
        axes.iter().all(|&(extent, stride)| {
            let dense = stride == expected;
            expected = extent.saturating_mul(stride);
            dense
        })
    }

    /// Returns true if a launch that passes these integers tells the kernel about this layout.
    fn is_told(&self, integers: &[i64]) -> bool {
        self.surprising().all(|stride| integers.contains(&stride))
    }
}

/// Returns true if a constant of that name is the extent of a tile, which may equal a stride by accident.
pub fn is_extent(name: &str) -> bool {
    let name = name.to_lowercase();
    ["block", "tile", "size", "group"].iter().any(|word| name.contains(word))
}

/// The position in `layouts` of the first array that the kernel misunderstands. `others` says whether arrays that are
/// contiguous take part.
pub fn misunderstood(layouts: &[&Layout], integers: &[i64], others: bool) -> Option<usize> {
    layouts.iter().position(|layout| {
        // Arrays with equal layouts may be used in the order of memory.
        let alike = layouts.iter().filter(|other| *other == layout).count();
        let together = layout.is_dense() && (alike > 1 || (layouts.len() == 1 && !others));
        !together && !layout.is_told(integers)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[i64], strides: &[i64]) -> Layout {
        Layout { shape: shape.to_vec(), strides: strides.to_vec() }
    }

    fn misunderstood(layouts: &[Layout], integers: &[i64], others: bool) -> Option<usize> {
        super::misunderstood(&layouts.iter().collect::<Vec<_>>(), integers, others)
    }

    #[test]
    fn extents_are_no_strides() {
        for name in ["BLOCK", "BLOCK_M", "tile_n", "GROUP_SIZE"] {
            assert!(is_extent(name), "{name}");
        }
        for name in ["S", "stride", "STRIDE_M", "n"] {
            assert!(!is_extent(name), "{name}");
        }
    }

    #[test]
    fn gaps_must_be_told() {
        for (shape, strides, told) in [
            (&[5][..], &[2][..], &[2][..]),
            (&[4, 64], &[128, 1], &[128]),
            (&[4, 32], &[128, 2], &[2, 128]),
            (&[6, 4], &[0, 1], &[0]),
            (&[2, 3, 8], &[96, 16, 1], &[96, 16]),
            (&[1, 5], &[7, 3], &[3]),
        ] {
            let one = [layout(shape, strides)];
            for others in [false, true] {
                assert_eq!(misunderstood(&one, told, others), None, "{shape:?} {strides:?}");
                assert_eq!(misunderstood(&one, &[5, 1000], others), Some(0), "{shape:?} {strides:?}");
            }
        }
        // Rows that lie evenly are one axis to a kernel.
        assert_eq!(misunderstood(&[layout(&[2, 3, 8], &[48, 16, 1])], &[16], true), None);
    }

    #[test]
    fn transposed_arrays_may_be_used_together() {
        let transposed = layout(&[3, 4], &[1, 3]);
        assert_eq!(misunderstood(std::slice::from_ref(&transposed), &[12], false), None);
        assert_eq!(misunderstood(std::slice::from_ref(&transposed), &[12], true), Some(0));
        assert_eq!(misunderstood(std::slice::from_ref(&transposed), &[3], true), None);
        assert_eq!(misunderstood(&[transposed.clone(), transposed.clone()], &[12], true), None);
        assert_eq!(misunderstood(&[transposed, layout(&[4, 3], &[1, 4])], &[12, 3], false), Some(1));
    }
}

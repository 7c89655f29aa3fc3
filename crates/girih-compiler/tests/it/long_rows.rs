//! Rows that no block has shared memory for.

use girih_compiler::base::launch::Assumptions;
use girih_compiler::pipeline;
use girih_compiler::tile::target::{MemoryKind, Target};

const SOFTMAX: &str = include_str!("softmax_65536.mlir");

/// Softmax of a row of 65,536 f32, whose tiles no block has shared memory for, fits every GPU: its passes load the row, and
/// where the result may overlap it, threads keep it.
#[test]
fn long_rows_fit() {
    let module = pipeline::front(SOFTMAX).unwrap_or_else(|d| panic!("{d:#?}")).module;
    for name in ["sm_80", "sm_90a", "sm_100a", "sm_120"] {
        let target = Target::named(name).unwrap();
        let most = target.bytes_of(MemoryKind::Shared);
        for no_alias in [true, false] {
            let assume = Assumptions { no_wrap: true, no_alias };
            let options = pipeline::Options { target: target.clone(), assume, ..Default::default() };
            let lowered = pipeline::lower(&module, "softmax", &options, &mut pipeline::Silent);
            let kernel = lowered.unwrap_or_else(|d| panic!("{d:#?}")).kernel;
            let is_kept = kernel.scratch >= 65_536 * 4 / u64::from(kernel.threads);
            assert!(kernel.shared <= most && is_kept != no_alias, "{name}, {no_alias}: {}", kernel.scratch);
        }
    }
}

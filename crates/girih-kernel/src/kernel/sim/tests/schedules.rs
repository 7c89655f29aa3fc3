//! One launch under several schedules.

use super::super::run_under;
use super::{Kind, Options, kernel, simulate};
use crate::base::Code;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::{Memory, VecMemory};
use crate::loops;

/// The output, in order.
#[derive(Default)]
struct Printed(String);

impl Host for Printed {
    fn print(&mut self, _: [u32; 3], text: &str) {
        self.0 += text;
    }
    fn interrupted(&self) -> bool {
        false
    }
}

/// Runs a kernel of arrays of 64 numbers under eight schedules that look for no races: how many reports there were, what the last
/// array holds, what was printed.
fn under_eight(text: &str, arrays: usize) -> Result<(u64, Vec<i32>, String), Trap> {
    let (kernel, mut memory) = (kernel(text), VecMemory::new());
    let numbers: Vec<u8> = (0..64i32).flat_map(i32::to_le_bytes).collect();
    let at: Vec<u64> = (0..arrays).map(|n| memory.add(&format!("a{n}"), numbers.clone())).collect();
    let schedules = Options { races: false, ..Options::of_seed(0) }.schedules(8);
    let (mut reports, mut host) = (0, Printed::default());
    let mut each = |report: super::Report| {
        reports += u64::from(report.seed == reports);
        report.clean().map(drop)
    };
    let launch = Launch::new([1; 3], at.clone());
    let placed = loops::ir::Kernel::default();
    run_under(&schedules, (&kernel, &placed), &launch, &mut memory, &mut host, &mut each)?;
    let left = memory.bytes(at[arrays - 1]).unwrap().chunks_exact(4);
    Ok((reports, left.map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect(), host.0))
}

#[test]
fn every_schedule_begins_with_the_same_memory() {
    let text = "kernel k(x: ptr<i32>) threads 64 scratch 0 {
  v: i32 = load x[tx]
  w: i32 = addi v, v
  store x[tx] = w
}";
    let doubled: Vec<i32> = (0..64).map(|i| 2 * i).collect();
    assert_eq!(under_eight(text, 1).unwrap(), (8, doubled, String::new()));
}

#[test]
fn other_bytes_are_an_error_that_names_both_schedules() {
    // The schedule decides whether the other warp has stored already.
    let text = "kernel k(x: ptr<i32>, y: ptr<i32>) threads 64 scratch 0 {
  v: i32 = load x[63 - tx]
  w: i32 = addi v, v
  store x[tx] = w
  store y[tx] = v
}";
    let trap = under_eight(text, 2).unwrap_err();
    assert_eq!(trap.code, Code::Simulated);
    let said = &trap.message;
    assert!(said.starts_with("the kernel `k` leaves other bytes in `a"), "{said}");
    assert!(said.contains("from byte") && said.ends_with("than under round-robin (seed 0)"), "{said}");
}

#[test]
fn sums_of_integers_are_compared_and_what_atomics_found_is_not() {
    let sum = "kernel k(x: ptr<i32>) threads 64 scratch 0 {
  old: i32 = rmw add x[0], 1:i32 relaxed
}";
    let mut summed: Vec<i32> = (0..64).collect();
    summed[0] = 64;
    assert_eq!(under_eight(sum, 1).unwrap(), (8, summed, String::new()));
    // Tickets: who gets which, the schedule decides, and no schedule is wrong.
    let ticket = "kernel k(x: ptr<i32>, y: ptr<i32>) threads 64 scratch 0 {
  old: i32 = rmw add x[0], 1:i32 relaxed
  store y[tx] = old
}";
    let (reports, mut tickets, _) = under_eight(ticket, 2).unwrap();
    tickets.sort();
    assert_eq!((reports, tickets), (8, (0..64).collect()));
}

#[test]
fn what_a_block_prints_is_told_once() {
    let text = "kernel k(x: ptr<i32>) threads 64 scratch 0 {
  if tx == 0 {
    v: i32 = load x[7]
    print \"%d;\", v site 0
  }
}";
    let (reports, _, printed) = under_eight(text, 1).unwrap();
    assert_eq!((reports, printed.as_str()), (8, "7;"));
}

#[test]
fn arrays_that_overlap_are_kept_as_they_were() {
    struct Two(VecMemory, u64);
    // Bytes 0 to 127 are `low`, and bytes 64 to 255 are `high`.
    impl Memory for Two {
        fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), crate::base::memory::Fault> {
            self.0.read(addr, out)
        }
        fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), crate::base::memory::Fault> {
            self.0.write(addr, bytes)
        }
        fn allocate(&mut self, len: u64, align: u64) -> u64 {
            self.0.allocate(len, align)
        }
        fn region(&self, addr: u64) -> Option<(String, u64, u64)> {
            let at = addr.checked_sub(self.1)?;
            let (name, from, len) = if at < 128 { ("low", 0, 128) } else { ("high", 64, 192) };
            Some((name.to_string(), self.1 + from, len))
        }
    }
    let text = "kernel k(x: ptr<i32>) threads 64 scratch 0 {
  v: i32 = load x[tx]
  w: i32 = addi v, v
  store x[tx] = w
}";
    let mut memory = VecMemory::new();
    let at = memory.add("x", (0..64i32).flat_map(i32::to_le_bytes).collect());
    let mut memory = Two(memory, at);
    let schedules = Options::of_seed(0).schedules(8);
    let (kernel, placed) = (kernel(text), loops::ir::Kernel::default());
    let launch = Launch::new([1; 3], vec![at]);
    let mut each = |report: super::Report| report.clean().map(drop);
    run_under(&schedules, (&kernel, &placed), &launch, &mut memory, &mut Printed::default(), &mut each).unwrap();
    let left: Vec<i32> =
        memory.0.bytes(at).unwrap().chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(left, (0..64).map(|i| 2 * i).collect::<Vec<i32>>());
}

/// Warps draw tickets; one of them stores to a place of another one's only if its ticket is the first, or the last.
fn by_ticket(warps: usize, warp: usize, ticket: usize) -> String {
    format!(
        "kernel k(c: ptr<i32>, o: ptr<i32>) threads {} scratch 0 {{
  if tx%32 == 0 {{
    if tx//32 == {} {{
      store o[0] = 1:i32
    }}
    old: i32 = rmw add c[0], 1:i32 relaxed
    drawn: i1 = cmpi.eq old, {ticket}:i32
    if drawn {{
      if tx//32 == {warp} {{
        store o[0] = 2:i32
      }}
    }}
  }}
}}",
        32 * warps,
        (warp + 1) % warps
    )
}

/// Returns true if one of the first schedules shows the race.
fn found_by(schedules: u64, text: &str) -> bool {
    let kernel = kernel(text);
    Options::of_seed(0).schedules(schedules).iter().any(|options| {
        let (report, _) = simulate(&kernel, [1; 3], &[("c", vec![0]), ("o", vec![0])], &[], options);
        report.findings.iter().any(|f| f.kind == Kind::WriteAfterWrite)
    })
}

#[test]
fn four_schedules_have_the_first_and_the_last_warp_at_either_end() {
    for warps in [2, 3, 4, 8] {
        for (warp, ticket) in [(0, 0), (0, warps - 1), (warps - 1, 0), (warps - 1, warps - 1)] {
            assert!(found_by(4, &by_ticket(warps, warp, ticket)), "warp {warp} of {warps} as number {ticket}");
        }
        // Each warp is the last one once.
        for warp in 0..warps {
            assert!(found_by(5 * warps as u64, &by_ticket(warps, warp, warps - 1)), "warp {warp} of {warps}");
        }
    }
}

//! Each statement on numbers worked out by hand; every error is a trap; blocks take turns.

use crate::base::host::{Host, Silent};
use crate::base::launch::{Launch, Trap};
use crate::base::memory::VecMemory;
use crate::base::{Budget, Code};
use crate::kernel::{eval, legalise, parse, verify};
use crate::loops;

/// Runs a kernel whose one parameter is a buffer `o` of i32; what it holds then.
fn run_on(grid: u32, text: &str, o: &[i32]) -> Result<Vec<i32>, Trap> {
    let kernel = parse::parse(text).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    assert_eq!(verify::verify(&kernel), Vec::<String>::new(), "{text}");
    let mut memory = VecMemory::new();
    let at = memory.add("o", o.iter().flat_map(|x| x.to_le_bytes()).collect());
    let launch = Launch::new([grid, 1, 1], vec![at]);
    eval::run(&kernel, &loops::ir::Kernel::default(), &launch, &mut memory, &mut Silent)?;
    let bytes = memory.bytes(at).unwrap();
    Ok(bytes.chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect())
}

fn run(body: &str, o: &[i32]) -> Vec<i32> {
    let text = format!("kernel k(o: ptr<i32>) scratch 64 {{\n  slot s: i32[16] at 0\n{body}\n}}\n");
    run_on(1, &text, o).unwrap_or_else(|t| panic!("{}\n{text}", t.message))
}

/// A kernel that was read has what it says and what it keeps in global memory, without what it was made of.
#[test]
fn a_kernel_is_whole() {
    let text = "\
kernel k() scratch 8 {
  slot s: i32[2] at 0
  global @count: i32[2] align 4 = [5, -7]
  count: ptr<i32> = global @count
  old: i32 = rmw add count[1], 1:i32 relaxed
  a: i32 = load count[0]
  store s[0] = a
  store s[1] = old
  print \"%d%% of %d\\n\", old, s[2] site 0
  c: i1 = test bx < 1
  assert c, \"only one \\\"block\\\"\" site 0
}
";
    let kernel = parse::parse(text).unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!(verify::verify(&kernel), Vec::<String>::new());
    assert_eq!(crate::kernel::print::print(&kernel), text);
    let (mut memory, mut host) = (VecMemory::new(), Heard(String::new()));
    let launch = Launch::new([2, 1, 1], vec![]);
    let trap = eval::run(&kernel, &loops::ir::Kernel::default(), &launch, &mut memory, &mut host).unwrap_err();
    assert_eq!(host.0, "-7% of [5, -7]\n-6% of [5, -6]\n");
    assert_eq!(trap.message, "only one \"block\"");
    for (from, to, wrong) in [
        ("global @count\n", "global @cuont\n", "there is no global `@cuont`"),
        ("= [5, -7]", "= [5]", "the number of values given is 1"),
        ("\"%d%% of %d\\n\"", "%d", "expected a string in quotes, found `%`"),
        ("\"%d%% of %d\\n\"", "\"%d", "expected a string in quotes, found"),
    ] {
        let said = parse::parse(&text.replace(from, to)).expect_err(to).message;
        assert!(said.contains(wrong), "{said}");
    }
    let more = parse::parse(&text.replace("s[2] site", "s[3] site")).unwrap();
    let breach = verify::verify(&more).join(", ");
    assert!(breach.starts_with("a print shows more elements than its slot has"), "{breach}");
}

#[test]
fn vectors() {
    let squares = "x: i32x4 = load o[0]\n y: i32x4 = muli x, x\n store o[0] = y";
    assert_eq!(run(squares, &[1, -2, 3, 4]), [1, 4, 9, 16]);
    let scaled =
        "x: i32x4 = load o[0]\n t: i32 = copy 3:i32\n v: i32x4 = splat t\n y: i32x4 = muli x, v\n store o[0] = y";
    assert_eq!(run(scaled, &[1, 2, 3, 4]), [3, 6, 9, 12]);
    assert_eq!(run("r: i32x4 = ramp 5 step -2\n store o[0] = r", &[0; 4]), [5, 3, 1, -1]);
    let folded = "x: i32x4 = load o[0]\n y: i32 = reduce subi x\n store o[0] = y";
    // (1 - 3) - (2 - 5): halves first.
    assert_eq!(run(folded, &[1, 2, 3, 5]), [1, 2, 3, 5]);
    assert_eq!(run(folded, &[9, 2, 3, 5]), [9, 2, 3, 5]);
    assert_eq!(run(folded, &[9, 2, 3, 7]), [11, 2, 3, 7]);
}

#[test]
fn lanes() {
    let moved = "x: i32x4 = load o[0]\n a: i32 = lane x[1 + 2]\n lane x[0] = a\n store o[0] = x";
    assert_eq!(run(moved, &[1, 2, 3, 4]), [4, 2, 3, 4]);
    let merged = |half: &str, width: u32| {
        let text = format!(
            "a: i32x4 = load o[0]\n b: i32x4 = load o[4]\n m: i32x4 = merge {half} {width} a, b\n store o[0] = m"
        );
        run(&text, &[0, 1, 2, 3, 10, 11, 12, 13])[..4].to_vec()
    };
    assert_eq!(merged("low", 1), [0, 10, 2, 12]);
    assert_eq!(merged("high", 1), [1, 11, 3, 13]);
    assert_eq!(merged("low", 2), [0, 1, 10, 11]);
    assert_eq!(merged("high", 2), [2, 3, 12, 13]);
    let all = "x: i32x4 = load o[0]\n c: i1x4 = cmpi.lt x, 5:i32\n b: i1 = all c\n n: i32 = select b, 1:i32, 0:i32\n store o[0] = n";
    let all = all.replace("cmpi.lt", crate::num::spell::spell(LESS, crate::num::spell::Class::Any).as_ref());
    assert_eq!(run(&all, &[1, 2, 3, 4])[0], 1);
    assert_eq!(run(&all, &[1, 2, 9, 4])[0], 0);
}

const LESS: crate::num::ScalarOp =
    crate::num::ScalarOp::CmpI { pred: crate::num::op::Predicate::LessThan, sign: crate::num::op::Signedness::Signed };

#[test]
fn loops_and_branches() {
    let counted = "var n: i32 = 0:i32\n for i in 0..10 step 3 {\n if i == 6 {\n continue\n }\n m: i32 = addi n, 1:i32\n n = m\n }\n store o[0] = n";
    assert_eq!(run(counted, &[0]), [3]);
    let endless = "var n: i32 = 0:i32\n loop {\n m: i32 = addi n, 2:i32\n n = m\n if n > 6 {\n break\n } else {\n poll\n }\n }\n store o[0] = n";
    assert_eq!(run(endless, &[0]), [8]);
    assert_eq!(run("for i in 3..3 step 1 {\n store o[0] = 9:i32\n }", &[7]), [7]);
    assert_eq!(run("store o[0] = 1:i32\n return\n store o[0] = 2:i32", &[7]), [1]);
}

#[test]
fn memory() {
    let slot = "store s[3] = 5:i32\n x: i32 = load s[3]\n y: i32 = load s[4] where x > 5 else 8:i32\n store o[0] = x\n store o[1] = y where x < 0";
    assert_eq!(run(slot, &[0, 0]), [5, 0]);
    let unwritten = i32::from_le_bytes([eval::POISON; 4]);
    assert_eq!(run("x: i32 = load s[2]\n store o[0] = x", &[0]), [unwritten]);
    let atomic = "a: i32 = rmw add o[0], 4:i32\n b: i32 = rmw max o[1], 4:i32 where a > 100\n c: i32 = cas o[2], 3:i32, 9:i32\n \
                  d: i32 = cas o[3], 3:i32, 9:i32\n store o[4] = a\n store o[5] = b\n store o[6] = c\n store o[7] = d";
    assert_eq!(run(atomic, &[1, 1, 3, 4, 7, 7, 7, 7]), [5, 1, 9, 4, 1, 0, 3, 4]);
}

#[test]
fn what_is_wrong_is_a_trap() {
    let trap = |body: &str| {
        let text = format!("kernel k(o: ptr<i32>) scratch 8 {{\n  slot s: i32[2] at 0\n{body}\n}}\n");
        run_on(1, &text, &[0; 4]).unwrap_err().code
    };
    assert_eq!(trap("x: i32 = load o[4]"), Code::OutOfBounds);
    assert_eq!(trap("store o[-1] = 1:i32"), Code::OutOfBounds);
    assert_eq!(trap("x: i32x2 = load s[1]"), Code::InvalidIr);
    assert_eq!(trap("x: i32x4 = load o[0]\n y: i32 = lane x[4]"), Code::InvalidIr);
    assert_eq!(trap("for i in 0..4 step 0 {\n }"), Code::StepNotPositive);
    assert_eq!(trap("check write o[3] count 2 param 0 site 0"), Code::OutOfBounds);
}

#[test]
fn blocks_that_wait_take_turns() {
    // Each block waits for the one after it.
    let text = "kernel k(o: ptr<i32>) scratch 0 {\n if bx < gx - 1 {\n loop {\n x: i32 = load o[bx + 1] acquire\n if x != 0 {\n \
                break\n }\n yield site 0\n }\n }\n store o[bx] = 1:i32 release\n}\n";
    assert_eq!(run_on(5, text, &[0; 5]).unwrap(), [1; 5]);
}

const PLACED: &str = "tile kernel talks(x: ptr i32, n: i32):
  local t: i32[2]
  for i in 0..2: free
    v: i32 = load x[i]
    t[i] = v
  print \"%i and %i\\n\", n, t !print
  c: i1 = n < 5
  assert c, \"too many\" !assert
";

struct Heard(String);
impl Host for Heard {
    fn print(&mut self, _: [u32; 3], text: &str) {
        self.0.push_str(text);
    }
    fn interrupted(&self) -> bool {
        false
    }
}

#[test]
fn prints_and_assertions_are_those_of_the_placed_kernel() {
    let (placed, _) = loops::parse::parse(PLACED).unwrap_or_else(|d| panic!("{d:?}"));
    let kernel = legalise::legalise(&placed, &legalise::Options::default()).unwrap();
    let talk = |n: u64| {
        let mut memory = VecMemory::new();
        let at = memory.add("x", [7i32, -8].iter().flat_map(|x| x.to_le_bytes()).collect());
        let mut heard = Heard(String::new());
        let done = eval::run(&kernel, &placed, &Launch::new([1, 1, 1], vec![at, n]), &mut memory, &mut heard);
        (done.map_err(|t| (t.code, t.message)), heard.0)
    };
    assert_eq!(talk(3), (Ok(()), "3 and [7, -8]\n".to_string()));
    assert_eq!(talk(6), (Err((Code::AssertFailed, "too many".to_string())), "6 and [7, -8]\n".to_string()));
}

#[test]
fn scratch_fits_the_budget_or_is_refused() {
    let kernel = parse::parse("kernel k() scratch 1048576 {\n}\n").unwrap();
    let placed = loops::ir::Kernel::default();
    let outcome = |limit: u64| {
        let launch = Launch { budget: Budget::of_memory(limit), ..Launch::new([1, 1, 1], vec![]) };
        eval::run(&kernel, &placed, &launch, &mut VecMemory::new(), &mut Silent).map_err(|t| t.code)
    };
    assert_eq!(outcome(1 << 21), Ok(()));
    assert_eq!(outcome(1 << 19), Err(Code::OutOfMemory));
}

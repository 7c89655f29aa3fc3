use super::*;
use crate::graph::ir::SymId;

/// `a`, `b`, .. with these values in the call, each at least 1.
fn call(values: &[i64]) -> Assumptions {
    let mut all = Assumptions::default();
    for (name, value) in ["a", "b", "c", "d"].iter().zip(values) {
        all.dimension(name, 1, None, *value);
    }
    all
}

fn s(at: u32) -> Ix {
    SymId(at).ix()
}

fn num(n: i64) -> Ix {
    Ix::Const(n)
}

fn name(v: ValId) -> Option<String> {
    ["a", "b", "c", "d"].get(v.index()).map(|n| n.to_string())
}

/// The assumptions made; checks that they answer the question for the call.
fn assumed(values: &[i64], question: &Question) -> Vec<String> {
    let before = call(values);
    let Some(after) = before.answer(question, &name) else { return vec!["nothing".into()] };
    let cond = match question {
        Question::Holds(c) | Question::Whether(c) => c.clone(),
        Question::Which(ix) => Cond::new(ix.clone(), Cmp::Eq, num(before.value(ix).unwrap())),
    };
    assert!(after.decide(&after.now(&cond)).is_some(), "{:?} leaves {cond:?} open", after.texts());
    for symbol in &after.symbols {
        let value = symbol.is.as_ref().map_or(Some(symbol.value), |is| after.value(is));
        assert_eq!(value, Some(symbol.value), "{symbol:?}");
        let least = symbol.hi.is_none_or(|hi| symbol.value <= hi) && symbol.lo <= symbol.value;
        assert!(least, "{symbol:?}");
    }
    after.texts()
}

fn equal(a: Ix, b: Ix) -> Question {
    Question::Holds(Cond::new(a, Cmp::Eq, b))
}

#[test]
fn equal_extents_become_one() {
    assert_eq!(assumed(&[5, 5], &equal(s(0), s(1))), ["b = a"]);
    assert_eq!(assumed(&[5, 6], &equal(s(0), s(1))), ["nothing"]);
    assert_eq!(assumed(&[64, 6], &equal(s(0), num(64))), ["a = 64"]);
    // The sum that an attention mask is as long as.
    assert_eq!(assumed(&[3, 4, 7], &equal(s(2), Ix::add(s(0), s(1)))), ["c = a + b"]);
    assert_eq!(assumed(&[3, 6], &equal(Ix::mul(s(0), num(2)), s(1))), ["b = a*2"]);
    // Elements of tensors: a common factor is not part of the assumption.
    let rows = |r: Ix| Ix::mul(Ix::mul(r, s(2)), num(768));
    assert_eq!(assumed(&[5, 5, 9], &equal(rows(s(0)), rows(s(1)))), ["b = a"]);
}

#[test]
fn divisions_are_whole() {
    let whole = |x: Ix, d: i64| equal(Ix::mul(Ix::floor_div(x.clone(), num(d)), num(d)), x);
    assert_eq!(assumed(&[48], &whole(s(0), 16)), ["a is a multiple of 16"]);
    assert_eq!(assumed(&[40], &whole(s(0), 16)), ["nothing"]);
    // One factor that is a multiple makes the product a multiple.
    assert_eq!(assumed(&[3, 32], &whole(Ix::mul(s(0), s(1)), 16)), ["b is a multiple of 16"]);
    // Two of three times four are a multiple of 16: nothing is but for these.
    let found = assumed(&[4, 12], &whole(Ix::mul(s(0), s(1)), 16));
    assert_ne!(found, ["nothing"]);
    assert_eq!(assumed(&[8], &whole(Ix::mul(s(0), num(6)), 16)), ["a is a multiple of 8"]);
}

#[test]
fn roundings_agree_for_a_remainder() {
    // (a - 1)//16 + 1 = (a - 1)//32*2 + 2
    let less = Ix::sub(s(0), num(1));
    let fine = Ix::add(Ix::floor_div(less.clone(), num(16)), num(1));
    let coarse = Ix::add(Ix::mul(Ix::floor_div(less, num(32)), num(2)), num(2));
    assert_eq!(assumed(&[64], &equal(fine.clone(), coarse.clone())), ["a is a multiple of 32"]);
    assert_eq!(assumed(&[60], &equal(fine.clone(), coarse.clone())), ["a is 28 more than a multiple of 32"]);
    assert_eq!(assumed(&[34], &equal(fine, coarse)), ["nothing"]);
}

#[test]
fn the_less_of_two_is_known() {
    let least = Ix::min(s(0), num(512));
    assert_eq!(assumed(&[40], &equal(least.clone(), s(0))), ["a is at most 512"]);
    assert_eq!(assumed(&[600], &equal(least, num(512))), ["a is at least 512"]);
    let shorter = Question::Whether(Cond::new(s(0), Cmp::Lt, s(1)));
    assert_eq!(assumed(&[3, 7], &shorter), ["b is at least a + 1"]);
    assert_eq!(assumed(&[7, 3], &shorter), ["a is at least b"]);
    assert_eq!(assumed(&[7], &Question::Whether(Cond::new(s(0), Cmp::Eq, num(1)))), ["a is at least 2"]);
    let long = Question::Holds(Cond::new(num(100), Cmp::Ge, Ix::mul(s(0), num(3))));
    assert_eq!(assumed(&[7], &long), ["a is at most 33"]);
}

#[test]
fn numbers_are_known() {
    assert_eq!(assumed(&[7], &Question::Which(s(0))), ["a = 7"]);
    assert_eq!(assumed(&[7, 4], &Question::Which(Ix::sub(s(1), s(0)))), ["a = b + 3"]);
    assert_eq!(assumed(&[4, 7], &Question::Which(Ix::sub(s(1), s(0)))), ["b = a + 3"]);
    assert_eq!(assumed(&[7], &Question::Which(s(1))), ["nothing"]);
}

#[test]
fn assumptions_follow_from_one_another() {
    let first = call(&[48, 48]).answer(&equal(s(0), s(1)), &name).unwrap();
    let whole = equal(Ix::mul(Ix::floor_div(s(0), num(16)), num(16)), s(0));
    let second = first.answer(&whole, &name).unwrap();
    assert_eq!(second.texts(), ["a is a multiple of 16", "b = a"]);
    assert_eq!(second.resolved(&Ix::sub(s(1), s(0))), num(0));
}

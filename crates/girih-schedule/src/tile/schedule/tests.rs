use super::*;

fn parse(text: &str) -> Result<Schedule, String> {
    Schedule::parse("s.txt", text).map_err(|all| all.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; "))
}

#[test]
fn what_is_no_schedule_is_refused_with_a_reason() {
    let head = "schedule 1 for cpu\n";
    for (text, why) in [
        (String::new(), "expected `schedule 1 for TARGET`, found nothing"),
        ("hello".into(), "expected `schedule 1 for TARGET`, found `hello`"),
        ("schedule 0 for cpu".into(), "the schedule is of version 0; this build reads version 1"),
        ("schedule 1 for cpu with kq=3".into(), "unknown knob `kq`"),
        (format!("{head}  unroll c"), "expected `model` or `kernel NAME` before the first step"),
        (format!("{head}kernel k\n  unrol c"), "unknown primitive `unrol`; did you mean `unroll`?"),
        (format!("{head}kernel k\n  policy tilify"), "unknown policy `tilify`; did you mean `tileify`?"),
        (format!("{head}kernel k\nkernel k"), "there is a section of the kernel `k` already"),
        (format!("{head}kernel k\n  split i j by 3 -> a, b"), "expected a comma or `by` in `i j`"),
        (format!("{head}{}", "#".repeat(LONGEST)), "a schedule has at most"),
    ] {
        let said = parse(&text).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_schedule_is_for_one_target_and_its_kernels() {
    let schedule = parse("schedule 1 for sm_90a\nkernel k_one\n  unroll c  # why\n").unwrap();
    let sm90 = Target::named("sm_90a").unwrap();
    assert!(schedule.check(&sm90, ["k_one"].into_iter()).is_ok());
    let say = |target: &Target, kernel: &'static str| {
        schedule.check(target, [kernel].into_iter()).unwrap_err()[0].message.clone()
    };
    assert_eq!(say(&Target::cpu(), "k_one"), "the schedule is for sm_90a, and the target is cpu");
    assert!(say(&sm90, "k_two").starts_with("unknown kernel `k_one`; "));
    assert_eq!(schedule.of("k_one").map(<[Entry]>::len), Some(1));
}

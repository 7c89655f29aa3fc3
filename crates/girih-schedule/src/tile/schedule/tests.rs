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

/// The lines of a schedule after changes, one after the other.
fn after(text: &str, changes: &[(&str, i64)]) -> Result<Vec<String>, String> {
    let changes = changes.iter().map(|(site, value)| Ok((site.parse()?, *value))).collect::<Result<_, String>>()?;
    let changed = parse(text)?.changed(&changes)?;
    parse(&changed)?;
    Ok(changed.lines().map(|l| l.trim().to_string()).filter(|l| !l.is_empty()).collect())
}

const TWO: &str = "schedule 1 for sm_90a with kc=64

model
  policy split_matmul_k

kernel one
  reorder i, j, k  # why
  split k by 8 guard -> kt, kk
  vector j by 8 x 4

kernel two
  unroll c
";

#[test]
fn a_change_replaces_what_stands_at_its_place() {
    let head = "schedule 1 for sm_90a with kc=64";
    let one = |changes: &[(&str, i64)]| after(TWO, changes).unwrap();
    let kernel = |lines: [&str; 3]| [head, "kernel one", lines[0], lines[1], lines[2]].map(String::from).to_vec();
    let (reorder, split, vector) = ("reorder i, j, k", "split k by 8 guard -> kt, kk", "vector j by 8 x 4");
    assert_eq!(one(&[("8.0", 4)]), kernel([reorder, "split k by 4 guard -> kt, kk", vector]));
    assert_eq!(one(&[("9.2", 2)]), kernel([reorder, split, "vector j by 8 x 2"]));
    assert_eq!(one(&[("7.swap.1", 1)]), kernel(["reorder i, k, j", split, vector]));
    assert_eq!(one(&[("8.out", 1)]), [head, "kernel one", reorder, vector]);
    let all = [reorder, "split k by 16 guard -> kt, kk", "vector j by 16 x 4"];
    assert_eq!(one(&[("6.all.8", 16)]), kernel(all));
    // The number of one place wins.
    assert_eq!(one(&[("6.all.8", 16), ("9.0", 2)])[4], "vector j by 2 x 4");
    // Only what changes is there.
    assert_eq!(one(&[("12.out", 1)]), [head, "kernel two"]);
    assert_eq!(one(&[("4.out", 1)]), [head, "model"]);
    for (site, why) in [("1.0", "no place `1.0`"), ("7.0", "no place"), ("8.1", "no place"), ("6.all.7", "no place")] {
        assert!(after(TWO, &[(site, 3)]).unwrap_err().contains(why));
    }
    for site in ["", "8", "8.x", "8.in", "x.0", "8.0.0", "6.all.x", "7.swap", "4294967296.0"] {
        assert!(site.parse::<changes::Site>().is_err(), "{site}");
    }
}

#[test]
fn every_place_can_be_changed_alone() {
    let schedule = parse(TWO).unwrap();
    let sites = schedule.sites();
    // Three of numbers, one of a number that stands twice, two of the order, and one for each line.
    assert_eq!(sites.len(), 3 + 1 + 2 + 5);
    for (site, values) in sites {
        assert_eq!(site.to_string().parse(), Ok(site));
        for value in values {
            let changes = changes::Changes::from([(site, value)]);
            assert_ne!(schedule.differences(&changes), vec![], "{site}={value}");
            parse(&schedule.changed(&changes).unwrap()).unwrap();
        }
    }
}

#[test]
fn a_kept_schedule_is_refused_for_nothing() {
    let kept = parse("schedule 1 for sm_90a\nkernel k_one\n  unroll c\n").unwrap().kept();
    assert!(kept.check(&Target::cpu(), ["k_two"].into_iter()).is_ok());
    let refused = |code| kept.refused(vec![Diagnostic::error(code, "no")]);
    assert!(refused(Code::BadSchedule).is_ok() && refused(Code::CannotLower).is_err());
}

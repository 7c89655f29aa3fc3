use super::*;
use girih_compiler::loops::model::Step;

/// Workers make the updates of rows of their own, the last one of fewer: with a copy of the table and where it lies.
#[test]
fn workers_have_rows_of_their_own() {
    // Rows, columns, updates, workers.
    for (rows, columns, updates, workers) in [(1024, 512, 40, 8), (1000, 130, 9, 2), (7, 256, 20, 4), (5, 127, 8, 1)] {
        for (op, in_place) in [(ScatterOp::Add, false), (ScatterOp::Max, false), (ScatterOp::Set, true)] {
            let mut case = Case::new();
            let x = case.input("x", &[rows, columns], Role::Argument);
            let at = case.input("at", &[updates, 1], Role::Argument);
            let u = case.input("u", &[updates, columns], Role::Argument);
            let coords = vec![Coord::Arg(1), Coord::Ix(axis(1))];
            let y = case.build("aten.index_add", |b| {
                let at = b.convert(at, Elem::I64)?;
                b.scatter(x, &[at], u, coords, op)
            });
            case.output(y);
            if in_place {
                case.graph.replaced.push((0, 0));
            }
            let (old, new) = (data((rows * columns) as usize, 1), data((updates * columns) as usize, 2));
            let to: Vec<usize> = (0..updates).map(|i| (i * i * 31 % rows) as usize).collect();
            let mut want: Vec<f64> = old.iter().copied().map(f64::from).collect();
            for (i, row) in to.iter().enumerate() {
                for c in 0..columns as usize {
                    let slot = &mut want[row * columns as usize + c];
                    let update = f64::from(new[i * columns as usize + c]);
                    *slot = match op {
                        ScatterOp::Add => *slot + update,
                        ScatterOp::Max => slot.max(update),
                        _ => update,
                    };
                }
            }
            let at: Vec<f32> = to.iter().map(|row| *row as f32).collect();
            close(&case.run(&[], &[old, at, new]).0[0], &want);
            let graph = decompose::decompose(&case.graph, &mut |_| {}).unwrap();
            let plan = lower(&graph, &Options::default(), &mut Log::default()).unwrap();
            let shared =
                |step: &Step| print(&step.kernel, Dialect::Loop).contains(&format!("for own in 0..{workers}: free"));
            assert_eq!(plan.steps.iter().any(shared), workers > 1, "{rows} rows of {columns}");
        }
    }
}

/// An index that a reduction computes for whole rows has an array of its own shape.
#[test]
fn an_index_is_stored_as_it_is_computed() {
    let (rows, columns, updates) = (6, 130, 9);
    let mut case = Case::new();
    let x = case.input("x", &[rows, columns], Role::Argument);
    let scores = case.input("scores", &[updates, rows], Role::Argument);
    let u = case.input("u", &[updates, columns], Role::Argument);
    let coords = vec![Coord::Arg(1), Coord::Ix(axis(1))];
    let y = case.build("aten.index_add", |b| {
        let at = b.reduce(ReduceOp::ArgMax { last: false }, scores, &[1], true)?;
        b.scatter(x, &[at], u, coords, ScatterOp::Add)
    });
    case.output(y);
    let n = |n: i64| n as usize;
    let inputs = [data(n(rows * columns), 1), data(n(updates * rows), 2), data(n(updates * columns), 3)];
    let mut want: Vec<f64> = inputs[0].iter().copied().map(f64::from).collect();
    for (i, scores) in inputs[1].chunks(n(rows)).enumerate() {
        let row = (0..n(rows)).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
        for c in 0..n(columns) {
            want[row * n(columns) + c] += f64::from(inputs[2][i * n(columns) + c]);
        }
    }
    close(&case.run(&[], &inputs).0[0], &want);
    let graph = decompose::decompose(&case.graph, &mut |_| {}).unwrap();
    let plan = lower(&graph, &Options::default(), &mut Log::default()).unwrap();
    let stored: Vec<_> =
        plan.arrays.values().filter(|a| a.place == ArrayPlace::Temp).map(|a| a.shape.clone()).collect();
    assert!(stored.contains(&vec![Ix::Const(updates), Ix::Const(1)]), "{stored:?}");
}

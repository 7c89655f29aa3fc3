//! Reductions and scans, whose bodies are regions.

use super::*;

/// The arguments of a body in TTIR are the accumulators and then the elements; in Tile IR element and accumulator of each
/// operand in turn. No identity is needed: a fold starts from the first element.
pub fn fold(c: &mut Conv, op: &Op, opcode: Opcode) -> Res<()> {
    let args = c.args(op)?;
    let Some(dim) = op.int("axis").filter(|d| *d >= 0) else {
        return c.error(op, Code::BadAttribute, format!("`{}` does not say its axis", op.row.name));
    };
    let [ast::Region { blocks }] = &op.regions[..] else {
        return c.error(op, Code::OperandCount, format!("`{}` has one region", op.row.name));
    };
    let [block] = &blocks[..] else {
        return c.refuse(op, format!("the function of `{}` branches", op.row.name));
    };
    if block.args.len() != 2 * args.len() || args.is_empty() {
        return c.error(
            op,
            Code::OperandCount,
            format!("the function of `{}` takes another number of values", op.row.name),
        );
    }
    if opcode == Opcode::Reduce && block.ops.len() > 2 && c.lifts(&block.ops) {
        return by_pairs(c, op, block, args, dim as usize);
    }
    let mut identities = vec![];
    for &v in &args {
        identities.push((c.dtype(op, v)?, 0));
    }
    let mut attrs = vec![(AttrKey::Dim, Attr::Int(dim))];
    if opcode == Opcode::Scan {
        attrs.push((AttrKey::Reverse, Attr::Bool(op.int("reverse").unwrap_or(0) != 0)));
    }
    attrs.push((AttrKey::Identities, Attr::Identities(identities)));
    let results: Vec<Type> = (0..args.len()).map(|i| c.gives(op, i).map(Type::Tile)).collect::<Res<_>>()?;
    let id = c.open(opcode, &[&args], attrs);
    let region = c.func.regions.push(Region::default());
    for i in 0..args.len() {
        for (name, at) in [("x", i + args.len()), ("acc", i)] {
            let v = block.args[at];
            let ty = tile(&c.module.values[v].ty, op.span, &op.loc)?;
            let made = c.argument(region, Type::Tile(ty), Some(name.into()), op.span);
            c.values[v.index()] = Some(made);
        }
    }
    let outer = std::mem::replace(&mut c.region, region);
    let order = c.order.clone();
    let Some((last, body)) = block.ops.split_last() else {
        return c.error(op, Code::BadTerminator, format!("the function of `{}` is empty", op.row.name));
    };
    for inner in body {
        c.op(inner)?;
    }
    if !matches!(last.row.name, "tt.reduce.return" | "tt.scan.return") {
        return c.error(
            last,
            Code::BadTerminator,
            format!("the function of `{}` does not end in a return", op.row.name),
        );
    }
    let given = c.args(last)?;
    c.at(op);
    c.emit(Opcode::Yield, &[&given], vec![], vec![]);
    c.region = outer;
    c.order = order;
    let made = c.close(id, vec![region], results);
    for (i, v) in made.into_iter().enumerate() {
        c.bind(op, i, v)?;
    }
    Ok(())
}

/// A reduction with a function that is no single operation: of neighbours, element by element, until one is left. Nothing
/// changes places, so the function need not commute; where it is not associative, as in an argmax of a line with a NaN, the order
/// is the same whatever the machine.
fn by_pairs(c: &mut Conv, op: &Op, block: &ast::Block, args: Vec<ValueId>, dim: usize) -> Res<()> {
    let mut parts = args;
    let Some((last, body)) = block.ops.split_last() else { return Ok(()) };
    let rank = c.tile_ty(parts[0]).shape.len();
    if dim >= rank || parts.iter().any(|&v| c.tile_ty(v).shape != c.tile_ty(parts[0]).shape) {
        return c.error(op, Code::BadShape, format!("the operands of `{}` do not fit its axis", op.row.name));
    }
    let mut n = c.tile_ty(parts[0]).shape[dim];
    while n > 1 {
        n /= 2;
        for (i, &part) in parts.iter().enumerate() {
            for (at, arg) in [block.args[i], block.args[i + parts.len()]].into_iter().enumerate() {
                let half = c.neighbours(part, dim, at);
                c.values[arg.index()] = Some(half);
            }
        }
        let shape = {
            let mut shape = c.tile_ty(parts[0]).shape.clone();
            shape[dim] = n;
            shape
        };
        for inner in body {
            c.lifted(inner, &shape)?;
        }
        let given = c.args(last)?;
        if given.len() != parts.len() {
            return c.error(last, Code::OperandCount, "the function returns another number of values");
        }
        c.at(op);
        parts = given.into_iter().map(|v| c.spread(v, &shape)).collect();
    }
    for (i, &part) in parts.iter().enumerate() {
        let mut shape = c.tile_ty(part).shape.clone();
        shape.remove(dim);
        let v = c.reshaped(part, &shape);
        c.bind(op, i, v)?;
    }
    Ok(())
}

/// A function applied to each element: its operations on whole tiles.
pub fn map(c: &mut Conv, op: &Op) -> Res<()> {
    let args = c.args(op)?;
    let pack = op.int("pack").unwrap_or(1);
    let ([ast::Region { blocks }], 1) = (&op.regions[..], pack) else {
        return c.refuse(op, "`tt.map_elementwise` of several elements at a time is not supported");
    };
    let [block] = &blocks[..] else {
        return c.refuse(op, "`tt.map_elementwise` of a function that branches is not supported; use `tl.where`");
    };
    let (Some((last, body)), true) = (block.ops.split_last(), block.args.len() == args.len() && !args.is_empty())
    else {
        return c.error(op, Code::OperandCount, "the function of `tt.map_elementwise` takes another number of values");
    };
    let shape = c.tile_ty(args[0]).shape.clone();
    for (&v, &arg) in block.args.iter().zip(&args) {
        c.values[v.index()] = Some(arg);
    }
    for inner in body {
        c.lifted(inner, &shape)?;
    }
    let given = c.args(last)?;
    for (i, v) in given.into_iter().enumerate() {
        let v = c.spread(v, &shape);
        c.bind(op, i, v)?;
    }
    Ok(())
}

impl Conv<'_> {
    /// A reduction along a dimension with one operation.
    pub fn folded(&mut self, opcode: Opcode, v: ValueId, dim: usize) -> ValueId {
        let mut ty = self.tile_ty(v).clone();
        ty.shape.remove(dim);
        let scalar = Type::Tile(TileType::of(vec![], ty.elem));
        let identity = (ty.num().unwrap_or(DType::I1), 0);
        let attrs =
            vec![(AttrKey::Dim, Attr::Int(dim as i64)), (AttrKey::Identities, Attr::Identities(vec![identity]))];
        let id = self.open(Opcode::Reduce, &[&[v]], attrs);
        let region = self.func.regions.push(Region::default());
        let args = ["x", "acc"].map(|name| self.argument(region, scalar.clone(), Some(name.into()), self.span));
        let outer = std::mem::replace(&mut self.region, region);
        let both = self.same(opcode, &args);
        self.emit(Opcode::Yield, &[&[both]], vec![], vec![]);
        self.region = outer;
        self.close(id, vec![region], vec![Type::Tile(ty)])[0]
    }

    /// The first or the second of each two neighbours along a dimension.
    fn neighbours(&mut self, v: ValueId, dim: usize, at: usize) -> ValueId {
        let ty = self.tile_ty(v).clone();
        let mut half = ty.shape.clone();
        half[dim] /= 2;
        let mut pairs = half.clone();
        pairs.insert(dim + 1, 2);
        let v = self.reshaped(v, &pairs);
        let zero = self.fill(&[], DType::I32, 0);
        let mut index = vec![zero; pairs.len()];
        index[dim + 1] = self.fill(&[], DType::I32, at as u64);
        pairs[dim + 1] = 1;
        let v = self.tile(Opcode::Extract, &[&[v], &index], vec![], TileType { shape: pairs, ..ty });
        self.reshaped(v, &half)
    }

    /// Whether operations on scalars have counterparts on tiles.
    fn lifts(&self, ops: &[Op]) -> bool {
        ops.iter().rev().skip(1).all(is_elementwise)
    }

    /// An operation on scalars, on tiles of a shape instead.
    fn lifted(&mut self, op: &Op, shape: &[u64]) -> Res<()> {
        if !is_elementwise(op) {
            let text = format!("`{}` in the function of `tt.map_elementwise` is not supported", op.row.name);
            return self.refuse_with(op, text, "write the function of whole tiles, with `tl.where` for conditions");
        }
        if op.row.name == "arith.constant" {
            return self.op(op);
        }
        let mut before = vec![];
        self.at(op);
        for &v in &op.operands {
            let scalar = self.value(op, v)?;
            before.push((v, scalar));
            let wide = self.spread(scalar, shape);
            self.values[v.index()] = Some(wide);
        }
        self.shape_of_scalars = Some(shape.to_vec());
        let done = self.op(op);
        self.shape_of_scalars = None;
        // A scalar from outside of the function stays one there.
        for (v, scalar) in before.into_iter().rev() {
            self.values[v.index()] = Some(scalar);
        }
        done
    }
}

/// Whether an operation works on each element alone.
fn is_elementwise(op: &Op) -> bool {
    let named = ["arith.", "math."].iter().any(|p| op.row.name.starts_with(p))
        || matches!(op.row.name, "tt.bitcast" | "tt.fp_to_fp" | "tt.clampf" | "tt.mulhiui" | "tt.extern_elementwise");
    named && op.regions.is_empty()
}

//! Reductions and scans, whose bodies are regions.

use super::*;

/// The arguments of a body in TTIR are the accumulators and then the elements; in Tile IR element and accumulator of each
/// operand in turn. No identity is needed: a fold starts from the first element.
pub fn fold(c: &mut Conv, op: &Op, opcode: Opcode) -> Res<()> {
    let args = c.args(op)?;
    let Some(dim) = op.int("axis").filter(|d| *d >= 0) else {
        return c.error(op, Code::BadAttribute, format!("`{}` does not say its axis", op.row.name));
    };
    let [body @ ast::Region { blocks }] = &op.regions[..] else {
        return c.error(op, Code::OperandCount, format!("`{}` has one region", op.row.name));
    };
    let Some(block) = blocks.first() else {
        return c.error(op, Code::BadTerminator, format!("the function of `{}` is empty", op.row.name));
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
    if let Some(by) = half_sum(c, op, body, &args)? {
        let narrow = c.dtype(op, args[0])?;
        let wide = c.float_of(args[0], DType::F32);
        let v = c.folded_by(opcode, by, wide, dim as usize, op.int("reverse").unwrap_or(0) != 0);
        let v = c.float_of(v, narrow);
        return c.bind(op, 0, v);
    }
    if !is_plain(body) {
        return one_by_one(c, op, body, &args, dim as usize, opcode);
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

/// The operation of a sum or a product of 16-bit floats, which is made in f32 and rounded once: a GPU rounds after each step, in an
/// order that depends on its threads.
fn half_sum(c: &Conv, op: &Op, body: &ast::Region, args: &[ValueId]) -> Res<Option<Opcode>> {
    let ([block], [v]) = (&body.blocks[..], args) else { return Ok(None) };
    let [sum, end] = &block.ops[..] else { return Ok(None) };
    let by = match sum.row.name {
        "arith.addf" => Opcode::AddF,
        "arith.mulf" => Opcode::MulF,
        _ => return Ok(None),
    };
    let both = sum.operands == block.args || sum.operands.iter().rev().eq(&block.args);
    let half = both && end.operands == sum.results && matches!(c.dtype(op, *v)?, DType::F16 | DType::BF16);
    Ok(half.then_some(by))
}

/// A reduction whose function is more than one operation: it combines neighbours, element by element, until one element is left.
/// The order of elements is kept, so the function need not commute; if it is not associative, as in an argmax of a line with a
/// NaN, elements are still combined in the same order on every machine.
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

/// A function that branches, or does more than compute, folds one element after another, through memory of the block.
fn one_by_one(c: &mut Conv, op: &Op, body: &ast::Region, args: &[ValueId], dim: usize, opcode: Opcode) -> Res<()> {
    let shape = c.tile_ty(args[0]).shape.clone();
    if dim >= shape.len() || args.iter().any(|&v| c.tile_ty(v).shape != shape) || op.results.len() != args.len() {
        return c.error(op, Code::BadShape, format!("the operands of `{}` do not fit its axis", op.row.name));
    }
    let params = body.blocks.first().map(|b| b.args.clone()).unwrap_or_default();
    let types: Vec<Type> = args.iter().map(|&v| Type::Tile(TileType::of(vec![], c.tile_ty(v).elem))).collect();
    let memories = args.iter().map(|&v| Memory::of(c, v)).collect::<Vec<_>>();
    let results: Vec<TileType> = (0..args.len()).map(|i| c.gives(op, i)).collect::<Res<_>>()?;
    let folded: Vec<Memory> = results.iter().map(|ty| Memory::new(c, ty.elem, ty.elements())).collect();
    let (n, inner) = (shape[dim], shape[dim + 1..].iter().product::<u64>());
    let reverse = op.int("reverse").unwrap_or(0) != 0;
    let unsigned = || vec![(AttrKey::Signedness, Attr::Signedness(Signedness::Unsigned))];
    c.rounds(shape.iter().product::<u64>() / n, vec![], |c, line, _| {
        // The first element of a line, and how far the next one is.
        let width = c.fill(&[], DType::I32, inner);
        let length = c.fill(&[], DType::I32, n * inner);
        let row = c.same_with(Opcode::DivI, &[line, width], unsigned());
        let column = c.same_with(Opcode::RemI, &[line, width], unsigned());
        let row = c.same(Opcode::MulI, &[row, length]);
        let mut first = c.same(Opcode::AddI, &[row, column]);
        let mut step = width;
        if reverse {
            let back = c.fill(&[], DType::I32, (n - 1) * inner);
            first = c.same(Opcode::AddI, &[first, back]);
            step = c.fill(&[], DType::I32, inner.wrapping_neg());
        }
        let start: Vec<ValueId> = memories.iter().map(|m| m.get(c, first)).collect();
        if opcode == Opcode::Scan {
            folded.iter().zip(&start).for_each(|(m, &v)| m.put(c, first, v));
        }
        let sums = c.rounds(n - 1, start, |c, round, sums| {
            let one = c.fill(&[], DType::I32, 1);
            let next = c.same(Opcode::AddI, &[round, one]);
            let next = c.same(Opcode::MulI, &[next, step]);
            let at = c.same(Opcode::AddI, &[first, next]);
            let elements: Vec<ValueId> = memories.iter().map(|m| m.get(c, at)).collect();
            let sums = c.applied(body, &params, &[sums, &elements].concat(), types.clone())?;
            c.at(op);
            if opcode == Opcode::Scan {
                folded.iter().zip(&sums).for_each(|(m, &v)| m.put(c, at, v));
            }
            Ok(sums)
        })?;
        if opcode == Opcode::Reduce {
            folded.iter().zip(&sums).for_each(|(m, &v)| m.put(c, line, v));
        }
        Ok(vec![])
    })?;
    for (i, (memory, ty)) in folded.iter().zip(&results).enumerate() {
        let v = memory.all(c, &ty.shape);
        c.bind(op, i, v)?;
    }
    Ok(())
}

/// A function applied to each element: its operations on whole tiles, where all of them work on each element alone.
pub fn map(c: &mut Conv, op: &Op) -> Res<()> {
    let args = c.args(op)?;
    let pack = op.int("pack").and_then(|n| u64::try_from(n).ok()).unwrap_or(1);
    let [body @ ast::Region { blocks }] = &op.regions[..] else {
        return c.error(op, Code::OperandCount, "`tt.map_elementwise` has one region");
    };
    let params = blocks.first().map(|b| b.args.clone()).unwrap_or_default();
    let shape = args.first().map(|&v| c.tile_ty(v).shape.clone()).unwrap_or_default();
    let n: u64 = shape.iter().product();
    let fits = pack > 0 && n.is_multiple_of(pack) && params.len() as u64 == args.len() as u64 * pack;
    if !fits || args.is_empty() || args.iter().any(|&v| c.tile_ty(v).shape != shape) {
        return c.error(op, Code::OperandCount, "the function of `tt.map_elementwise` takes another number of values");
    }
    match &blocks[..] {
        [block] if pack == 1 && c.lifts(&block.ops) => map_tiles(c, op, block, &args, &shape),
        _ => map_elements(c, op, body, &args, &params, pack),
    }
}

fn map_tiles(c: &mut Conv, op: &Op, block: &ast::Block, args: &[ValueId], shape: &[u64]) -> Res<()> {
    let Some((last, body)) = block.ops.split_last() else {
        return c.error(op, Code::BadTerminator, "the function of `tt.map_elementwise` is empty");
    };
    for (&v, &arg) in block.args.iter().zip(args) {
        c.values[v.index()] = Some(arg);
    }
    for inner in body {
        c.lifted(inner, shape)?;
    }
    let given = c.args(last)?;
    for (i, v) in given.into_iter().enumerate() {
        let v = c.spread(v, shape);
        c.bind(op, i, v)?;
    }
    Ok(())
}

/// Some elements after the others, through memory of the block. The function's values are the first tile's elements, then the second's.
fn map_elements(c: &mut Conv, op: &Op, body: &ast::Region, args: &[ValueId], params: &[V], pack: u64) -> Res<()> {
    let results: Vec<TileType> = (0..op.results.len()).map(|i| c.gives(op, i)).collect::<Res<_>>()?;
    let memories = args.iter().map(|&v| Memory::of(c, v)).collect::<Vec<_>>();
    let made: Vec<Memory> = results.iter().map(|ty| Memory::new(c, ty.elem, ty.elements())).collect();
    let each = |ty: &TileType| vec![Type::Tile(TileType::of(vec![], ty.elem)); pack as usize];
    let types: Vec<Type> = results.iter().flat_map(each).collect();
    let n = c.tile_ty(args[0]).elements();
    c.rounds(n / pack, vec![], |c, round, _| {
        let width = c.fill(&[], DType::I32, pack);
        let first = c.same(Opcode::MulI, &[round, width]);
        let mut at = vec![];
        for i in 0..pack {
            let i = c.fill(&[], DType::I32, i);
            at.push(c.same(Opcode::AddI, &[first, i]));
        }
        let mut elements = vec![];
        for memory in &memories {
            elements.extend(at.iter().map(|&at| memory.get(c, at)));
        }
        let given = c.applied(body, params, &elements, types.clone())?;
        c.at(op);
        for (memory, values) in made.iter().zip(given.chunks(pack as usize)) {
            at.iter().zip(values).for_each(|(&at, &v)| memory.put(c, at, v));
        }
        Ok(vec![])
    })?;
    for (i, (memory, ty)) in made.iter().zip(&results).enumerate() {
        let v = memory.all(c, &ty.shape);
        c.bind(op, i, v)?;
    }
    Ok(())
}

/// Memory of the block that holds a tile's elements, row by row.
struct Memory {
    base: ValueId,
    elem: Elem,
    /// The type in which an element is stored: memory holds no truth values and no addresses.
    stored: DType,
}

impl Memory {
    fn new(c: &mut Conv, elem: Elem, elements: u64) -> Memory {
        let stored = match elem {
            Elem::Num(DType::I1) => DType::I8,
            Elem::Num(d) => d,
            Elem::Ptr(_) => DType::I64,
        };
        Memory { base: c.scratch(stored, elements), elem, stored }
    }

    /// Holds a tile.
    fn of(c: &mut Conv, v: ValueId) -> Memory {
        let ty = c.tile_ty(v).clone();
        let memory = Memory::new(c, ty.elem, ty.elements());
        let all = c.numbers(&ty.shape, &ty.shape, None);
        memory.put(c, all, v);
        memory
    }

    fn put(&self, c: &mut Conv, at: ValueId, v: ValueId) {
        let v = match self.elem {
            Elem::Num(DType::I1) => {
                let unsigned = vec![(AttrKey::Signedness, Attr::Signedness(Signedness::Unsigned))];
                c.converted(Opcode::ExtI, v, self.stored, unsigned)
            }
            Elem::Num(_) => v,
            Elem::Ptr(_) => c.converted(Opcode::PtrToInt, v, self.stored, vec![]),
        };
        let to = c.pointers(self.base, at);
        let before = c.before_write();
        let token = memory::put(c, to, v, None, before);
        c.did_write(token);
    }

    fn get(&self, c: &mut Conv, at: ValueId) -> ValueId {
        let from = c.pointers(self.base, at);
        let before = c.before_read();
        let (v, token) = memory::get(c, from, None, None, before);
        c.did_read(token);
        match self.elem {
            Elem::Num(DType::I1) => c.converted(Opcode::TruncI, v, DType::I1, vec![]),
            Elem::Num(_) => v,
            Elem::Ptr(_) => {
                let shape = c.tile_ty(v).shape.clone();
                c.tile(Opcode::IntToPtr, &[&[v]], vec![], TileType::of(shape, self.elem))
            }
        }
    }

    fn all(&self, c: &mut Conv, shape: &[u64]) -> ValueId {
        let all = c.numbers(shape, shape, None);
        self.get(c, all)
    }
}

impl Conv<'_> {
    /// A reduction along a dimension with one operation.
    pub fn folded(&mut self, opcode: Opcode, v: ValueId, dim: usize) -> ValueId {
        self.folded_by(Opcode::Reduce, opcode, v, dim, false)
    }

    /// A reduction or a scan along a dimension with one operation.
    fn folded_by(&mut self, fold: Opcode, by: Opcode, v: ValueId, dim: usize, reverse: bool) -> ValueId {
        let mut ty = self.tile_ty(v).clone();
        let scalar = Type::Tile(TileType::of(vec![], ty.elem));
        let identity = (ty.num().unwrap_or(DType::I1), 0);
        let mut attrs = vec![(AttrKey::Dim, Attr::Int(dim as i64))];
        if fold == Opcode::Scan {
            attrs.push((AttrKey::Reverse, Attr::Bool(reverse)));
        } else if dim < ty.shape.len() {
            ty.shape.remove(dim);
        }
        attrs.push((AttrKey::Identities, Attr::Identities(vec![identity])));
        let id = self.open(fold, &[&[v]], attrs);
        let region = self.func.regions.push(Region::default());
        let args = ["x", "acc"].map(|name| self.argument(region, scalar.clone(), Some(name.into()), self.span));
        let outer = std::mem::replace(&mut self.region, region);
        let both = self.same(by, &args);
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

    /// Writes a function of scalars out here; the values that it gives.
    fn applied(&mut self, body: &ast::Region, params: &[V], args: &[ValueId], gives: Vec<Type>) -> Res<Vec<ValueId>> {
        for (param, &v) in params.iter().zip(args) {
            self.values[param.index()] = Some(v);
        }
        self.region(body, Some(gives))
    }

    /// Returns true if operations on scalars have counterparts on tiles.
    fn lifts(&self, ops: &[Op]) -> bool {
        ops.iter().rev().skip(1).all(is_elementwise)
    }

    /// An operation on scalars, on tiles of a shape instead.
    fn lifted(&mut self, op: &Op, shape: &[u64]) -> Res<()> {
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

/// Returns true if a function of scalars only computes, in one block.
fn is_plain(region: &ast::Region) -> bool {
    let computes = |op: &Op| !op.row.effect && op.regions.is_empty();
    matches!(&region.blocks[..], [block] if block.ops.iter().all(computes))
}

/// Returns true if an operation works on each element alone.
fn is_elementwise(op: &Op) -> bool {
    let named = ["arith.", "math."].iter().any(|p| op.row.name.starts_with(p))
        || matches!(
            op.row.name,
            "tt.bitcast" | "tt.fp_to_fp" | "tt.clampf" | "tt.mulhiui" | "tt.extern_elementwise" | "tt.assert"
        );
    named && op.regions.is_empty()
}

//! The operations of TTIR: one row each.
//!
//! To add one, add its row: the name, how its text gives the types of its results, and a function that converts it.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::ast::Op;
use super::convert::{Conv, Res, arith, debug, dot, fold, library, memory, shape};
use crate::cuda_tile::ir::Opcode as O;
use crate::num::op::Signedness::{Signed, Unsigned};

/// How an operation's custom form is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Operands and words, then types.
    Plain,
    Special(Special),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    Constant,
    Branch,
    Call,
    If,
    For,
    While,
    Condition,
}

/// Where the types of the results stand in the custom form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    Nothing,
    /// After `->` or `to`.
    Arrow,
    /// After `->`, or there are none.
    Optional,
    /// After `->`, one type for two results.
    Both,
    /// The first or the last type that is listed.
    First,
    Last,
    /// The last one, for two results.
    Two,
    /// As the first, of truth values; of what the pointers lead to; a scalar of its elements.
    Truth,
    Pointee,
    Element,
}

pub type Convert = fn(&mut Conv<'_>, &Op) -> Res<()>;

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub form: Form,
    pub gives: Gives,
    /// True if it reads or writes memory, prints or traps.
    pub effect: bool,
    pub convert: Convert,
}

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        self.name == other.name
    }
}

const fn pure(name: &'static str, gives: Gives, convert: Convert) -> Row {
    Row { name, form: Form::Plain, gives, effect: false, convert }
}
const fn effect(name: &'static str, gives: Gives, convert: Convert) -> Row {
    Row { name, form: Form::Plain, gives, effect: true, convert }
}
const fn special(name: &'static str, form: Special, convert: Convert) -> Row {
    Row { name, form: Form::Special(form), gives: Gives::Optional, effect: false, convert }
}
/// An operation that ends a block: what holds the block converts it.
const fn end(name: &'static str) -> Row {
    Row { name, form: Form::Plain, gives: Gives::Nothing, effect: false, convert: |c, op| c.misplaced(op) }
}

use Gives::*;

/// Every operation that Girih reads.
pub static ROWS: &[Row] = &[
    // Integers.
    pure("arith.addi", Last, |c, op| c.simple(op, O::AddI)),
    pure("arith.subi", Last, |c, op| c.simple(op, O::SubI)),
    pure("arith.muli", Last, |c, op| c.simple(op, O::MulI)),
    pure("arith.divsi", Last, |c, op| c.signed(op, O::DivI, Signed)),
    pure("arith.divui", Last, |c, op| c.signed(op, O::DivI, Unsigned)),
    pure("arith.ceildivsi", Last, |c, op| arith::rounded_division(c, op, Signed, true)),
    pure("arith.ceildivui", Last, |c, op| arith::rounded_division(c, op, Unsigned, true)),
    pure("arith.floordivsi", Last, |c, op| arith::rounded_division(c, op, Signed, false)),
    pure("arith.remsi", Last, |c, op| c.signed(op, O::RemI, Signed)),
    pure("arith.remui", Last, |c, op| c.signed(op, O::RemI, Unsigned)),
    pure("arith.maxsi", Last, |c, op| c.signed(op, O::MaxI, Signed)),
    pure("arith.maxui", Last, |c, op| c.signed(op, O::MaxI, Unsigned)),
    pure("arith.minsi", Last, |c, op| c.signed(op, O::MinI, Signed)),
    pure("arith.minui", Last, |c, op| c.signed(op, O::MinI, Unsigned)),
    pure("arith.shli", Last, |c, op| c.simple(op, O::ShlI)),
    pure("arith.shrsi", Last, |c, op| c.signed(op, O::ShrI, Signed)),
    pure("arith.shrui", Last, |c, op| c.signed(op, O::ShrI, Unsigned)),
    pure("arith.andi", Last, |c, op| c.simple(op, O::AndI)),
    pure("arith.ori", Last, |c, op| c.simple(op, O::OrI)),
    pure("arith.xori", Last, |c, op| c.simple(op, O::XorI)),
    pure("arith.cmpi", Truth, arith::compare_integers),
    pure("arith.mulsi_extended", Two, |c, op| arith::extended_product(c, op, Signed)),
    pure("arith.mului_extended", Two, |c, op| arith::extended_product(c, op, Unsigned)),
    pure("tt.mulhiui", Last, |c, op| c.simple(op, O::MulHiI)),
    pure("math.absi", Last, |c, op| c.simple(op, O::AbsI)),
    // Floats.
    pure("arith.addf", Last, |c, op| c.simple(op, O::AddF)),
    pure("arith.subf", Last, |c, op| c.simple(op, O::SubF)),
    pure("arith.mulf", Last, |c, op| c.simple(op, O::MulF)),
    pure("arith.divf", Last, |c, op| c.simple(op, O::DivF)),
    pure("tt.precise_divf", Last, |c, op| c.simple(op, O::DivF)),
    pure("tt.approx_divf", Last, |c, op| c.simple(op, O::DivF)),
    pure("arith.remf", Last, |c, op| c.simple(op, O::RemF)),
    pure("arith.negf", Last, |c, op| c.simple(op, O::NegF)),
    pure("arith.maxnumf", Last, |c, op| c.simple(op, O::MaxF)),
    pure("arith.minnumf", Last, |c, op| c.simple(op, O::MinF)),
    pure("arith.maximumf", Last, |c, op| arith::propagating(c, op, O::MaxF)),
    pure("arith.minimumf", Last, |c, op| arith::propagating(c, op, O::MinF)),
    pure("arith.cmpf", Truth, arith::compare_floats),
    pure("tt.clampf", Last, arith::clamp),
    pure("math.fma", Last, |c, op| c.simple(op, O::Fma)),
    pure("math.absf", Last, arith::magnitude),
    pure("math.ceil", Last, |c, op| c.simple(op, O::Ceil)),
    pure("math.floor", Last, |c, op| c.simple(op, O::Floor)),
    pure("math.exp", Last, |c, op| c.simple(op, O::Exp)),
    pure("math.exp2", Last, |c, op| c.simple(op, O::Exp2)),
    pure("math.log", Last, |c, op| c.simple(op, O::Log)),
    pure("math.log2", Last, |c, op| c.simple(op, O::Log2)),
    pure("math.sin", Last, |c, op| c.simple(op, O::Sin)),
    pure("math.cos", Last, |c, op| c.simple(op, O::Cos)),
    pure("math.tan", Last, |c, op| c.simple(op, O::Tan)),
    pure("math.sinh", Last, |c, op| c.simple(op, O::SinH)),
    pure("math.cosh", Last, |c, op| c.simple(op, O::CosH)),
    pure("math.tanh", Last, |c, op| c.simple(op, O::TanH)),
    pure("math.sqrt", Last, |c, op| c.simple(op, O::Sqrt)),
    pure("tt.precise_sqrt", Last, |c, op| c.simple(op, O::Sqrt)),
    pure("math.rsqrt", Last, |c, op| c.simple(op, O::Rsqrt)),
    pure("math.powf", Last, |c, op| c.simple(op, O::Pow)),
    pure("math.atan2", Last, |c, op| c.simple(op, O::Atan2)),
    pure("math.erf", Last, library::erf),
    pure("tt.extern_elementwise", Arrow, library::call),
    // Conversions.
    pure("arith.extsi", Arrow, |c, op| arith::extend(c, op, Signed)),
    pure("arith.extui", Arrow, |c, op| arith::extend(c, op, Unsigned)),
    pure("arith.trunci", Arrow, |c, op| c.simple(op, O::TruncI)),
    pure("arith.index_cast", Arrow, |c, op| arith::resize(c, op, Signed)),
    pure("arith.index_castui", Arrow, |c, op| arith::resize(c, op, Unsigned)),
    pure("arith.extf", Arrow, arith::convert_float),
    pure("arith.truncf", Arrow, arith::convert_float),
    pure("tt.fp_to_fp", Arrow, arith::convert_float),
    pure("arith.fptosi", Arrow, |c, op| c.signed(op, O::FToI, Signed)),
    pure("arith.fptoui", Arrow, |c, op| c.signed(op, O::FToI, Unsigned)),
    pure("arith.sitofp", Arrow, |c, op| c.signed(op, O::IToF, Signed)),
    pure("arith.uitofp", Arrow, |c, op| c.signed(op, O::IToF, Unsigned)),
    pure("arith.bitcast", Arrow, arith::bitcast),
    pure("tt.bitcast", Arrow, arith::bitcast),
    pure("tt.int_to_ptr", Arrow, |c, op| c.simple(op, O::IntToPtr)),
    pure("tt.ptr_to_int", Arrow, |c, op| c.simple(op, O::PtrToInt)),
    // Values and shapes.
    special("arith.constant", Special::Constant, arith::constant),
    pure("arith.select", Last, arith::select),
    pure("tt.make_range", First, shape::make_range),
    pure("tt.get_program_id", First, |c, op| shape::grid_number(c, op, O::GetTileBlockId)),
    pure("tt.get_num_programs", First, |c, op| shape::grid_number(c, op, O::GetNumTileBlocks)),
    pure("tt.splat", Arrow, shape::splat),
    pure("tt.unsplat", Element, shape::reshape),
    pure("tt.broadcast", Arrow, shape::broadcast),
    pure("tt.expand_dims", Arrow, shape::reshape),
    pure("tt.reshape", Arrow, shape::reshape),
    pure("tt.trans", Arrow, shape::transpose),
    pure("tt.cat", Arrow, shape::cat),
    pure("tt.join", Arrow, shape::join),
    pure("tt.split", Both, shape::split),
    effect("tt.gather", Arrow, shape::gather),
    effect("tt.histogram", Arrow, shape::histogram),
    pure("tt.map_elementwise", Arrow, fold::map),
    end("tt.map_elementwise.return"),
    // Products, reductions.
    pure("tt.dot", Arrow, dot::dot),
    pure("tt.dot_scaled", Arrow, dot::scaled),
    pure("tt.reduce", Arrow, |c, op| fold::fold(c, op, O::Reduce)),
    pure("tt.scan", Arrow, |c, op| fold::fold(c, op, O::Scan)),
    end("tt.reduce.return"),
    end("tt.scan.return"),
    // Memory.
    pure("tt.addptr", First, memory::add_pointer),
    effect("tt.load", Pointee, memory::load),
    effect("tt.store", Nothing, memory::store),
    effect("tt.atomic_rmw", Arrow, memory::atomic_rmw),
    effect("tt.atomic_cas", Arrow, memory::atomic_cas),
    effect("tt.atomic_load", Pointee, memory::atomic_load),
    effect("tt.atomic_store", Nothing, memory::atomic_store),
    effect("tt.atomic_poll", Arrow, memory::atomic_poll),
    // A kernel starts when those before it have ended.
    effect("tt.grid_dependency_wait", Nothing, |_, _| Ok(())),
    effect("tt.grid_dependency_launch_dependents", Nothing, |_, _| Ok(())),
    // Facts and messages.
    pure("llvm.intr.assume", Nothing, |_, _| Ok(())),
    effect("tt.print", Nothing, debug::print),
    effect("tt.assert", Nothing, debug::assert),
    effect("gpu.barrier", Nothing, |_, _| Ok(())),
    effect("ttg.barrier", Nothing, |_, _| Ok(())),
    // Control flow.
    special("scf.if", Special::If, |c, op| c.if_op(op)),
    special("scf.for", Special::For, |c, op| c.for_op(op)),
    special("scf.while", Special::While, |c, op| c.while_op(op)),
    special("scf.condition", Special::Condition, |c, op| c.misplaced(op)),
    end("scf.yield"),
    Row { effect: true, ..special("tt.call", Special::Call, |c, op| c.call(op)) },
    special("cf.br", Special::Branch, |c, op| c.misplaced(op)),
    special("cf.cond_br", Special::Branch, |c, op| c.misplaced(op)),
    end("tt.return"),
    pure("ub.poison", Last, arith::poison),
];

static NAMES: LazyLock<FxHashMap<&'static str, &'static Row>> =
    LazyLock::new(|| ROWS.iter().map(|row| (row.name, row)).collect());

/// The row of an operation.
pub fn by_name(name: &str) -> Option<&'static Row> {
    NAMES.get(name).copied()
}

/// Advice for an operation that is known but has no row.
pub fn refusal(name: &str) -> Option<&'static str> {
    Some(match name {
        "tt.elementwise_inline_asm" => {
            "inline assembly is text for one GPU; write the same in functions of `triton.language` or of libdevice"
        }
        "tt.make_tensor_ptr" | "tt.advance" => {
            "block pointers are rewritten to pointers before Girih reads a module; run the pass `rewrite_tensor_pointer`"
        }
        _ if name.starts_with("tt.descriptor") || name.starts_with("tt.make_tensor_descriptor") => {
            "run the pass `rewrite_tensor_descriptor_to_pointer` before, as `girih.triton` does"
        }
        _ if ["ttg.", "ttng.", "nvvm.", "amdg.", "gluon."].iter().any(|p| name.starts_with(p)) => {
            "this is of a GPU's threads (Gluon, or a later stage of Triton); give the module of the stage `ttir`"
        }
        _ => return None,
    })
}

/// Advice for a type that is not supported.
pub fn type_refusal(text: &str) -> Option<&'static str> {
    if text.contains("tensordesc") {
        return Some("run the pass `rewrite_tensor_descriptor_to_pointer` before, as `girih.triton` does");
    }
    if text.contains("f8E4M3B11FNUZ") {
        return Some("the 8-bit floats that Girih has are f8E4M3FN, f8E5M2, f8E4M3FNUZ and f8E5M2FNUZ");
    }
    text.contains("!tt.ptr<!tt.ptr")
        .then_some("load addresses as `tl.int64` and cast them: `.to(tl.pointer_type(...))`")
}

//! The typedefs and helper functions a translation unit uses, collected while its kernels are printed.
//!
//! A helper is written once, as a template over the lane count, and instantiated on demand with whatever it calls.
//! In a template,
//! * `$f32` is the type of one value: `f32`, or `f32x16` for 16 lanes
//! * `#f32(c)` is a constant of that type, splatted
//! * `@32(a < b)` is a comparison as an integer mask of 32 bits a lane: all ones or zero
//! * `%f64(x)` converts every lane to f64
//! * `!name(...)` calls another helper at the same lane count, `^name(...)` its scalar version
//!
//! A helper whose body is not lane-generic gets a lane loop for vectors.

use super::dialect::{Dialect, Own};
use super::library;
use crate::num::DType;
use std::collections::{BTreeMap, BTreeSet};

/// One helper function as a template.
pub struct Helper {
    pub result: String,
    /// (base type, name)
    pub params: Vec<(String, String)>,
    /// The statements of its body.
    pub body: String,
    /// The version for vectors; `None` for a lane loop over the scalar version.
    pub vector: Option<String>,
}

pub struct Support {
    pub dialect: &'static Dialect,
    /// Vector bytes of the machine.
    pub vector_bytes: u32,
    pub has_fma: bool,
    types: BTreeMap<(u8, String), String>,
    done: BTreeSet<String>,
    functions: Vec<String>,
}

/// Bytes of a base type.
fn bytes_of(base: &str) -> u32 {
    match base {
        "u128" => 16,
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        "u64" => 8,
        _ => DType::from_name(base).map_or(0, |d| d.bytes() as u32),
    }
}

impl Support {
    pub fn new(dialect: &'static Dialect, vector_bytes: u32, has_fma: bool) -> Support {
        let (types, done, functions) = Default::default();
        Support { dialect, vector_bytes, has_fma, types, done, functions }
    }

    /// The type of `lanes` values.
    pub fn ty(&mut self, base: &str, lanes: u32) -> String {
        let Some(of) = self.dialect.base(base) else { return base.to_string() };
        if lanes <= 1 {
            if !of.defined {
                return of.spelling.to_string();
            }
            self.types.insert((0, base.to_string()), format!("typedef {} {base};", of.spelling));
            return base.to_string();
        }
        // A mask lane is an i32 of all ones or zero.
        let (of, bytes) = if base == "i1" { ("i32", 4) } else { (base, bytes_of(base)) };
        self.ty(of, 1);
        let name = format!("{base}x{lanes}");
        let size = bytes * lanes;
        self.types.insert((1, name.clone()), format!("typedef {of} {name} __attribute__((vector_size({size})));"));
        name
    }

    /// The type of such values in memory, at any address.
    pub fn memory_ty(&mut self, base: &str, lanes: u32) -> String {
        if !self.dialect.unaligned {
            // A byte is true where it is not zero.
            return self.ty(if base == "i1" { "u8" } else { base }, lanes);
        }
        let ty = self.ty(base, lanes);
        let name = format!("{ty}_m");
        self.types.insert((2, name.clone()), format!("typedef {ty} {name} __attribute__((aligned(1)));"));
        name
    }

    /// The C name of a helper at a lane count, defining it first.
    pub fn call(&mut self, name: &str, lanes: u32) -> String {
        let full = if lanes > 1 { format!("{name}_x{lanes}") } else { name.to_string() };
        let own = (self.dialect.own)(name);
        if let Some(Own::Intrinsic(intrinsic)) = own {
            return intrinsic.to_string();
        }
        if !self.done.insert(full.clone()) {
            return full;
        }
        if let Some(mask @ ("i1" | "i32" | "i64")) = name.strip_prefix("all_")
            && lanes > 1
        {
            self.all(&full, mask, lanes);
            return full;
        }
        let helper = match own {
            Some(Own::Helper(helper)) => helper,
            _ => library::helper(self, name),
        };
        let body = match (&helper.vector, lanes > 1) {
            (Some(body), true) => {
                let body = body
                    .replace("SPLAT", &vec![if name == "splat_i1" { "-x" } else { "x" }; lanes as usize].join(", "));
                self.expand(&body, lanes)
            }
            (None, true) => self.lane_loop(name, &helper, lanes),
            (_, false) => self.expand(&helper.body, 1),
        };
        let body = match library::in_one_instruction(name, lanes).filter(|_| self.dialect.unaligned) {
            Some((feature, fast)) => format!("#ifdef {feature}\n{}#else\n{body}#endif\n", self.expand(&fast, lanes)),
            None => body,
        };
        let result = self.ty(&helper.result, lanes);
        let lanes_in = if name.starts_with("splat_") { 1 } else { lanes };
        let params: Vec<String> = helper.params.iter().map(|(t, n)| format!("{} {n}", self.ty(t, lanes_in))).collect();
        self.functions.push(format!("INLINE {result} {full}({}) {{\n{}}}\n", params.join(", "), indent(&body)));
        full
    }

    /// Defines a function that tests if every lane of a mask is on.
    fn all(&mut self, full: &str, mask: &str, lanes: u32) {
        let i1 = self.ty("i1", 1);
        let mut text = format!("INLINE {i1} {full}({} m) {{\n", self.ty(mask, lanes));
        let (mut n, mut current) = (lanes, "m".to_string());
        while n > 1 {
            n /= 2;
            let half = |from: u32| (from..from + n).map(|l| l.to_string()).collect::<Vec<_>>().join(", ");
            let shuffle = |from: u32| format!("__builtin_shufflevector({current}, {current}, {})", half(from));
            let next = format!("m{n}");
            text.push_str(&if n > 1 {
                format!("  {} {next} = {} & {};\n", self.ty(mask, n), shuffle(0), shuffle(n))
            } else {
                format!("  return {current}[0] & {current}[1] & 1;\n}}\n")
            });
            current = next;
        }
        if let Some((feature, fast)) = library::in_one_instruction(&format!("all_{mask}"), lanes)
            && let Some((head, body)) = text.split_once('\n')
        {
            let body = body.trim_end_matches("}\n");
            text = format!("{head}\n#ifdef {feature}\n{}#else\n{body}#endif\n}}\n", indent(&self.expand(&fast, lanes)));
        }
        self.functions.push(text);
    }

    /// Returns true if the language has a function of its own for the helper.
    pub fn has(&self, name: &str) -> bool {
        (self.dialect.own)(name).is_some()
    }

    pub fn is_defined(&self, name: &str) -> bool {
        self.done.contains(name)
    }

    /// Defines a function of its own from a template.
    pub fn define(
        &mut self,
        name: &str,
        result: &str,
        params: &[(&str, String)],
        body: &str,
        lanes: u32,
        inlined: bool,
    ) {
        if self.done.insert(name.to_string()) {
            let body = self.expand(body, lanes);
            let result = self.ty(result, lanes);
            let params: Vec<String> = params.iter().map(|(t, n)| format!("{} {n}", self.ty(t, lanes))).collect();
            let how = if inlined { "INLINE" } else { self.dialect.outlined };
            self.functions.push(format!("{how} {result} {name}({}) {{\n{}}}\n", params.join(", "), indent(&body)));
        }
    }

    fn lane_loop(&mut self, name: &str, helper: &Helper, lanes: u32) -> String {
        let scalar = self.call(name, 1);
        let args: Vec<String> = helper
            .params
            .iter()
            .map(|(t, n)| if t == "i1" { format!("({n}[l] & 1)") } else { format!("{n}[l]") })
            .collect();
        let ty = self.ty(&helper.result, lanes);
        let minus = if helper.result == "i1" { "-(i32)" } else { "" };
        let call = format!("{minus}{scalar}({})", args.join(", "));
        format!("{ty} r;\nfor (int l = 0; l < {lanes}; l++) r[l] = {call};\nreturn r;\n")
    }

    /// Adds a plain block of C once: no template.
    pub fn block(&mut self, name: &str, text: &str) {
        if self.done.insert(name.to_string()) {
            self.functions.push(text.to_string());
        }
    }

    /// Expands a template.
    pub fn expand(&mut self, text: &str, lanes: u32) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '#', '@', '%', '!', '^']) {
            let (before, tail) = rest.split_at(at);
            out.push_str(before);
            let sigil = tail.as_bytes()[0];
            let word_len = tail[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(tail.len() - 1);
            let (word, after) = tail[1..].split_at(word_len);
            let is_token = !word.is_empty() && (sigil == b'$' || after.starts_with('('));
            if !is_token || (sigil == b'%' && self.dialect.base(word).is_none()) {
                out.push(sigil as char);
                rest = &tail[1..];
                continue;
            }
            rest = after;
            match sigil {
                b'$' => out.push_str(&self.ty(word, lanes)),
                b'!' => out.push_str(&self.call(word, lanes)),
                b'^' => out.push_str(&self.call(word, 1)),
                b'#' if lanes > 1 => out.push_str(&self.call(&format!("splat_{word}"), lanes)),
                b'#' => {
                    let ty = self.ty(word, 1);
                    out.push_str(&format!("({ty})"));
                }
                b'@' if lanes > 1 => {
                    let ty = self.ty(&format!("i{word}"), lanes);
                    out.push_str(&format!("({ty})"));
                }
                b'@' => {
                    let ty = self.ty(&format!("i{word}"), 1);
                    out.push_str(&format!("-({ty})"));
                }
                _ => {
                    let ty = self.ty(word, lanes);
                    let close = matching(rest);
                    let inner = self.expand(&rest[1..close], lanes);
                    if lanes > 1 {
                        out.push_str(&format!("__builtin_convertvector({inner}, {ty})"));
                    } else {
                        out.push_str(&format!("({ty})({inner})"));
                    }
                    rest = &rest[(close + 1).min(rest.len())..];
                }
            }
        }
        out.push_str(rest);
        out
    }

    /// The typedefs and functions collected so far.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in self.types.values() {
            out.push_str(line);
            out.push('\n');
        }
        if !self.functions.is_empty() {
            out.push_str(&format!("#define INLINE {}\n", self.dialect.inline));
        }
        for function in &self.functions {
            out.push_str(function);
        }
        out
    }
}

/// The byte of the parenthesis that closes the one the text starts with.
fn matching(text: &str) -> usize {
    let mut depth = 0;
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return i;
                }
            }
            _ => {}
        }
    }
    text.len()
}

fn indent(body: &str) -> String {
    body.lines().filter(|l| !l.is_empty()).map(|l| format!("  {l}\n")).collect()
}

//! Types: `tile<4x8xf32>`, `ptr<f32>` inside tiles, views, `token`, and their aliases.

use super::*;
use crate::base::words::did_you_mean;
use crate::cuda_tile::words::Words;
use crate::num::DType;

const MAX_RANK: usize = 32;

impl<'a> Parser<'a> {
    /// A type, bare, prefixed, or an alias.
    pub(super) fn ty(&mut self) -> Res<Type> {
        self.nested(|p| p.ty_inner())
    }

    fn ty_inner(&mut self) -> Res<Type> {
        let span = self.span;
        let name = match self.tok {
            Tok::Word(w) => w.strip_prefix("cuda_tile.").unwrap_or(w),
            Tok::Bang(w) => match w.strip_prefix("cuda_tile.") {
                Some(name) => name,
                None => return self.type_alias(w),
            },
            _ => return self.expected("a type"),
        };
        match name {
            "tile" => {
                self.advance();
                Ok(Type::Tile(self.tile_body()?))
            }
            "tensor_view" => {
                self.advance();
                Ok(Type::TensorView(Box::new(self.tensor_view_body()?)))
            }
            "partition_view" | "strided_view" | "gather_scatter_view" => {
                self.advance();
                Ok(Type::View(Box::new(self.view_body(name)?)))
            }
            "token" => {
                self.advance();
                Ok(Type::Token)
            }
            "ptr" => self.error(Code::UnknownType, span, "a pointer must be inside a tile, `tile<ptr<f32>>`"),
            _ if dtype_of(name).is_some() => {
                self.report(
                    Diagnostic::error(
                        Code::UnknownType,
                        format!("`{name}` is an element type, not the type of a value"),
                    )
                    .at(span)
                    .help(format!("write `tile<{name}>`")),
                );
                Err(Failed)
            }
            _ => {
                let known = ["tile", "tensor_view", "partition_view", "strided_view", "gather_scatter_view", "token"];
                let d = Diagnostic::error(Code::UnknownType, format!("unknown type `{name}`"))
                    .at(span)
                    .maybe_help(did_you_mean(name, known));
                self.report(d);
                Err(Failed)
            }
        }
    }

    fn type_alias(&mut self, name: &'a str) -> Res<Type> {
        if let Some(ty) = self.types.get(name) {
            let ty = ty.clone();
            self.advance();
            return Ok(ty);
        }
        let Some(&at) = self.aliases.get(name) else {
            return self.error(Code::UnknownAlias, self.span, format!("the alias `!{name}` is not defined"));
        };
        let after = self.lex.pos();
        self.seek(at);
        let ty = self.ty();
        self.seek(after);
        let ty = ty?;
        self.types.insert(name, ty.clone());
        Ok(ty)
    }

    /// An element type such as `f32`.
    pub(super) fn dtype(&mut self) -> Res<DType> {
        let span = self.span;
        let Tok::Word(word) = self.tok else { return self.expected("an element type") };
        let dtype = match dtype_of(word) {
            Some(d) => d,
            None => match DType::of_tile_ir().find(|d| d.name().eq_ignore_ascii_case(word)) {
                Some(d) => {
                    self.old_spelling(
                        span,
                        format!("`{word}` is an older spelling of an element type"),
                        format!("write `{d}`"),
                    );
                    d
                }
                None => {
                    let e = Diagnostic::error(Code::UnknownType, format!("unknown element type `{word}`"))
                        .at(span)
                        .maybe_help(did_you_mean(word, DType::of_tile_ir().map(|d| d.name())));
                    self.report(e);
                    return Err(Failed);
                }
            },
        };
        self.advance();
        Ok(dtype)
    }

    /// `4x8x`, up to a token that does not start with a digit or `?`. The lexer cannot tell where a dimension ends, so
    /// the digits are read here, one by one.
    fn dims(&mut self, dynamic: bool) -> Res<Vec<Option<i64>>> {
        let mut dims = vec![];
        loop {
            let span = self.span;
            let dim = match self.tok {
                Tok::Int(_) | Tok::Float(_) => {
                    let start = span.start as usize;
                    let text = self.lex.text().get(start..).unwrap_or("");
                    let len = text.bytes().take_while(u8::is_ascii_digit).count();
                    self.lex.seek(start + len);
                    let Ok(n) = text[..len].parse::<i64>() else {
                        return self.error(Code::BadLiteral, span, "the dimension does not fit 64 bits");
                    };
                    Some(n)
                }
                Tok::Punct('?') if dynamic => None,
                _ => return Ok(dims),
            };
            dims.push(dim);
            if dims.len() > MAX_RANK {
                return self.error(Code::TooLarge, span, format!("a shape may have at most {MAX_RANK} dimensions"));
            }
            self.lex.skip_space();
            let at = self.lex.pos();
            if self.lex.text().as_bytes().get(at) != Some(&b'x') {
                self.seek(at);
                return self.expected("`x` and an element type");
            }
            self.seek(at + 1);
        }
    }

    pub(super) fn tile_body(&mut self) -> Res<TileType> {
        self.expect('<')?;
        let start = self.span;
        let shape: Vec<u64> = self.dims(false)?.into_iter().flatten().map(|d| d as u64).collect();
        if shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).is_none_or(|n| n > i64::MAX as u64) {
            return self.error(Code::TooLarge, self.since(start), "the tile has more elements than 63 bits can count");
        }
        let mut ptr_attr = None;
        let elem = match self.tok {
            Tok::Word("ptr" | "cuda_tile.ptr") | Tok::Bang("cuda_tile.ptr") => {
                self.advance();
                self.expect('<')?;
                let d = self.dtype()?;
                if self.eat(',') {
                    ptr_attr = Some(self.pointer_attribute()?);
                }
                self.expect('>')?;
                Elem::Ptr(d)
            }
            Tok::Bang(_) => return self.expected("an element type or a pointer"),
            _ => Elem::Num(self.dtype()?),
        };
        self.expect('>')?;
        Ok(TileType { shape, elem, ptr_attr })
    }

    /// `<multicast>` or `#cuda_tile.ptr_attr<multicast>`
    fn pointer_attribute(&mut self) -> Res<PtrAttr> {
        if matches!(self.tok, Tok::Hash("cuda_tile.ptr_attr") | Tok::Word("ptr_attr")) {
            self.advance();
        }
        self.expect('<')?;
        let attr = self.enum_word()?;
        self.expect('>')?;
        Ok(attr)
    }

    /// `[1, ?, 3]`
    fn strides(&mut self) -> Res<Vec<Option<i64>>> {
        self.expect('[')?;
        self.list(']', |p| if p.eat('?') { Ok(None) } else { Ok(Some(p.int()?)) })
    }

    fn tensor_view_body(&mut self) -> Res<TensorViewType> {
        self.expect('<')?;
        let shape = self.dims(true)?;
        let elem = self.dtype()?;
        let (mut strides, mut ptr_attr) = (vec![], None);
        while self.eat(',') {
            if self.is('<') || matches!(self.tok, Tok::Hash(_) | Tok::Word("ptr_attr")) {
                ptr_attr = Some(self.pointer_attribute()?);
                break;
            }
            let at = self.span;
            self.expect_word("strides")?;
            self.expect('=')?;
            strides = self.strides()?;
            if shape.is_empty() {
                let message = "a tensor view of rank 0 has no strides to give";
                let d = Diagnostic::error(Code::BadShape, message).at(self.since(at));
                self.report(d.help(format!("write `tensor_view<{elem}>`")));
                return Err(Failed);
            }
        }
        if strides.len() != shape.len() {
            let span = self.span;
            return self.error(
                Code::BadShape,
                span,
                format!("a tensor view of rank {} needs as many strides, found {}", shape.len(), strides.len()),
            );
        }
        self.expect('>')?;
        Ok(TensorViewType { elem, shape, strides, ptr_attr })
    }

    fn i32s(&mut self) -> Res<Vec<i32>> {
        self.expect('[')?;
        self.list(']', |p| p.int32())
    }

    pub(super) fn int32(&mut self) -> Res<i32> {
        let span = self.span;
        match i32::try_from(self.int()?) {
            Ok(n) => Ok(n),
            Err(_) => self.error(Code::BadLiteral, span, "the number does not fit 32 bits"),
        }
    }

    /// `(4x2)`, the shape of a view's tile.
    fn tile_shape(&mut self) -> Res<Vec<i32>> {
        if !self.is('(') {
            return self.expected("`(`");
        }
        let mut dims = vec![];
        let mut at = self.lex.pos();
        loop {
            self.lex.seek(at);
            self.lex.skip_space();
            at = self.lex.pos();
            let text = self.lex.text().get(at..).unwrap_or("");
            if dims.is_empty() && text.starts_with(')') {
                self.seek(at + 1);
                return Ok(dims);
            }
            let len = text.bytes().take_while(u8::is_ascii_digit).count();
            let Ok(n) = text[..len].parse::<i32>() else {
                self.seek(at);
                return self.expected("a dimension below 2^31");
            };
            dims.push(n);
            self.lex.seek(at + len);
            self.lex.skip_space();
            at = self.lex.pos();
            match self.lex.text().as_bytes().get(at) {
                Some(b'x') if dims.len() < MAX_RANK => at += 1,
                Some(b')') => {
                    self.seek(at + 1);
                    return Ok(dims);
                }
                _ => {
                    self.seek(at);
                    return self.expected("`x` or `)`");
                }
            }
        }
    }

    fn view_body(&mut self, name: &str) -> Res<TileViewType> {
        self.expect('<')?;
        self.expect_word("tile")?;
        self.expect('=')?;
        let tile = self.tile_shape()?;
        let (mut traversal_strides, mut padding, mut tensor) = (None, None, None);
        let (mut dim_map, mut sparse_dim) = (None, None);
        while self.eat(',') {
            match self.tok {
                Tok::Word("padding_value") => {
                    self.advance();
                    self.expect('=')?;
                    padding = Some(self.enum_word::<Padding>()?);
                }
                Tok::Word("traversal_strides") if name == "strided_view" => {
                    self.advance();
                    self.expect('=')?;
                    traversal_strides = Some(self.i32s()?);
                }
                Tok::Word("dim_map") if name != "gather_scatter_view" => {
                    self.advance();
                    self.expect('=')?;
                    dim_map = Some(self.i32s()?);
                }
                Tok::Word("sparse_dim") if name == "gather_scatter_view" => {
                    self.advance();
                    self.expect('=')?;
                    sparse_dim = Some(self.int32()?);
                }
                _ => {
                    let span = self.span;
                    match self.ty()? {
                        Type::TensorView(t) if tensor.is_none() => tensor = Some(*t),
                        _ => return self.error(Code::UnknownType, span, "expected the view's one tensor_view here"),
                    }
                }
            }
        }
        let span = self.span;
        self.expect('>')?;
        let Some(tensor) = tensor else {
            return self.error(Code::Syntax, span, format!("the {name} has no tensor_view"));
        };
        let kind = match name {
            "strided_view" => match traversal_strides {
                Some(traversal_strides) => ViewKind::Strided { traversal_strides },
                None => return self.error(Code::Syntax, span, "the strided_view has no traversal_strides"),
            },
            "gather_scatter_view" => match sparse_dim {
                Some(d) if d >= 0 => ViewKind::GatherScatter { sparse_dim: d as u32 },
                _ => return self.error(Code::Syntax, span, "the gather_scatter_view has no sparse_dim"),
            },
            _ => ViewKind::Partition,
        };
        let identity = (0..tile.len() as i32).collect();
        Ok(TileViewType { kind, tile, tensor, dim_map: dim_map.unwrap_or(identity), padding })
    }

    /// A word of an enumeration.
    pub(super) fn enum_word<T: Words>(&mut self) -> Res<T> {
        if let Tok::Word(w) = self.tok
            && let Some(value) = T::from_word(w)
        {
            self.advance();
            return Ok(value);
        }
        let words: Vec<&str> = T::WORDS.iter().map(|(w, _)| *w).collect();
        let message = format!("expected {}, found {}", choice(&words), self.found());
        let mut d = Diagnostic::error(Code::UnknownWord, message).at(self.span);
        if let Tok::Word(w) = self.tok
            && let Some(question) = did_you_mean(w, words.iter().copied())
        {
            d = d.help(question);
        }
        self.report(d);
        Err(Failed)
    }
}

/// `a`, `a or b`, `a, b or c`.
fn choice(words: &[&str]) -> String {
    match words {
        [init @ .., second, last] => {
            init.iter().map(|w| format!("{w}, ")).collect::<String>() + &format!("{second} or {last}")
        }
        _ => words.join(""),
    }
}

/// An element type by its name; also one that only Triton's programs bring, since they print as Tile IR.
pub(super) fn dtype_of(name: &str) -> Option<DType> {
    DType::from_name(name)
}

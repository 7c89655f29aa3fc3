//! Reductions, products, changes of shape, picking elements.

use crate::source::expr::library::{Entry, op, view};

#[rustfmt::skip]
pub const REDUCTIONS: &[Entry] = &[
    op("torch Tensor", "sum(input: Tensor, dim: ints? = None, keepdim: bool = False, *, dtype: dtype? = None)", "aten.sum", "The sum over dimensions, or over all."),
    op("torch Tensor", "mean(input: Tensor, dim: ints? = None, keepdim: bool = False, *, dtype: dtype? = None)", "aten.mean", "The mean over dimensions, or over all."),
    op("torch Tensor", "prod(input: Tensor, dim: int? = None, keepdim: bool = False, *, dtype: dtype? = None)", "aten.prod", "The product over a dimension, or over all."),
    op("torch Tensor", "amax(input: Tensor, dim: ints = (), keepdim: bool = False)", "aten.amax", "The greatest element over dimensions."),
    op("torch Tensor", "amin(input: Tensor, dim: ints = (), keepdim: bool = False)", "aten.amin", "The smallest element over dimensions."),
    op("torch Tensor", "argmax(input: Tensor, dim: int? = None, keepdim: bool = False)", "aten.argmax", "Where the greatest element is."),
    op("torch Tensor", "argmin(input: Tensor, dim: int? = None, keepdim: bool = False)", "aten.argmin", "Where the smallest element is."),
    op("torch Tensor", "all(input: Tensor, dim: ints? = None, keepdim: bool = False)", "aten.all", "True if all elements are not 0."),
    op("torch Tensor", "any(input: Tensor, dim: ints? = None, keepdim: bool = False)", "aten.any", "True if any element is not 0."),
    op("torch Tensor", "logsumexp(input: Tensor, dim: ints, keepdim: bool = False)", "aten.logsumexp", "log(sum(exp(input))), safe for large elements."),
    op("torch Tensor", "cumsum(input: Tensor, dim: int, *, dtype: dtype? = None)", "aten.cumsum", "Running sums along a dimension."),
    op("torch Tensor", "cumprod(input: Tensor, dim: int, *, dtype: dtype? = None)", "aten.cumprod", "Running products along a dimension."),
];

#[rustfmt::skip]
pub const PRODUCTS: &[Entry] = &[
    op("torch Tensor", "matmul(input: Tensor, other: Tensor)", "aten.matmul", "The matrix product; leading dimensions are batches."),
    op("torch Tensor", "mm(input: Tensor, mat2: Tensor)", "aten.mm", "The product of two matrices."),
    op("torch Tensor", "bmm(input: Tensor, mat2: Tensor)", "aten.bmm", "The products of two batches of matrices."),
    op("torch Tensor", "mv(input: Tensor, vec: Tensor)", "aten.mv", "A matrix times a vector."),
    op("torch Tensor", "dot(input: Tensor, tensor: Tensor)", "aten.dot", "The sum of the products of two vectors."),
    op("torch Tensor", "inner(input: Tensor, other: Tensor)", "aten.inner", "Sums of products over the last dimensions."),
    op("torch Tensor", "outer(input: Tensor, vec2: Tensor)", "aten.outer", "All products of two vectors' elements."),
    op("torch Tensor", "addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: number = 1, alpha: number = 1)", "aten.addmm", "beta * input + alpha * (mat1 @ mat2)."),
    op("torch Tensor", "addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: number = 1, alpha: number = 1)", "aten.addmv", "beta * input + alpha * (mat @ vec)."),
    op("torch Tensor", "baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: number = 1, alpha: number = 1)", "aten.baddbmm", "beta * input + alpha * (batch1 @ batch2), by batch."),
    op("torch", "einsum(equation: str, *operands: Tensors)", "aten.einsum", "Sums of products by the letters of an equation."),
];

#[rustfmt::skip]
pub const SHAPE: &[Entry] = &[
    view("torch Tensor", "reshape(input: Tensor, *shape: ints)", "aten.reshape", "The same elements in another shape; -1 is worked out."),
    view("Tensor", "view(input: Tensor, *size: ints)", "aten.view", "The same elements in another shape."),
    view("torch Tensor", "flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1)", "aten.flatten", "Dimensions joined into one."),
    view("torch Tensor", "unflatten(input: Tensor, dim: int, sizes: ints)", "aten.unflatten", "One dimension split into several."),
    view("torch Tensor", "unsqueeze(input: Tensor, dim: int)", "aten.unsqueeze", "A dimension of extent 1 inserted."),
    view("torch Tensor", "squeeze(input: Tensor, dim: ints? = None)", "aten.squeeze", "Dimensions of extent 1 removed."),
    view("torch Tensor", "transpose(input: Tensor, dim0: int, dim1: int)", "aten.transpose", "Two dimensions exchanged."),
    view("torch Tensor", "swapaxes(input: Tensor, dim0: int, dim1: int)", "aten.transpose", "Two dimensions exchanged."),
    view("torch Tensor", "t(input: Tensor)", "aten.t", "The transpose of a matrix."),
    view("torch Tensor", "permute(input: Tensor, *dims: ints)", "aten.permute", "Dimensions in another order."),
    view("torch Tensor", "movedim(input: Tensor, source: ints, destination: ints)", "aten.movedim", "Dimensions moved to other places."),
    view("Tensor", "expand(input: Tensor, *size: ints)", "aten.expand", "Dimensions of extent 1 stretched."),
    view("torch Tensor", "broadcast_to(input: Tensor, size: ints)", "aten.broadcast_to", "Stretched to a shape."),
    op("Tensor", "repeat(input: Tensor, *repeats: ints)", "aten.repeat", "Copies along each dimension."),
    op("torch Tensor", "tile(input: Tensor, *dims: ints)", "aten.tile", "Copies along dimensions."),
    op("torch Tensor", "flip(input: Tensor, *dims: ints)", "aten.flip", "Dimensions reversed."),
    op("torch Tensor", "roll(input: Tensor, shifts: ints, dims: ints = ())", "aten.roll", "Elements shifted around."),
    op("torch", "cat(tensors: Tensors, dim: int = 0)", "aten.cat", "Tensors one after the other."),
    op("torch", "concat(tensors: Tensors, dim: int = 0)", "aten.cat", "The same as cat."),
    op("torch", "concatenate(tensors: Tensors, dim: int = 0)", "aten.cat", "The same as cat."),
    op("torch", "stack(tensors: Tensors, dim: int = 0)", "aten.stack", "Tensors side by side, along a new dimension."),
    view("torch Tensor", "chunk(input: Tensor, chunks: int, dim: int = 0)", "aten.chunk", "At most the given number of parts of a dimension."),
    view("torch Tensor", "unbind(input: Tensor, dim: int = 0)", "aten.unbind", "The slices along a dimension."),
    view("torch Tensor", "narrow(input: Tensor, dim: int, start: int, length: int)", "aten.narrow", "A part of a dimension."),
    view("torch Tensor", "select(input: Tensor, dim: int, index: int)", "aten.select", "One slice of a dimension."),
    view("torch Tensor", "diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1)", "aten.diagonal", "The diagonal of two dimensions."),
    op("Tensor", "clone(input: Tensor)", "aten.clone", "A copy."),
    view("Tensor", "contiguous(input: Tensor)", "aten.contiguous", "The same; layouts are chosen by the compiler."),
    view("Tensor", "detach(input: Tensor)", "aten.detach", "The same; there are no gradients here."),
];

#[rustfmt::skip]
pub const PICKING: &[Entry] = &[
    op("torch Tensor", "gather(input: Tensor, dim: int, index: Tensor)", "aten.gather", "Elements along a dimension, by index."),
    op("torch Tensor", "index_select(input: Tensor, dim: int, index: Tensor)", "aten.index_select", "Slices of a dimension, by index."),
    op("torch Tensor", "take_along_dim(input: Tensor, index: Tensor, dim: int)", "aten.take_along_dim", "Elements along a dimension, by index."),
    op("torch Tensor", "scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor)", "aten.scatter_add", "Elements added at indices along a dimension."),
    op("torch Tensor", "tril(input: Tensor, diagonal: int = 0)", "aten.tril", "The lower triangle; the rest is 0."),
    op("torch Tensor", "triu(input: Tensor, diagonal: int = 0)", "aten.triu", "The upper triangle; the rest is 0."),
    op("torch Tensor", "topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True)", "aten.topk", "The k greatest elements, and where they are."),
    op("torch Tensor", "sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False)", "aten.sort", "Sorted elements, and where they were."),
    op("torch Tensor", "argsort(input: Tensor, dim: int = -1, descending: bool = False)", "aten.argsort", "Where the sorted elements were."),
    op("F", "one_hot(input: Tensor, num_classes: int)", "aten.one_hot", "1 at each index, else 0."),
];

//! Activations and layers.

use crate::source::expr::library::{Entry, op};

#[rustfmt::skip]
pub const ACTIVATIONS: &[Entry] = &[
    op("torch Tensor F", "relu(input: Tensor)", "aten.relu", "max(input, 0)."),
    op("F", "relu6(input: Tensor)", "aten.relu6", "input between 0 and 6."),
    op("F", "leaky_relu(input: Tensor, negative_slope: float = 0.01)", "aten.leaky_relu", "input, or negative_slope * input below 0."),
    op("F torch Tensor", "prelu(input: Tensor, weight: Tensor)", "aten.prelu", "input, or weight * input below 0."),
    op("F", "elu(input: Tensor, alpha: float = 1.0)", "aten.elu", "input, or alpha * (exp(input) - 1) below 0."),
    op("F torch", "selu(input: Tensor)", "aten.selu", "elu, scaled so that deep networks keep mean and variance."),
    op("F torch", "celu(input: Tensor, alpha: float = 1.0)", "aten.celu", "input, or alpha * (exp(input / alpha) - 1) below 0."),
    op("F", "gelu(input: Tensor, approximate: str = 'none')", "aten.gelu", "input times the normal distribution's integral; approximate='tanh' is the cheaper form."),
    op("F", "silu(input: Tensor)", "aten.silu", "input * sigmoid(input)."),
    op("F", "mish(input: Tensor)", "aten.mish", "input * tanh(softplus(input))."),
    op("F torch Tensor", "sigmoid(input: Tensor)", "aten.sigmoid", "1 / (1 + exp(-input))."),
    op("F", "logsigmoid(input: Tensor)", "aten.log_sigmoid", "log(sigmoid(input))."),
    op("F", "hardsigmoid(input: Tensor)", "aten.hardsigmoid", "A straight line in place of the sigmoid."),
    op("F", "hardswish(input: Tensor)", "aten.hardswish", "input * hardsigmoid(input)."),
    op("F", "hardtanh(input: Tensor, min_val: number = -1.0, max_val: number = 1.0)", "aten.hardtanh", "input between two bounds."),
    op("F", "hardshrink(input: Tensor, lambd: number = 0.5)", "aten.hardshrink", "input, or 0 near 0."),
    op("F", "softshrink(input: Tensor, lambd: number = 0.5)", "aten.softshrink", "input moved towards 0."),
    op("F", "softplus(input: Tensor, beta: number = 1, threshold: number = 20)", "aten.softplus", "log(1 + exp(beta * input)) / beta."),
    op("F torch Tensor", "softmax(input: Tensor, dim: int, *, dtype: dtype? = None)", "aten.softmax", "Exponentials over their sum along a dimension."),
    op("F torch Tensor", "log_softmax(input: Tensor, dim: int, *, dtype: dtype? = None)", "aten.log_softmax", "The logarithm of softmax."),
    op("F", "glu(input: Tensor, dim: int = -1)", "aten.glu", "One half times the sigmoid of the other."),
];

#[rustfmt::skip]
pub const LAYERS: &[Entry] = &[
    op("F", "linear(input: Tensor, weight: Tensor, bias: Tensor? = None)", "aten.linear", "input @ weight.T + bias."),
    op("F", "conv1d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: ints = 1, padding: any = 0, dilation: ints = 1, groups: int = 1)", "aten.conv1d", "Convolution over one dimension."),
    op("F", "conv2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: ints = 1, padding: any = 0, dilation: ints = 1, groups: int = 1)", "aten.conv2d", "Convolution over two dimensions."),
    op("F", "conv3d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: ints = 1, padding: any = 0, dilation: ints = 1, groups: int = 1)", "aten.conv3d", "Convolution over three dimensions."),
    op("F", "conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: ints = 1, padding: ints = 0, output_padding: ints = 0, groups: int = 1, dilation: ints = 1)", "aten.conv_transpose1d", "The transpose of a convolution."),
    op("F", "conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: ints = 1, padding: ints = 0, output_padding: ints = 0, groups: int = 1, dilation: ints = 1)", "aten.conv_transpose2d", "The transpose of a convolution."),
    op("F", "conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: ints = 1, padding: ints = 0, output_padding: ints = 0, groups: int = 1, dilation: ints = 1)", "aten.conv_transpose3d", "The transpose of a convolution."),
    op("F", "layer_norm(input: Tensor, normalized_shape: ints, weight: Tensor? = None, bias: Tensor? = None, eps: float = 1e-05)", "aten.layer_norm", "Rows with mean 0 and variance 1, scaled and shifted."),
    op("F", "rms_norm(input: Tensor, normalized_shape: ints, weight: Tensor? = None, eps: float? = None)", "aten.rms_norm", "Rows with root mean square 1, scaled."),
    op("F", "group_norm(input: Tensor, num_groups: int, weight: Tensor? = None, bias: Tensor? = None, eps: float = 1e-05)", "aten.group_norm", "Groups of channels with mean 0 and variance 1."),
    op("F", "scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor? = None, dropout_p: float = 0.0, is_causal: bool = False, *, scale: float? = None, enable_gqa: bool = False)", "aten.scaled_dot_product_attention", "softmax(query @ key.T * scale + mask) @ value."),
    op("F", "avg_pool1d(input: Tensor, kernel_size: ints, stride: ints = (), padding: ints = 0, ceil_mode: bool = False, count_include_pad: bool = True)", "aten.avg_pool1d", "Means of windows."),
    op("F", "avg_pool2d(input: Tensor, kernel_size: ints, stride: ints = (), padding: ints = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int? = None)", "aten.avg_pool2d", "Means of windows."),
    op("F", "adaptive_avg_pool1d(input: Tensor, output_size: ints)", "aten.adaptive_avg_pool1d", "Means of windows, one for each output element."),
    op("F", "adaptive_avg_pool2d(input: Tensor, output_size: ints)", "aten.adaptive_avg_pool2d", "Means of windows, one for each output element."),
    op("F", "pad(input: Tensor, pad: ints, mode: str = 'constant', value: number? = None)", "aten.pad", "Elements added around; the first two amounts are of the last dimension."),
    op("F", "pixel_shuffle(input: Tensor, upscale_factor: int)", "aten.pixel_shuffle", "Channels spread over pixels."),
];

/// The operations that the prelude uses.
#[rustfmt::skip]
pub const INNER: &[Entry] = &[
    op("aten", "embedding(weight: Tensor, indices: Tensor)", "aten.embedding", ""),
    op("aten", "batch_norm(input: Tensor, weight: Tensor?, bias: Tensor?, running_mean: Tensor?, running_var: Tensor?, training: bool, momentum: float, eps: float)", "aten.batch_norm", ""),
    op("aten", "max_pool1d(input: Tensor, kernel_size: ints, stride: ints = (), padding: ints = 0, dilation: ints = 1, ceil_mode: bool = False)", "aten.max_pool1d", ""),
    op("aten", "max_pool2d(input: Tensor, kernel_size: ints, stride: ints = (), padding: ints = 0, dilation: ints = 1, ceil_mode: bool = False)", "aten.max_pool2d", ""),
    op("aten", "max_pool3d(input: Tensor, kernel_size: ints, stride: ints = (), padding: ints = 0, dilation: ints = 1, ceil_mode: bool = False)", "aten.max_pool3d", ""),
    op("aten", "cross_entropy_loss(input: Tensor, target: Tensor, weight: Tensor?, reduction: int = 1, ignore_index: int = -100, label_smoothing: float = 0.0)", "aten.cross_entropy_loss", ""),
    op("aten", "nll_loss(input: Tensor, target: Tensor, weight: Tensor?, reduction: int = 1, ignore_index: int = -100)", "aten.nll_loss", ""),
    op("aten", "mse_loss(input: Tensor, target: Tensor, reduction: int = 1)", "aten.mse_loss", ""),
    op("aten", "upsample_nearest2d(input: Tensor, output_size: ints)", "aten.upsample_nearest2d", ""),
    op("aten", "upsample_bilinear2d(input: Tensor, output_size: ints, align_corners: bool)", "aten.upsample_bilinear2d", ""),
    op("aten", "var(input: Tensor, dim: ints?, *, correction: number = 1, keepdim: bool = False)", "aten.var", ""),
    op("aten", "std(input: Tensor, dim: ints?, *, correction: number = 1, keepdim: bool = False)", "aten.std", ""),
    op("aten", "max(input: Tensor, dim: int, keepdim: bool = False)", "aten.max", ""),
    op("aten", "min(input: Tensor, dim: int, keepdim: bool = False)", "aten.min", ""),
    op("aten", "clamp(input: Tensor, min: Operand?, max: Operand?)", "aten.clamp", ""),
    op("aten", "where(condition: Tensor, input: Operand, other: Operand)", "aten.where", ""),
    op("aten", "split(input: Tensor, split_size: int, dim: int = 0)", "aten.split", ""),
    op("aten", "split_with_sizes(input: Tensor, split_sizes: ints, dim: int = 0)", "aten.split_with_sizes", ""),
    op("aten", "repeat_interleave(input: Tensor, repeats: int, dim: int? = None)", "aten.repeat_interleave", ""),
    op("aten", "linalg_vector_norm(input: Tensor, ord: number = 2, dim: ints? = None, keepdim: bool = False)", "aten.linalg_vector_norm", ""),
    op("aten", "scatter(input: Tensor, dim: int, index: Tensor, src: Operand)", "aten.scatter", ""),
    op("aten", "index(input: Tensor, indices: Tensors)", "aten.index", ""),
];

# The modules of torch.nn, as inference computes them: dropout is the identity, normalisation uses running statistics.


class Module:
    """The base of all modules: weights and modules that are assigned to attributes belong to it."""

    def __init__(self):
        pass

    def eval(self):
        return self

    def train(self, mode=True):
        return self

    def requires_grad_(self, requires_grad=True):
        return self

    def apply(self, fn):
        return self

    def register_buffer(self, name, tensor, persistent=True):
        setattr(self, name, tensor)

    def register_parameter(self, name, param):
        setattr(self, name, param)

    def add_module(self, name, module):
        setattr(self, name, module)

    def children(self):
        return [m for n, m in _aten.fields(self) if isinstance(m, nn.Module)]

    def named_children(self):
        return [(n, m) for n, m in _aten.fields(self) if isinstance(m, nn.Module)]

    def parameters(self):
        out = []
        for n, v in _aten.fields(self):
            out += v.parameters() if isinstance(v, nn.Module) else [v]
        return out

    def to(self, *args, dtype=None, device=None):
        for a in args:
            if isinstance(a, torch.Tensor):
                dtype = a.dtype
            elif not isinstance(a, str) and a is not None and not isinstance(a, bool) and hasattr(a, 'itemsize'):
                dtype = a
        return self if dtype is None else _aten.cast_module(self, dtype)

    def half(self):
        return _aten.cast_module(self, torch.float16)

    def bfloat16(self):
        return _aten.cast_module(self, torch.bfloat16)

    def float(self):
        return _aten.cast_module(self, torch.float32)

    def double(self):
        return _aten.cast_module(self, torch.float64)

    def cpu(self):
        return self

    def cuda(self):
        return self


class Sequential(nn.Module):
    """Modules one after the other."""

    def __init__(self, *args):
        self._items = []
        named = args[0].items() if len(args) == 1 and isinstance(args[0], dict) else enumerate(args)
        for name, module in named:
            name = name if isinstance(name, str) else str(name)
            setattr(self, name, module)
            self._items.append(module)

    def append(self, module):
        setattr(self, str(len(self._items)), module)
        self._items.append(module)
        return self

    def forward(self, input):
        for module in self._items:
            input = module(input)
        return input


class ModuleList(nn.Module):
    """A list of modules."""

    def __init__(self, modules=()):
        self._items = []
        self.extend(modules)

    def append(self, module):
        setattr(self, str(len(self._items)), module)
        self._items.append(module)
        return self

    def extend(self, modules):
        for module in modules:
            self.append(module)
        return self


class ModuleDict(nn.Module):
    """Modules by name."""

    def __init__(self, modules=None):
        self._names = []
        if modules is not None:
            for name, module in modules.items():
                setattr(self, name, module)
                self._names.append(name)

    def items(self):
        return [(n, getattr(self, n)) for n in self._names]

    def keys(self):
        return self._names

    def values(self):
        return [getattr(self, n) for n in self._names]


class Identity(nn.Module):
    """The input itself."""

    def __init__(self, *args, **kwargs):
        pass

    def forward(self, input):
        return input


class Linear(nn.Module):
    """input @ weight.T + bias."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        self.in_features = in_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in_features) if in_features > 0 else 0.0
        self.weight = _aten.uniform(bound, (out_features, in_features), dtype)
        self.bias = _aten.uniform(bound, (out_features,), dtype) if bias else None

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)


class Bilinear(nn.Module):
    """x1 @ weight @ x2 + bias, for each output."""

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        bound = 1 / math.sqrt(in1_features)
        self.weight = _aten.uniform(bound, (out_features, in1_features, in2_features), dtype)
        self.bias = _aten.uniform(bound, (out_features,), dtype) if bias else None

    def forward(self, input1, input2):
        out = torch.einsum('...i,oij,...j->...o', input1, self.weight, input2)
        return out if self.bias is None else out + self.bias


class _Conv(nn.Module):
    def _build(self, n, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype):
        self.kernel_size = _pair(kernel_size, n)
        self.stride = _pair(stride, n)
        self.padding = padding if isinstance(padding, str) else _pair(padding, n)
        self.dilation = _pair(dilation, n)
        self.groups = groups
        self.in_channels = in_channels
        self.out_channels = out_channels
        assert padding_mode == 'zeros', "padding_mode must be 'zeros' here; use F.pad"
        assert in_channels % groups == 0 and out_channels % groups == 0, "the channels must be divisible by groups"
        fan = in_channels // groups * math.prod(self.kernel_size)
        bound = 1 / math.sqrt(fan)
        self.weight = _aten.uniform(bound, (out_channels, in_channels // groups) + self.kernel_size, dtype)
        self.bias = _aten.uniform(bound, (out_channels,), dtype) if bias else None


class Conv1d(_Conv):
    """Convolution over one dimension."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros', device=None, dtype=None):
        self._build(1, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype)

    def forward(self, input):
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Convolution over two dimensions."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros', device=None, dtype=None):
        self._build(2, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype)

    def forward(self, input):
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """Convolution over three dimensions."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros', device=None, dtype=None):
        self._build(3, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype)

    def forward(self, input):
        return F.conv3d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _ConvTranspose(nn.Module):
    def _build(self, n, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, dtype):
        kernel_size = _pair(kernel_size, n)
        bound = 1 / math.sqrt(out_channels // groups * math.prod(kernel_size))
        self.args = (_pair(stride, n), _pair(padding, n), _pair(output_padding, n), groups, _pair(dilation, n))
        self.weight = _aten.uniform(bound, (in_channels, out_channels // groups) + kernel_size, dtype)
        self.bias = _aten.uniform(bound, (out_channels,), dtype) if bias else None


class ConvTranspose1d(_ConvTranspose):
    """The transpose of a convolution over one dimension."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, device=None, dtype=None):
        self._build(1, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, dtype)

    def forward(self, input):
        return F.conv_transpose1d(input, self.weight, self.bias, *self.args)


class ConvTranspose2d(_ConvTranspose):
    """The transpose of a convolution over two dimensions."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, device=None, dtype=None):
        self._build(2, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, dtype)

    def forward(self, input):
        return F.conv_transpose2d(input, self.weight, self.bias, *self.args)


class ConvTranspose3d(_ConvTranspose):
    """The transpose of a convolution over three dimensions."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, device=None, dtype=None):
        self._build(3, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, dtype)

    def forward(self, input):
        return F.conv_transpose3d(input, self.weight, self.bias, *self.args)


class Embedding(nn.Module):
    """Rows of a table, by index."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, device=None, dtype=None):
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = _aten.normal((num_embeddings, embedding_dim), dtype)

    def forward(self, input):
        return F.embedding(input, self.weight)


class LayerNorm(nn.Module):
    """Rows with mean 0 and variance 1, scaled and shifted."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        self.normalized_shape = _pair(normalized_shape, 1)
        self.eps = eps
        self.weight = _aten.filled(1.0, self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = _aten.filled(0.0, self.normalized_shape, dtype) if elementwise_affine and bias else None

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Rows with root mean square 1, scaled."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        self.normalized_shape = _pair(normalized_shape, 1)
        self.eps = eps
        self.weight = _aten.filled(1.0, self.normalized_shape, dtype) if elementwise_affine else None

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(nn.Module):
    """Groups of channels with mean 0 and variance 1, scaled and shifted."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        self.num_groups = num_groups
        self.eps = eps
        self.weight = _aten.filled(1.0, (num_channels,), dtype) if affine else None
        self.bias = _aten.filled(0.0, (num_channels,), dtype) if affine else None

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None):
        assert track_running_stats, "track_running_stats=False is not supported here"
        self.eps = eps
        self.weight = _aten.filled(1.0, (num_features,), dtype) if affine else None
        self.bias = _aten.filled(0.0, (num_features,), dtype) if affine else None
        self.running_mean = _aten.filled(0.0, (num_features,), dtype)
        self.running_var = _aten.filled(1.0, (num_features,), dtype)

    def forward(self, input):
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, False, 0.1, self.eps)


class BatchNorm1d(_BatchNorm):
    """Channels with mean 0 and variance 1 by running statistics, scaled and shifted."""


class BatchNorm2d(_BatchNorm):
    """Channels with mean 0 and variance 1 by running statistics, scaled and shifted."""


class BatchNorm3d(_BatchNorm):
    """Channels with mean 0 and variance 1 by running statistics, scaled and shifted."""


class InstanceNorm1d(nn.Module):
    """Each channel of each sample with mean 0 and variance 1."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False):
        self.eps = eps
        self.weight = _aten.filled(1.0, (num_features,)) if affine else None
        self.bias = _aten.filled(0.0, (num_features,)) if affine else None

    def forward(self, input):
        return F.instance_norm(input, None, None, self.weight, self.bias, True, 0.1, self.eps)


class InstanceNorm2d(nn.InstanceNorm1d):
    """Each channel of each sample with mean 0 and variance 1."""


class Dropout(nn.Module):
    """The input itself: models are evaluated, not trained."""

    def __init__(self, p=0.5, inplace=False):
        self.p = p

    def forward(self, input):
        return input


class Dropout1d(nn.Dropout):
    """The input itself."""


class Dropout2d(nn.Dropout):
    """The input itself."""


class Flatten(nn.Module):
    """Dimensions joined into one."""

    def __init__(self, start_dim=1, end_dim=-1):
        self.dims = (start_dim, end_dim)

    def forward(self, input):
        return input.flatten(*self.dims)


class Unflatten(nn.Module):
    """One dimension split into several."""

    def __init__(self, dim, unflattened_size):
        self.args = (dim, unflattened_size)

    def forward(self, input):
        return input.unflatten(*self.args)


class ReLU(nn.Module):
    """max(input, 0)."""

    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.relu(input)


class ReLU6(nn.Module):
    """The input between 0 and 6."""

    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.relu6(input)


class LeakyReLU(nn.Module):
    """The input, or negative_slope times it below 0."""

    def __init__(self, negative_slope=0.01, inplace=False):
        self.negative_slope = negative_slope

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope)


class PReLU(nn.Module):
    """The input, or a weight times it below 0."""

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        self.weight = _aten.filled(init, (num_parameters,), dtype)

    def forward(self, input):
        return F.prelu(input, self.weight)


class ELU(nn.Module):
    """The input, or alpha * (exp(input) - 1) below 0."""

    def __init__(self, alpha=1.0, inplace=False):
        self.alpha = alpha

    def forward(self, input):
        return F.elu(input, self.alpha)


class SELU(nn.Module):
    """ELU, scaled so that deep networks keep mean and variance."""

    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.selu(input)


class CELU(nn.Module):
    """The input, or alpha * (exp(input / alpha) - 1) below 0."""

    def __init__(self, alpha=1.0, inplace=False):
        self.alpha = alpha

    def forward(self, input):
        return F.celu(input, self.alpha)


class GELU(nn.Module):
    """The input times the normal distribution's integral."""

    def __init__(self, approximate='none'):
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)


class SiLU(nn.Module):
    """input * sigmoid(input)."""

    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.silu(input)


class Mish(nn.Module):
    """input * tanh(softplus(input))."""

    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.mish(input)


class Sigmoid(nn.Module):
    """1 / (1 + exp(-input))."""

    def forward(self, input):
        return torch.sigmoid(input)


class LogSigmoid(nn.Module):
    """log(sigmoid(input))."""

    def forward(self, input):
        return F.logsigmoid(input)


class Tanh(nn.Module):
    """The hyperbolic tangent."""

    def forward(self, input):
        return torch.tanh(input)


class Tanhshrink(nn.Module):
    """input - tanh(input)."""

    def forward(self, input):
        return F.tanhshrink(input)


class Hardsigmoid(nn.Module):
    """A straight line in place of the sigmoid."""

    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.hardsigmoid(input)


class Hardswish(nn.Module):
    """input * hardsigmoid(input)."""

    def __init__(self, inplace=False):
        self.inplace = inplace

    def forward(self, input):
        return F.hardswish(input)


class Hardtanh(nn.Module):
    """The input between two bounds."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        self.args = (min_val, max_val)

    def forward(self, input):
        return F.hardtanh(input, *self.args)


class Hardshrink(nn.Module):
    """The input, or 0 near 0."""

    def __init__(self, lambd=0.5):
        self.lambd = lambd

    def forward(self, input):
        return F.hardshrink(input, self.lambd)


class Softshrink(nn.Module):
    """The input moved towards 0."""

    def __init__(self, lambd=0.5):
        self.lambd = lambd

    def forward(self, input):
        return F.softshrink(input, self.lambd)


class Softplus(nn.Module):
    """log(1 + exp(beta * input)) / beta."""

    def __init__(self, beta=1.0, threshold=20.0):
        self.args = (beta, threshold)

    def forward(self, input):
        return F.softplus(input, *self.args)


class Softsign(nn.Module):
    """input / (1 + |input|)."""

    def forward(self, input):
        return F.softsign(input)


class Softmax(nn.Module):
    """Exponentials over their sum along a dimension."""

    def __init__(self, dim=None):
        self.dim = dim

    def forward(self, input):
        return F.softmax(input, self.dim)


class LogSoftmax(nn.Module):
    """The logarithm of softmax."""

    def __init__(self, dim=None):
        self.dim = dim

    def forward(self, input):
        return F.log_softmax(input, self.dim)


class GLU(nn.Module):
    """One half times the sigmoid of the other."""

    def __init__(self, dim=-1):
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)


class _MaxPool(nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        assert not return_indices, "return_indices=True is not supported here"
        self.args = (kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


class MaxPool1d(_MaxPool):
    """The greatest elements of windows."""

    def forward(self, input):
        return F.max_pool1d(input, *self.args)


class MaxPool2d(_MaxPool):
    """The greatest elements of windows."""

    def forward(self, input):
        return F.max_pool2d(input, *self.args)


class MaxPool3d(_MaxPool):
    """The greatest elements of windows."""

    def forward(self, input):
        return F.max_pool3d(input, *self.args)


class AvgPool1d(nn.Module):
    """Means of windows."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        self.args = (kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad)

    def forward(self, input):
        return F.avg_pool1d(input, *self.args)


class AvgPool2d(nn.Module):
    """Means of windows."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        self.args = (kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad, divisor_override)

    def forward(self, input):
        return F.avg_pool2d(input, *self.args)


class AdaptiveAvgPool1d(nn.Module):
    """Means of windows, one for each output element."""

    def __init__(self, output_size):
        self.output_size = output_size

    def forward(self, input):
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(nn.Module):
    """Means of windows, one for each output element."""

    def __init__(self, output_size):
        self.output_size = output_size

    def forward(self, input):
        size = [input.shape[i - 2] if s is None else s for i, s in enumerate(_pair(self.output_size))]
        return F.adaptive_avg_pool2d(input, size)


class ZeroPad2d(nn.Module):
    """Zeros around a picture."""

    def __init__(self, padding):
        self.padding = _pair(padding, 4)

    def forward(self, input):
        return F.pad(input, self.padding)


class Upsample(nn.Module):
    """A picture in another size, by nearest pixels or bilinearly."""

    def __init__(self, size=None, scale_factor=None, mode='nearest', align_corners=None):
        self.args = (size, scale_factor, mode, align_corners)

    def forward(self, input):
        return F.interpolate(input, *self.args)


class PixelShuffle(nn.Module):
    """Channels spread over pixels."""

    def __init__(self, upscale_factor):
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)


class CosineSimilarity(nn.Module):
    """The cosine of the angle between vectors along a dimension."""

    def __init__(self, dim=1, eps=1e-8):
        self.args = (dim, eps)

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, *self.args)


class CrossEntropyLoss(nn.Module):
    """The negative log-likelihood of classes, from scores."""

    def __init__(self, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0):
        self.args = (weight, ignore_index, reduction, label_smoothing)

    def forward(self, input, target):
        return F.cross_entropy(input, target, *self.args)


class NLLLoss(nn.Module):
    """The negative log-likelihood of classes, from log-probabilities."""

    def __init__(self, weight=None, ignore_index=-100, reduction='mean'):
        self.args = (weight, ignore_index, reduction)

    def forward(self, input, target):
        return F.nll_loss(input, target, *self.args)


class MSELoss(nn.Module):
    """The mean squared difference."""

    def __init__(self, reduction='mean'):
        self.reduction = reduction

    def forward(self, input, target):
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(nn.Module):
    """The mean absolute difference."""

    def __init__(self, reduction='mean'):
        self.reduction = reduction

    def forward(self, input, target):
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(nn.Module):
    """Squared near 0, absolute elsewhere."""

    def __init__(self, reduction='mean', beta=1.0):
        self.args = (reduction, beta)

    def forward(self, input, target):
        return F.smooth_l1_loss(input, target, *self.args)


class BCELoss(nn.Module):
    """The cross entropy of probabilities."""

    def __init__(self, reduction='mean'):
        self.reduction = reduction

    def forward(self, input, target):
        return F.binary_cross_entropy(input, target, reduction=self.reduction)


class BCEWithLogitsLoss(nn.Module):
    """The cross entropy of probabilities, from scores."""

    def __init__(self, reduction='mean'):
        self.reduction = reduction

    def forward(self, input, target):
        return F.binary_cross_entropy_with_logits(input, target, reduction=self.reduction)


class MultiheadAttention(nn.Module):
    """Attention of several heads, with projections of query, key, value and result."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, batch_first=False, device=None, dtype=None):
        assert embed_dim % num_heads == 0, "embed_dim must be divisible by num_heads"
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.batch_first = batch_first
        self.in_proj_weight = _aten.uniform(math.sqrt(1.5 / embed_dim), (3 * embed_dim, embed_dim), dtype)
        self.in_proj_bias = _aten.filled(0.0, (3 * embed_dim,), dtype) if bias else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias, dtype=dtype)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        batched = query.dim() == 3
        swapped = batched and not self.batch_first
        q, k, v = query, key, value
        if not batched:
            q, k, v = q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)
        if swapped:
            q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
        e, h = self.embed_dim, self.num_heads
        parts = []
        for i, x in enumerate((q, k, v)):
            w = self.in_proj_weight[i * e:(i + 1) * e]
            b = None if self.in_proj_bias is None else self.in_proj_bias[i * e:(i + 1) * e]
            x = F.linear(x, w, b)
            parts.append(x.reshape(x.shape[0], x.shape[1], h, e // h).transpose(1, 2))
        q, k, v = parts
        mask = None
        if attn_mask is not None:
            mask = self._additive(attn_mask, q)
            if mask.dim() == 3:
                mask = mask.unflatten(0, (q.shape[0], h)) if batched else mask.unsqueeze(0)
        if key_padding_mask is not None:
            if key_padding_mask.dim() == 1:
                key_padding_mask = key_padding_mask.unsqueeze(0)
            padding = self._additive(key_padding_mask, q).unsqueeze(1).unsqueeze(1)
            mask = padding if mask is None else mask + padding
        if need_weights:
            scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(e // h))
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            out = weights @ v
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask)
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        if swapped:
            out = out.transpose(0, 1)
        if not batched:
            out = out.squeeze(0)
        if not need_weights:
            return out, None
        if average_attn_weights:
            weights = weights.mean(1)
        return out, weights if batched else weights.squeeze(0)

    def _additive(self, mask, like):
        if mask.dtype == torch.bool:
            return torch.zeros(mask.shape, dtype=like.dtype).masked_fill(mask, -math.inf)
        return mask


class TransformerEncoderLayer(nn.Module):
    """Self-attention and two linear layers, each with a residual and a layer norm."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        self.self_attn = nn.MultiheadAttention(d_model, nhead, bias=bias, batch_first=batch_first, dtype=dtype)
        self.linear1 = nn.Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.linear2 = nn.Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm1 = nn.LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = nn.LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.activation = {'relu': F.relu, 'gelu': F.gelu}[activation] if isinstance(activation, str) else activation

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._feed(x))

    def _attend(self, x, mask, padding):
        return self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]

    def _feed(self, x):
        return self.linear2(self.activation(self.linear1(x)))


class TransformerEncoder(nn.Module):
    """Encoder layers one after the other."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True):
        assert num_layers == 1, "layers cannot be copied here; write nn.Sequential(...) of TransformerEncoderLayer"
        self.layers = nn.ModuleList([encoder_layer])
        self.norm = norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)

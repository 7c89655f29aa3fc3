# Functions made of others. Each says where it is found: torch, Tensor (a method), F (torch.nn.functional), linalg (torch.linalg).


def _reduction(reduction):
    return ['none', 'mean', 'sum'].index(reduction)


def _pair(value, n=2):
    return (value,) * n if isinstance(value, int) else tuple(value)


@on('torch Tensor')
def max(input, dim=None, keepdim=False, other=None):
    """The greatest element of all; along a dimension, with where it is; or of two tensors."""
    if isinstance(dim, torch.Tensor):
        return torch.maximum(input, dim)
    if other is not None:
        return torch.maximum(input, other)
    return torch.amax(input) if dim is None else _aten.max(input, dim, keepdim)


@on('torch Tensor')
def min(input, dim=None, keepdim=False, other=None):
    """The smallest element of all; along a dimension, with where it is; or of two tensors."""
    if isinstance(dim, torch.Tensor):
        return torch.minimum(input, dim)
    if other is not None:
        return torch.minimum(input, other)
    return torch.amin(input) if dim is None else _aten.min(input, dim, keepdim)


@on('torch Tensor')
def clamp(input, min=None, max=None):
    """The input, not below min and not above max."""
    return _aten.clamp(input, min, max)


@on('torch Tensor')
def clip(input, min=None, max=None):
    """The same as clamp."""
    return _aten.clamp(input, min, max)


@on('Tensor torch')
def clamp_min(input, min):
    """The input, not below min."""
    return _aten.clamp(input, min, None)


@on('Tensor torch')
def clamp_max(input, max):
    """The input, not above max."""
    return _aten.clamp(input, None, max)


@on('torch')
def where(condition, input, other):
    """input where the condition holds, else other."""
    return _aten.where(condition, input, other)


@on('Tensor')
def where(input, condition, other):
    """The tensor where the condition holds, else other."""
    return _aten.where(condition, input, other)


def _correction(unbiased, correction):
    return correction if unbiased is None else (1 if unbiased else 0)


@on('torch Tensor')
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=1):
    """The variance over dimensions, or over all."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return _aten.var(input, dim, correction=_correction(unbiased, correction), keepdim=keepdim)


@on('torch Tensor')
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=1):
    """The standard deviation over dimensions, or over all."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return _aten.std(input, dim, correction=_correction(unbiased, correction), keepdim=keepdim)


@on('torch')
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=1):
    """The variance and the mean."""
    v = _aten.var(input, dim, correction=_correction(unbiased, correction), keepdim=keepdim)
    return v, torch.mean(input, dim, keepdim)


@on('torch Tensor')
def norm(input, p=2, dim=None, keepdim=False):
    """The p-norm over dimensions, or over all."""
    return _aten.linalg_vector_norm(input, 2 if p == 'fro' else p, dim, keepdim)


@on('linalg')
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The p-norm of the elements along dimensions, or of all."""
    return _aten.linalg_vector_norm(x if dtype is None else x.to(dtype), ord, dim, keepdim)


@on('torch Tensor')
def split(tensor, split_size, dim=0):
    """Parts of a size, or of a list of sizes."""
    if isinstance(split_size, int):
        return _aten.split(tensor, split_size, dim)
    return _aten.split_with_sizes(tensor, split_size, dim)


@on('torch Tensor')
def repeat_interleave(input, repeats, dim=None):
    """Each element repeated."""
    return _aten.repeat_interleave(input, repeats, dim)


@on('torch Tensor')
def scatter(input, dim, index, src=None, value=None):
    """Elements replaced at indices along a dimension."""
    return _aten.scatter(input, dim, index, value if src is None else src)


@on('Tensor')
def unfold(input, dimension, size, step):
    """Windows of a dimension, each a new last dimension."""
    n = (input.shape[dimension] - size) // step + 1
    starts = torch.arange(n).unsqueeze(1) * step + torch.arange(size)
    rank = input.dim()
    dimension = dimension % rank
    out = torch.index_select(input, dimension, starts.flatten()).unflatten(dimension, (n, size))
    return out.movedim(dimension + 1, -1)


@on('torch')
def meshgrid(*tensors, indexing='ij'):
    """Each vector stretched over a grid of all."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    n = len(tensors)
    order = list(range(n))
    if indexing == 'xy' and n > 1:
        order = [1, 0] + order[2:]
    shape = [0] * n
    for i in range(n):
        shape[order[i]] = tensors[i].shape[0]
    out = []
    for i in range(n):
        one = [1] * n
        one[order[i]] = tensors[i].shape[0]
        out.append(tensors[i].reshape(one).expand(shape))
    return tuple(out)


@on('torch')
def chain_matmul(*matrices):
    """The product of several matrices, from the left."""
    out = matrices[0]
    for m in matrices[1:]:
        out = out @ m
    return out


@on('torch Tensor')
def ravel(input):
    """All elements in one dimension."""
    return input.flatten()


@on('torch')
def hstack(tensors):
    """Tensors one after the other along the second dimension (of vectors: the first)."""
    return torch.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


@on('torch')
def vstack(tensors):
    """Tensors one after the other along the first dimension; vectors are rows."""
    return torch.cat([t.unsqueeze(0) if t.dim() == 1 else t for t in tensors], 0)


@on('torch')
def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    return other - input * alpha if alpha != 1 else other - input


@on('F')
def embedding(input, weight, padding_idx=None):
    """Rows of the weight, by index."""
    return _aten.embedding(weight, input)


@on('F')
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Channels with mean 0 and variance 1 by running statistics, scaled and shifted."""
    assert not training, "batch_norm is computed with running statistics; training=True is not supported"
    return _aten.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@on('F')
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """Each channel of each sample with mean 0 and variance 1."""
    return F.group_norm(input, input.shape[1], weight, bias, eps)


@on('F')
def normalize(input, p=2.0, dim=1, eps=1e-12):
    """The input over its p-norm along a dimension."""
    return input / _aten.linalg_vector_norm(input, p, dim, True).clamp_min(eps).expand_as(input)


@on('F')
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along a dimension."""
    n1 = _aten.linalg_vector_norm(x1, 2, dim).clamp_min(eps)
    n2 = _aten.linalg_vector_norm(x2, 2, dim).clamp_min(eps)
    return (x1 * x2).sum(dim) / (n1 * n2)


@on('F')
def dropout(input, p=0.5, training=True):
    """The input itself: models are evaluated, not trained."""
    return input


@on('F')
def softmin(input, dim):
    """The softmax of the negated input."""
    return F.softmax(-input, dim)


@on('F')
def softsign(input):
    """input / (1 + |input|)."""
    return input / (input.abs() + 1)


@on('F')
def tanhshrink(input):
    """input - tanh(input)."""
    return input - input.tanh()


@on('F')
def threshold(input, threshold, value):
    """The input above a threshold, else a value."""
    return torch.where(input > threshold, input, value)


@on('F')
def max_pool1d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The greatest elements of windows."""
    return _aten.max_pool1d(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


@on('F')
def max_pool2d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The greatest elements of windows."""
    return _aten.max_pool2d(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


@on('F')
def max_pool3d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The greatest elements of windows."""
    return _aten.max_pool3d(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


@on('F')
def interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None):
    """A picture in another size, by nearest pixels or bilinearly."""
    assert input.dim() == 4, "interpolate takes a tensor of 4 dimensions here"
    if size is None:
        h, w = _pair(scale_factor) if isinstance(scale_factor, (int, tuple, list)) else (scale_factor, scale_factor)
        size = (int(input.shape[2] * h), int(input.shape[3] * w))
    size = _pair(size)
    if mode == 'nearest':
        return _aten.upsample_nearest2d(input, size)
    assert mode == 'bilinear', "the mode must be 'nearest' or 'bilinear' here"
    return _aten.upsample_bilinear2d(input, size, bool(align_corners))


@on('F')
def cross_entropy(input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0):
    """The negative log-likelihood of classes, from scores."""
    return _aten.cross_entropy_loss(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)


@on('F')
def nll_loss(input, target, weight=None, ignore_index=-100, reduction='mean'):
    """The negative log-likelihood of classes, from log-probabilities."""
    return _aten.nll_loss(input, target, weight, _reduction(reduction), ignore_index)


def _reduce(loss, reduction):
    if reduction == 'none':
        return loss
    return loss.sum() if reduction == 'sum' else loss.mean()


@on('F')
def mse_loss(input, target, reduction='mean'):
    """The mean squared difference."""
    return _aten.mse_loss(input, target, _reduction(reduction))


@on('F')
def l1_loss(input, target, reduction='mean'):
    """The mean absolute difference."""
    return _reduce((input - target).abs(), reduction)


@on('F')
def smooth_l1_loss(input, target, reduction='mean', beta=1.0):
    """Squared near 0, absolute elsewhere."""
    d = (input - target).abs()
    return _reduce(torch.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta), reduction)


@on('F')
def huber_loss(input, target, reduction='mean', delta=1.0):
    """Squared near 0, absolute elsewhere."""
    d = (input - target).abs()
    return _reduce(torch.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta), reduction)


@on('F')
def binary_cross_entropy(input, target, reduction='mean'):
    """The cross entropy of probabilities."""
    low = input.log().clamp_min(-100)
    return _reduce(-(target * low + (1 - target) * (1 - input).log().clamp_min(-100)), reduction)


@on('F')
def binary_cross_entropy_with_logits(input, target, reduction='mean'):
    """The cross entropy of probabilities, from scores."""
    return _reduce(F.softplus(-input.abs()) + input.clamp_min(0) - input * target, reduction)


@on('F')
def kl_div(input, target, reduction='mean', log_target=False):
    """The divergence of log-probabilities from probabilities."""
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = torch.where(target > 0, target * target.log(), 0.0) - target * input
    return loss.sum() / input.shape[0] if reduction == 'batchmean' else _reduce(loss, reduction)

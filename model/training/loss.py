"""Label-smoothed cross-entropy over the vocabulary, without ever holding all the logits.

The logits of a batch (4,000 target tokens x 8,000 word pieces x 4 bytes) outgrow a CPU's caches many times over, and
the usual log-softmax, loss and their gradients walk through them ten times. Here each chunk of tokens is turned into
its gradients while it is still in cache, during the forward pass (the idea of fused linear cross-entropy, Hsu et al.
2024).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 256
"""Tokens per chunk: 256 x 8,000 x 4 bytes is 8 MB."""


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float, r_drop: float = 0.0
) -> Tensor:
    """Mean label-smoothed cross-entropy of softmax(hidden @ weight.T), and R-Drop's divergence of two passes.

    Args:
        hidden: (N, E).
        weight: (V, E), the output projection.
        targets: (N) token ids.
        label_smoothing: share of the probability mass spread evenly over the vocabulary (Szegedy et al. 2016).
        r_drop: weight of `divergence`; over 0, the halves of hidden and targets are the same tokens, passed twice.

    Returns:
        scalar, in nats per token; equal to `F.cross_entropy(logits, targets, label_smoothing=...)` plus
        `r_drop * divergence(logits)`, with logits = hidden @ weight.T.
    """
    loss: Tensor = _LinearCrossEntropy.apply(hidden, weight, targets, label_smoothing, r_drop)  # type: ignore[no-untyped-call]
    return loss


def divergence(logits: Tensor) -> Tensor:
    """How far two passes through a model with dropout are from each other (R-Drop, Liang et al. 2021).

    Args:
        logits: (2N, V), of the first pass and then of the second.

    Returns:
        scalar, the mean over N of the mean of both Kullback-Leibler divergences, in nats, halved: by it a mean of both
        passes' cross-entropies is regularized as the paper does their sum.
    """
    p, q = F.log_softmax(logits.float(), dim=-1).chunk(2)
    return ((p.exp() - q.exp()) * (p - q)).sum(dim=-1).mean() / 4


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float, r_drop: float
    ) -> Tensor:
        N, V = hidden.shape[0], weight.shape[0]
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        order = _chunked(N, 2 if r_drop else 1).to(hidden.device)
        hidden_ = F.pad(hidden.to(dtype), (0, 0, 0, 1))[order]
        targets_ = F.pad(targets, (0, 1))[order].unsqueeze(1)
        shares = (order < N).unsqueeze(1) / N  # of a token in the mean; padding has no gradient
        hidden_grad = torch.empty_like(hidden_)
        weight_grad = torch.zeros_like(weight)
        loss = torch.zeros((), device=hidden.device)
        weight_ = weight.to(dtype)
        # Smoothing needs the mean logit alone, and has the same gradient whatever the token: no pass over (chunk, V).
        mean_weight = weight.float().mean(dim=0)
        with torch.autocast(device, enabled=False):
            for h, t, share, h_grad in zip(
                *(torch.split(tensor, CHUNK) for tensor in (hidden_, targets_, shares, hidden_grad)), strict=True
            ):
                logits = (h @ weight_.T).float()  # (chunk, V)
                correct = logits.gather(1, t)
                smoothed = (1 - label_smoothing) * correct + label_smoothing * (h.float() @ mean_weight).unsqueeze(1)
                difference = logits[: CHUNK // 2] - logits[CHUNK // 2 :] if r_drop else None
                highest = logits.amax(dim=-1, keepdim=True)
                exponentials = logits.sub_(highest).exp_()
                total = exponentials.sum(dim=-1, keepdim=True)
                normalizer = highest + total.log()
                loss += ((normalizer - smoothed) * share).sum()
                if difference is None:
                    grad = exponentials.mul_(share / total)
                else:
                    first, second = normalizer.chunk(2)
                    grad, apart = _diverging(exponentials.div_(total), difference.sub_(first - second), r_drop / 2)
                    loss += (apart * share).sum()
                    grad *= share
                grad = grad.scatter_add_(1, t, (label_smoothing - 1) * share).to(dtype)
                torch.mm(grad, weight_, out=h_grad)
                weight_grad += grad.T @ h
        weight_grad -= label_smoothing / V * (hidden_.float() * shares).sum(dim=0)
        in_order = torch.empty(N + 1, hidden.shape[1], dtype=dtype, device=hidden.device)
        in_order[order] = hidden_grad
        ctx.save_for_backward(
            in_order[:N].to(hidden.dtype) - (label_smoothing / N * mean_weight).to(hidden.dtype), weight_grad
        )
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden_grad, weight_grad = ctx.saved_tensors
        return hidden_grad * gradients[0], weight_grad * gradients[0], None, None, None


def _chunked(n: int, passes: int) -> Tensor:
    """The tokens 0 .. n-1 of so many equal passes, chunk by chunk, with as many of each pass; n stands for padding.

    Whole chunks only, because a product of a new shape is compiled first.
    """
    size = CHUNK // passes
    tokens = F.pad(torch.arange(n).view(passes, -1), (0, -(n // passes) % size), value=n)
    return tokens.view(passes, -1, size).transpose(0, 1).flatten()


def _diverging(probabilities: Tensor, difference: Tensor, weight: float) -> tuple[Tensor, Tensor]:
    """Gradients of cross-entropy and divergence together, less the former's one at the target.

    Args:
        probabilities: (2n, V) of the first pass and of the second; overwritten.
        difference: (n, V) of the first pass's log-probabilities from the second's; overwritten.
        weight: of the mean of both Kullback-Leibler divergences, per token of a pass.

    Returns:
        (2n, V), by logits; (2n, 1), the weighted divergence of each token.
    """
    p, q = probabilities.chunk(2)
    kl_p, kl_q = (torch.linalg.vecdot(x, difference).unsqueeze(1) for x in (p, q))  # KL(p|q), -KL(q|p)
    gradient = torch.cat(
        [
            (difference - (kl_p - 1 - 1 / weight)).mul_(p).sub_(q),
            difference.neg_().add_(kl_q + 1 + 1 / weight).mul_(q).sub_(p),
        ]
    ).mul_(weight)
    apart = weight / 2 * (kl_p - kl_q)
    return gradient, torch.cat([apart, apart])

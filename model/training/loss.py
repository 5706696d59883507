"""Label-smoothed cross-entropy over the vocabulary, without ever holding all the logits.

The logits of a batch (4,000 target tokens x 8,000 word pieces x 4 bytes) outgrow a CPU's caches many times over, and
log-softmax, loss and gradients usually pass over them ten times. Here each chunk of tokens becomes gradients while it
is in cache, during the forward pass (the idea of fused linear cross-entropy, Hsu et al. 2024).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 256
"""Tokens per chunk: 256 x 8,000 x 4 bytes is 8 MB."""


def linear_cross_entropy(hidden: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
    """Return the mean label-smoothed cross-entropy of softmax(hidden @ weight.T).

    Args:
        hidden: (N, E).
        weight: (V, E), the output projection.
        targets: (N) token ids.
        label_smoothing: share of the probability mass spread evenly over the vocabulary (Szegedy et al. 2016).

    Returns:
        A scalar, in nats per token; equal to `F.cross_entropy(hidden @ weight.T, targets, label_smoothing=...)`, and 0
            without tokens.
        no tokens.
    """
    loss: Tensor = _LinearCrossEntropy.apply(hidden, weight, targets, label_smoothing)  # type: ignore[no-untyped-call]
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        N, V = hidden.shape[0], weight.shape[0]
        n_tokens = max(N, 1)
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        # Whole chunks only, because a product of a new shape is compiled first; padding has no gradient.
        padding = -N % CHUNK
        hidden_ = F.pad(hidden.to(dtype), (0, 0, 0, padding))
        targets_ = F.pad(targets, (0, padding)).unsqueeze(1)
        shares = (torch.arange(N + padding, device=hidden.device) < N).unsqueeze(1) / n_tokens  # token weights
        hidden_grad = torch.empty_like(hidden_)
        weight_grad = torch.zeros_like(weight)
        loss = torch.zeros((), device=hidden.device)
        weight_ = weight.to(dtype)
        # Smoothing needs only the mean logit, and its gradient is the same for all tokens: no pass over (chunk, V).
        mean_weight = weight.float().mean(dim=0)
        with torch.autocast(device, enabled=False):
            for h, t, share, h_grad in zip(
                *(torch.split(tensor, CHUNK) for tensor in (hidden_, targets_, shares, hidden_grad)), strict=True
            ):
                logits = (h @ weight_.T).float()  # (chunk, V)
                correct = logits.gather(1, t)
                smoothed = (1 - label_smoothing) * correct + label_smoothing * (h.float() @ mean_weight).unsqueeze(1)
                highest = logits.amax(dim=-1, keepdim=True)
                exponentials = logits.sub_(highest).exp_()
                total = exponentials.sum(dim=-1, keepdim=True)
                loss += ((highest + total.log() - smoothed) * share).sum()
                grad = exponentials.mul_(share / total)
                grad = grad.scatter_add_(1, t, (label_smoothing - 1) * share).to(dtype)
                torch.mm(grad, weight_, out=h_grad)
                weight_grad += grad.T @ h
        weight_grad -= label_smoothing / V * (hidden_.float() * shares).sum(dim=0)
        hidden_grad = hidden_grad[:N].to(hidden.dtype) - (label_smoothing / n_tokens * mean_weight).to(hidden.dtype)
        ctx.save_for_backward(hidden_grad, weight_grad)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_grad, weight_grad = ctx.saved_tensors
        return hidden_grad * gradients[0], weight_grad * gradients[0], None, None

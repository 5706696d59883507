"""Pre-training of an encoder on texts without labels: which of their tokens are not the text's own?

A small generator guesses tokens that are masked, and its guesses take their places; the encoder tells for each token of
the result whether it was replaced. So it learns from every token, and from texts without masks, as it will read them
(Clark et al. 2020, "ELECTRA").

Legend: B batch, S source, M masked tokens, E d_model, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.batching import MaskedBatch
from model.networks.attention import masked
from model.networks.masks import padding_mask
from model.networks.transformer import Encoder, TransformerClassifier
from model.training.loss import linear_cross_entropy

DETECTION_WEIGHT = 50.0
"""Of the detector's loss beside the generator's, which is much larger (Clark et al. 2020, section 3.1)."""


class ReplacedTokenDetection(nn.Module):
    """A classifier's embedding and encoder, and what they are pre-trained with.

    Args:
        model: whose embedding and encoder are trained, in place.
        generator_layers: layers of the generator, which shares the embedding; a better one is no better teacher.
    """

    def __init__(self, model: TransformerClassifier, generator_layers: int) -> None:
        super().__init__()
        self.embedding, self.encoder = model.embedding, model.encoder
        self.generator = Encoder(generator_layers, model.config)
        width = model.config.d_model
        self.detector = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, batch: MaskedBatch) -> Tensor:
        """The loss of both, a scalar in nats a token."""
        real = padding_mask(batch.lengths, batch.ids.shape[1])  # (B, S)
        hidden = self.generator(self.embedding(batch.ids), masked(real[:, None, None, :]))[batch.masked]  # (M, E)
        own = batch.targets[batch.masked]
        vocabulary = self.embedding.tokens.weight
        generation = linear_cross_entropy(hidden, vocabulary, own, label_smoothing=0.0)
        ids = batch.targets.masked_scatter(batch.masked, _sampled(hidden, vocabulary))
        is_replaced = (ids != batch.targets)[real].float()
        detection = F.binary_cross_entropy_with_logits(self.scores(ids, real)[real].float(), is_replaced)
        return generation + DETECTION_WEIGHT * detection

    def scores(self, ids: Tensor, real: Tensor) -> Tensor:
        """ids (B, S), of which some are no padding (B, S): the logit of each being a replacement (B, S)."""
        hidden = self.encoder(self.embedding(ids), masked(real[:, None, None, :]))
        logits: Tensor = self.detector(hidden).squeeze(-1)
        return logits


@torch.no_grad()
def _sampled(hidden: Tensor, vocabulary: Tensor) -> Tensor:
    """A token (M) for each of hidden (M, E), drawn from its softmax by one random number: (M, V) of them take longer
    than the step."""
    sums = F.linear(hidden, vocabulary).float().softmax(dim=-1).cumsum(dim=-1)  # (M, V)
    drawn = torch.rand(len(sums), 1, device=sums.device) * sums[:, -1:]
    return torch.searchsorted(sums, drawn).squeeze(1).clamp(max=sums.shape[1] - 1)

"""Ranks texts by the logit that a model with one label gives to each, read together with a query."""

import numpy as np

from service.schemas.answers import Prediction, Ranked
from service.schemas.requests import RerankRequest
from service.tasks.scores import scores_of


def ranked(predictions: list[Prediction], request: RerankRequest) -> list[Ranked]:
    """Return the texts by falling score, equal ones in order. Scores are from 0 to 1, whatever the model's activation.

    Args:
        predictions: one for each text, with its logit.
    """
    logits = np.array([only_logit(prediction) for prediction in predictions])
    scores = (logits if request.raw_scores else scores_of(logits, "sigmoid")).tolist()
    texts = request.texts if request.return_text else [None] * len(scores)
    order = np.argsort(-logits, kind="stable")[: request.top_n].tolist()
    return [Ranked(index=i, score=scores[i], text=texts[i]) for i in order]


def only_logit(prediction: Prediction) -> float:
    """Return the logit of a model with one label."""
    assert prediction.logits is not None, "they were requested"
    (logit,) = prediction.logits.values()
    return logit

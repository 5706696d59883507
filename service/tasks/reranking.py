"""Ranks texts by the logits of a model with one label, which reads each text together with the query."""

import numpy as np

from service.schemas.answers import Prediction, Ranked
from service.schemas.requests import RerankRequest
from service.tasks.scores import scores_of


def ranked(predictions: list[Prediction], request: RerankRequest) -> list[Ranked]:
    """Return the texts by falling score, and texts with equal scores in order. Scores are from 0 to 1, whatever the
    model's activation. Each text has a prediction, with its logit."""
    logits = np.array([only_logit(prediction) for prediction in predictions])
    scores = (logits if request.raw_scores else scores_of(logits, "sigmoid")).tolist()
    texts = request.texts if request.return_text else [None] * len(scores)
    order = np.argsort(-logits, kind="stable")[: request.top_n].tolist()
    return [Ranked(index=i, score=scores[i], text=texts[i]) for i in order]


def only_logit(prediction: Prediction) -> float:
    """Return the logit of a model with one label."""
    assert prediction.logits is not None, "logits were requested"
    (logit,) = prediction.logits.values()
    return logit

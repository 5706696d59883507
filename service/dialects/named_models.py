"""Models that a path names."""

from service.base.errors import NotReady, UnknownModel
from service.models.catalog import Models
from service.models.serving import Serving
from service.tasks.classification import Classifier
from service.tasks.embedding import Embedder
from service.tasks.translation import Translator

Model = Translator | Classifier | Embedder


def named(models: Models, name: str) -> Model:
    """One model.

    Raises:
        UnknownModel: there is none of this name.
    """
    by_name = {model.manifest.name: model for model in models}
    if name not in by_name:
        raise UnknownModel(f"No model is named {name!r}; available: {', '.join(by_name)}")
    return by_name[name]


def is_ready(serving: Serving, name: str) -> bool:
    """Whether a model takes requests, for each of its tasks."""
    return all(state.ready for state in serving.states() if state.model == name)


def check_ready(serving: Serving, name: str) -> None:
    """Raises UnknownModel, NotReady."""
    with serving.use() as models:
        named(models, name)
    if not is_ready(serving, name):
        raise NotReady(f"Model {name} is not ready; /health/ready says why")

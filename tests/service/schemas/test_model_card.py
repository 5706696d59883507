from typing import Any

import pytest

from manifest.schema import SMALL_PARAMETERS, Manifest
from service.base.artifact import Artifact
from service.schemas.answers import ModelCard

OPUS = {"source": "Helsinki-NLP/opus-mt-en-fr", "revision": "0123abc"}


def card_of(manifest: Manifest) -> dict[str, Any]:
    return ModelCard.of(manifest, "cpu", ["en"], ["fr"], []).model_dump(exclude_none=True)


@pytest.mark.parametrize(
    ("parameters", "origin", "small"),
    [
        (SMALL_PARAMETERS - 1, None, True),
        (SMALL_PARAMETERS, None, False),
        (SMALL_PARAMETERS - 1, OPUS, False),
        (None, None, False),  # written before the number was recorded
    ],
)
def test_a_model_is_small_if_it_was_trained_with_attend_and_has_few_parameters(
    translator_artifact: Artifact, parameters: int | None, origin: dict[str, str] | None, small: bool
) -> None:
    changes = {"parameters": parameters, "origin": origin}
    manifest = Manifest.model_validate(translator_artifact.manifest.model_dump() | changes)
    assert card_of(manifest)["small"] is small


def test_an_imported_model_tells_where_it_came_from_and_its_licence(translator_artifact: Artifact) -> None:
    changes = {"parameters": 75_000_000, "origin": OPUS, "licence": "apache-2.0"}
    card = card_of(Manifest.model_validate(translator_artifact.manifest.model_dump() | changes))
    assert {name: card[name] for name in changes} == changes

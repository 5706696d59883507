"""Bodies of every route, of all dialects too, are refused without an error for each of their items."""

import json
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from tests.service.conftest import Client

pytestmark = pytest.mark.anyio

MANY = 200
WRONG_ITEMS = [1, None, "", [1], {}, -1]


def models_of(value: Any) -> set[type[BaseModel]]:
    """The models in an annotation."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        return {value}.union(*(models_of(field.annotation) for field in value.model_fields.values()))
    return set().union(*map(models_of, getattr(value, "__args__", ())))


async def test_a_list_of_wrong_items_gets_few_errors(client: Client) -> None:
    routes = client._transport.app.routes  # type: ignore[attr-defined]
    bodies = [route.body_field for route in routes if isinstance(route, APIRoute) and route.body_field]
    models = set().union(*(models_of(body.field_info.annotation) for body in bodies))
    assert len(models) > 20
    for model in models:
        for name in model.model_fields:
            for item in WRONG_ITEMS:
                for value in ([item] * MANY, {str(i): item for i in range(MANY)}, [{name: [item] * MANY}]):
                    assert n_errors(model, {name: value}) < 20, (model, name, item)


def n_errors(model: type[BaseModel], value: object) -> int:
    try:
        model.model_validate_json(json.dumps(value))
    except ValidationError as error:
        return error.error_count()
    return 0

"""SQLAlchemy, and the tables, which are imported when they are first used.

The import takes 0.14 s and 10 MB, and most services never store anything.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["sa", "tables"]


class _AtFirstUse:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.storage import tables
else:
    sa, tables = _AtFirstUse("sqlalchemy"), _AtFirstUse("service.storage.tables")

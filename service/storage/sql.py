"""SQLAlchemy, and modules of tables, which are imported when they are first used.

The import takes 0.14 s and 10 MB, and most services never store anything.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

MODULES_OF_TABLES = ["service.storage.tables"]
"""The modules whose tables are made when a database is opened."""


class _AtFirstUse:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def tables_of(room: str) -> Any:
    """Return the module with the tables of a room. They are made in every database that is opened from now on."""
    MODULES_OF_TABLES.append(f"{room}.tables")
    return _AtFirstUse(MODULES_OF_TABLES[-1])


if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.storage import tables
else:
    sa, tables = _AtFirstUse("sqlalchemy"), _AtFirstUse(MODULES_OF_TABLES[0])

__all__ = ["MODULES_OF_TABLES", "sa", "tables", "tables_of"]

"""What all tables that servers share have in common, and the table of their version. Other tables lie with their
owners, each in a module `tables` that is imported when the database is first used.

Servers of two releases may use one database at the same time. So a release only adds tables, and columns that may be
null or have a default in the database (`server_default`); VERSION stays. A table or column that is no longer needed is
removed a release later, with a higher VERSION, which refuses servers that would still use it.
"""

import sqlalchemy as sa

VERSION = 1

METADATA = sa.MetaData()


class Text(sa.TypeDecorator[str]):
    """Any text. What a database cannot store, NUL and lone surrogates, becomes a replacement character."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _: sa.Dialect) -> str | None:
        if value is None:
            return None
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def text_column(name: str) -> sa.Column[str]:
    return sa.Column(name, Text, nullable=False)


SCHEMA = sa.Table("attend_schema", METADATA, sa.Column("version", sa.Integer, nullable=False))
"""One row: the version of all tables."""

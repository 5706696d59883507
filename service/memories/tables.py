"""The tables of translation memories."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from service.storage.tables import METADATA, Text, text_column

INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
"""Inserts that may replace rows, by dialect."""
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

MEMORIES = sa.Table(
    "attend_memories",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    text_column("name"),
    text_column("source"),
    text_column("target"),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("n_segments", sa.Integer, nullable=False, server_default="0"),
    sa.Column("owner", sa.Text),
    sa.Column("job", sa.Text),
    sqlite_autoincrement=True,
)
"""`owner` is the client of a key; null: everybody. `job` is the id of the document that was read into it last."""
SEGMENTS = sa.Table(
    "attend_segments",
    METADATA,
    sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("memory", sa.ForeignKey(MEMORIES.c.number), nullable=False),
    sa.Column("key", sa.BigInteger, nullable=False),
    text_column("source"),
    text_column("target"),
    sa.Column("context", Text),
    sa.Column("author", Text),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("is_reviewed", sa.Boolean, nullable=False),
    sa.Column("grams", postgresql.ARRAY(sa.Integer).with_variant(sa.LargeBinary, "sqlite")),
    sa.UniqueConstraint("memory", "key"),
    sa.Index("attend_grams", "grams", postgresql_using="gin").ddl_if(dialect="postgresql"),
)
"""`key` is the hash of a source. `grams` is what finds it among similar ones. In place of that column, SQLite has a
table of FTS5 for each memory, attend_grams_NUMBER, which is deleted at once with the memory."""

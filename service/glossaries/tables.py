"""The tables of glossaries."""

import sqlalchemy as sa

from service.storage.tables import METADATA, text_column

GLOSSARIES = sa.Table(
    "attend_glossaries",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    text_column("name"),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("owner", sa.Text),
)
"""`owner` is the client of a key; null: everybody."""
DICTIONARIES = sa.Table(
    "attend_dictionaries",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("glossary", sa.ForeignKey(GLOSSARIES.c.id, ondelete="CASCADE"), nullable=False),
    text_column("source"),
    text_column("target"),
    text_column("entries"),
    sa.Column("n_entries", sa.Integer, nullable=False),
    text_column("version"),
    sa.UniqueConstraint("glossary", "source", "target"),
)
"""`number` counts up, so that the dictionaries of a glossary stay in the order in which they came."""

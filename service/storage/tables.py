"""The tables that servers share. `Database` imports this module at its first use.

Servers of two releases may use one database at the same time. So a release only adds tables, and columns that may be
null or have a default in the database (`server_default`); VERSION stays. What is no longer needed is removed a release
later, with a higher VERSION, which refuses servers that would still use it.
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


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, Text, nullable=False)


SCHEMA = sa.Table("attend_schema", METADATA, sa.Column("version", sa.Integer, nullable=False))
"""One row: the version of all tables."""

JOBS = sa.Table(
    "attend_jobs",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    _text("file_name"),
    _text("kind"),
    _text("source"),
    _text("target"),
    _text("options"),
    sa.Column("status", sa.Text, nullable=False, server_default="queued"),
    sa.Column("n_characters", sa.Integer, nullable=False),
    sa.Column("n_translated", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("deadline", sa.Double, nullable=False),
    sa.Column("begun_at", sa.Double),
    sa.Column("finished_at", sa.Double),
    sa.Column("error", Text),
    sa.Column("key_digest", sa.LargeBinary, nullable=False),
    sa.Column("owner", sa.Text),
    sa.Column("seen_at", sa.Double),
    sa.Column("n_claims", sa.Integer, nullable=False, server_default="0"),
    sa.Column("fetched", sa.Integer, nullable=False, server_default="0"),
    sa.Index("attend_queue", "status", "created_at"),
)

FILES = sa.Table(
    "attend_files",
    METADATA,
    sa.Column("job", sa.ForeignKey(JOBS.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""The original of each job, which its translation replaces. A table of its own, as SQLite writes whole rows."""

GLOSSARIES = sa.Table(
    "attend_glossaries",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    _text("name"),
    sa.Column("created_at", sa.Double, nullable=False),
)

DICTIONARIES = sa.Table(
    "attend_dictionaries",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("glossary", sa.ForeignKey(GLOSSARIES.c.id, ondelete="CASCADE"), nullable=False),
    _text("source"),
    _text("target"),
    _text("entries"),
    sa.Column("n_entries", sa.Integer, nullable=False),
    _text("version"),
    sa.UniqueConstraint("glossary", "source", "target"),
)
"""`number` counts up, so that the dictionaries of a glossary stay in the order in which they came."""

USAGE = sa.Table(
    "attend_usage",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("month", sa.Text, primary_key=True),
    sa.Column("characters", sa.BigInteger, nullable=False),
)
"""Characters that the key of a name has used in a month of UTC, such as 2026-11."""

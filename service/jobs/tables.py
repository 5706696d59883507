"""The tables of jobs."""

import sqlalchemy as sa

from service.storage.tables import METADATA, Text, text_column

JOBS = sa.Table(
    "attend_jobs",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    text_column("file_name"),
    text_column("kind"),
    text_column("source"),
    text_column("target"),
    text_column("options"),
    sa.Column("status", sa.Text, nullable=False, server_default="queued"),
    sa.Column("n_characters", sa.Integer, nullable=False),
    sa.Column("n_translated", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("deadline", sa.Double, nullable=False),
    sa.Column("begun_at", sa.Double),
    sa.Column("finished_at", sa.Double),
    sa.Column("error", Text),
    sa.Column("code", sa.Text),
    sa.Column("least_sure", Text),
    sa.Column("key_digest", sa.LargeBinary, nullable=False),
    sa.Column("owner", sa.Text),
    sa.Column("seen_at", sa.Double),
    sa.Column("n_claims", sa.Integer, nullable=False, server_default="0"),
    sa.Column("fetched", sa.Integer, nullable=False, server_default="0"),
    sa.Column("callback_url", Text),
    sa.Column("next_call_at", sa.Double),
    sa.Column("n_calls", sa.Integer, nullable=False, server_default="0"),
    sa.Index("attend_queue", "status", "created_at"),
)

FILES = sa.Table(
    "attend_files",
    METADATA,
    sa.Column("job", sa.ForeignKey(JOBS.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""The original of each job, which its translation replaces. A table of its own, as SQLite writes whole rows."""

REPEATS = sa.Table(
    "attend_repeats",
    METADATA,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("job", sa.ForeignKey(JOBS.c.id, ondelete="CASCADE"), nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
)
"""The requests with an Idempotency-Key: a digest of it and its client, one of what was sent, and the document's key."""

"""The table of usage."""

import sqlalchemy as sa

from service.storage.tables import METADATA

USAGE = sa.Table(
    "attend_usage",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("month", sa.Text, primary_key=True),
    sa.Column("characters", sa.BigInteger, nullable=False),
)
"""Characters that the key of a name has used in a month of UTC, such as 2026-11."""

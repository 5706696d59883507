"""The card of an imported model: origin, licence, and settings that are not followed."""

from collections.abc import Sequence

import yaml

from model.config import Config


def card_of(config: Config, notes: Sequence[str]) -> str:
    """Return the text of README.md."""
    provenance = config.provenance
    assert provenance is not None, "it was imported"
    front = yaml.safe_dump({"license": provenance.licence or "unknown"}).strip()
    revision = f", revision `{provenance.revision}`" if provenance.revision else ""
    licence = (
        f"Its owner's licence is {provenance.licence}. Read what it asks of you before you use the model."
        if provenance.licence
        else "Its source names no licence. Ask its owner before you use it."
    )
    not_followed = "".join(f"\n- {note}." for note in notes)
    parts = [
        f"---\n{front}\n---\n\n# {config.name}",
        f"{config.description} Imported from `{provenance.source}`{revision}; it was trained there.",
        f"## Licence\n\n{licence}",
        *([f"## What is not followed\n{not_followed}"] if notes else []),
    ]
    return "\n\n".join(parts) + "\n"

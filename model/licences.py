"""What the licences of training text ask of those who use the weights. No legal advice."""

import re
from collections.abc import Mapping

NO_COMMERCE = "no commercial use"
FOR_RESEARCH = "made for research: take advice before commercial use"
NO_LICENCE = "no licence was given: rights stay with the authors"

TERMS = {
    r"-NC|multi30k": NO_COMMERCE,
    r"research use|for research": FOR_RESEARCH,
    r"no formal licence|^(not known|unknown|none)?$": NO_LICENCE,
    r"AGPL": "what is derived and passed on, or offered over a network, stays under the AGPL, with its source",
    r"(?<![AL])GPL": "what is derived and passed on stays under the GPL, with its source",
    r"LGPL": "changed versions that are passed on stay under the LGPL, with their source",
    r"MPL": "changed files that are passed on stay under the MPL, with their source",
    r"GFDL": "copies and changed versions stay under the GFDL, with its text and the names of the authors",
    r"BY-(NC-)?SA": "name the source, pass adaptations on under the same licence",
    r"BY [\d.]+|Open Government|acknowledgement": "name the source",
    r"BSD|MIT|PSF|Open Publication|(?i:apache)": "keep the notice",
    r"CC0": "nothing is asked",
}
"""Terms by patterns of the names of licences."""


def terms_of(licence: str) -> list[str]:
    """Return what a licence asks; nothing if its name is not known."""
    return [terms for pattern, terms in TERMS.items() if re.search(pattern, licence.strip())]


def permits_commerce(licence: str) -> bool:
    """Whether no term of a licence is known to stand in the way of commercial use; a missing licence does."""
    return not {NO_COMMERCE, FOR_RESEARCH, NO_LICENCE} & set(terms_of(licence))


def without_commerce(licences: Mapping[str, str]) -> list[str]:
    """Return the corpora, of those named with their licences, that are not for commercial use."""
    return [file for file, licence in licences.items() if not permits_commerce(licence)]

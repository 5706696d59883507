"""Languages, and the directions in which a translator goes."""

from dataclasses import dataclass

from service.artifact import Language


@dataclass(frozen=True)
class Direction:
    """From one language to another, and the tokens that tell a model about it.

    Attributes:
        source_prefix: put in front of a source.
        target_prefix: with which a target begins.
    """

    source: str
    target: str
    source_prefix: tuple[int, ...] = ()
    target_prefix: tuple[int, ...] = ()

    @classmethod
    def of(cls, source: Language, target: Language) -> "Direction":
        prefix = source.source_prefix + target.source_prefix
        return cls(source.code, target.code, prefix, target.target_prefix)

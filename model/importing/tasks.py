"""Tasks of models that read what to do as text: languages where a task is a translation, and prompts.

A language is named by a token before the text (<2fr>), or by a sentence ("translate English to French: "), of which one
part names the source and the other one the target.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

from manifest.schema import ANY_LANGUAGE, NO_LANGUAGE, Language
from model.importing.imported import ModelImportError, Options

LANGUAGE_TOKEN = re.compile(r"<2([a-z]{2,3}(?:_[A-Za-z]{2,4})*)>")
TRANSLATION = re.compile(r"translation_([A-Za-z_]+)_to_([A-Za-z_]+)")
"""Name of a task that is a translation."""
SENTENCE = re.compile(r"(.*\S)\s+(to\s.*)", re.DOTALL)
"""Prompt of a translation, with the part that names its source and the part that names its target."""
NO_PROMPT = "none"
"""Name of the prompt without text, for texts that say themselves what to do."""
Prefixes = Mapping[str, tuple[int, ...]]
"""Tokens before a text, by the language that they name."""


@dataclass(frozen=True)
class TextTasks:
    """Languages of a model, and its prompts by name."""

    sources: tuple[Language, ...]
    targets: tuple[Language, ...]
    prompts: dict[str, str]

    @property
    def description(self) -> str:
        """What the model does."""
        if self.targets == (Language(code=NO_LANGUAGE),):
            return "text to text"
        sides = ([language.code for language in side] for side in (self.sources, self.targets))
        return " to ".join(", ".join(codes) if len(codes) < 5 else f"{len(codes)} languages" for codes in sides)


def tasks_of(tokenizer: Tokenizer, config: Mapping[str, Any], options: Options) -> TextTasks:
    """Return the languages and prompts of a model.

    Languages are those of tokens, or of prompts, which config.json or the import's options have; or else those that the
    options name. A model without any reads and writes text.

    Raises:
        ModelImportError: the model does not have a language that was asked for.
    """
    said = config.get("task_specific_params") or {}
    prompts = {name: str(task["prefix"]) for name, task in said.items() if isinstance(task, dict) and "prefix" in task}
    prompts |= options.prompts
    sources, targets = _of_tokens(tokenizer) or _of_prompts(tokenizer, prompts)
    if not targets:
        sources = dict.fromkeys(options.sources or (ANY_LANGUAGE,), ())
        targets = dict.fromkeys(options.targets or (NO_LANGUAGE,), ())
    return TextTasks(
        tuple(Language(code=code, source_prefix=sources.get(code, ())) for code in chosen(sources, options.sources)),
        tuple(Language(code=code, source_prefix=targets[code]) for code in chosen(targets, options.targets)),
        prompts | {NO_PROMPT: ""} if prompts else {},
    )


def chosen(codes: Iterable[str], asked: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages that were asked for; all if none was. Raises ModelImportError: the model does not have one
    of them."""
    known = tuple(codes)
    for code in asked:
        if code not in known and ANY_LANGUAGE not in known:
            raise ModelImportError(f"unknown language {code}; the model has {', '.join(known)}")
    return asked or known


def _of_tokens(tokenizer: Tokenizer) -> tuple[Prefixes, Prefixes] | None:
    """Return the languages whose tokens the vocabulary has, and any language as the source, which nothing names."""
    added = {token.content: (i,) for i, token in tokenizer.get_added_tokens_decoder().items()}
    names = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    languages = {match[1]: name for name, _ in names if (match := LANGUAGE_TOKEN.fullmatch(name))}
    prefixes = {code: added.get(name) or _ids(tokenizer, name) for code, name in languages.items()}
    return (dict.fromkeys([*languages, ANY_LANGUAGE], ()), prefixes) if languages else None


def _of_prompts(tokenizer: Tokenizer, prompts: Mapping[str, str]) -> tuple[Prefixes, Prefixes]:
    """Return the languages that prompts name: those whose two parts have the same tokens as the whole."""
    sources, targets = dict[str, tuple[int, ...]](), dict[str, tuple[int, ...]]()
    for name, prompt in prompts.items():
        if (task := TRANSLATION.fullmatch(name)) is None:
            continue
        parts = SENTENCE.fullmatch(prompt)
        reads, writes = (_ids(tokenizer, part) for part in (parts.groups() if parts else (prompt, "")))
        is_whole = reads + writes == _ids(tokenizer, prompt)
        if is_whole and sources.get(task[1], reads) == reads and targets.get(task[2], writes) == writes:
            sources[task[1]], targets[task[2]] = reads, writes
    return sources, targets


def _ids(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.encode(text, add_special_tokens=False).ids)

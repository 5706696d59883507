"""The settings of the environment, the command line, and messages about what is wrong with them."""

import argparse
import difflib
import logging
import os
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from service import __version__
from service.base.errors import StartRefused
from service.base.settings import ADDRESS_OF_A_SERVICE, PREFIX, Settings

logger = logging.getLogger(__name__)

ABOUT = "attend: translation, classification and embeddings by encoder-decoder Transformers, over HTTP."

SETTINGS = "settings are environment variables; --port 9000 sets ATTEND_PORT, and so on:"

FETCHED = ("languages", "size")
"""Options that are no settings: `attend fetch` has them."""
SECRETS = {name for name, field in Settings.model_fields.items() if "SecretStr" in repr(field.annotation)}
"""Settings whose values no message and no argument may contain."""
MAX_ANNOUNCED = 500
"""Variables whose names are compared with those of settings, which takes a while."""
KUBERNETES_NAMES = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
"""Names, behind `ATTEND_`, of the variables that Kubernetes sets for a Service called attend or attend-something. Its
`ATTEND_PORT` is known by its value."""
SUBJECT = re.compile(r"^\w+ should ")
"""Pydantic's messages begin with "Input should"."""
MESSAGES = dict.fromkeys(("byte_size", "byte_size_unit"), "must be a number of bytes, or a size such as 16MB")
"""In place of pydantic's own messages, by their type."""


def take_arguments(arguments: Sequence[str], program: str = "python -m service") -> list[str]:
    """Set the variables of the environment that the arguments name, such as ATTEND_PORT by `--port 9000`. Exits if an
    argument asks for the help or the version, and with status 2 for an unknown argument.

    Returns:
        The arguments of `attend fetch` that say which models to fetch first; none if none are.
    """
    parser = argparse.ArgumentParser(
        prog=program,
        usage="%(prog)s [ARTIFACTS] [--SETTING VALUE ...]",
        description=ABOUT,
        epilog=f"{SETTINGS}\n\n" + "\n".join(_described()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"attend {__version__}")
    folder = "folder with a folder for each model"
    parser.add_argument("artifacts", nargs="?", default=argparse.SUPPRESS, metavar="ARTIFACTS", help=folder)
    first = "first fetch good models that translate between these languages; attend fetch --help tells more"
    parser.add_argument("--languages", metavar="en,fr,uk", help=first)
    parser.add_argument("--size", help="small, medium or large: size of these models")
    for name in Settings.model_fields:
        if name not in SECRETS:
            parser.add_argument(_option(name), dest=name, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    given, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.exit(2, _refusal(unknown[0]))
    fetched = [f"--{name}={value}" for name in FETCHED if (value := vars(given).pop(name)) is not None]
    os.environ.update({_variable(name): value for name, value in vars(given).items()})
    return fetched


def _refusal(argument: str) -> str:
    option, _, _ = argument.partition("=")
    setting = _nearest(option.lstrip("-").replace("-", "_")) if option.startswith("-") else None
    advice = "--help lists the settings"
    if setting in SECRETS:  # every user of the machine sees the arguments of a process
        advice = f"set {_variable(setting)} in the environment"
    elif setting is not None:
        advice = f"did you mean {_option(setting)}?"
    return f"attend takes no argument {option}; {advice}\n"


def read_settings() -> Settings:
    """Return the settings of the environment. Raises StartRefused: a setting is wrong. The message has its value, but
    never a key."""
    try:
        return Settings()
    except ValidationError as error:
        raise StartRefused("; ".join(map(_sentence, error.errors()))) from None
    except (OSError, SettingsError) as error:
        raise StartRefused(f"A file in {_variable('secrets')} cannot be read: {error}") from None


def announce(settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
    """Warn of settings whose effect may surprise."""
    ours = sorted(name for name in environment if name.upper().startswith(PREFIX))
    for name in ours[:MAX_ANNOUNCED]:
        _announce_variable(name, environment[name])
    if len(ours) > MAX_ANNOUNCED:
        logger.warning("only %d of the %d variables %s... were looked at", MAX_ANNOUNCED, len(ours), PREFIX)
    if not settings.api_keys and settings.api_keys_file is None:
        logger.info("there are no API keys: anybody who reaches the service may use it")


def _announce_variable(name: str, value: str) -> None:
    setting = name[len(PREFIX) :].lower()
    is_address = ADDRESS_OF_A_SERVICE.match(value) is not None
    if setting == "port" and is_address:
        default = Settings.model_fields[setting].default
        logger.warning("%s is an address, as Kubernetes sets it for a Service; the port is %d", name, default)
    elif setting not in Settings.model_fields and not _is_set_by_kubernetes(setting.upper(), is_address):
        nearest = _nearest(setting)
        logger.warning("%s is no setting%s", name, f"; did you mean {_variable(nearest)}?" if nearest else "")


def _is_set_by_kubernetes(name: str, is_address: bool) -> bool:
    return KUBERNETES_NAMES.fullmatch(name) is not None or (name.endswith("_PORT") and is_address)


def _nearest(name: str) -> str | None:
    name = name.lower()
    return next(iter(difflib.get_close_matches(name, Settings.model_fields, 1)), None)


def _variable(setting: str) -> str:
    return PREFIX + setting.upper()


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def _sentence(problem: ErrorDetails) -> str:
    message = SUBJECT.sub("must ", problem["msg"].removeprefix("Value error, "))
    setting, message = str(problem["loc"][0]), MESSAGES.get(problem["type"], message)
    if setting in SECRETS:
        return f"{_variable(setting)} {message}"
    value = problem["input"]
    shown = shown_value(value) if isinstance(value, (list, tuple)) else repr(value)
    return f"{_variable(setting)} is {shown}: {message}"


def shown_value(value: object) -> str:
    """Return a value as its variable has it."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _described() -> Iterator[str]:
    width = min(100, shutil.get_terminal_size().columns)
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, "", (), frozenset()) else f" (default: {shown_value(field.default)})"
        yield f"  {_variable(name)}{default}"
        yield textwrap.fill(field.description or "", width, initial_indent="      ", subsequent_indent="      ")

"""The command `attend`. It imports a part of the project only when a command of that part is asked for.

It stands outside of the packages: what serves artifacts never imports what makes them.
"""

import difflib
import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

from service import __version__

RUNTIME = "onnxruntime"
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


@dataclass(frozen=True)
class Command:
    """A command of `attend`.

    Attributes:
        does: one line for the help.
        module: has a function `run(arguments, program)`.
        extras: what installs all that it imports: names of `optional-dependencies` in pyproject.toml.
    """

    does: str
    module: str
    extras: str


COMMANDS = {
    "serve": Command("serve the models of a folder over HTTP", "service.__main__", "cpu"),
    "fetch": Command("fetch good models of languages, to serve them", "export.languages", "cpu,import"),
    "pack": Command("write one file with models, for a machine without a network", "export.packing", "cpu,import"),
    "unpack": Command("unpack the models of such a file", "export.unpacking", "cpu"),
    "translate": Command("translate a file, without a server", "service.translate", "cpu"),
    "import": Command("import a model of others, to serve it", "export.importing", "cpu,import"),
    "export": Command("export a checkpoint as an artifact", "export.__main__", "cpu,import"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. A command that is not there or lacks packages ends with one sentence, and status 2 or 1."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("--version", "-V"):
        print(f"attend {__version__}")
    elif name in ("--help", "-h", "help"):
        print(_help())
    elif name in COMMANDS:
        with suppress(KeyboardInterrupt):
            _run(name, rest)
            return
        sys.exit(INTERRUPTED)
    else:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        advice = f"did you mean {near[0]}?" if near else f"available: {', '.join(COMMANDS)}"
        print(f"attend has no command {name}; {advice}", file=sys.stderr)
        sys.exit(2)


def _run(name: str, arguments: Sequence[str]) -> None:
    command = COMMANDS[name]
    if find_spec(RUNTIME) is None:  # its import comes late, in another process
        sys.exit(_missing(name, RUNTIME))
    try:
        importlib.import_module(command.module).run(arguments, f"attend {name}")
    except ModuleNotFoundError as error:
        sys.exit(_missing(name, error.name))


def _missing(name: str, package: str | None) -> str:
    extras = COMMANDS[name].extras
    return f'attend {name} needs {package}, which is not installed: in a clone of attend, run pip install ".[{extras}]"'


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = (f"  {name.ljust(width)}  {command.does}" for name, command in COMMANDS.items())
    return "\n".join(
        (
            "usage: attend COMMAND ...",
            "",
            *lines,
            "",
            "attend COMMAND --help tells more about a command, attend --version the version.",
        )
    )


if __name__ == "__main__":
    main()

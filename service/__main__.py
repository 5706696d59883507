"""`python -m service`, and `attend serve`."""

from collections.abc import Sequence


def run(arguments: Sequence[str], program: str = "python -m service") -> None:
    """Serve until a signal comes."""
    # Imported only here: other processes may import this module too, and have no use for a server.
    from service.base.configuration import take_arguments

    fetched = take_arguments(arguments, program)

    from service.server.start import main

    main(fetched)


if __name__ == "__main__":
    import sys

    run(sys.argv[1:])

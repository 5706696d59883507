"""`python -m service`."""

if __name__ == "__main__":
    # Imported only here: other processes may import this module too, and have no use for a server.
    import sys

    from service.base.configuration import take_arguments

    take_arguments(sys.argv[1:])

    from service.server.start import main

    main()

"""`python -m service`."""

if __name__ == "__main__":
    # Imported only here: other processes may import this module too, and have no use for a server.
    from service.http.server import main

    main()

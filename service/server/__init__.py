"""The life of the processes that listen: start, supervision, connections, draining, health."""

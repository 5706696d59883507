"""The targets: each module has a `TARGET`."""

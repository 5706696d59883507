"""The pages for browsers: the playground and the documentation of the interface."""

"""Continuous batching: who waits and who runs, in which process, and the searches that share its steps."""

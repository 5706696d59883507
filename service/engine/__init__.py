"""Continuous batching: the scheduler, the searches that share its steps, and the loop that steps the engines."""

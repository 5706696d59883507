"""What an artifact is: the schema of its manifest.json, the names of its files, and their sums.

`export` writes artifacts; `model` and `service` read them. This package is below all of them: it needs pydantic alone.
"""

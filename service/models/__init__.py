"""The models that serve: which one answers a request, how they are loaded, and how new ones take their place."""

"""What an interface may ask of the models: which one answers, and how new ones take their place."""

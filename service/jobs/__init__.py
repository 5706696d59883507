"""Documents that are translated in parts, while their clients ask now and then how far they are. No HTTP."""

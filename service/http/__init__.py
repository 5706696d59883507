"""HTTP: routes, middleware, keys and rates, and the answers to errors."""

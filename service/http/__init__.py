"""HTTP: routes, the two layers of the middleware, and the answers to errors."""

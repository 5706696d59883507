"""HTTP: routes, middleware, keys and rates, errors as answers, and the server's life."""

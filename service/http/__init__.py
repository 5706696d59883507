"""What HTTP asks of the service: routes, middleware, schemas, errors as answers."""

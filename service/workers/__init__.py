"""The processes that hold models: loading, forking, placing requests on them, and the wire between them."""

"""The processes that hold models: loading, forking, distributing requests, and the messages between them."""

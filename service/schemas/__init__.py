"""What clients send and get: shared by the tasks and HTTP."""

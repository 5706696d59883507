"""The server's side of workers: it starts them, chooses one for each sequence, and keeps answers."""

"""What travels between a server and its workers: what a pass reads and returns, the plan, the messages."""

"""attend against its peers: same weights, same machine, side by side in one run."""
